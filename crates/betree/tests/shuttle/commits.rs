//! Group commit: acknowledged commits are durable, in the order of commits, and a failed sync ends
//! commits for every writer.

use std::sync::Arc;

use betree::{Durability, ErrorKind};
use sim::{Crash, Fault, FaultKind, Outcome, Pages, Profile};

use crate::books::{Books, join, thread, tiny};
use crate::explore::{draw, explore};

/// A crash that keeps only what was synced.
pub(crate) fn drops_everything() -> Crash {
    Crash {
        profile: Profile::DropsEverything,
        outcome: Outcome::None,
        seed: 0,
    }
}

/// A crash whose outcome depends on the schedule.
pub(crate) fn any_crash() -> Crash {
    let outcomes = [
        Outcome::None,
        Outcome::All,
        Outcome::AllButLast,
        Outcome::Random,
    ];
    Crash {
        profile: Profile::Atomic512,
        outcome: outcomes[usize::try_from(draw(4)).unwrap()],
        seed: draw(u64::MAX),
    }
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_any_moment() {
    explore(500, || {
        let books = Books::new(3, 50, &tiny());
        let crasher = {
            let books = Arc::clone(&books);
            thread(move || {
                let acknowledged = books.acknowledged();
                let image = books.disk.image(any_crash());
                drop(books.recover(&image, &tiny(), &acknowledged));
            })
        };
        join([
            books.writer(0, 2, Durability::Group),
            books.writer(1, 2, Durability::Sync),
            books.writer(2, 2, Durability::Interval),
            crasher,
        ]);
        let image = books.disk.image(drops_everything());
        drop(books.recover(&image, &tiny(), &books.acknowledged()));
    });
}

#[test]
fn large_commits_change_buffers_and_segments_under_the_feet_of_others() {
    explore(300, || {
        // A batch is more than a piece; two of them fill a buffer, and a few a segment.
        let books = Books::new(3, 4_000, &tiny());
        join([
            books.writer(0, 4, Durability::Group),
            books.writer(1, 4, Durability::Interval),
            books.writer(2, 4, Durability::Sync),
        ]);
        let image = books.disk.image(drops_everything());
        drop(books.recover(&image, &tiny(), &books.acknowledged()));
    });
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    explore(500, || {
        let books = Books::new(3, 50, &tiny());
        let pages = if draw(2) == 0 {
            Pages::Keep
        } else {
            Pages::Revert
        };
        let fails = FaultKind::SyncFails(pages);
        books
            .disk
            .inject(Fault::once("log.sync", 1 + draw(4), fails));
        let writer = |writer| {
            let books = Arc::clone(&books);
            thread(move || {
                for number in 1..=3 {
                    if let Err(error) = books.write(writer, number, Durability::Group) {
                        let kind = error.kind();
                        assert!(matches!(kind, ErrorKind::Io | ErrorKind::Closed), "{error}");
                        let later = books.write(writer, number + 1, Durability::None);
                        assert_eq!(later.unwrap_err().kind(), ErrorKind::Closed);
                        return;
                    }
                }
            })
        };
        join([writer(0), writer(1), writer(2)]);
        books.audit(&books.db.begin_read().unwrap());
        let image = books.disk.image(drops_everything());
        drop(books.recover(&image, &tiny(), &books.acknowledged()));
    });
}

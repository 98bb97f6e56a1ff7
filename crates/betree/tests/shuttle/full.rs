//! Full memory and failing flushes.

use std::sync::Arc;

use betree::{Durability, Options};
use sim::{Fault, FaultKind};

use crate::books::{Books, join, thread, tiny};
use crate::explore::{draw, explore};

/// Three batches fill the memory.
fn small() -> Options {
    tiny().with_buffer_share(0.05)
}

#[test]
fn commits_that_find_memory_full_make_room_together() {
    explore(200, || {
        let books = Books::new(3, 3_000, &small());
        join([
            books.writer(0, 5, Durability::None),
            books.writer(1, 5, Durability::None),
            books.writer(2, 5, Durability::None),
        ]);
        books.audit(&books.db.begin_read().unwrap());
    });
}

/// A buffer that is shared by the parts of a split bucket is flushed into each, once, whatever
/// attempts fail on the way.
#[test]
fn a_flush_that_failed_is_finished_later() {
    explore(300, || {
        let books = Books::new(2, 700, &tiny());
        books
            .disk
            .inject(Fault::once("flush.write", 1 + draw(6), FaultKind::Eio));
        books
            .disk
            .inject(Fault::once("flush.write", 1 + draw(6), FaultKind::Enospc));
        let worker = || {
            let books = Arc::clone(&books);
            thread(move || {
                for _ in 0..2 {
                    // The error is the fault's; the work is tried again.
                    let _ = books.db.settle(std::time::Duration::ZERO);
                    for _ in 0..20 {
                        let _ = books.db.step();
                    }
                }
            })
        };
        join([
            books.writer(0, 4, Durability::None),
            books.writer(1, 4, Durability::None),
            worker(),
            worker(),
        ]);
        books.disk.clear_faults();
        books.audit(&books.db.begin_read().unwrap());
        assert!(books.db.settle(std::time::Duration::from_secs(60)).unwrap());
        books.audit(&books.db.begin_read().unwrap());
    });
}

//! Initial sync: when it is needed, from which member, and what its end means (`cluster::sync`).

use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use repl::event::{Event, State};
use repl::position::{MemberId, Position};
use tokio::task::JoinHandle;

use super::{Done, Driver, Seat};
use crate::cluster::standing::Standing;
use crate::cluster::sync::status::ATTEMPTS_MAX;
use crate::cluster::sync::task::{Attempt, Outcome};
use crate::long::long;

/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

/// The least time for which a source that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The initial sync of this member.
#[derive(Debug, Default)]
pub(super) struct Syncing {
    /// Whether the member needs one.
    needed: bool,
    /// When that was known.
    since: Duration,
    /// The number of the last attempt.
    number: u64,
    running: Option<Running>,
    /// No attempt begins before this.
    pause: Duration,
    failed: u32,
    /// Whether the next attempt continues nothing.
    afresh: bool,
    /// The source of the last attempt, and whether it was lost.
    source: Option<(u32, bool)>,
}

/// The task of an attempt, which ends with its driver.
#[derive(Debug)]
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Driver {
    /// The member was stopped during an initial sync.
    pub(super) fn resume_sync(&mut self) {
        if self.storage.copying().is_none() {
            return;
        }
        self.log(9_100_061, "Initial sync continues after a restart", doc! {});
        self.need_sync();
    }

    /// The member needs the data of another one.
    pub(super) fn need_sync(&mut self) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        if !seat.syncing.needed {
            seat.syncing.needed = true;
            seat.syncing.since = now;
            self.status.begin();
        }
        self.step(Event::InitialSync);
    }

    /// Begin an attempt, if one is due.
    pub(super) fn synchronize(&mut self) {
        let now = self.now();
        let Some(seat) = &self.seat else { return };
        if !seat.syncing.needed {
            return;
        }
        // A configuration without this member can have been replaced by one with it.
        if seat.replica.node().state() == State::Secondary {
            self.step(Event::InitialSync);
        }
        let Some(seat) = &mut self.seat else { return };
        let syncing = &seat.syncing;
        let due = syncing.running.is_none() && syncing.pause <= now;
        let waits = seat.replica.node().state() == State::Startup2;
        if !due || !waits || ATTEMPTS_MAX <= syncing.failed {
            return;
        }
        let Some(source) = self.choose() else {
            return;
        };
        self.attempt(source);
    }

    /// The member to copy: that of before, as long as it can be reached; otherwise a secondary,
    /// which has less to do than the primary.
    fn choose(&self) -> Option<u32> {
        let seat = self.seat.as_ref()?;
        let usable = |id: u32| {
            let report = seat.reports.get(&id)?;
            let standing = report.note.standing;
            let fresh = report.at.elapsed() <= seat.config.timing().election * 2;
            let has = matches!(standing, Standing::Primary | Standing::Secondary);
            let chained = standing == Standing::Primary || seat.config.timing().chaining;
            (fresh && has && chained).then_some((standing == Standing::Secondary, report.last))
        };
        let others = seat.config.members.iter();
        let others = others.filter(|m| m.id != seat.me && !m.arbiter);
        let found = others.filter_map(|member| Some((usable(member.id)?, member)));
        let found: Vec<_> = found.collect();
        let before = self.storage.copying();
        let before = before
            .as_ref()
            .and_then(|label| label.get_str("source").ok());
        let lost = |id: u32| seat.syncing.source == Some((id, true));
        let same = found.iter().find(|(_, m)| Some(m.host.as_str()) == before);
        if let Some((_, member)) = same
            && !(lost(member.id) && 1 < found.len())
        {
            return Some(member.id);
        }
        // After a restart the source of before may report later than others.
        let fresh = seat.syncing.source.is_none() && before.is_some() && same.is_none();
        if fresh && self.now() < seat.syncing.since + PATIENCE {
            return None;
        }
        let other = found.iter().filter(|(_, m)| !lost(m.id));
        other.max_by_key(|(at, _)| *at).map(|(_, member)| member.id)
    }

    fn attempt(&mut self, source: u32) {
        let address = self.host_of(source);
        let before = self.storage.copied().and_then(|_| self.storage.copying());
        if before.is_some_and(|label| label.get_str("source").ok() != Some(address.as_str())) {
            self.sync_failed("the source does not answer any more; another one is used");
        }
        let Some(seat) = &mut self.seat else { return };
        seat.syncing.number += 1;
        seat.syncing.source = Some((source, false));
        let number = seat.syncing.number;
        let attempt = Attempt {
            storage: Arc::clone(&self.storage),
            network: Arc::clone(&self.network),
            host: Arc::clone(&self.host),
            status: Arc::clone(&self.status),
            progress: self.progress.subscribe(),
            source: MemberId(source),
            address,
            afresh: std::mem::take(&mut seat.syncing.afresh),
            patience: PATIENCE.max(seat.config.timing().election * 5),
        };
        let done = self.report.clone();
        let task = tokio::spawn(async move {
            let outcome = attempt.run().await;
            // A driver that is gone needs no answer.
            let _: Result<(), _> = done.send(Done::Copied(number, outcome));
        });
        seat.syncing.running = Some(Running(task));
        let host = self.host_of(source);
        self.log(
            9_100_060,
            "Initial sync",
            doc! {"source": host, "attempt": long(number)},
        );
    }

    /// An attempt has ended.
    pub(super) fn copied(&mut self, number: u64, outcome: Outcome) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        if seat.syncing.number != number || seat.syncing.running.take().is_none() {
            return;
        }
        seat.syncing.pause = now + PAUSE;
        match outcome {
            Outcome::Complete => self.synced(),
            Outcome::Lost(why) => {
                if let Some((_, lost)) = &mut seat.syncing.source {
                    *lost = true;
                }
                seat.info = format!("the source of the initial sync does not answer: {why}");
                let message = "The source of the initial sync does not answer; another one is \
                     used if there is one, from the beginning";
                self.warn(9_100_063, message, doc! {"error": why});
            }
            Outcome::Failed(why) => self.sync_failed(&why),
        }
    }

    fn sync_failed(&mut self, why: &str) {
        self.status.failed(why);
        let Some(seat) = &mut self.seat else { return };
        seat.syncing.failed += 1;
        seat.syncing.afresh = true;
        let failed = seat.syncing.failed;
        seat.info = match failed < ATTEMPTS_MAX {
            true => format!("the initial sync restarts: {why}"),
            false => format!(
                "the initial sync has failed {failed} times; remove the cause and restart the \
                 server: {why}"
            ),
        };
        let message = "An attempt of the initial sync has failed; it restarts, up to ten times";
        self.warn(
            9_100_065,
            message,
            doc! {"error": why, "failed": i64::from(failed)},
        );
    }

    /// The store has all that its source had.
    fn synced(&mut self) {
        let started = match self.storage.start() {
            Ok(started) if started.log.last() != Position::ZERO => started,
            Ok(_) => return self.halt("the initial sync has ended without entries"),
            Err(error) => return self.halt(&error.message),
        };
        let last = started.log.last();
        let (applied, floor) = (self.storage.applied(), self.storage.floor());
        let Some(seat) = &mut self.seat else { return };
        seat.syncing = Syncing::default();
        seat.applied = applied;
        seat.floor = floor;
        seat.info.clear();
        self.status.end();
        self.host.applied();
        self.step(Event::Synced(started.log));
        let message = "Initial sync has ended: this member has the data of its source";
        self.log(
            9_100_066,
            message,
            doc! {"last": super::effects::shown(last)},
        );
    }
}

impl Seat {
    /// Whether the member has nothing to show: no entries yet, so that its set may have data that
    /// it lacks; or data that are not committed, of which it cannot take back what it has copied
    /// (`cluster::sync`: Z3).
    pub(super) fn shows_nothing(&self) -> bool {
        let node = self.replica.node();
        node.last() == Position::ZERO || node.commit() < self.floor
    }
}

//! Keeping the oplog within its limits: the next segment is made ahead of its use, and old ones are
//! removed, by a thread of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bson::Timestamp;
use kv::{Durability, ErrorKind};
use query::Result;

use crate::oplog::segment::{self, Segment};
use crate::oplog::{Limits, Log};
use crate::store::Store;
use crate::txn::Op;

/// Interval of the passes that remove expired pre-images.
const IMAGES: Duration = Duration::from_secs(1);

impl Store {
    /// Make the next segment if the current one is half full, and remove those beyond the limits.
    /// Does nothing without an oplog, and as little as it can while another operation is the
    /// engine's one writer.
    ///
    /// # Errors
    /// Errors of the engine. A later call tries again.
    pub fn tend_oplog(&self) -> Result<()> {
        let Some(oplog) = self.oplog() else {
            return Ok(());
        };
        let purged = self.purge_undo();
        let mut removed = oplog.removed.lock();
        let visible = oplog.visible();
        let (to_make, unfinished) = {
            let segments = oplog.segments();
            (segments.to_make(), segments.unfinished(visible))
        };
        // On a full disk this fails until old segments are removed.
        let prepared = self.prepare_segments(oplog, to_make, unfinished);
        let now = u32::try_from(stdx::time::wall().as_secs()).unwrap_or(u32::MAX);
        // What may be taken back is kept.
        let kept = match oplog.undo().kept() {
            Some(_) => visible.min(oplog.undo().committed()),
            None => visible,
        };
        loop {
            let oldest = oplog.segments().remove_oldest(kept, now);
            let Some(oldest) = oldest else {
                break;
            };
            let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            let (entries, bytes) = (oldest.entries(), oldest.document_bytes());
            oplog.core().counts.show(-whole(entries), -whole(bytes));
            removed.push_back(oldest.number());
        }
        self.drop_segments(&mut removed);
        prepared.and(purged)
    }

    /// Make the next segment, and store the totals of those that get no more entries.
    fn prepare_segments(
        &self,
        oplog: &Log,
        to_make: Option<u64>,
        unfinished: Vec<(Arc<Segment>, Timestamp)>,
    ) -> Result<()> {
        if to_make.is_none() && unfinished.is_empty() {
            return Ok(());
        }
        let Some(_turn) = self.turns().take_soon(&|| self.check_not_closed())? else {
            return Ok(());
        };
        if let Some(number) = to_make {
            let made = Segment::create(self.engine(), number)?;
            oplog.segments().made(made);
        }
        for (segment, last) in unfinished {
            segment.finish(self.engine(), last)?;
        }
        Ok(())
    }

    /// Drop the trees of removed segments, in order: what is stored never has a gap. A tree that a
    /// reader protects is dropped by a later call, with those after it; if the store is opened
    /// again before, its entries are there again.
    fn drop_segments(&self, removed: &mut VecDeque<u64>) {
        if removed.is_empty() {
            return;
        }
        let turn = self.turns().take_soon(&|| self.check_not_closed());
        let Ok(Some(_turn)) = turn else {
            return;
        };
        while let Some(number) = removed.front() {
            match self.engine().drop_tree(&segment::name(*number)) {
                Err(e) if e.kind() != ErrorKind::NotFound => return,
                _ => removed.pop_front(),
            };
        }
    }

    /// Store the totals of the current segment, so that the next opening does not count its
    /// entries.
    pub(crate) fn save_oplog_totals(&self) {
        let Some(oplog) = self.oplog() else {
            return;
        };
        let turn = self.turns().take_soon(&|| Ok(()));
        if let Ok(Some(_turn)) = turn {
            let until = oplog.visible();
            let current = oplog.segments().all().last().cloned();
            // A failure makes the next opening count.
            drop(current.map(|placed| placed.segment.save(self.engine(), until)));
        }
    }

    /// Change how much of the oplog is kept. The next pass removes what is beyond.
    pub fn set_oplog_limits(&self, change: impl FnOnce(&mut Limits)) {
        if let Some(oplog) = self.oplog() {
            change(&mut oplog.segments().limits);
            self.show_oplog();
        }
    }

    /// How much of the oplog is kept; `None` without an oplog.
    #[must_use]
    pub fn oplog_limits(&self) -> Option<Limits> {
        Some(self.oplog()?.segments().limits)
    }
}

/// Start the thread that tends the oplog. It ends when the store is dropped.
pub(crate) fn start(store: &Arc<Store>) {
    if store.oplog().is_none() || store.options().oplog_period.is_none() {
        return;
    }
    let store = Arc::downgrade(store);
    let body = move || run(&store);
    // Without the thread the oplog is one segment that grows until the next start.
    drop(stdx::sync::spawn("oplog", body));
}

fn run(store: &Weak<Store>) {
    let (mut seen, mut since) = (None, stdx::time::now());
    let mut looked = stdx::time::now();
    loop {
        let Some(store) = store.upgrade() else {
            return;
        };
        let Some(period) = store.options().oplog_period else {
            return;
        };
        if store.is_closed() {
            return;
        }
        if !store.is_paused() {
            // The next pass tries again.
            drop(store.tend_oplog());
            if IMAGES <= looked.elapsed() {
                looked = stdx::time::now();
                let mut op = Op::new(Durability::Interval);
                // The oplog must not wait for it while others are the engine's one writer.
                op.deadline = looked.checked_add(IMAGES / 4);
                // The same.
                drop(store.expire_images(&op));
            }
            let last = store.oplog_last();
            if last != seen {
                (seen, since) = (last, stdx::time::now());
            }
            let idle = store.tuning().oplog_idle();
            if let Some(last) = last
                && idle.is_some_and(|idle| idle <= since.elapsed())
            {
                // The same.
                drop(store.note_if_idle(last));
            }
        }
        drop(store);
        stdx::time::sleep(period);
    }
}

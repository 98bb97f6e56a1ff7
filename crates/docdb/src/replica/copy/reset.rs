//! Emptying a store before a copy: everything that comes from other members is removed, and the
//! oplog begins behind a position.

use std::time::Duration;

use bson::Timestamp;
use kv::{Durability, ErrorKind, KeyRange};
use query::{Namespace, Result};

use crate::error;
use crate::oplog::entry::OpTime;
use crate::oplog::segment::{self, Segment};
use crate::oplog::{Replayed, image, is_replicated, mark};
use crate::replica::role::Replica;
use crate::txn::Op;

/// Pause before a tree that a reader protects is dropped again.
const PAUSE: Duration = Duration::from_millis(50);

impl Replica<'_> {
    /// Remove all replicated data and all entries; the next entry is later than `lost`. The caller
    /// has the locks of the member, and no undo records are kept.
    pub(super) fn reset(&self, op: &Op<'_>, lost: Timestamp) -> Result<()> {
        let store = self.store;
        {
            let _replayed = Replayed::begin(self.applied());
            let names: Vec<Namespace> = store.catalog().iter().map(|(ns, _)| ns.clone()).collect();
            for ns in names.iter().filter(|ns| is_replicated(ns)) {
                store.drop_collection(op, ns)?;
            }
        }
        if store.lookup(&image::namespace()).is_some() {
            let _changes = store.changes(op)?;
            store.discard_images(&image::namespace())?;
        }
        {
            let _turn = store.turn(op)?;
            let mut txn = store.engine().begin_write().map_err(error::engine)?;
            let trees = [Some(store.trees().sessions), self.log.undo().tree()];
            for tree in trees.into_iter().flatten() {
                let removed = txn.delete_range(tree, KeyRange::ALL);
                removed.map_err(error::engine)?;
            }
            mark::put(txn.as_mut(), store.trees().catalog, OpTime::NONE)?;
            txn.commit(Durability::Group).map_err(error::engine)?;
        }
        store.forget_all_sessions();
        self.log.applied().set(Some(OpTime::NONE));
        self.restart_log(op, lost)
    }

    /// Replace the segments by an empty one.
    fn restart_log(&self, op: &Op<'_>, lost: Timestamp) -> Result<()> {
        let engine = self.store.engine();
        let mut removed = self.log.removed.lock();
        let _turn = self.store.turn(op)?;
        let numbers = segment::numbers(engine)?;
        for number in &numbers {
            while let Err(error) = engine.drop_tree(&segment::name(*number)) {
                match error.kind() {
                    ErrorKind::NotFound => break,
                    // Readers of the oplog end soon: this member shows nothing.
                    ErrorKind::Conflict => {}
                    _ => return Err(error::engine(error)),
                }
                self.store.check_open(op)?;
                stdx::time::sleep(PAUSE);
            }
        }
        removed.clear();
        // `oplog::segments`: N5: not segment 0, which begins with the store.
        let next = numbers.last().map_or(1, |last| last + 1);
        let made = Segment::create(engine, next)?;
        self.log.restarted(made, lost);
        Ok(())
    }
}

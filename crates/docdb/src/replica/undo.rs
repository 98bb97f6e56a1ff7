//! Keeping undo records, and removing them behind the commit point.

use bson::Timestamp;
use kv::{ErrorKind, TreeOptions};
use query::Result;

use super::role::Replica;
use crate::error;
use crate::oplog::entry::OpTime;
use crate::oplog::undo;
use crate::txn::Op;

impl Replica<'_> {
    /// Keep undo records beside the entries from now on, or end it. The commit of a change that is
    /// under way may have none yet: a server begins before it lets clients write.
    ///
    /// # Errors
    /// The operation must end; errors of the engine.
    pub fn keep_undo(&self, op: &Op<'_>, keep: bool) -> Result<()> {
        let undo = self.log.undo();
        if keep && undo.tree().is_none() {
            let _turn = self.store.turn(op)?;
            let engine = self.store.engine();
            let tree = match engine.create_tree(undo::TREE, &TreeOptions::default()) {
                Err(e) if e.kind() == ErrorKind::Exists => engine.open_tree(undo::TREE),
                made => made,
            };
            undo.set_tree(tree.map_err(error::engine)?);
        }
        undo.set(keep);
        Ok(())
    }

    /// All entries up to this one are committed: they are never taken back, and what takes them
    /// back is removed by [`crate::Store::tend_oplog`]. Change streams show them from now on.
    pub fn set_committed(&self, at: OpTime) {
        self.log.commit(at.ts);
    }

    /// The time up to which all entries are committed, as [`Replica::set_committed`] has set it.
    #[must_use]
    pub fn committed(&self) -> Timestamp {
        self.log.undo().committed()
    }
}

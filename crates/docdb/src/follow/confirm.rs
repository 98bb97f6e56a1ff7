//! Making durable what followers of the oplog are shown (see `oplog::synced`).

use bson::Timestamp;
use query::Result;

use crate::collection::Collection;
use crate::error;
use crate::store::Store;

impl Store {
    /// Make the oplog entries that are visible now survive a power loss; returns the time of the
    /// last one. Does nothing without an oplog.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn confirm_oplog(&self) -> Result<Timestamp> {
        let Some(oplog) = self.oplog() else {
            return Ok(Timestamp {
                time: 0,
                increment: 0,
            });
        };
        let until = oplog.visible();
        oplog.synced().reach(until, || {
            let began = oplog.visible();
            self.engine().sync_log().map_err(error::engine)?;
            Ok(began)
        })?;
        Ok(until)
    }

    /// [`Store::confirm_oplog`] if a collection that is tailed is the oplog.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn confirm(&self, tailed: &Collection) -> Result<()> {
        if tailed.is_oplog() {
            self.confirm_oplog()?;
        }
        Ok(())
    }
}

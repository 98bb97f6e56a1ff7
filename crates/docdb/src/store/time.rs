//! The time reserved for the logical clock of the server.
//!
//! The clock issues no time beyond the reserved second, so that a server started later can continue
//! after every time issued, even after a crash and with the wall clock set back. The reservation is
//! a record of the catalog's tree: key `t`, value the second since 1970 in 4 bytes, big-endian.

use kv::{Batch, Durability};
use query::{Error, Result};

use super::Store;
use crate::error;
use crate::turn;

const KEY: &[u8] = b"t";

impl Store {
    /// The last reserved second, since 1970. `None` if none was reserved.
    ///
    /// # Errors
    /// Errors of the engine; a record that cannot be decoded.
    pub fn reserved_time(&self) -> Result<Option<u32>> {
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let found = snapshot.get(self.trees().catalog, KEY);
        let Some(bytes) = found.map_err(error::engine)? else {
            return Ok(None);
        };
        let read = |_| -> Error { error::corrupt("the reserved time in the catalog") };
        let bytes: [u8; 4] = bytes.as_slice().try_into().map_err(read)?;
        Ok(Some(u32::from_be_bytes(bytes)))
    }

    /// Reserve the seconds up to `until`, durably. The caller must not lower the number.
    ///
    /// # Errors
    /// `LockTimeout` while another operation is the engine's one writer; errors of the engine.
    pub fn reserve_time(&self, until: u32) -> Result<()> {
        let turn = self.turns().take_soon(&|| self.check_not_closed())?;
        let _turn = turn.ok_or_else(|| turn::busy("the engine's one writer"))?;
        let mut batch = Batch::new();
        batch.put(self.trees().catalog, KEY, &until.to_be_bytes());
        let written = self.engine().write(&batch, Durability::Group);
        written.map_err(error::engine)
    }
}

//! The time that is reserved for the logical clock of the server.
//!
//! The clock hands out no time beyond the reserved second, so that a server that starts later, also
//! after a crash and with the wall clock set back, can start beyond every time that was handed out.
//! It is a record of the catalog's tree: the key `t`, and the second since 1970 in 4 bytes,
//! big-endian.

use kv::{Batch, Durability};
use query::{Error, Result};

use super::Store;
use crate::error;
use crate::turn;

const KEY: &[u8] = b"t";

impl Store {
    /// The last second, since 1970, that was reserved. `None` if none ever was.
    ///
    /// # Errors
    /// As the engine's; a record that cannot be read.
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

    /// Reserve the seconds up to `until`, durably. The caller does not lower the number.
    ///
    /// # Errors
    /// `LockTimeout` while another one is the one writer of the engine; as the engine's.
    pub fn reserve_time(&self, until: u32) -> Result<()> {
        let turn = self.turns().take_soon(&|| self.check_not_closed())?;
        let _turn = turn.ok_or_else(|| turn::busy("the engine's one writer"))?;
        let mut batch = Batch::new();
        batch.put(self.trees().catalog, KEY, &until.to_be_bytes());
        let written = self.engine().write(&batch, Durability::Group);
        written.map_err(error::engine)
    }
}

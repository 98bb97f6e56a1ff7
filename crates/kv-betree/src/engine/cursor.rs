//! Cursors.

use kv::{Cursor, Result};

use super::named;

/// A cursor of betree as a cursor of `kv`.
pub(super) struct Walk<'a>(pub(super) betree::Cursor<'a>);

impl Cursor for Walk<'_> {
    fn advance(&mut self) -> Result<bool> {
        self.0.advance().map_err(named)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key).map_err(named)
    }

    fn key(&self) -> &[u8] {
        self.0.key()
    }

    fn value(&self) -> &[u8] {
        self.0.value()
    }
}

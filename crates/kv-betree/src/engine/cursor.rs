//! Cursors.

use kv::{Cursor, Direction, Result};

use super::errors::convert;

/// The store's name for a direction.
pub(super) fn way(direction: Direction) -> betree::Direction {
    match direction {
        Direction::Forward => betree::Direction::Forward,
        Direction::Backward => betree::Direction::Backward,
    }
}

/// A cursor of the store.
pub(super) struct Walk<'a>(pub(super) betree::Cursor<'a>);

impl Cursor for Walk<'_> {
    fn advance(&mut self) -> Result<bool> {
        self.0.advance().map_err(convert)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key).map_err(convert)
    }

    fn key(&self) -> &[u8] {
        self.0.key()
    }

    fn value(&self) -> &[u8] {
        self.0.value()
    }
}

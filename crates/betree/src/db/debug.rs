//! `Debug` for handles, so that types which hold them can derive it. Nothing is read for it.

use std::fmt::{Debug, Formatter, Result};

use super::handle::Db;
use super::reader::Cursor;
use super::snapshot::Snapshot;
use super::transaction::Transaction;

impl Debug for Db {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Db").finish_non_exhaustive()
    }
}

impl Debug for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Snapshot")
            .field("seq", &self.seq())
            .finish_non_exhaustive()
    }
}

impl Debug for Transaction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Transaction")
            .field("seq", &self.seq())
            .finish_non_exhaustive()
    }
}

impl Debug for Cursor<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Cursor")
            .field("key", &self.key().escape_ascii().to_string())
            .finish_non_exhaustive()
    }
}

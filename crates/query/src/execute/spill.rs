//! Spilled rows: a record is the bytes of one document.

use bson::RawDocumentBuf;

use super::{Host, Rows, Spill};
use crate::{Result, Row};

/// Writes a row.
pub(super) fn put(spill: &mut dyn Spill, row: &Row) -> Result<()> {
    spill.append(row.raw()?.as_bytes())
}

/// Reads the next row.
pub(super) fn take(spill: &mut dyn Spill) -> Result<Option<Row>> {
    let mut record = Vec::new();
    if !spill.read(&mut record)? {
        return Ok(None);
    }
    Ok(Some(Row::from_raw(RawDocumentBuf::from_bytes(record)?)))
}

/// The rows of a spill.
pub(super) struct Spilled(pub(super) Box<dyn Spill>);

impl Rows for Spilled {
    fn next(&mut self, _host: &mut dyn Host) -> Result<Option<Row>> {
        take(self.0.as_mut())
    }
}

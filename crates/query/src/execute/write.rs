//! `$out` and `$merge`: the host pulls the rows and writes them; the stage returns no rows.

use super::{Host, Rows};
use crate::stage::{Merge, Out};
use crate::{Result, Row};

/// `$out`.
pub(super) struct OutRows {
    input: Option<Box<dyn Rows>>,
    out: Out,
}

impl OutRows {
    pub(super) fn new(input: Box<dyn Rows>, out: Out) -> OutRows {
        OutRows {
            input: Some(input),
            out,
        }
    }
}

impl Rows for OutRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(mut input) = self.input.take() {
            let ns = self.out.target.resolve(host.database())?;
            host.write_out(&ns, input.as_mut())?;
        }
        Ok(None)
    }
}

/// `$merge`.
pub(super) struct MergeRows {
    input: Option<Box<dyn Rows>>,
    merge: Merge,
}

impl MergeRows {
    pub(super) fn new(input: Box<dyn Rows>, merge: Merge) -> MergeRows {
        MergeRows {
            input: Some(input),
            merge,
        }
    }
}

impl Rows for MergeRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(mut input) = self.input.take() {
            let ns = self.merge.into.resolve(host.database())?;
            host.merge(&ns, &self.merge, input.as_mut())?;
        }
        Ok(None)
    }
}

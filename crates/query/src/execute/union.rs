//! `$unionWith`: first the rows of the input, then those of the other collection.

use super::simple::Listed;
use super::{Host, Rows, build};
use crate::stage::UnionWith;
use crate::{Result, Row};

/// `$unionWith`.
pub(super) struct UnionRows {
    input: Box<dyn Rows>,
    other: Option<UnionWith>,
}

impl UnionRows {
    pub(super) fn new(input: Box<dyn Rows>, union: UnionWith) -> UnionRows {
        UnionRows {
            input,
            other: Some(union),
        }
    }
}

impl Rows for UnionRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(row) = self.input.next(host)? {
            return Ok(Some(row));
        }
        let Some(union) = self.other.take() else {
            return Ok(None);
        };
        let pipeline = union.pipeline.bind(&[])?;
        self.input = match &union.coll {
            Some(coll) => host.aggregate(&coll.resolve(host.database())?, pipeline)?,
            None => build(pipeline.optimize(), Box::new(Listed::default()))?,
        };
        self.input.next(host)
    }
}

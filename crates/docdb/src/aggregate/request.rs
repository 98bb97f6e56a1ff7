//! What `aggregate` is asked.

use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf};
use query::pipeline::{Access, Pipeline};
use query::{Namespace, Result};

use crate::find::Collated;
use crate::txn::Op;

/// The arguments of `aggregate`, with MongoDB's names and defaults.
#[derive(Debug, Clone)]
pub struct AggregateRequest {
    /// The stages, in bytes: a filter may name a field twice, which a tree cannot.
    pub pipeline: RawArrayBuf,
    /// Documents of the first batch (default 101).
    pub batch_size: Option<u64>,
    /// Whether stages may use temporary files (default: true).
    pub allow_disk_use: bool,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// How strings compare (default: as the collection says).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions (`let`).
    pub variables: Option<Document>,
    /// Whether `$out` and `$merge` write documents that a validator refuses (default: false).
    pub bypass_validation: bool,
}

impl AggregateRequest {
    /// What the pipeline uses on `ns`, from the stages that [`crate::Store::aggregate`] runs. The
    /// pipelines of views are not among them.
    ///
    /// # Errors
    /// What is wrong with the pipeline; `InvalidNamespace` for a collection that cannot be.
    pub fn accesses(&self, op: &Op<'_>, ns: &Namespace) -> Result<Vec<Access>> {
        let settings = Collated::default().settings(op, self.variables.as_ref())?;
        Pipeline::parse_raw(&self.pipeline, &settings.within(&ns.db))?.accesses(ns)
    }
}

impl Default for AggregateRequest {
    fn default() -> AggregateRequest {
        AggregateRequest {
            pipeline: RawArrayBuf::new(),
            batch_size: None,
            allow_disk_use: true,
            hint: None,
            collation: None,
            variables: None,
            bypass_validation: false,
        }
    }
}

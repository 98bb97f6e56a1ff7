//! The request of an `aggregate` command.

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
    /// Number of documents in the first batch (default 101).
    pub batch_size: Option<u64>,
    /// Whether stages may use temporary files (default: true).
    pub allow_disk_use: bool,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions (`let`).
    pub variables: Option<Document>,
    /// Whether `$out` and `$merge` write documents that a validator rejects (default: false).
    pub bypass_validation: bool,
}

impl AggregateRequest {
    /// The collections that the pipeline accesses on `ns`, as [`crate::Store::aggregate`] runs it.
    /// Those accessed by the pipelines of views are not included.
    ///
    /// # Errors
    /// Errors of the pipeline; `InvalidNamespace` for an invalid collection name.
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

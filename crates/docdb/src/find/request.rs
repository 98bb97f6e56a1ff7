//! The request of a `find` command.

use std::iter;

use bson::{Bson, Document, RawDocumentBuf};
use query::{Result, meter};

use crate::variables::Let;

/// The arguments of `find`, with MongoDB's names and defaults.
#[derive(Debug, Clone)]
pub struct FindRequest {
    /// The filter that documents must match (default: all match).
    pub filter: RawDocumentBuf,
    /// The projection of the returned documents (default: all fields).
    pub projection: Option<RawDocumentBuf>,
    /// The sort order (default: none).
    pub sort: Option<RawDocumentBuf>,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// Lower bound in the hinted index, inclusive.
    pub min: Option<Document>,
    /// Upper bound in the hinted index, exclusive.
    pub max: Option<Document>,
    /// Number of documents to skip (default 0).
    pub skip: u64,
    /// Maximum number of documents to return in total (default: no limit).
    pub limit: Option<u64>,
    /// Number of documents in the first batch (default 101).
    pub batch_size: Option<u64>,
    /// Whether the cursor ends with the first batch (default: false).
    pub single_batch: bool,
    /// Return index keys instead of documents (default: false). Without an index the keys are
    /// empty; a projection has no effect then.
    pub return_key: bool,
    /// Add `$recordId` (default: false).
    pub show_record_id: bool,
    /// Stay open at the end of a capped collection (default: false).
    pub tailable: bool,
    /// Wait for more at the end of a capped collection (default: false).
    pub await_data: bool,
    /// Never time out (default: false).
    pub no_cursor_timeout: bool,
    /// Whether sorts may use temporary files (default: true).
    pub allow_disk_use: bool,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions.
    pub variables: Option<Let>,
}

impl FindRequest {
    /// Bytes of what is parsed of it, except those that filter and projection reserve themselves.
    ///
    /// # Errors
    /// `InvalidBSON` for invalid bytes; errors of [`meter::step`].
    pub(super) fn parsed_bytes(&self) -> Result<usize> {
        let mut bytes = self.variables.as_ref().map_or(0, Let::bytes);
        for part in iter::once(&self.filter).chain(&self.projection) {
            bytes += meter::unreserved(meter::parsed_size(part)?);
        }
        for bound in [&self.min, &self.max].into_iter().flatten() {
            bytes += meter::document_size(bound);
        }
        Ok(bytes)
    }
}

impl Default for FindRequest {
    fn default() -> FindRequest {
        FindRequest {
            filter: RawDocumentBuf::new(),
            projection: None,
            sort: None,
            hint: None,
            min: None,
            max: None,
            skip: 0,
            limit: None,
            batch_size: None,
            single_batch: false,
            return_key: false,
            show_record_id: false,
            tailable: false,
            await_data: false,
            no_cursor_timeout: false,
            allow_disk_use: true,
            collation: None,
            variables: None,
        }
    }
}

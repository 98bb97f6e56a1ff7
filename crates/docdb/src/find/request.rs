//! What `find` is asked.

use bson::{Bson, Document, RawDocumentBuf};

/// The arguments of `find`, with MongoDB's names and defaults.
#[derive(Debug, Clone)]
pub struct FindRequest {
    /// What documents must match (default: all do).
    pub filter: RawDocumentBuf,
    /// Which fields are returned (default: all).
    pub projection: Option<RawDocumentBuf>,
    /// The order (default: none).
    pub sort: Option<RawDocumentBuf>,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// The least key of the hinted index, inclusive.
    pub min: Option<Document>,
    /// The greatest key of the hinted index, exclusive.
    pub max: Option<Document>,
    /// Documents to leave out first (default 0).
    pub skip: u64,
    /// Documents to return in all (default: no limit).
    pub limit: Option<u64>,
    /// Documents of the first batch (default 101).
    pub batch_size: Option<u64>,
    /// Whether the cursor ends with the first batch (default: false).
    pub single_batch: bool,
    /// Return the keys of the index in place of documents (default: false). Without an index the
    /// keys are empty; a projection does nothing then.
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
    /// How strings compare (default: as the collection says).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions.
    pub variables: Option<Document>,
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

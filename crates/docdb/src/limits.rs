//! The limits of this crate, each with its reason.

/// The largest document a user may store, in bytes (MongoDB's limit).
pub const DOCUMENT_MAX: usize = 16 * 1024 * 1024;
/// The largest document of a result, in bytes (MongoDB's limit): a stored document plus 16 KiB for
/// the reply around it. A diff leads to no larger one.
pub(crate) const RESULT_MAX: usize = query::update::DELTA_MAX;
/// The deepest nesting of a stored document (MongoDB's limit: documents are checked against 200 on
/// the wire, and what is stored must be readable within other documents).
pub const DEPTH_MAX: u32 = 180;
/// Indexes of a collection, `_id` included (MongoDB's limit).
pub const INDEXES_MAX: usize = 64;
/// Fields of an index (MongoDB's limit).
pub const INDEX_FIELDS_MAX: usize = 32;
/// The longest key of an index, without the record, if the engine allows it. Longer keys are
/// truncated and end in a hash of the whole key. Engine pages are 4 to 64 KiB, and longer keys
/// would fill inner nodes.
pub(crate) const INDEX_KEY_MAX: usize = 8 * 1024;
/// Bytes of an engine's longest key that are reserved for the record after the key: 10 bytes for a
/// record number, some more for the key of a clustered collection, which is limited to half a key.
pub(crate) const INDEX_KEY_SLACK: usize = 16;
/// Bytes of documents per engine transaction of an insert: small enough for a log record that does
/// not stall others, and large enough to spread the cost of a commit over 1,000 documents of 4 KiB.
pub(crate) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of an element of an array in BSON beside its value: the type, the index as a name, and the
/// end of the name.
pub(crate) fn element_around(index: usize) -> usize {
    let digits = index.checked_ilog10().map_or(1, |log| log as usize + 1);
    2 + digits
}

/// Maximum depth of views on views (MongoDB's limit).
pub(crate) const VIEW_DEPTH: usize = 20;

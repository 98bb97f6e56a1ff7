//! What stages hand on.

use bson::RawDocumentBuf;

use crate::record::RecordId;

/// A document on its way out.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Which document it is.
    pub(crate) record: RecordId,
    /// The document, or as much of it as the plan needs.
    pub(crate) document: RawDocumentBuf,
    /// Whether the projection is applied already.
    pub(crate) projected: bool,
}

/// The outcome of asking for the next item.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// Here it is.
    Row(T),
    /// The work allowed is done; ask again.
    Pause,
    /// There is none.
    End,
}

/// Counts for `explain` and the profiler.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Entries of indexes read.
    pub(crate) keys: u64,
    /// Documents read.
    pub(crate) documents: u64,
    /// Items handed on.
    pub(crate) returned: u64,
    /// Times the scan jumped.
    pub(crate) seeks: u64,
    /// Documents met again.
    pub(crate) duplicates: u64,
    /// Units of work.
    pub(crate) works: u64,
}

impl Counts {
    /// Add what another stage counted (but not what it handed on).
    pub(crate) fn add(&mut self, other: &Counts) {
        self.keys += other.keys;
        self.documents += other.documents;
        self.seeks += other.seeks;
        self.duplicates += other.duplicates;
        self.works += other.works;
    }
}

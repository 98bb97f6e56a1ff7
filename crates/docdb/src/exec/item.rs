//! The items that stages pass on.

use bson::RawDocumentBuf;

use crate::record::RecordId;

/// A document passing through the stages.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// The document's record.
    pub(crate) record: RecordId,
    /// The document, or as much of it as the plan needs.
    pub(crate) document: RawDocumentBuf,
    /// Whether the projection was already applied.
    pub(crate) projected: bool,
}

/// The outcome of asking for the next item.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// The next item.
    Row(T),
    /// The work budget is used up; call again.
    Pause,
    /// No more items.
    End,
}

/// Counts for `explain` and the profiler.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Index entries read.
    pub(crate) keys: u64,
    /// Documents read.
    pub(crate) documents: u64,
    /// Items returned.
    pub(crate) returned: u64,
    /// Seeks of the scan.
    pub(crate) seeks: u64,
    /// Duplicate documents skipped.
    pub(crate) duplicates: u64,
    /// Units of work.
    pub(crate) works: u64,
}

impl Counts {
    /// Add another stage's counts, without its returned items.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.keys += other.keys;
        self.documents += other.documents;
        self.seeks += other.seeks;
        self.duplicates += other.duplicates;
        self.works += other.works;
    }
}

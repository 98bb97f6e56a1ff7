//! The set of documents changed since an index build began.
//!
//! A build reads documents first and inserts their entries later. If a document is not in this set,
//! its entries are still correct; otherwise the build checks it again. The set may contain more
//! documents than have changed, never fewer.

use std::collections::HashSet;

use stdx::sync::Mutex;

use crate::record::RecordId;

/// Maximum number of records in the set, some tens of megabytes; beyond that every document counts
/// as changed.
const KEPT: usize = 1 << 19;

/// The changed documents.
#[derive(Default)]
pub(super) struct Changed(Mutex<Records>);

enum Records {
    These(HashSet<RecordId>),
    Any,
}

impl Default for Records {
    fn default() -> Records {
        Records::These(HashSet::new())
    }
}

impl Changed {
    /// Record that a document is changed or removed.
    pub(super) fn note(&self, record: &RecordId) {
        self.note_within(record, KEPT);
    }

    fn note_within(&self, record: &RecordId, kept: usize) {
        let mut records = self.0.lock();
        let Records::These(these) = &mut *records else {
            return;
        };
        if !these.contains(record) {
            these.insert(record.clone());
        }
        if kept < these.len() {
            *records = Records::Any;
        }
    }

    /// Whether a document may have changed.
    pub(super) fn may_hold(&self, record: &RecordId) -> bool {
        match &*self.0.lock() {
            Records::These(these) => these.contains(record),
            Records::Any => true,
        }
    }

    /// Act as if too many documents had changed.
    #[cfg(test)]
    pub(super) fn lose(&self) {
        *self.0.lock() = Records::Any;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_changes_are_any() {
        let changed = Changed::default();
        let record = RecordId::number;
        for number in [1, 2, 2, 1] {
            changed.note_within(&record(number), 2);
        }
        assert!(changed.may_hold(&record(2)) && !changed.may_hold(&record(3)));
        changed.note_within(&record(4), 2);
        assert!(changed.may_hold(&record(3)));
    }
}

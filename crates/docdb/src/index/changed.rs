//! Which documents have changed since an index build began.
//!
//! A build reads documents at one time and puts their entries at another. Those of a document that
//! is not among these are still right; of one that is, the build looks again. It may name
//! more documents than have changed, never fewer.

use std::collections::HashSet;

use stdx::sync::Mutex;

use crate::record::RecordId;

/// Records that are remembered, some tens of megabytes; beyond them every document may have
/// changed.
const KEPT: usize = 1 << 19;

/// The documents.
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
    /// A document is changed or removed.
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

    /// As if there were too many.
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

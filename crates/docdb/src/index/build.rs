//! State of one index build, shared by the builder, the states of the indexes, the writers of the
//! collection and the operations that wait for the build.
//!
//! - U1. A build has a UUID, which is never reused. An index being built belongs to exactly one
//!   build. Whether an index in the catalog is the one that a builder began is decided by this
//!   UUID, and not by names, numbers or addresses: a collection that was dropped and created again
//!   may reuse those.
//! - U2. A build ends once. Its outcome is set after the catalog lists the indexes as ready or no
//!   longer lists them. If the catalog could not be written, the indexes stay in it but belong to
//!   no build in progress.

use std::sync::Arc;

use query::{Error, Result};
use stdx::sync::{Condvar, Mutex};

use super::Index;
use super::changed::Changed;
use crate::patience::{Check, Patience};
use crate::record::RecordId;

/// A build.
pub(crate) struct Build {
    id: bson::Uuid,
    /// Documents that have changed since the build began.
    changed: Changed,
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

/// How a build ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The indexes are ready.
    Ready,
    /// Documents cannot be indexed, the engine failed, or the indexes were dropped: every operation
    /// that wants these indexes fails in the same way.
    Failed(Error),
    /// The building operation was ended; another operation may build the indexes.
    GivenUp,
}

impl Build {
    /// A new build.
    pub(crate) fn new() -> Build {
        Build {
            id: bson::Uuid::new(),
            changed: Changed::default(),
            outcome: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// A build interrupted by the end of the previous process.
    pub(crate) fn cut_off() -> Build {
        let build = Build::new();
        build.end(Outcome::GivenUp);
        build
    }

    /// The build's UUID (U1).
    pub(crate) fn id(&self) -> bson::Uuid {
        self.id
    }

    /// Whether it has not ended.
    pub(crate) fn is_under_way(&self) -> bool {
        self.outcome.lock().is_none()
    }

    /// End the build. Only the first outcome counts (U2).
    pub(crate) fn end(&self, outcome: Outcome) {
        self.outcome.lock().get_or_insert(outcome);
        self.ended.notify_all();
    }

    /// Wait until the build has ended. The caller holds no locks.
    ///
    /// # Errors
    /// Errors of `check` during the wait.
    pub(crate) fn wait(&self, check: Check<'_>) -> Result<Outcome> {
        let mut outcome = self.outcome.lock();
        let mut patience = Patience::new(None);
        loop {
            if let Some(outcome) = &*outcome {
                return Ok(outcome.clone());
            }
            patience.wait(&self.ended, &mut outcome, check)?;
        }
    }

    /// Whether a document may have changed since the build began.
    pub(crate) fn may_have_changed(&self, record: &RecordId) -> bool {
        self.changed.may_hold(record)
    }

    /// Too many documents have changed to know which.
    #[cfg(test)]
    pub(crate) fn lose_changes(&self) {
        self.changed.lose();
    }
}

impl Index {
    /// The same index, as a part of a build.
    pub(crate) fn within(mut self, build: &Arc<Build>) -> Index {
        self.build = Some(Arc::clone(build));
        self
    }

    /// The build that it is a part of; `None` if it is ready.
    pub(crate) fn build(&self) -> Option<&Arc<Build>> {
        self.build.as_ref()
    }

    /// The build that it is a part of, if that is in progress.
    pub(crate) fn build_under_way(&self) -> Option<&Arc<Build>> {
        self.build.as_ref().filter(|build| build.is_under_way())
    }

    /// Whether it is left over from a build that ended but could not remove it from the catalog.
    pub(crate) fn is_left(&self) -> bool {
        self.build.is_some() && self.build_under_way().is_none()
    }

    /// Record that a document is changed or removed, by a writer that holds the collection's latch
    /// in shared mode.
    pub(crate) fn note_change(&self, record: &RecordId) {
        if let Some(build) = &self.build {
            build.changed.note(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use query::Code;

    use super::*;

    /// U2.
    #[test]
    fn a_build_ends_once_and_who_waits_may_give_up() {
        let build = Build::new();
        let refuse = || Err(Error::new(Code::INTERRUPTED, "operation was interrupted"));
        let refused = build.wait(&refuse).unwrap_err();
        assert_eq!(refused.code, Code::INTERRUPTED);
        build.end(Outcome::Ready);
        build.end(Outcome::GivenUp);
        assert!(matches!(build.wait(&refuse), Ok(Outcome::Ready)));
        assert!(!Build::cut_off().is_under_way());
    }
}

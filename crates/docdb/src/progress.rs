//! The progress of a long operation, for `$currentOp`.

use stdx::sync::Mutex;

/// A part of an operation that has a known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Description, in MongoDB's words.
    pub what: &'static str,
    /// Number of documents, entries or bytes done.
    pub done: u64,
    /// Total number when the stage began.
    pub total: u64,
}

/// The current stage of an operation, if any.
#[derive(Default)]
pub(crate) struct Progress(Mutex<Option<Stage>>);

impl Progress {
    /// Begin a stage.
    pub(crate) fn begin(&self, what: &'static str, total: u64) {
        let done = 0;
        *self.0.lock() = Some(Stage { what, done, total });
    }

    /// Set the stage, begun or not.
    pub(crate) fn set(&self, stage: Stage) {
        *self.0.lock() = Some(stage);
    }

    /// Add to the number done.
    pub(crate) fn advance(&self, by: u64) {
        if let Some(stage) = &mut *self.0.lock() {
            stage.done += by;
        }
    }

    /// End the last stage.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    pub(crate) fn stage(&self) -> Option<Stage> {
        *self.0.lock()
    }
}

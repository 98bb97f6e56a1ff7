//! The progress of a long operation, for `$currentOp`.

use stdx::sync::Mutex;

/// A part of an operation that has a known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What is done, in MongoDB's words.
    pub what: &'static str,
    /// Documents or entries that are done.
    pub done: u64,
    /// How many there were when the stage began.
    pub total: u64,
}

/// The stage an operation is in, if it is in one.
#[derive(Default)]
pub(crate) struct Progress(Mutex<Option<Stage>>);

impl Progress {
    /// A stage begins.
    pub(crate) fn begin(&self, what: &'static str, total: u64) {
        let done = 0;
        *self.0.lock() = Some(Stage { what, done, total });
    }

    /// So much more is done.
    pub(crate) fn advance(&self, by: u64) {
        if let Some(stage) = &mut *self.0.lock() {
            stage.done += by;
        }
    }

    /// The last stage is over.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    pub(crate) fn stage(&self) -> Option<Stage> {
        *self.0.lock()
    }
}

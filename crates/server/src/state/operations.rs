//! Running commands, for `currentOp` and `killOp`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use stdx::sync::Mutex;

use super::operation::Operation;

/// The running commands by number.
#[derive(Default)]
pub(crate) struct Operations {
    next: AtomicI32,
    running: Mutex<BTreeMap<i32, Arc<Operation>>>,
}

impl Operations {
    /// The number of the next command.
    pub(crate) fn number(&self) -> i32 {
        self.next.fetch_add(1, Ordering::Relaxed) & i32::MAX
    }

    /// Add a command.
    pub(crate) fn begin(&self, operation: &Arc<Operation>) {
        self.running
            .lock()
            .insert(operation.number, Arc::clone(operation));
    }

    /// Remove a command that has ended.
    pub(crate) fn end(&self, operation: &Operation) {
        self.running.lock().remove(&operation.number);
    }

    /// The commands that are running.
    pub(crate) fn list(&self) -> Vec<Arc<Operation>> {
        self.running.lock().values().map(Arc::clone).collect()
    }

    /// The command of a number, if it is running.
    pub(crate) fn get(&self, number: i32) -> Option<Arc<Operation>> {
        self.running.lock().get(&number).map(Arc::clone)
    }
}

//! Commands in work, for `currentOp` and `killOp`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use stdx::sync::Mutex;

use crate::dispatch::Request;

/// The commands in work, by number.
#[derive(Default)]
pub(crate) struct Operations {
    next: AtomicI32,
    running: Mutex<BTreeMap<i32, Arc<Request>>>,
}

impl Operations {
    /// The number of the next command.
    pub(crate) fn number(&self) -> i32 {
        self.next.fetch_add(1, Ordering::Relaxed) & i32::MAX
    }

    /// A command begins.
    pub(crate) fn begin(&self, request: &Arc<Request>) {
        self.running
            .lock()
            .insert(request.operation, Arc::clone(request));
    }

    /// A command ended.
    pub(crate) fn end(&self, request: &Request) {
        self.running.lock().remove(&request.operation);
    }

    /// Those in work now.
    pub(crate) fn list(&self) -> Vec<Arc<Request>> {
        self.running.lock().values().map(Arc::clone).collect()
    }

    /// Interrupt one. Whether it was there.
    pub(crate) fn kill(&self, number: i32) -> bool {
        let found = self.running.lock().get(&number).map(Arc::clone);
        found.inspect(|request| request.kill()).is_some()
    }
}

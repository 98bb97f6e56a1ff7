//! Counts how often an operation looks at the clock, for tests.

use std::sync::Arc;

use query::meter::{Meter, Watch};
use query::{Code, Error, Result};
use stdx::sync::atomic::{AtomicUsize, Ordering};

struct Looks {
    count: AtomicUsize,
    last: usize,
}

impl Watch for Looks {
    fn check(&self) -> Result<()> {
        match self.count.fetch_add(1, Ordering::Relaxed) + 1 {
            count if count < self.last => Ok(()),
            _ => Err(Error::new(Code::INTERRUPTED, "it must end")),
        }
    }
}

/// Runs a part of an operation that is interrupted at its look number `last`. Returns the outcome,
/// and the number of looks.
pub(crate) fn counted<T>(last: usize, run: impl FnOnce() -> T) -> (T, usize) {
    let looks = Arc::new(Looks {
        count: AtomicUsize::new(0),
        last,
    });
    let watch: Arc<dyn Watch> = looks.clone();
    let meter = Meter::default().with_watch(watch).enter();
    let outcome = run();
    drop(meter);
    (outcome, looks.count.load(Ordering::Relaxed))
}

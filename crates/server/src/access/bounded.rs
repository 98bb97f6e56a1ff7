//! Limits of the work of authorization. It parses pipelines to find the collections that they
//! access, and parsing evaluates constant expressions. That happens before the command is admitted,
//! so outside of its time and memory limits, on a thread that also serves other connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use query::meter::{Budget, Entered, Meter, Watch};
use query::{Code, Error, Result};

/// Memory for expressions and their constants on a network thread. Elsewhere it is the memory of
/// an operation.
const MEMORY: usize = 32 << 20;

/// Maximum number of checks, one per 100 microseconds of work: some milliseconds for a command on a
/// network thread, a second for one that has its own thread.
const SMALL_LOOKS: usize = 64;
const LARGE_LOOKS: usize = 10_000;

/// The number of checks left.
struct Looks(AtomicUsize);

impl Watch for Looks {
    fn check(&self) -> Result<()> {
        let order = Ordering::Relaxed;
        let left = self
            .0
            .fetch_update(order, order, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| {
            let message = "the constant expressions of the command take too long to compute";
            Error::new(Code::MAX_TIME_MS_EXPIRED, message)
        })
    }
}

/// Limit the work of this thread until the guard is dropped: to that of a network thread, or, if it
/// works for this command alone, to that of such a thread. What it parses is kept for the command:
/// its memory counts in `budget`.
pub(crate) fn enter(budget: Option<&Arc<Budget>>, apart: bool) -> Entered {
    let meter = Meter::default().with_budget(budget.cloned());
    let (meter, looks) = match apart {
        false => (meter.with_limit(MEMORY), SMALL_LOOKS),
        true => (meter, LARGE_LOOKS),
    };
    let watch = Arc::new(Looks(AtomicUsize::new(looks)));
    meter.with_watch(watch).enter()
}

/// Whether the limits of a thread may be the reason of an error.
pub(crate) fn is_spent(error: &Error) -> bool {
    matches!(
        error.code,
        Code::MAX_TIME_MS_EXPIRED | Code::EXCEEDED_MEMORY_LIMIT
    )
}

#[cfg(test)]
mod tests {
    use bson::{Bson, bson};
    use query::expr::{Expr, Scope};

    use super::*;

    fn parsed(spec: &Bson) -> Result<Expr> {
        let _bounded = enter(None, false);
        Expr::parse(spec, &Scope::new())
    }

    #[test]
    fn constants_that_take_long_are_not_computed_to_their_end() {
        let range = bson!({"$range": [0, 100_000]});
        let sums = vec![bson!({"$sum": range.clone()}); 10_000];
        let error = parsed(&Bson::Array(sums)).unwrap_err();
        assert_eq!(error.code, Code::MAX_TIME_MS_EXPIRED);
        parsed(&bson!({"$add": [{"$size": {"$range": [0, 1_000]}}, 1]})).unwrap();
        // Constants that need too much memory are evaluated during execution.
        parsed(&bson!({"$size": {"$range": [0, 900_000]}})).unwrap();
    }
}

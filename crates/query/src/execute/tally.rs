//! Rows returned and time taken by each stage of a pipeline, for `explain`.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::{AtomicU64, Ordering};

use super::{Host, Rows};
use crate::{Result, Row};

/// Counters of one stage.
#[derive(Debug, Default)]
pub struct Tally {
    rows: AtomicU64,
    nanos: AtomicU64,
}

impl Tally {
    /// Wraps `rows` and counts the rows that they return.
    #[must_use]
    pub fn of(rows: Box<dyn Rows>) -> (Box<dyn Rows>, Arc<Tally>) {
        let tally = Arc::new(Tally::default());
        let counted = Counted {
            rows,
            tally: Arc::clone(&tally),
        };
        (Box::new(counted), tally)
    }

    /// Rows returned so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Time spent so far, including the time of the stages before this one.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

struct Counted {
    rows: Box<dyn Rows>,
    tally: Arc<Tally>,
}

impl Rows for Counted {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        let began = stdx::time::now();
        let next = self.rows.next(host);
        let took = stdx::time::now().saturating_duration_since(began);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.tally.nanos.fetch_add(nanos, Ordering::Relaxed);
        if matches!(next, Ok(Some(_))) {
            self.tally.rows.fetch_add(1, Ordering::Relaxed);
        }
        next
    }
}

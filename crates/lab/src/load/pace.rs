//! The schedule of operation start times.

use std::time::{Duration, Instant};

use stdx::Rng;

use lab_report::record::LoadKind;

/// The schedule of one client. In a closed loop an operation is due immediately. In an open loop
/// operations are due at the client's rate even if the previous operation is late, so that waiting
/// for a slow operation counts as latency (no coordinated omission).
#[derive(Debug)]
pub struct Pace {
    gap: Option<f64>,
    poisson: bool,
    rng: Rng,
    start: Instant,
    next: f64,
}

impl Pace {
    /// The schedule of one of `clients` clients. Each operation writes `rows_per_operation` rows (1
    /// if an operation is a query). `start` is the start time of the step.
    #[must_use]
    pub fn new(
        load: LoadKind,
        rows_per_operation: f64,
        clients: u32,
        seed: u64,
        start: Instant,
    ) -> Pace {
        let (gap, poisson) = match load {
            LoadKind::Closed => (None, false),
            LoadKind::Open { rate, poisson } => {
                let gap = rows_per_operation * f64::from(clients.max(1)) / rate.max(1e-9);
                (Some(gap), poisson)
            }
        };
        let mut rng = Rng::new(seed);
        // Clients start at different offsets within their first gap.
        let next = gap.map_or(0.0, |gap| gap * rng.unit());
        Pace {
            gap,
            poisson,
            rng,
            start,
            next,
        }
    }

    /// The start time of the next operation: in the past if the schedule is behind.
    pub fn next(&mut self, now: Instant) -> Instant {
        let Some(gap) = self.gap else { return now };
        let at = self.start + Duration::from_secs_f64(self.next);
        self.next += if self.poisson {
            self.rng.exponential(gap)
        } else {
            gap
        };
        at
    }

    /// Number of operations that were due by `now` and have not started; with random gaps, the
    /// expected number. 0 in a closed loop.
    #[must_use]
    pub fn behind(&self, now: Instant) -> u64 {
        let late = now.saturating_duration_since(self.start).as_secs_f64() - self.next;
        match self.gap {
            Some(gap) if 0.0 <= late => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "positive; saturates"
                )]
                let behind = (late / gap) as u64;
                behind.saturating_add(1)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_is_always_due() {
        let now = stdx::time::now();
        let mut pace = Pace::new(LoadKind::Closed, 1000.0, 1, 1, now);
        assert_eq!(pace.next(now), now);
    }

    #[test]
    fn operations_due_and_not_started_are_counted() {
        let start = stdx::time::now();
        let load = LoadKind::Open {
            rate: 100.0,
            poisson: false,
        };
        let mut pace = Pace::new(load, 1.0, 2, 7, start);
        // The operations are due at some time within the first gap of 20 ms, and every 20 ms after
        // that.
        assert_eq!(pace.behind(start + Duration::from_secs(2)), 100);
        for _ in 0..60 {
            pace.next(start);
        }
        assert_eq!(pace.behind(start + Duration::from_secs(2)), 40);
        assert_eq!(pace.behind(start + Duration::from_secs(1)), 0);
        let closed = Pace::new(LoadKind::Closed, 1.0, 2, 7, start);
        assert_eq!(closed.behind(start + Duration::from_secs(2)), 0);
    }

    #[test]
    fn an_open_loop_keeps_its_rate_over_all_clients() {
        let start = stdx::time::now();
        for poisson in [false, true] {
            let load = LoadKind::Open {
                rate: 1000.0,
                poisson,
            };
            let mut last = start;
            let mut pace = Pace::new(load, 10.0, 4, 7, start);
            for _ in 0..5000 {
                last = pace.next(start);
            }
            // 4 clients, 10 rows per operation, 1000 rows/s: 25 operations per second for each
            // client.
            let seconds = last.duration_since(start).as_secs_f64();
            assert!(
                (190.0..210.0).contains(&seconds),
                "{seconds} (poisson: {poisson})"
            );
        }
    }
}

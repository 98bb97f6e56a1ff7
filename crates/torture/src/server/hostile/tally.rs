//! Counts of a phase while it runs: a phase lasts until it has had an effect.

use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Phase;

/// Minimum counts of a run. How long they take depends on the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Least {
    /// Bytes sent before login.
    pub sent: u64,
    /// Probes in each phase.
    pub probes: u64,
    /// Runaway queries.
    pub queries: u64,
    /// Runaway queries with `maxTimeMS`.
    pub limited: u64,
    /// Ordinary reads and writes.
    pub operations: u64,
}

/// The counts of a phase so far, and its end.
#[derive(Default)]
pub(super) struct Tally {
    stopped: AtomicBool,
    pub(super) probes: AtomicU64,
    pub(super) queries: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) operations: AtomicU64,
}

/// Count one more.
pub(super) fn one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl Tally {
    /// Asks the clients to stop.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the clients must stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the phase, in which `sent` bytes were sent, has the minimum counts.
    pub(super) fn is_enough(&self, phase: Phase, sent: u64, least: &Least) -> bool {
        let has = |count: &AtomicU64, least: u64| least <= count.load(Ordering::Relaxed);
        has(&self.probes, least.probes)
            && match phase {
                Phase::BeforeLogin => least.sent <= sent,
                Phase::Queries => {
                    has(&self.queries, least.queries)
                        && has(&self.limited, least.limited)
                        && has(&self.operations, least.operations)
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_needs_all_of_its_counts() {
        let least = Least {
            sent: 10,
            probes: 1,
            queries: 1,
            limited: 1,
            operations: 1,
        };
        let tally = Tally::default();
        one(&tally.probes);
        assert!(!tally.is_enough(Phase::BeforeLogin, 9, &least));
        assert!(tally.is_enough(Phase::BeforeLogin, 10, &least));
        for count in [&tally.queries, &tally.limited, &tally.operations] {
            assert!(!tally.is_enough(Phase::Queries, 10, &least));
            one(count);
        }
        assert!(tally.is_enough(Phase::Queries, 0, &least));
        assert!(Tally::default().is_enough(Phase::Queries, 0, &Least::default()));
    }
}

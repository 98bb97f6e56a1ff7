//! The result of a run.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A run without violations.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The server's storage engine.
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// Servers killed while clients wrote.
    pub killed: u64,
    /// Servers killed while they started.
    pub killed_starting: u64,
    /// Servers stopped in order, with or without clients that wrote.
    pub stopped: u64,
    /// Writes and transactions acknowledged.
    pub acked: u64,
    /// Transactions among them.
    pub transactions: u64,
    /// Transactions rolled back, by the client or by a conflict.
    pub rolled_back: u64,
    /// Operations of unknown outcome that were sent again and had been executed, once.
    pub done_again: u64,
    /// Commits of unknown outcome that did not happen.
    pub never_done: u64,
    /// Index builds acknowledged.
    pub built: u64,
    /// Index builds and drops that a kill interrupted.
    pub builds_cut: u64,
    /// Complete comparisons with the expected data.
    pub checks: u64,
    /// Documents read in these comparisons.
    pub documents: u64,
    /// Time taken.
    pub elapsed: Duration,
}

impl Summary {
    /// Number of kills, all survived.
    #[must_use]
    pub fn kills(&self) -> u64 {
        self.killed + self.killed_starting
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        write!(
            f,
            "torture server on {}: seed {}, {} kills survived ({} writing, {} starting), {} ended \
             in order; {} writes acknowledged with j:true, {} of them transactions, lost: 0; {} \
             rolled back; sent again after a restart: {} done once, {} commits had not happened; \
             {} indexes built beneath them, {} builds and drops cut off; {} checks of {} \
             documents, all indexes, validate clean; {seconds:.1} s, {:.0} kills/min",
            self.engine,
            self.seed,
            self.kills(),
            self.killed,
            self.killed_starting,
            self.stopped,
            self.acked,
            self.transactions,
            self.rolled_back,
            self.done_again,
            self.never_done,
            self.built,
            self.builds_cut,
            self.checks,
            self.documents,
            self.kills() as f64 * 60.0 / seconds.max(1e-3)
        )
    }
}

/// A run with a violation, or one that could not start.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Whether a law was broken; if not, the run could not start.
    pub broken: bool,
    /// The explanation.
    pub story: String,
    /// The directory of the store.
    pub directory: PathBuf,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.story)
    }
}

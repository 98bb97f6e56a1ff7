//! The result of a run.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Config;
use crate::oracle::{Counts, Verdict, Violation};

/// A run without violations.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The engine.
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// Workers killed while they wrote.
    pub killed: u64,
    /// Workers that killed themselves in a chosen call.
    pub aborted: u64,
    /// Workers killed while they opened the store or sent its entries.
    pub killed_opening: u64,
    /// Workers killed while they closed the store.
    pub killed_closing: u64,
    /// Workers that closed the store in order.
    pub closed: u64,
    /// Second workers that could not open the store.
    pub rivals: u64,
    /// Comparisons of a whole state with the history.
    pub checks: u64,
    /// Checks by the engine itself, after opening.
    pub verified: u64,
    /// Counts of the checks.
    pub verdict: Verdict,
    /// Counts of the workers' messages.
    pub counts: Counts,
    /// Time taken.
    pub elapsed: Duration,
}

impl Summary {
    pub(super) fn new(config: &Config) -> Summary {
        Summary {
            engine: config.engine.clone(),
            seed: config.seed,
            killed: 0,
            aborted: 0,
            killed_opening: 0,
            killed_closing: 0,
            closed: 0,
            rivals: 0,
            checks: 0,
            verified: 0,
            verdict: Verdict::default(),
            counts: Counts::default(),
            elapsed: Duration::ZERO,
        }
    }

    pub(super) fn checked(&mut self, verdict: Verdict) {
        self.checks += 1;
        self.verdict.entries += verdict.entries;
        self.verdict.survived += verdict.survived;
        self.verdict.unreported += verdict.unreported;
        self.verdict.lost_unpromised += verdict.lost_unpromised;
    }

    pub(super) fn took(&mut self, elapsed: Duration, counts: Counts) {
        self.elapsed = elapsed;
        self.counts = counts;
    }

    /// Number of kills of any kind, all survived.
    #[must_use]
    pub fn kills(&self) -> u64 {
        self.killed + self.aborted + self.killed_opening + self.killed_closing
    }

    /// Number of kills per minute.
    #[must_use]
    pub fn kills_per_minute(&self) -> f64 {
        self.kills() as f64 * 60.0 / self.elapsed.as_secs_f64().max(1e-3)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        write!(
            f,
            "torture {}: seed {}, {} kills survived ({} writing, {} opening, {} closing, {} in a \
             chosen call), {} closed in order, {} rivals refused; {} commits acknowledged, {} of \
             them durable, durable acknowledged lost: 0 (not promised and lost: {}, never \
             acknowledged and kept: {}); {} checks of {} entries, {} by the engine; \
             {seconds:.1} s, {:.0} kills/min",
            self.engine,
            self.seed,
            self.kills(),
            self.killed,
            self.killed_opening,
            self.killed_closing,
            self.aborted,
            self.closed,
            self.rivals,
            self.counts.acked,
            self.counts.promised,
            self.verdict.lost_unpromised,
            self.verdict.unreported,
            self.checks,
            self.verdict.entries,
            self.verified,
            self.kills_per_minute()
        )
    }
}

/// The cycle in which a law was broken.
pub(super) struct Place<'a> {
    pub(super) cycle: u32,
    /// How the previous worker ended, and its options.
    pub(super) before: &'a str,
    /// How the current worker was going to end.
    pub(super) ending: &'a str,
    pub(super) options: &'a str,
}

/// A run with a violation, or one that could not start.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The broken law; `None` when the run could not start.
    pub violation: Option<Violation>,
    /// The explanation.
    pub story: String,
    /// The directory of the store.
    pub directory: PathBuf,
}

impl Failure {
    pub(super) fn cannot(config: &Config, story: String) -> Failure {
        Failure {
            violation: None,
            story,
            directory: config.directory.clone(),
        }
    }

    pub(super) fn broken(config: &Config, violation: Violation, place: &Place<'_>) -> Failure {
        let directory = config.directory.display();
        let copied = if config.copy {
            "; as it was before this cycle, `before`"
        } else {
            ""
        };
        let Place {
            cycle,
            before,
            ending,
            options,
        } = place;
        let story = format!(
            "{violation}\n  engine {}, seed {}, cycle {cycle}\n  the cycle before: {before}\n  \
             this cycle: {ending} ({options})\n  kept in {directory}: the store `store`{copied}; \
             the workers' errors `worker.log`\n  again (the moments of kills will differ): \
             torture --engine {} --seed {} --kept {} --cycles {} --copy",
            config.engine,
            config.seed,
            config.engine,
            config.seed,
            config.kept,
            (cycle + 1) * 2
        );
        Failure {
            violation: Some(violation),
            story,
            directory: config.directory.clone(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.story)
    }
}

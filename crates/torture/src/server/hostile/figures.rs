//! The measurements of a run of hostile clients, and their check.

use std::fmt;
use std::time::Duration;

use stdx::ByteSize;

use super::{KILL_MAX, LATE_MAX, PROBE_MAX, Phase, Plan};

/// Durations of one kind.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Adds a duration.
    pub(super) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The duration that `percent` percent of all durations do not exceed; zero if there are none.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(rank).copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |percent| self.percentile(percent).as_secs_f64() * 1e3;
        let (count, p50, p99, max) = (self.count(), ms(50), ms(99), ms(100));
        write!(
            f,
            "{count}, p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms"
        )
    }
}

/// Number of latest queries that are kept with their commands.
const LATEST: usize = 200;

/// Queries with `maxTimeMS`: how long they continued after it, and which continued longest.
#[derive(Clone, Debug, Default)]
pub struct Late {
    /// The durations of all queries.
    pub times: Times,
    /// The longest durations with their commands, the longest first.
    latest: Vec<(Duration, String)>,
}

impl Late {
    /// Adds a query.
    pub(super) fn push(&mut self, time: Duration, command: &impl fmt::Display) {
        self.times.push(time);
        let kept = self
            .latest
            .last()
            .map_or(Duration::ZERO, |(least, _)| *least);
        if self.latest.len() < LATEST || kept < time {
            self.latest.push((time, command.to_string()));
            self.cut();
        }
    }

    fn add(&mut self, other: Late) {
        self.times.0.extend(other.times.0);
        self.latest.extend(other.latest);
        self.cut();
    }

    fn cut(&mut self) {
        self.latest.sort_by(|(a, _), (b, _)| b.cmp(a));
        self.latest.truncate(LATEST);
    }

    /// The latest queries, at most `count`, each on a line that begins with a line break.
    pub(super) fn latest(&self, count: usize) -> String {
        let line = |(time, command): &(Duration, String)| {
            format!("\n  {:.1} ms late: {command}", time.as_secs_f64() * 1e3)
        };
        self.latest.iter().take(count).map(line).collect()
    }
}

/// The measurements of one client.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) probes: Times,
    pub(super) late: Late,
    pub(super) killed: Times,
    pub(super) queries: u64,
    pub(super) out_of_memory: u64,
    pub(super) operations: u64,
    pub(super) operations_refused: u64,
}

/// A run without violations.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The server's storage engine.
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// The memory limit.
    pub memory: ByteSize,
    /// Whether a control group enforced the limit; if not, why not.
    pub capped: Result<(), String>,
    /// The maximum memory that the server used, in bytes.
    pub resident_max: u64,
    /// Bytes sent before login.
    pub sent: u64,
    /// Connections of attackers before login that the server closed.
    pub closed: u64,
    /// Durations of probes during the attack before login.
    pub probes_before_login: Times,
    /// Durations of probes beside runaway queries.
    pub probes_beside_queries: Times,
    /// Runaway queries.
    pub queries: u64,
    /// Runaway queries that the server refused for memory.
    pub out_of_memory: u64,
    /// How long queries continued after their `maxTimeMS`.
    pub late: Late,
    /// How long queries continued after `killOp`.
    pub killed: Times,
    /// Ordinary reads and writes during the attack.
    pub operations: u64,
    /// Ordinary reads and writes that the server refused for memory.
    pub operations_refused: u64,
}

impl Figures {
    pub(super) fn of(plan: &Plan) -> Figures {
        let part = Part::default();
        Figures {
            engine: plan.engine.clone(),
            seed: plan.seed,
            memory: plan.memory,
            capped: Ok(()),
            resident_max: 0,
            sent: 0,
            closed: 0,
            probes_before_login: Times::default(),
            probes_beside_queries: Times::default(),
            queries: part.queries,
            out_of_memory: part.out_of_memory,
            late: part.late,
            killed: part.killed,
            operations: part.operations,
            operations_refused: part.operations_refused,
        }
    }

    pub(super) fn add(&mut self, phase: Phase, part: Part) {
        self.queries += part.queries;
        self.out_of_memory += part.out_of_memory;
        self.operations += part.operations;
        self.operations_refused += part.operations_refused;
        let probes = match phase {
            Phase::BeforeLogin => &mut self.probes_before_login,
            Phase::Queries => &mut self.probes_beside_queries,
        };
        probes.0.extend(part.probes.0);
        self.late.add(part.late);
        self.killed.0.extend(part.killed.0);
    }

    /// Checks the durations of the laws H3 to H5.
    pub(super) fn judge(&self, plan: &Plan) -> Result<(), String> {
        if !plan.judge_times {
            return Ok(());
        }
        let laws = [
            (
                "H3: 99 of 100 probes before login",
                &self.probes_before_login,
                99,
                PROBE_MAX,
            ),
            (
                "H3: 99 of 100 probes beside queries",
                &self.probes_beside_queries,
                99,
                PROBE_MAX,
            ),
            (
                "H4: 99 of 100 queries after maxTimeMS",
                &self.late.times,
                99,
                LATE_MAX,
            ),
            ("H5: queries after killOp", &self.killed, 100, KILL_MAX),
        ];
        for (what, times, percent, most) in laws {
            if most < times.percentile(percent) {
                let latest = self.late.latest(3);
                return Err(format!(
                    "{what} take more than {most:?}: {times}\n  {self}{latest}"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capped = match &self.capped {
            Ok(()) => "enforced by a control group".to_owned(),
            Err(why) => format!("not enforced: {why}"),
        };
        write!(
            f,
            "hostile clients on {}: seed {}, limit of memory {} ({capped}), at most {} resident; \
             {} sent before login, {} connections closed; probes before login: {}; probes beside \
             queries: {}; {} runaway queries, {} refused for memory; after maxTimeMS: {}; after \
             killOp: {}; {} ordinary operations, {} refused for memory",
            self.engine,
            self.seed,
            self.memory,
            ByteSize(self.resident_max),
            ByteSize(self.sent),
            self.closed,
            self.probes_before_login,
            self.probes_beside_queries,
            self.queries,
            self.out_of_memory,
            self.late.times,
            self.killed,
            self.operations,
            self.operations_refused,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Least;
    use super::*;

    impl Plan {
        /// A plan that no test executes.
        fn untried(judge_times: bool) -> Plan {
            Plan {
                engine: "memory".to_owned(),
                program: "none".into(),
                directory: "none".into(),
                seed: 1,
                time: Duration::ZERO,
                least: Least::default(),
                connections: 0,
                rate: 0,
                clients: 0,
                memory: ByteSize::mib(1),
                judge_times,
            }
        }
    }

    fn times(ms: &[u64]) -> Times {
        Times(ms.iter().copied().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(times(&hundred).percentile(99), Duration::from_millis(99));
        assert_eq!(times(&hundred).percentile(100), Duration::from_millis(100));
        assert_eq!(times(&[7]).percentile(50), Duration::from_millis(7));
        assert_eq!(times(&[]).percentile(99), Duration::ZERO);
    }

    #[test]
    fn late_answers_break_a_law_only_where_times_are_judged() {
        let plan = Plan::untried;
        for (late, law) in [(150, "H4"), (90, "")] {
            let mut figures = Figures::of(&plan(true));
            figures.late.push(Duration::from_millis(late), &"a query");
            figures.judge(&plan(false)).unwrap();
            let story = figures.judge(&plan(true)).err().unwrap_or_default();
            assert_eq!(story.starts_with("H4"), law == "H4", "{story}");
            assert_eq!(story.contains("late: a query"), law == "H4", "{story}");
        }
    }

    #[test]
    fn probes_of_one_phase_do_not_hide_those_of_the_other() {
        let part = |probes: &[u64]| Part {
            probes: times(probes),
            ..Part::default()
        };
        let plan = Plan::untried(true);
        for (phase, name) in [
            (Phase::BeforeLogin, "before login"),
            (Phase::Queries, "beside queries"),
        ] {
            let mut figures = Figures::of(&plan);
            for other in [Phase::BeforeLogin, Phase::Queries] {
                figures.add(other, part(&[1; 200]));
            }
            figures.judge(&plan).unwrap();
            figures.add(phase, part(&[150; 5]));
            let story = figures.judge(&plan).unwrap_err();
            assert!(story.starts_with("H3") && story.contains(name), "{story}");
        }
    }
}

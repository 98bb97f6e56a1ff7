//! Which databases are profiled, and which commands are slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use query::Result;
use query::expr::Variables;
use query::filter::Filter;
use query::settings::Settings;
use stdx::Rng;
use stdx::sync::Mutex;

use super::clock;

/// The denominator of sample rates.
const WHOLE: u64 = 1_000_000;

/// The profiler's settings. Level and filter are per database; the slow threshold and the sample
/// rate apply to all.
pub(crate) struct Profiler {
    slow_ms: AtomicI32,
    /// The number of slow commands recorded per million.
    sample: AtomicU64,
    rng: Mutex<Rng>,
    verbose: AtomicBool,
    default: i32,
    levels: Mutex<BTreeMap<String, i32>>,
    /// Filters that replace the slow threshold, by database.
    filters: Mutex<BTreeMap<String, Arc<Conditions>>>,
    /// Whether there are any, so that commands can check without a lock.
    filtering: AtomicBool,
}

/// The filter that profile entries must match.
#[derive(Debug)]
pub(crate) struct Conditions {
    /// The filter as the client sent it.
    pub(crate) given: RawDocumentBuf,
    parsed: Filter,
}

impl Conditions {
    /// Parse a filter.
    ///
    /// # Errors
    /// Those of filters.
    pub(crate) fn parse(given: &RawDocument) -> Result<Conditions> {
        Ok(Conditions {
            given: given.to_owned(),
            parsed: Filter::parse(given, &Settings::default())?,
        })
    }

    /// Whether an entry matches; `$$NOW` is the time of the call. An entry on which the filter
    /// fails does not match.
    fn choose(&self, entry: &RawDocument) -> bool {
        let chosen = match self.parsed.has_expressions() {
            true => self
                .parsed
                .matches_with(entry, &Variables::at(clock::now())),
            false => self.parsed.matches(entry),
        };
        chosen.unwrap_or(false)
    }
}

/// How a command that has ended is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) logged: bool,
    /// Whether it is written to the profile of its database.
    pub(crate) kept: bool,
}

impl Profiler {
    /// The initial settings.
    pub(crate) fn new(level: i32, slow_ms: i32, rate: f64) -> Profiler {
        let profiler = Profiler {
            slow_ms: AtomicI32::new(slow_ms),
            sample: AtomicU64::new(WHOLE),
            rng: Mutex::new(Rng::new(u64::from(std::process::id()))),
            verbose: AtomicBool::new(false),
            default: level,
            levels: Mutex::new(BTreeMap::new()),
            filters: Mutex::new(BTreeMap::new()),
            filtering: AtomicBool::new(false),
        };
        profiler.set_rate(rate);
        profiler
    }

    /// The slow threshold: commands that take longer, in milliseconds, are logged.
    pub(crate) fn slow_ms(&self) -> i32 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    /// Change the slow threshold.
    pub(crate) fn set_slow_ms(&self, slow_ms: i32) {
        self.slow_ms.store(slow_ms, Ordering::Relaxed);
    }

    /// The sample rate of slow commands, from 0 to 1.
    pub(crate) fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a million at most")]
        let rate = self.sample.load(Ordering::Relaxed) as f64 / WHOLE as f64;
        rate
    }

    /// Change the sample rate of slow commands.
    pub(crate) fn set_rate(&self, rate: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "between nothing and a million"
        )]
        let sample = (rate.clamp(0.0, 1.0) * WHOLE as f64).round() as u64;
        self.sample.store(sample, Ordering::Relaxed);
    }

    /// The filter of a database, if it has one.
    pub(crate) fn filter(&self, database: &str) -> Option<Arc<Conditions>> {
        if !self.filtering.load(Ordering::Relaxed) {
            return None;
        }
        self.filters.lock().get(database).map(Arc::clone)
    }

    /// Change the filter of a database.
    pub(crate) fn set_filter(&self, database: &str, filter: Option<Arc<Conditions>>) {
        let mut filters = self.filters.lock();
        match filter {
            Some(filter) => filters.insert(database.to_owned(), filter),
            None => filters.remove(database),
        };
        self.filtering.store(!filters.is_empty(), Ordering::Relaxed);
    }

    /// Whether all commands are logged.
    pub(crate) fn set_verbose(&self, verbose: bool) {
        self.verbose.store(verbose, Ordering::Relaxed);
    }

    /// The level of a database: 0 nothing, 1 slow commands, 2 all.
    pub(crate) fn level(&self, database: &str) -> i32 {
        self.levels
            .lock()
            .get(database)
            .copied()
            .unwrap_or(self.default)
    }

    /// Change the level of a database.
    pub(crate) fn set_level(&self, database: &str, level: i32) {
        self.levels.lock().insert(database.to_owned(), level);
    }

    fn is_slow(&self, taken: Duration) -> bool {
        let limit = u128::try_from(self.slow_ms()).unwrap_or(0);
        limit <= taken.as_millis()
    }

    fn is_sampled(&self) -> bool {
        let sample = self.sample.load(Ordering::Relaxed);
        WHOLE <= sample || self.rng.lock().below(WHOLE) < sample
    }

    /// How to record a command of a database that took `taken`. `entry` builds the profile entry;
    /// it is called only if the database has a filter.
    pub(crate) fn note(
        &self,
        database: &str,
        taken: Duration,
        entry: impl FnOnce() -> RawDocumentBuf,
    ) -> Noted {
        let chosen = match self.filter(database) {
            Some(filter) => filter.choose(&entry()),
            None => self.is_slow(taken) && self.is_sampled(),
        };
        Noted {
            logged: chosen || self.verbose.load(Ordering::Relaxed),
            kept: match self.level(database) {
                0 => false,
                1 => chosen,
                _ => true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc};

    use super::*;

    fn raw(document: &Document) -> RawDocumentBuf {
        RawDocumentBuf::try_from(document).unwrap()
    }

    #[test]
    fn slow_commands_are_sampled_and_filters_decide_instead() {
        let profiler = Profiler::new(1, 100, 1.0);
        let entry = || raw(&doc! {"op": "insert", "millis": 7});
        let at = |profiler: &Profiler, millis: u64| {
            let noted = profiler.note("test", Duration::from_millis(millis), entry);
            assert_eq!(noted.logged, noted.kept);
            noted.kept
        };
        assert!(at(&profiler, 100));
        assert!(!at(&profiler, 99));
        profiler.set_rate(0.0);
        assert!(!at(&profiler, 100));
        profiler.set_rate(0.5);
        assert!((profiler.rate() - 0.5).abs() < 1e-9);
        let taken = (0..1_000).filter(|_| at(&profiler, 100)).count();
        assert!((300..700).contains(&taken), "{taken} of 1000");
        // With a filter, the slow threshold and the sample rate do not apply.
        let set = |filter: Document| {
            let conditions = Conditions::parse(&raw(&filter)).unwrap();
            profiler.set_filter("test", Some(Arc::new(conditions)));
        };
        set(doc! {"op": "insert"});
        assert!(at(&profiler, 0));
        set(doc! {"op": "query"});
        assert!(!at(&profiler, 1_000));
        // The time is that of the entry, not that of the epoch.
        set(doc! {"$expr": {"$lt": [bson::DateTime::from_millis(1), "$$NOW"]}});
        assert!(at(&profiler, 0));
        profiler.set_filter("test", None);
        profiler.set_rate(1.0);
        assert!(at(&profiler, 1_000));
    }

    #[test]
    fn levels_and_verbosity_choose_all_or_nothing() {
        let profiler = Profiler::new(0, 100, 1.0);
        let note = |millis| profiler.note("test", Duration::from_millis(millis), || raw(&doc! {}));
        let (yes, no) = (true, false);
        assert_eq!(
            note(500),
            Noted {
                logged: yes,
                kept: no
            }
        );
        profiler.set_level("test", 2);
        assert_eq!(
            note(0),
            Noted {
                logged: no,
                kept: yes
            }
        );
        profiler.set_level("test", 0);
        profiler.set_verbose(true);
        assert_eq!(
            note(0),
            Noted {
                logged: yes,
                kept: no
            }
        );
    }
}

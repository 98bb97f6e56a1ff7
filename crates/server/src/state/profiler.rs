//! Which databases are profiled, and what is slow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use stdx::sync::Mutex;

/// The profiler's settings. The level is one for each database, what is slow is the same for all.
pub(crate) struct Profiler {
    slow_ms: AtomicI32,
    verbose: AtomicBool,
    default: i32,
    levels: Mutex<BTreeMap<String, i32>>,
}

impl Profiler {
    /// Settings of the start.
    pub(crate) fn new(level: i32, slow_ms: i32) -> Profiler {
        Profiler {
            slow_ms: AtomicI32::new(slow_ms),
            verbose: AtomicBool::new(false),
            default: level,
            levels: Mutex::new(BTreeMap::new()),
        }
    }

    /// Commands that take longer, in milliseconds, are logged.
    pub(crate) fn slow_ms(&self) -> i32 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    /// Change what is slow.
    pub(crate) fn set_slow_ms(&self, slow_ms: i32) {
        self.slow_ms.store(slow_ms, Ordering::Relaxed);
    }

    /// Whether all commands are logged.
    pub(crate) fn set_verbose(&self, verbose: bool) {
        self.verbose.store(verbose, Ordering::Relaxed);
    }

    /// Whether a command that took so long is logged.
    pub(crate) fn is_logged(&self, taken: Duration) -> bool {
        self.verbose.load(Ordering::Relaxed) || self.is_slow(taken)
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

    /// Whether a command that took so long is slow.
    pub(crate) fn is_slow(&self, taken: Duration) -> bool {
        let limit = u128::try_from(self.slow_ms()).unwrap_or(0);
        limit <= taken.as_millis()
    }

    /// Whether a command is to be noted among its database's profile.
    pub(crate) fn keeps(&self, database: &str, taken: Duration) -> bool {
        match self.level(database) {
            0 => false,
            1 => self.is_slow(taken),
            _ => true,
        }
    }
}

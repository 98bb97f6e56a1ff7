//! Crashes, faults and damage on a simulated disk, against the laws of what may be lost.
//!
//! Everything here, except a part of [`lives`], runs a store without threads, step by step, on one
//! simulated disk: the same seed gives the same calls, the same crash and the same verdict.
//! `BETREE_SIM_RUNS` makes the random lanes longer, `BETREE_SIM_SEED` says where they begin; a
//! failure prints both for one run of it.

mod absorb;
mod acts;
mod bounds;
mod damage;
mod draw;
mod exhaustive;
mod full;
mod lives;
mod look;
mod meta;
#[cfg(feature = "plants")]
#[path = "../plants/mod.rs"]
mod plants;
mod random;
mod remnant;
mod rig;
mod scripts;
mod sweep;
mod txn;

/// Minimum number of crashes in the random lane, each followed by a recovery.
pub(crate) const RANDOM_RECOVERIES: u64 = 1500;
/// Minimum number of scripts that are crashed after every call.
pub(crate) const SCRIPTS: usize = 40;

/// A number from the environment.
pub(crate) fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    Some(number.unwrap_or_else(|e| panic!("{name}={text}: {e}; give a number")))
}

/// Prints the command that repeats a failure, if the test fails while this lives.
pub(crate) struct Repeat(pub(crate) String);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat: {}", self.0);
        }
    }
}

/// With the feature `plants`.
#[cfg(feature = "plants")]
#[test]
fn every_planted_bug_is_found() {
    plants::drive(plants::Binary::Crash);
}

//! Schedules of threads, drawn and replayed: the engine's locks, atomics and threads are those of
//! the `shuttle` crate, its disk is simulated, and each kernel is a few threads on a tiny store.
//! Whatever the schedule, what is read must be what a model says.
//!
//! `cargo test -p betree --features shuttle --test shuttle`. A failure prints its schedule;
//! `ROMANESCO_SCHEDULE=.. cargo test .. NAME` runs exactly that one again, and
//! `ROMANESCO_SCHEDULES=N` draws N of each kind instead of the few there is time for, and
//! `ROMANESCO_SEED=S` draws others.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails, and helpers are tests too"
)]

mod books;
mod buckets;
mod checkpoints;
mod close;
mod commits;
mod cursors;
mod explore;
mod full;
#[cfg(feature = "plants")]
#[path = "../plants/mod.rs"]
mod plants;
mod threads;
mod transactions;
mod trees;

/// With the feature `plants`.
#[cfg(feature = "plants")]
#[test]
fn every_planted_bug_is_found() {
    plants::drive(plants::Binary::Shuttle);
}

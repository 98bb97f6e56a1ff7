//! The laws that every storage engine with the `kv` API must keep.
//!
//! A law is a named function with assertions, run in a fresh directory. One list (`list.rs`) names
//! all laws: [`laws()`] is built from it, and it expands to one `#[test]` per law, so that an
//! engine's test run names each law. An adapter has one line in its integration tests:
//!
//! ```text
//! kv_conformance::conformance_tests!(kv_lmdb::factory());
//! ```
//!
//! or, for a further configuration, with a module name and options:
//!
//! ```text
//! kv_conformance::conformance_tests!(small_cache, kv_lmdb::factory(), small_cache_options());
//! ```
//!
//! In addition to the laws, random programs run against a model of the contract:
//! `ROMANESCO_SEEDS=n` runs more of them, `ROMANESCO_TAPE=hex` repeats one that failed.
//!
//! Invariants:
//!
//! - I1. Missing capabilities are data ([`kv::Capabilities`]): a law that needs one is skipped,
//!   counted and printed, never commented out and never silently passed.
//! - I2. A law depends only on the contract in the documentation of `kv`: where the contract leaves
//!   a choice to the engine, a law accepts every choice.
//! - I3. No law sleeps or asserts a duration: threads wait for one another by channels, which also
//!   end when a thread panics.
//! - I4. A random run is a function of its tape: a failing run prints the tape as hexadecimal text,
//!   from which it can be repeated.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the whole crate is test code: a panic is how a law fails"
)]

mod bench;
mod expand;
mod law;
mod laws;
mod list;
mod random;
mod report;
mod subject;
mod verbs;

pub use kv;

pub use bench::Bench;
pub use law::{Law, Need};
pub use list::laws;
pub use random::{Divergence, PARTS, check_seed, check_seed_quickly, check_tape, random_runs};
pub use report::{Failure, Report, Skipped, check_laws, print_skipped, run_law};
pub use subject::Subject;

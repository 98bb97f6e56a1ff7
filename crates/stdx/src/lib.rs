//! The foundation of all other crates: locks and threads, announced waits, the clock, seeded
//! randomness, the byte tape that drives random tests, units, and settings of the allocator.
//!
//! This crate does not depend on storage. Locks, time, threads and randomness are reached only
//! through this crate (clippy's `disallowed-methods` enforces it), so that a simulation can replace
//! them.

pub mod blocking;
pub mod hash;
pub mod memory;
pub mod rng;
pub mod skip;
pub mod sync;
pub mod tape;
pub mod time;
pub mod units;

pub use rng::Rng;
pub use tape::Tape;
pub use units::ByteSize;

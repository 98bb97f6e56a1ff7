//! A simulated disk that loses power, fails and lies on purpose, and the checker of what survives.
//!
//! [`SimVfs`] implements [`vfs::Vfs`] in memory. It keeps apart what is *visible* (what reads
//! give) and what is *durable* (what a crash cannot take), and between them the ordered list of
//! what is *pending*. [`SimVfs::crash`] makes a new disk of the durable part and of some of the
//! pending one, as a [`Crash`] says: which ops survive, whole or torn. [`Fault`]s make single calls
//! fail or lie. Everything is drawn from one seed: the same calls in the same order give the same
//! disk, the same errors and the same [`SimVfs::trace_hash`].
//!
//! [`checker::History`] is told the commits of a workload as they start and are acknowledged; it
//! then says whether the state found after a crash is one that the promises allow.
//!
//! Locks: one, around the whole disk; no call waits for another inside it.

pub mod checker;
mod content;
mod crash;
mod disk;
mod fault;
mod file;
mod inode;
mod names;
mod owned;
mod sim_vfs;
mod trace;

pub use crash::{Crash, Outcome, Profile};
pub use disk::{SimOptions, is_stopped};
pub use fault::{Fault, FaultKind, Lasts, Pages, Sites, When};
pub use sim_vfs::SimVfs;
pub use trace::{Call, Row, Table};

#[cfg(test)]
mod tests;

//! A simulated disk with power losses, failures and wrong results, and a checker of the surviving
//! state.
//!
//! [`SimVfs`] implements [`vfs::Vfs`] in memory. It keeps separate the *visible* content (which
//! reads return), the *durable* content (which survives a crash), and between them the ordered list
//! of *pending* ops. [`SimVfs::crash`] makes a new disk from the durable content and some of the
//! pending ops; a [`Crash`] determines which ops survive, whole or torn. [`Fault`]s make single
//! calls fail or return wrong results. All random choices depend on one seed: the same calls in the
//! same order give the same disk, the same errors and the same [`SimVfs::trace_hash`].
//!
//! [`checker::History`] records each commit of a workload when it starts and when it is
//! acknowledged. After a crash it checks whether the store may have the state found.
//!
//! There is one lock, for the whole disk; no call waits for another call while it holds the lock.

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

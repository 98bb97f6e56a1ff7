//! The oracle: derives the required content of the store from announced and acknowledged commits.
//!
//! The oracle is in the supervisor's memory and never reads the store's directory. `history`
//! collects the worker's messages, `check` compares a whole state with them after a restart,
//! `order` searches for one order of commits that explains it. A state that passed a check is the
//! start of the next generation: an entry that was found once must not disappear later.

mod check;
mod history;
mod order;
#[cfg(test)]
mod tests;
mod violation;

pub use check::Verdict;
pub use history::{Counts, Oracle, State};
pub use violation::{Law, Violation};

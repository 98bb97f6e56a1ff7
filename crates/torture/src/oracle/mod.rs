//! The oracle: what the store must hold, from what was announced and acknowledged.
//!
//! It lives in the supervisor's memory and never looks at the store's directory. `history`
//! gathers what the worker says, `check` compares a whole state with it after a restart,
//! `order` looks for one order of commits that explains it. What was found right becomes the
//! state the next generation starts from: an entry that recovery has shown once must never vanish
//! again.

mod check;
mod history;
mod order;
#[cfg(test)]
mod tests;
mod violation;

pub use check::Verdict;
pub use history::{Counts, Oracle, State};
pub use violation::{Law, Violation};

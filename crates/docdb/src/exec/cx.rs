//! Execution context: a view of the store, a work budget, and a callback that checks whether the
//! operation must end.

use kv::Snapshot;
use query::Result;

/// Units of work between two checks whether the operation must end.
const CHECK_EVERY: u64 = 128;

/// The context of one stretch of execution, within one view of the store.
pub(crate) struct Cx<'a> {
    pub(crate) snapshot: &'a dyn Snapshot,
    /// Returns an error when the operation was killed or its time limit is exceeded.
    check: &'a mut dyn FnMut() -> Result<()>,
    /// Units of work (entries read) left in the budget.
    budget: u64,
    until_check: u64,
    /// Rows still wanted: no more than this are read ahead.
    pub(crate) rows_left: usize,
}

impl<'a> Cx<'a> {
    /// A context without a work limit.
    pub(crate) fn new(
        snapshot: &'a dyn Snapshot,
        check: &'a mut dyn FnMut() -> Result<()>,
    ) -> Cx<'a> {
        Cx {
            snapshot,
            check,
            budget: u64::MAX,
            until_check: CHECK_EVERY,
            rows_left: usize::MAX,
        }
    }

    /// Set the work budget to this number of units.
    pub(crate) fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// Whether the work budget is used up.
    pub(crate) fn exhausted(&self) -> bool {
        self.budget == 0
    }

    /// Count one unit of work.
    ///
    /// # Errors
    /// The operation was killed or its time limit is exceeded.
    pub(crate) fn work(&mut self) -> Result<()> {
        self.budget = self.budget.saturating_sub(1);
        self.until_check -= 1;
        if self.until_check == 0 {
            self.until_check = CHECK_EVERY;
            (self.check)()?;
        }
        Ok(())
    }
}

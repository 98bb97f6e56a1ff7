//! What execution is given from outside: a view of the store, how much it may do, and whom to ask
//! whether to go on.

use kv::Snapshot;
use query::Result;

/// Units of work between two questions whether to go on.
const CHECK_EVERY: u64 = 128;

/// The surroundings of one stretch of execution, within one view of the store.
pub(crate) struct Cx<'a> {
    /// The view that is read.
    pub(crate) snapshot: &'a dyn Snapshot,
    /// Answers an error when the operation was killed or its time is over.
    check: &'a mut dyn FnMut() -> Result<()>,
    /// Units of work (entries read) that may be done yet.
    budget: u64,
    until_check: u64,
    /// Rows that are wanted yet: no more are read ahead.
    pub(crate) rows_left: usize,
}

impl<'a> Cx<'a> {
    /// Without a limit of work.
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

    /// Allow this many units of work from now on.
    pub(crate) fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// Whether the work allowed is done.
    pub(crate) fn exhausted(&self) -> bool {
        self.budget == 0
    }

    /// One unit of work is done.
    ///
    /// # Errors
    /// That the operation must end.
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

//! The work and the memory of planning.
//!
//! E1: everything that the planner looks at is a step of the operation, so that planning ends when
//!     the operation must.
//! E2: bounds and keys of plans are reserved in the common budget before they are made, and for as
//!     long as a plan contains them.
//!
//! A branch without an index is planned again with each branch of each other disjunction, and a
//! disjunction in the filter of a partial index is compared with each branch of each disjunction of
//! the query: the number of combinations is a power of the number of disjunctions. Budgets bound
//! it. Without a plan for them the filter is applied to documents.

use query::Result;
use query::meter::{self, Held};

use super::predicate::Conjunction;

/// Maximum depth of nested disjunctions whose branches get scans of their own.
pub(super) const OR_DEPTH: usize = 4;

/// Maximum work for nested disjunctions in the planning of one query, in tests and disjunctions
/// that are looked at.
const NESTED: usize = 100_000;

/// Maximum work for comparing disjunctions in the filters of partial indexes with those of the
/// query, in tests and disjunctions that are looked at.
const IMPLIED: usize = 100_000;

/// Bytes of plans after which no more of them are made: the bounds of the largest filter, each of
/// its values in one index.
const PLANS_BYTES: usize = 512 << 20;

/// The work that is left, and the memory that plans take.
pub(crate) struct Effort {
    nested: usize,
    implied: usize,
    held: Held,
}

impl Effort {
    pub(crate) fn new() -> Effort {
        Effort {
            nested: NESTED,
            implied: IMPLIED,
            held: Held::new(),
        }
    }

    /// Plan one conjunction; `depth` is [`OR_DEPTH`] for one that is not nested. False if no work
    /// or no memory is left for it.
    ///
    /// # Errors
    /// The operation must end.
    pub(super) fn spend(&mut self, all: &Conjunction<'_>, depth: usize) -> Result<bool> {
        let work = look_at(all)?;
        if depth == OR_DEPTH {
            return Ok(!self.is_full());
        }
        self.nested = self.nested.saturating_sub(work);
        Ok(!self.is_spent())
    }

    /// Whether no work or no memory is left for nested disjunctions.
    pub(super) fn is_spent(&self) -> bool {
        self.nested == 0 || self.is_full()
    }

    /// Compare the filter of a partial index with a branch of a disjunction in `all`. False if no
    /// work is left for it.
    ///
    /// # Errors
    /// The operation must end.
    pub(super) fn imply(&mut self, all: &Conjunction<'_>) -> Result<bool> {
        let work = look_at(all)?;
        self.implied = self.implied.saturating_sub(work);
        Ok(self.implied != 0)
    }

    /// Reserve bytes that a plan is about to take.
    ///
    /// # Errors
    /// The operation must end; the budget refuses them.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<()> {
        meter::read(bytes)?;
        self.set(self.held.bytes().saturating_add(bytes))
    }

    /// The bytes reserved.
    pub(super) fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Release bytes.
    pub(super) fn release(&mut self, bytes: usize) -> Result<()> {
        self.set(self.held.bytes().saturating_sub(bytes))
    }

    /// Set the bytes reserved, when parts of plans were dropped.
    ///
    /// # Errors
    /// The budget refuses them.
    pub(super) fn set(&mut self, bytes: usize) -> Result<()> {
        self.held.require("The planning of a query", bytes)
    }

    /// Whether no more plans are made, for their memory.
    pub(super) fn is_full(&self) -> bool {
        PLANS_BYTES < self.held.bytes()
    }

    /// The reservation, for the owner of the plans.
    pub(super) fn into_held(self) -> Held {
        self.held
    }
}

/// The work of looking at a conjunction, which counts as steps.
///
/// # Errors
/// The operation must end.
fn look_at(all: &Conjunction<'_>) -> Result<usize> {
    let work = 1 + all.predicates.len() + all.ors.len();
    meter::steps(work)?;
    Ok(work)
}

#[cfg(test)]
mod tests {
    use bson::{Document, RawDocumentBuf, doc};
    use query::Code;
    use query::filter::Filter;
    use query::settings::Settings;

    use super::super::candidates::{Request, candidates};
    use super::super::space::Space;
    use super::*;
    use crate::looks;

    /// Plans `count` disjunctions of `width` branches without any index; the outcome and the
    /// number of looks.
    fn plan(count: i32, width: i32, last: usize) -> (Result<usize>, usize) {
        let or = |at: i32| {
            let branch = |branch: i32| doc! { format!("f{branch}"): at };
            let branches: Vec<Document> = (0..width).map(branch).collect();
            doc! { "$or": branches }
        };
        let ors: Vec<Document> = (0..count).map(or).collect();
        let filter = RawDocumentBuf::try_from(&doc! { "$and": ors }).unwrap();
        let filter = Filter::parse(&filter, &Settings::default()).unwrap();
        let request = Request {
            filter: &filter,
            sort: None,
            hint: None,
            min: None,
            max: None,
            needed: None,
            collation: None,
        };
        let space = Space {
            indexes: Vec::new(),
            clustered: None,
            oplog: false,
            id_collation: None,
            collator: None,
        };
        looks::counted(last, || {
            candidates(&request, &space).map(|found| found.candidates.len())
        })
    }

    #[test]
    fn disjunctions_are_planned_in_bounded_work() {
        for (count, width) in [(12, 2), (30, 2), (250, 2), (100, 200), (2000, 2)] {
            let (found, looks) = plan(count, width, usize::MAX);
            assert_eq!(found.unwrap(), 1, "a scan of the collection");
            // All disjunctions without nesting, and the budget.
            let all = usize::try_from(count * width * (count + width)).unwrap();
            let most = all + 2 * NESTED;
            assert!(looks <= most / 500, "{looks} looks for {count} of {width}");
        }
    }

    #[test]
    fn planning_ends_when_the_operation_must() {
        let (found, looks) = plan(2000, 2, 3);
        assert_eq!(found.unwrap_err().code, Code::INTERRUPTED);
        assert_eq!(looks, 3);
    }
}

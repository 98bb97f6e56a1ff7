//! The work of planning disjunctions.
//!
//! A branch without an index is planned again with each branch of each other disjunction, so the
//! number of combinations is a power of the number of disjunctions. It is bounded by a budget, and
//! all of it is measured, so that an operation ends in time.

use query::{Result, meter};

use super::predicate::Conjunction;

/// Maximum depth of nested disjunctions whose branches get scans of their own.
pub(super) const OR_DEPTH: usize = 4;

/// Maximum work for nested disjunctions in the planning of one query, in tests and disjunctions
/// that are looked at. Without a plan for them the filter is applied to documents.
const NESTED: usize = 100_000;

/// The work that is left for nested disjunctions.
pub(super) struct Effort {
    left: usize,
}

impl Effort {
    pub(super) fn new() -> Effort {
        Effort { left: NESTED }
    }

    /// Plan one conjunction; `depth` is [`OR_DEPTH`] for one that is not nested. False if no work
    /// is left for it.
    ///
    /// # Errors
    /// The operation must end.
    pub(super) fn spend(&mut self, all: &Conjunction<'_>, depth: usize) -> Result<bool> {
        let work = 1 + all.predicates.len() + all.ors.len();
        meter::steps(work)?;
        if depth == OR_DEPTH {
            return Ok(true);
        }
        self.left = self.left.saturating_sub(work);
        Ok(!self.is_spent())
    }

    /// Whether no work is left for nested disjunctions.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }
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
            candidates(&request, &space).map(|found| found.len())
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

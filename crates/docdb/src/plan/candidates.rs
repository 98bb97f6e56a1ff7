//! The candidate plans of a query.
//!
//! As in MongoDB: every index whose first field is bounded by a test, and every disjunction whose
//! branches all have an index; an index that only provides the sort order if none of those exists;
//! otherwise a scan of the collection. There are at most [`PLANS_MAX`].

use std::collections::BTreeSet;
use std::sync::Arc;

use bson::{Bson, Document};
use query::filter::{Filter, Node, Test};
use query::meter::Held;
use query::sort::Sort;
use query::{Code, Error, Result};

use super::access::{Access, Candidate, IndexScan, SCAN};
use super::assign::{Assigned, assign};
use super::bounds::{is_collated, is_nullish};
use super::cover::{covers, reads};
use super::edges::min_max;
use super::effort::{Effort, OR_DEPTH};
use super::index::{IndexKind, IndexView};
use super::interval::Intervals;
use super::order::{Order, order};
use super::predicate::Conjunction;
use super::scan::compile;
use super::space::Space;
use super::{times, wildcard};

/// Maximum number of plans to choose from (MongoDB's limit).
const PLANS_MAX: usize = 64;

/// The index requested by the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Hint {
    /// By name.
    Name(String),
    /// By key pattern.
    Pattern(Document),
    /// No index: scan the collection.
    Natural {
        /// From its end.
        backward: bool,
    },
}

/// The parts of a query that plans depend on.
pub(crate) struct Request<'q> {
    /// The filter that documents must match.
    pub(crate) filter: &'q Filter,
    /// The requested sort order.
    pub(crate) sort: Option<&'q Sort>,
    /// The index hint.
    pub(crate) hint: Option<&'q Hint>,
    /// The lower bound of the key, inclusive.
    pub(crate) min: Option<&'q Document>,
    /// The upper bound of the key, exclusive.
    pub(crate) max: Option<&'q Document>,
    /// The paths that are read; `None` for whole documents.
    pub(crate) needed: Option<&'q [String]>,
    /// The collation in full; `None` is byte order.
    pub(crate) collation: Option<&'q Document>,
}

/// The plans to choose from, at least one.
pub(crate) struct Plans {
    /// The plans.
    pub(crate) candidates: Vec<Candidate>,
    /// The memory that they take.
    pub(crate) held: Held,
}

/// The plans to choose from.
///
/// # Errors
/// A hint, `min` or `max` that cannot be used; the operation must end.
pub(crate) fn candidates(request: &Request<'_>, space: &Space) -> Result<Plans> {
    let mut planning = Planning {
        request,
        space,
        reads: None,
        effort: Effort::new(),
    };
    let candidates = planning.candidates()?;
    Ok(Plans {
        candidates,
        held: planning.effort.into_held(),
    })
}

/// The planning of one query.
pub(super) struct Planning<'q> {
    pub(super) request: &'q Request<'q>,
    pub(super) space: &'q Space,
    /// The paths that the query reads, if an index may contain all of them.
    reads: Option<BTreeSet<String>>,
    pub(super) effort: Effort,
}

impl Planning<'_> {
    fn candidates(&mut self) -> Result<Vec<Candidate>> {
        let (request, space) = (self.request, self.space);
        if let Some(id) = point_of_id(request, space) {
            return Ok(vec![Candidate {
                access: Access::Id(id),
                exact: true,
                sorted: true,
                covered: false,
            }]);
        }
        self.reads = reads(request)?;
        if request.min.is_some() || request.max.is_some() {
            return Ok(vec![min_max(self)?]);
        }
        let all = Conjunction::of(request.filter.root());
        if all.never {
            return Ok(vec![Candidate::nothing()]);
        }
        match request.hint {
            Some(Hint::Natural { backward }) => {
                return Ok(vec![self.collection(&all, *backward)?]);
            }
            Some(hint) if is_of_records(space, hint) => {
                return Ok(vec![self.collection(&all, false)?]);
            }
            Some(hint) => return self.hinted(&all, hint),
            None => {}
        }
        self.found(&all)
    }

    /// The plans by indexes, and a scan of the collection if it is needed.
    fn found(&mut self, all: &Conjunction<'_>) -> Result<Vec<Candidate>> {
        let (request, space) = (self.request, self.space);
        let mut found = Vec::new();
        let visible = || space.indexes.iter().filter(|index| !index.hidden);
        for index in visible() {
            self.by_index(index, (all, false), &mut found)?;
        }
        for at in 0..all.ors.len() {
            if self.has_enough(&found) {
                break;
            }
            let before = self.effort.bytes();
            let candidate = self.by_branches(space, (all, at), OR_DEPTH)?;
            self.add(candidate, before, &mut found)?;
        }
        if request.sort.is_some() && !found.iter().any(|candidate| candidate.sorted) {
            for index in visible() {
                self.by_order(index, all, &mut found)?;
            }
        }
        let bounded = space.clustered.is_some() && all.predicates.iter().any(|p| p.path.is("_id"));
        if found.is_empty() || bounded {
            found.push(self.collection(all, false)?);
        }
        Ok(found)
    }

    /// Whether no more plans are added.
    fn has_enough(&self, found: &[Candidate]) -> bool {
        PLANS_MAX <= found.len() || (self.effort.is_full() && !found.is_empty())
    }

    /// Adds a plan, unless there are enough. `before` is what was held before it was made.
    fn add(
        &mut self,
        candidate: Option<Candidate>,
        before: usize,
        found: &mut Vec<Candidate>,
    ) -> Result<()> {
        let candidate = candidate.filter(|_| !self.has_enough(found));
        let bytes = candidate.as_ref().map_or(0, |plan| plan.access.bytes());
        found.extend(candidate);
        self.effort.set(before.saturating_add(bytes))
    }

    fn collection(&mut self, all: &Conjunction<'_>, backward: bool) -> Result<Candidate> {
        let request = self.request;
        let mut candidate = Candidate {
            access: Access::Collection {
                backward,
                ranges: None,
            },
            exact: matches!(request.filter.root(), Node::AlwaysTrue) || all.is_empty(),
            sorted: request.sort.is_none(),
            covered: false,
        };
        if self.space.oplog {
            candidate.access = times::access(all, backward);
            return Ok(candidate);
        }
        let Some(id) = &self.space.clustered else {
            return Ok(candidate);
        };
        let same = same_collation(request, id);
        let Some(assigned) = assign(id, all, (same, false), &mut self.effort)? else {
            return Ok(candidate);
        };
        let mut from_end = backward;
        if let Some(sort) = request.sort
            && let Some(Order::Scan { backward }) = self.order(id, &assigned.sets, sort)?
        {
            candidate.sorted = true;
            from_end = backward;
        }
        let coding = id.coding();
        let ranges = compile(&assigned.sets, &coding, id.true_bytes, &mut self.effort)?;
        candidate.exact = assigned.exact && !ranges.cut;
        candidate.access = Access::Collection {
            backward: from_end,
            ranges: assigned.useful.then(|| Arc::new(ranges)),
        };
        Ok(candidate)
    }

    /// How an index provides the order of `sort`.
    pub(super) fn order(
        &mut self,
        index: &IndexView,
        sets: &[Intervals],
        sort: &Sort,
    ) -> Result<Option<Order>> {
        let same = same_collation(self.request, index);
        order(index, sets, (sort, same), &mut self.effort)
    }

    /// Whether the keys of the index contain all that the query reads.
    pub(super) fn covers(&self, index: &IndexView) -> bool {
        covers(index, self.request, self.reads.as_ref())
    }

    /// Adds the plans that use one index for the conjunction. With a flag, which a hint sets, the
    /// index is used although it does not bound anything.
    pub(super) fn by_index(
        &mut self,
        index: &Arc<IndexView>,
        (all, forced): (&Conjunction<'_>, bool),
        found: &mut Vec<Candidate>,
    ) -> Result<()> {
        let same = same_collation(self.request, index);
        let before = self.effort.bytes();
        if index.kind == IndexKind::Plain {
            let assigned = assign(index, all, (same, forced), &mut self.effort)?;
            let assigned = assigned.filter(|assigned| assigned.useful || forced);
            let candidate = self.finished(assigned)?;
            return self.add(candidate, before, found);
        }
        if !index.includes(all, same, &mut self.effort)? {
            return Ok(());
        }
        for at in 0..all.predicates.len() {
            if self.has_enough(found) {
                break;
            }
            let before = self.effort.bytes();
            let assigned = wildcard::assignment(index, (all, at), same, &mut self.effort)?;
            let candidate = self.finished(assigned)?;
            self.add(candidate, before, found)?;
        }
        Ok(())
    }

    /// Adds the plan that uses an index only for the sort order.
    fn by_order(
        &mut self,
        index: &Arc<IndexView>,
        all: &Conjunction<'_>,
        found: &mut Vec<Candidate>,
    ) -> Result<()> {
        if index.kind == IndexKind::Wildcard {
            return Ok(());
        }
        let before = self.effort.bytes();
        let same = same_collation(self.request, index);
        let assigned = assign(index, all, (same, false), &mut self.effort)?;
        let candidate = self.finished(assigned)?;
        self.add(candidate.filter(|plan| plan.sorted), before, found)
    }

    fn finished(&mut self, assigned: Option<Assigned>) -> Result<Option<Candidate>> {
        assigned.map(|assigned| self.finish(assigned)).transpose()
    }

    /// Complete a plan: key ranges, order, and whether the index covers the query.
    fn finish(&mut self, assigned: Assigned) -> Result<Candidate> {
        let Assigned {
            index, sets, exact, ..
        } = assigned;
        let order = match self.request.sort {
            Some(sort) => self.order(&index, &sets, sort)?,
            None => None,
        };
        let (merged, backward, sorted) = match order {
            Some(Order::Merge { backward, parts }) => {
                (self.merged(&index, parts, backward)?, false, false)
            }
            Some(Order::Scan { backward }) => (None, backward, true),
            None => (None, false, self.request.sort.is_none()),
        };
        let (access, sorted) = match merged {
            Some(merged) => (merged, true),
            None => (Access::Index(self.scan(&index, sets, backward)?), sorted),
        };
        let cut = access.scans().any(|scan| scan.ranges.cut);
        Ok(Candidate {
            access,
            exact: exact && !cut,
            sorted,
            covered: self.covers(&index),
        })
    }

    fn scan(
        &mut self,
        index: &Arc<IndexView>,
        sets: Vec<Intervals>,
        backward: bool,
    ) -> Result<IndexScan> {
        self.effort.hold(SCAN)?;
        let coding = index.coding();
        let ranges = compile(&sets, &coding, index.true_bytes, &mut self.effort)?;
        Ok(IndexScan {
            index: Arc::clone(index),
            sets: vec![sets],
            ranges: Arc::new(ranges),
            backward,
        })
    }

    /// Scans merged for their order; `None` if they would take too much memory.
    fn merged(
        &mut self,
        index: &Arc<IndexView>,
        parts: Vec<Vec<Intervals>>,
        backward: bool,
    ) -> Result<Option<Access>> {
        let mut scans = Vec::with_capacity(parts.len());
        for sets in parts {
            scans.push(Access::Index(self.scan(index, sets, backward)?));
            if self.effort.is_full() {
                return Ok(None);
            }
        }
        Ok(Some(Access::Merge(scans)))
    }

    fn hinted(&mut self, all: &Conjunction<'_>, hint: &Hint) -> Result<Vec<Candidate>> {
        let index = find(self.space, hint)?;
        let mut found = Vec::new();
        self.by_index(index, (all, true), &mut found)?;
        if !found.is_empty() {
            return Ok(found);
        }
        let only = Space {
            indexes: vec![Arc::clone(index)],
            clustered: None,
            oplog: false,
            id_collation: None,
            collator: None,
        };
        for at in 0..all.ors.len() {
            if let Some(candidate) = self.by_branches(&only, (all, at), OR_DEPTH)? {
                return Ok(vec![candidate]);
            }
        }
        Err(Error::new(
            Code::NO_QUERY_EXECUTION_PLANS,
            "error processing query: planner returned error :: caused by :: No query solutions",
        ))
    }
}

/// The value if the filter is exactly `{_id: value}`, and nothing else decides the plan.
fn point_of_id(request: &Request<'_>, space: &Space) -> Option<Bson> {
    if request.hint.is_some() || request.min.is_some() || request.max.is_some() {
        return None;
    }
    let Node::Field {
        path,
        test: Test::Eq(value),
    } = request.filter.root()
    else {
        return None;
    };
    let plain = !is_nullish(value)
        && !matches!(value, Bson::Array(_) | Bson::RegularExpression(_))
        && (request.collation == space.id_collation.as_ref() || !is_collated(value));
    (path.as_str() == "_id" && plain).then(|| value.clone())
}

pub(super) fn same_collation(request: &Request<'_>, index: &IndexView) -> bool {
    request.collation == index.collation.as_ref()
}

/// Whether a hint names the clustered index of a clustered collection, which is its records tree.
fn is_of_records(space: &Space, hint: &Hint) -> bool {
    let records = space.clustered.as_ref();
    records.is_some_and(|records| names(hint, records))
}

fn names(hint: &Hint, index: &IndexView) -> bool {
    match hint {
        Hint::Name(name) => index.name == *name,
        Hint::Pattern(key) => crate::index::same_pattern(&index.key, key),
        Hint::Natural { .. } => false,
    }
}

pub(super) fn find<'s>(space: &'s Space, hint: &Hint) -> Result<&'s Arc<IndexView>> {
    let mut all = space.clustered.iter().chain(&space.indexes);
    let found = all.find(|index| !index.hidden && names(hint, index));
    found.ok_or_else(|| {
        Error::bad_value(
            "error processing query: planner returned error :: caused by :: hint provided does \
             not correspond to an existing index",
        )
    })
}

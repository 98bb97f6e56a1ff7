//! The candidate plans of a query.
//!
//! As in MongoDB: every index whose first field is bounded by a test, and every disjunction whose
//! branches all have an index; an index that only provides the sort order if none of those exists;
//! otherwise a scan of the collection.

use std::sync::Arc;

use bson::{Bson, Document};
use query::filter::{Filter, Node, Test};
use query::sort::Sort;
use query::{Code, Error, Result};

use super::access::{Access, Candidate, IndexScan};
use super::assign::{Assigned, assign, breadth};
use super::bounds::{is_collated, is_nullish};
use super::cover::covers;
use super::effort::{Effort, OR_DEPTH};
use super::index::{IndexKind, IndexView};
use super::interval::Intervals;
use super::order::{Order, order};
use super::predicate::Conjunction;
use super::scan::{ByteRange, KeyRanges, compile, cut_end, cut_start, encode, merge};
use super::space::Space;
use super::{times, wildcard};
use crate::key::BEFORE;

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
///
/// # Errors
/// A hint, `min` or `max` that cannot be used.
pub(crate) fn candidates(request: &Request<'_>, space: &Space) -> Result<Vec<Candidate>> {
    if request.min.is_some() || request.max.is_some() {
        return Ok(vec![min_max(request, space)?]);
    }
    let all = Conjunction::of(request.filter.root());
    if all.never {
        return Ok(vec![Candidate::nothing()]);
    }
    match request.hint {
        Some(Hint::Natural { backward }) => {
            return Ok(vec![collection(request, space, &all, *backward)?]);
        }
        Some(hint) if is_of_records(space, hint) => {
            return Ok(vec![collection(request, space, &all, false)?]);
        }
        Some(hint) => return hinted(request, space, &all, hint),
        None => {}
    }
    if let Some(id) = point_of_id(request, space) {
        return Ok(vec![Candidate {
            access: Access::Id(id),
            exact: true,
            sorted: true,
            covered: false,
        }]);
    }
    let mut found = Vec::new();
    for index in space.indexes.iter().filter(|index| !index.hidden) {
        found.extend(by_index(request, index, &all, false)?);
    }
    let mut effort = Effort::new();
    for at in 0..all.ors.len() {
        found.extend(by_branches(request, space, (&all, at), &mut effort)?);
    }
    if request.sort.is_some() && !found.iter().any(|candidate| candidate.sorted) {
        for index in space.indexes.iter().filter(|index| !index.hidden) {
            found.extend(by_order(request, index, &all)?);
        }
    }
    let bounded = space.clustered.is_some() && all.predicates.iter().any(|p| p.path.is("_id"));
    if found.is_empty() || bounded {
        found.push(collection(request, space, &all, false)?);
    }
    Ok(found)
}

/// The value if the filter is exactly `{_id: value}`.
fn point_of_id(request: &Request<'_>, space: &Space) -> Option<Bson> {
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

fn collection(
    request: &Request<'_>,
    space: &Space,
    all: &Conjunction<'_>,
    backward: bool,
) -> Result<Candidate> {
    let mut candidate = Candidate {
        access: Access::Collection {
            backward,
            ranges: None,
        },
        exact: matches!(request.filter.root(), Node::AlwaysTrue) || is_empty(all),
        sorted: request.sort.is_none(),
        covered: false,
    };
    if space.oplog {
        candidate.access = times::access(all, backward);
        return Ok(candidate);
    }
    let Some(id) = &space.clustered else {
        return Ok(candidate);
    };
    let same = same_collation(request, id);
    let Some(assigned) = assign(id, all, same, false) else {
        return Ok(candidate);
    };
    let mut from_end = backward;
    if let Some(sort) = request.sort
        && let Some(Order::Scan { backward }) = order(id, &assigned.sets, sort, same)
    {
        candidate.sorted = true;
        from_end = backward;
    }
    let ranges = compile(&assigned.sets, &id.coding(), id.true_bytes)?;
    candidate.exact = assigned.exact && !ranges.cut;
    candidate.access = Access::Collection {
        backward: from_end,
        ranges: assigned.useful.then(|| Arc::new(ranges)),
    };
    Ok(candidate)
}

fn is_empty(all: &Conjunction<'_>) -> bool {
    all.predicates.is_empty() && all.ors.is_empty() && !all.others && !all.never
}

fn same_collation(request: &Request<'_>, index: &IndexView) -> bool {
    request.collation == index.collation.as_ref()
}

/// The plan that uses one index; `None` if the index cannot serve the conjunction.
fn by_index(
    request: &Request<'_>,
    index: &Arc<IndexView>,
    all: &Conjunction<'_>,
    forced: bool,
) -> Result<Vec<Candidate>> {
    let same = same_collation(request, index);
    if index.kind == IndexKind::Wildcard {
        return wildcard::assignments(index, all, same)
            .into_iter()
            .map(|assigned| finish(request, assigned))
            .collect();
    }
    match assign(index, all, same, forced) {
        Some(assigned) if assigned.useful || forced => Ok(vec![finish(request, assigned)?]),
        _ => Ok(Vec::new()),
    }
}

/// The plan that uses an index only for the sort order.
fn by_order(
    request: &Request<'_>,
    index: &Arc<IndexView>,
    all: &Conjunction<'_>,
) -> Result<Option<Candidate>> {
    if index.kind == IndexKind::Wildcard {
        return Ok(None);
    }
    let Some(assigned) = assign(index, all, same_collation(request, index), false) else {
        return Ok(None);
    };
    Ok(Some(finish(request, assigned)?).filter(|candidate| candidate.sorted))
}

/// Complete a plan: key ranges, order, and whether the index covers the query.
fn finish(request: &Request<'_>, assigned: Assigned) -> Result<Candidate> {
    let Assigned {
        index, sets, exact, ..
    } = assigned;
    let order = request
        .sort
        .and_then(|sort| order(&index, &sets, sort, same_collation(request, &index)));
    let scan = |sets: Vec<Intervals>, backward: bool| -> Result<IndexScan> {
        let ranges = compile(&sets, &index.coding(), index.true_bytes)?;
        Ok(IndexScan {
            index: Arc::clone(&index),
            sets: vec![sets],
            ranges: Arc::new(ranges),
            backward,
        })
    };
    let covered = covers(&index, request);
    let (access, sorted) = match order {
        Some(Order::Merge { backward, parts }) => {
            let scans = parts
                .into_iter()
                .map(|sets| Ok(Access::Index(scan(sets, backward)?)))
                .collect::<Result<Vec<_>>>()?;
            (Access::Merge(scans), true)
        }
        Some(Order::Scan { backward }) => (Access::Index(scan(sets, backward)?), true),
        None => (Access::Index(scan(sets, false)?), request.sort.is_none()),
    };
    let cut = access.scans().any(|scan| scan.ranges.cut);
    Ok(Candidate {
        access,
        exact: exact && !cut,
        sorted,
        covered,
    })
}

/// The plan that reads each branch of a disjunction by an index, if all have one.
fn by_branches(
    request: &Request<'_>,
    space: &Space,
    (all, at): (&Conjunction<'_>, usize),
    effort: &mut Effort,
) -> Result<Option<Candidate>> {
    let Some(branches) = all.ors.get(at) else {
        return Ok(None);
    };
    let mut parts = Vec::with_capacity(branches.len());
    for branch in *branches {
        let conjunction = all.with_branch(at, branch);
        if conjunction.never {
            continue;
        }
        match best_branch(request, space, (&conjunction, OR_DEPTH), effort)? {
            Some(part) => parts.push(part),
            None => return Ok(None),
        }
    }
    if parts.is_empty() {
        return Ok(Some(Candidate::nothing()));
    }
    Ok(Some(joined(request, parts)))
}

/// The best plan for one branch: the one with the narrowest bounds. `None` if there is none, or no
/// work is left to look for it.
fn best_branch(
    request: &Request<'_>,
    space: &Space,
    (all, depth): (&Conjunction<'_>, usize),
    effort: &mut Effort,
) -> Result<Option<Candidate>> {
    if !effort.spend(all, depth)? {
        return Ok(None);
    }
    let mut best: Option<Candidate> = None;
    for index in space.indexes.iter().filter(|index| !index.hidden) {
        for candidate in by_index(request, index, all, false)? {
            let better = best
                .as_ref()
                .is_none_or(|best| rating(&candidate) < rating(best));
            if better {
                best = Some(candidate);
            }
        }
    }
    if best.is_none() && 0 < depth {
        for (at, branches) in all.ors.iter().enumerate() {
            if effort.is_spent() {
                break;
            }
            let branch = |branch| {
                let all = all.with_branch(at, branch);
                best_branch(request, space, (&all, depth - 1), effort)
            };
            let parts: Option<Vec<Candidate>> =
                branches.iter().map(branch).collect::<Result<_>>()?;
            if let Some(parts) = parts.filter(|parts| !parts.is_empty()) {
                return Ok(Some(joined(request, parts)));
            }
        }
    }
    Ok(best)
}

/// The rating of a plan; lower is better: the breadth of each field, then not sorted, then not
/// covered.
fn rating(candidate: &Candidate) -> (Vec<usize>, bool, bool) {
    let breadths = candidate
        .access
        .scans()
        .next()
        .and_then(|scan| scan.sets.first())
        .map(|sets| sets.iter().map(breadth).collect())
        .unwrap_or_default();
    (breadths, !candidate.sorted, !candidate.covered)
}

/// Combine several scans: in key order if they read one index, merged if each provides the
/// requested order, and otherwise one after another.
fn joined(request: &Request<'_>, parts: Vec<Candidate>) -> Candidate {
    let exact = parts.iter().all(|part| part.exact);
    let sorted = parts.iter().all(|part| part.sorted);
    let covered = parts.iter().all(|part| part.covered);
    if request.sort.is_none()
        && let Some(scan) = one_scan(&parts)
    {
        return Candidate {
            access: Access::Index(scan),
            exact,
            sorted,
            covered,
        };
    }
    let mut inputs = Vec::with_capacity(parts.len());
    for part in parts {
        match part.access {
            Access::Merge(inner) if sorted => inputs.extend(inner),
            other => inputs.push(other),
        }
    }
    let access = if request.sort.is_some() && sorted {
        Access::Merge(inputs)
    } else {
        Access::Or(inputs)
    };
    Candidate {
        access,
        exact,
        sorted,
        covered,
    }
}

/// The union of scans of one index.
fn one_scan(parts: &[Candidate]) -> Option<IndexScan> {
    let mut scans = Vec::with_capacity(parts.len());
    for part in parts {
        match &part.access {
            Access::Index(scan) => scans.push(scan),
            _ => return None,
        }
    }
    let first = scans.first()?;
    let same = |scan: &&IndexScan| {
        scan.index.position == first.index.position && scan.index.kind != IndexKind::Wildcard
    };
    if !scans.iter().all(same) {
        return None;
    }
    let ranges: Vec<KeyRanges> = scans.iter().map(|scan| (*scan.ranges).clone()).collect();
    Some(IndexScan {
        index: Arc::clone(&first.index),
        sets: scans.iter().flat_map(|scan| scan.sets.clone()).collect(),
        ranges: Arc::new(merge(&ranges)?),
        backward: false,
    })
}

fn hinted(
    request: &Request<'_>,
    space: &Space,
    all: &Conjunction<'_>,
    hint: &Hint,
) -> Result<Vec<Candidate>> {
    let index = find(space, hint)?;
    let found = by_index(request, index, all, true)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let mut effort = Effort::new();
    for at in 0..all.ors.len() {
        let only = Space {
            indexes: vec![Arc::clone(index)],
            clustered: None,
            oplog: false,
            id_collation: None,
            collator: None,
        };
        if let Some(candidate) = by_branches(request, &only, (all, at), &mut effort)? {
            return Ok(vec![candidate]);
        }
    }
    Err(Error::new(
        Code::NO_QUERY_EXECUTION_PLANS,
        "error processing query: planner returned error :: caused by :: No query solutions",
    ))
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

fn find<'s>(space: &'s Space, hint: &Hint) -> Result<&'s Arc<IndexView>> {
    let mut all = space.clustered.iter().chain(&space.indexes);
    let found = all.find(|index| !index.hidden && names(hint, index));
    found.ok_or_else(|| {
        Error::bad_value(
            "error processing query: planner returned error :: caused by :: hint provided does \
             not correspond to an existing index",
        )
    })
}

/// The plan of `min` and `max`: a range of one index's keys, or of the records of a clustered
/// collection.
fn min_max(request: &Request<'_>, space: &Space) -> Result<Candidate> {
    let Some(hint) = request.hint else {
        return Err(Error::location(
            51173,
            "When using min()/max() a hint of which index to use must be provided",
        ));
    };
    let index = find(space, hint)?;
    let start = edge(request.min, index)?;
    let end = edge(request.max, index)?;
    let edges = ByteRange {
        start: start.unwrap_or_default(),
        end: end.unwrap_or_else(|| vec![0xFF]),
    };
    if edges.end <= edges.start {
        return Err(Error::location(51175, "max must be greater than min"));
    }
    let ranges = Arc::new(within(edges, index.true_bytes));
    let sets = vec![Intervals::all(); index.fields.len()];
    let backward = match request.sort {
        None => Some(false),
        Some(sort) => match order(index, &sets, sort, same_collation(request, index)) {
            Some(Order::Scan { backward }) => Some(backward),
            _ => None,
        },
    };
    let access = match index.source() {
        Some(_) => Access::Index(IndexScan {
            index: Arc::clone(index),
            sets: vec![sets],
            ranges,
            backward: backward.unwrap_or(false),
        }),
        None => Access::Collection {
            backward: backward.unwrap_or(false),
            ranges: Some(ranges),
        },
    };
    Ok(Candidate {
        access,
        exact: is_empty(&Conjunction::of(request.filter.root())),
        sorted: backward.is_some(),
        covered: index.source().is_some() && covers(index, request),
    })
}

/// The keys between two edges, which may be longer than `true_bytes`.
fn within(edges: ByteRange, true_bytes: usize) -> KeyRanges {
    let mut range = edges.clone();
    let start = cut_start(&mut range.start, true_bytes);
    let end = cut_end(&mut range.end, true_bytes);
    KeyRanges {
        ranges: vec![range],
        check: None,
        cut: start || end,
        edges: Some(edges).filter(|_| start || end),
    }
}

/// An edge as a full key, not truncated. All keys with its values sort after it.
fn edge(of: Option<&Document>, index: &IndexView) -> Result<Option<Vec<u8>>> {
    let Some(edge) = of else {
        return Ok(None);
    };
    let names_agree = edge.len() == index.fields.len()
        && edge
            .keys()
            .zip(&index.fields)
            .all(|(name, field)| name == field.path.as_str());
    if !names_agree {
        return Err(Error::location(
            51174,
            "The index chosen is not compatible with min/max",
        ));
    }
    let mut key = Vec::new();
    for (value, coding) in edge.values().zip(index.coding()) {
        key.extend(encode(value, coding)?);
    }
    key.push(BEFORE);
    Ok(Some(key))
}

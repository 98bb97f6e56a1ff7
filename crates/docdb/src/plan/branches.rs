//! The plans of disjunctions: each branch by an index.

use std::sync::Arc;

use query::Result;

use super::access::{Access, Candidate, IndexScan};
use super::assign::breadth;
use super::candidates::Planning;
use super::effort::{Effort, OR_DEPTH};
use super::index::IndexKind;
use super::predicate::Conjunction;
use super::scan::{KeyRanges, merge};
use super::space::Space;

impl Planning<'_> {
    /// The plan that reads each branch of a disjunction by an index, if all have one, and if their
    /// plans do not take too much work or memory. `depth` is [`OR_DEPTH`] for one that is not
    /// nested.
    pub(super) fn by_branches(
        &mut self,
        space: &Space,
        (all, at): (&Conjunction<'_>, usize),
        depth: usize,
    ) -> Result<Option<Candidate>> {
        let Some(branches) = all.ors.get(at) else {
            return Ok(None);
        };
        let (before, own) = (self.effort.bytes(), all.bytes());
        let mut parts = Vec::with_capacity(branches.len());
        for branch in *branches {
            if depth < OR_DEPTH && self.effort.is_spent() {
                self.effort.set(before)?;
                return Ok(None);
            }
            self.effort.hold(own)?;
            let conjunction = all.with_branch(at, branch);
            if conjunction.never {
                self.effort.release(own)?;
                continue;
            }
            let part = self.best_branch(space, (&conjunction, depth))?;
            self.effort.release(own)?;
            let Some(part) = part.filter(|_| !self.effort.is_full()) else {
                self.effort.set(before)?;
                return Ok(None);
            };
            if !matches!(part.access, Access::Nothing) {
                parts.push(part);
            }
        }
        if parts.is_empty() {
            return Ok(Some(Candidate::nothing()));
        }
        self.joined(parts).map(Some)
    }

    /// The best plan for one branch: the one with the narrowest bounds. `None` if there is none, or
    /// no work is left to look for it.
    fn best_branch(
        &mut self,
        space: &Space,
        (all, depth): (&Conjunction<'_>, usize),
    ) -> Result<Option<Candidate>> {
        if !self.effort.spend(all, depth)? {
            return Ok(None);
        }
        let before = self.effort.bytes();
        let mut best: Option<(Rating, Candidate)> = None;
        for index in space.indexes.iter().filter(|index| !index.hidden) {
            let mut found = Vec::new();
            self.by_index(index, (all, false), &mut found)?;
            for candidate in found {
                let rating = rating(&candidate);
                if best.as_ref().is_none_or(|(best, _)| rating < *best) {
                    best = Some((rating, candidate));
                }
            }
            let kept = best.as_ref().map_or(0, |(_, plan)| plan.access.bytes());
            self.effort.set(before.saturating_add(kept))?;
        }
        if let Some((_, best)) = best {
            return Ok(Some(best));
        }
        // The disjunctions within the branch.
        let inner = if depth == 0 { 0 } else { all.ors.len() };
        for at in 0..inner {
            let found = self.by_branches(space, (all, at), depth - 1)?;
            if found.is_some() || self.effort.is_spent() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Combine several scans: in key order if they read one index, merged if each provides the
    /// requested order, and otherwise one after another.
    fn joined(&mut self, mut parts: Vec<Candidate>) -> Result<Candidate> {
        let sorts = self.request.sort.is_some();
        let exact = parts.iter().all(|part| part.exact);
        let sorted = parts.iter().all(|part| part.sorted);
        let covered = parts.iter().all(|part| part.covered);
        let joined = |access| Candidate {
            access,
            exact,
            sorted,
            covered,
        };
        if !sorts {
            parts = match one_scan(parts, &mut self.effort)? {
                Joined::One(scan) => return Ok(joined(Access::Index(scan))),
                Joined::Several(parts) => parts,
            };
        }
        let mut inputs = Vec::with_capacity(parts.len());
        for part in parts {
            match part.access {
                Access::Merge(inner) if sorted => inputs.extend(inner),
                other => inputs.push(other),
            }
        }
        Ok(joined(if sorts && sorted {
            Access::Merge(inputs)
        } else {
            Access::Or(inputs)
        }))
    }
}

/// The rating of a plan; lower is better: the breadth of each field, then not sorted, then not
/// covered.
type Rating = (Vec<usize>, bool, bool);

fn rating(candidate: &Candidate) -> Rating {
    let breadths = candidate
        .access
        .scans()
        .next()
        .and_then(|scan| scan.sets.first())
        .map(|sets| sets.iter().map(breadth).collect())
        .unwrap_or_default();
    (breadths, !candidate.sorted, !candidate.covered)
}

/// Plans of branches, joined if they read one index.
enum Joined {
    One(IndexScan),
    Several(Vec<Candidate>),
}

/// The union of scans of one index, none of which has a check.
fn one_scan(parts: Vec<Candidate>, effort: &mut Effort) -> Result<Joined> {
    let first = match parts.first().map(|part| &part.access) {
        Some(Access::Index(first)) => Arc::clone(&first.index),
        _ => return Ok(Joined::Several(parts)),
    };
    let joins = |part: &Candidate| match &part.access {
        Access::Index(scan) => {
            scan.index.position == first.position
                && scan.index.kind != IndexKind::Wildcard
                && scan.ranges.check.is_none()
                && scan.ranges.edges.is_none()
        }
        _ => false,
    };
    if !parts.iter().all(joins) {
        return Ok(Joined::Several(parts));
    }
    let mut sets = Vec::with_capacity(parts.len());
    let mut ranges: Vec<KeyRanges> = Vec::with_capacity(parts.len());
    for part in parts {
        if let Access::Index(scan) = part.access {
            sets.extend(scan.sets);
            ranges.push(Arc::unwrap_or_clone(scan.ranges));
        }
    }
    Ok(Joined::One(IndexScan {
        index: first,
        sets,
        ranges: Arc::new(merge(ranges, effort)?),
        backward: false,
    }))
}

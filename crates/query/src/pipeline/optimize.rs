//! Puts a pipeline into an order that does less work for the same result.
//!
//! The rules, each applied until none fits:
//! 1. A filter moves before a stage that does not change the fields the filter reads. Each clause
//!    of a conjunction moves separately. The stages are projections, `$unwind`, `$lookup`, `$sort`.
//! 2. `$skip` and `$limit` move before stages that return one document for each input document.
//! 3. Adjacent filters, limits or skips become one stage.
//! 4. A `$sort` followed by `$limit`, with or without `$skip` between, keeps only the needed rows.
//! 5. A `$lookup` followed by `$unwind` of its array becomes one stage.
//!
//! Rule 1 never moves a filter before `$limit`, `$skip`, `$sample` or `$group`: their result
//! depends on the number of input rows.

use super::{Pipeline, dependency};
use crate::expr::Dependencies;
use crate::filter::{Filter, Node};
use crate::path::Path;
use crate::stage::Stage;

/// Maximum number of rewrites; a round applies one rule, and pipelines are short.
const MAX_ROUNDS: usize = 1000;

impl Pipeline {
    /// Returns an equivalent pipeline that does less work.
    #[must_use]
    pub fn optimize(mut self) -> Pipeline {
        for _ in 0..MAX_ROUNDS {
            if !round(&mut self.stages) {
                break;
            }
        }
        self
    }
}

/// Applies the first matching rule, and returns whether one matched.
fn round(stages: &mut Vec<Stage>) -> bool {
    for at in 0..stages.len().saturating_sub(1) {
        let Some([first, second]) = stages.get(at..at + 2) else {
            return false;
        };
        if let Some(replacement) = rewrite(first, second) {
            stages.splice(at..at + 2, replacement);
            return true;
        }
        if let Some([first, skip, limit]) = stages.get(at..at + 3)
            && let Some(sort) = limited(first, skip, limit)
            && let Some(place) = stages.get_mut(at)
        {
            *place = sort;
            return true;
        }
    }
    false
}

/// The stages that replace two adjacent stages, if a rule matches.
fn rewrite(first: &Stage, second: &Stage) -> Option<Vec<Stage>> {
    match (first, second) {
        (Stage::Match(a), Stage::Match(b)) => Some(vec![Stage::Match(a.clone().and(b.clone()))]),
        (Stage::Limit(a), Stage::Limit(b)) => Some(vec![Stage::Limit(*a.min(b))]),
        (Stage::Skip(a), Stage::Skip(b)) => a.checked_add(*b).map(|sum| vec![Stage::Skip(sum)]),
        (Stage::Sort(sort, None), Stage::Limit(limit)) => {
            Some(vec![Stage::Sort(sort.clone(), Some(*limit))])
        }
        (Stage::Sort(sort, Some(known)), Stage::Limit(limit)) => {
            Some(vec![Stage::Sort(sort.clone(), Some(*known.min(limit)))])
        }
        (Stage::Lookup(lookup), Stage::Unwind(unwind))
            if lookup.unwind.is_none() && unwind.path == lookup.r#as =>
        {
            let mut lookup = lookup.clone();
            lookup.unwind = Some(unwind.clone());
            Some(vec![Stage::Lookup(lookup)])
        }
        (Stage::GraphLookup(lookup), Stage::Unwind(unwind))
            if lookup.unwind.is_none() && unwind.path == lookup.r#as =>
        {
            let mut lookup = lookup.clone();
            lookup.unwind = Some(unwind.clone());
            Some(vec![Stage::GraphLookup(lookup)])
        }
        (Stage::Transform(_), Stage::Skip(_) | Stage::Limit(_)) if maps(first) => {
            Some(vec![second.clone(), first.clone()])
        }
        (_, Stage::Match(filter)) => filter_first(first, filter),
        _ => None,
    }
}

/// Whether the stage returns exactly one document for each input document.
fn maps(stage: &Stage) -> bool {
    match stage {
        Stage::Transform(transform) => transform.projection().is_some(),
        _ => false,
    }
}

/// `$sort`, `$skip`, `$limit`: the sort keeps as many rows as are skipped and returned.
fn limited(sort: &Stage, skip: &Stage, limit: &Stage) -> Option<Stage> {
    let (Stage::Sort(sort, None), Stage::Skip(skip), Stage::Limit(limit)) = (sort, skip, limit)
    else {
        return None;
    };
    Some(Stage::Sort(sort.clone(), Some(skip.checked_add(*limit)?)))
}

/// Moves the clauses that `stage` does not affect from after the stage to before it.
fn filter_first(stage: &Stage, filter: &Filter) -> Option<Vec<Stage>> {
    if !may_pass(stage) {
        return None;
    }
    let clauses = match filter.root() {
        Node::And(nodes) => nodes.clone(),
        single => vec![single.clone()],
    };
    let (early, late): (Vec<Node>, Vec<Node>) = clauses
        .into_iter()
        .partition(|clause| is_undisturbed(stage, clause, filter));
    if early.is_empty() {
        return None;
    }
    let mut stages = vec![Stage::Match(filter.with_root(all(early))), stage.clone()];
    if !late.is_empty() {
        stages.push(Stage::Match(filter.with_root(all(late))));
    }
    Some(stages)
}

fn all(mut nodes: Vec<Node>) -> Node {
    match (nodes.pop(), nodes.is_empty()) {
        (Some(only), true) => only,
        (Some(last), false) => {
            nodes.push(last);
            Node::And(nodes)
        }
        (None, _) => Node::AlwaysTrue,
    }
}

/// Stages before which a filter may move if it does not read what they change.
fn may_pass(stage: &Stage) -> bool {
    match stage {
        Stage::Sort(_, None) | Stage::Unwind(_) | Stage::Lookup(_) | Stage::GraphLookup(_) => true,
        Stage::Transform(transform) => transform.projection().is_some(),
        _ => false,
    }
}

/// Whether `stage` changes nothing that `clause` reads.
fn is_undisturbed(stage: &Stage, clause: &Node, filter: &Filter) -> bool {
    let mut found = Dependencies::default();
    dependency::of_filter(&filter.with_root(clause.clone()), &mut found);
    if found.whole || found.random {
        return false;
    }
    found.fields.iter().all(|path| {
        Path::parse(path).is_ok_and(|path| match stage {
            Stage::Sort(..) => true,
            Stage::Transform(transform) => transform.preserves(&path),
            Stage::Unwind(unwind) => {
                apart(&path, &unwind.path.to_string())
                    && unwind
                        .index
                        .as_ref()
                        .is_none_or(|index| apart(&path, &index.to_string()))
            }
            Stage::Lookup(lookup) => {
                apart(&path, &lookup.r#as.to_string()) && index_apart(&path, lookup.unwind.as_ref())
            }
            Stage::GraphLookup(lookup) => {
                apart(&path, &lookup.r#as.to_string()) && index_apart(&path, lookup.unwind.as_ref())
            }
            _ => false,
        })
    })
}

fn index_apart(path: &Path, unwind: Option<&crate::stage::Unwind>) -> bool {
    let index = unwind.and_then(|unwind| unwind.index.as_ref());
    index.is_none_or(|index| apart(path, &index.to_string()))
}

/// Whether neither path contains the other. Paths of expressions have no array indexes, so a path
/// with an index counts as everything below its first name.
fn apart(path: &Path, other: &str) -> bool {
    let indexed = path.components().iter().any(|c| c.index().is_some());
    Path::parse(other).is_ok_and(|other| {
        if indexed {
            path.head() != other.head()
        } else {
            !path.overlaps(&other)
        }
    })
}

//! Whether every document that matches a conjunction also matches the filter of a partial index.

use query::collation::Collator;
use query::filter::{Node, Test};
use query::{Result, meter};

use super::bounds::{Place, accepts_missing, bounds};
use super::effort::Effort;
use super::predicate::Conjunction;

/// Whether `all` implies the filter of a partial index. `collator` is the index's, and
/// `same_collation` is true if the query compares strings in the same way. False if unknown.
///
/// # Errors
/// The operation must end.
pub(crate) fn implies(
    all: &Conjunction<'_>,
    partial: &Node,
    (collator, same_collation): (Option<&Collator>, bool),
    effort: &mut Effort,
) -> Result<bool> {
    let place = Place {
        collator,
        same_collation,
        multikey: true,
    };
    let before = effort.bytes();
    let implied = node_implied(all, partial, place, effort)?;
    effort.set(before)?;
    Ok(implied)
}

fn node_implied(
    all: &Conjunction<'_>,
    node: &Node,
    place: Place<'_>,
    effort: &mut Effort,
) -> Result<bool> {
    meter::steps(1 + all.predicates.len())?;
    match node {
        Node::And(nodes) => {
            for node in nodes {
                if !node_implied(all, node, place, effort)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Node::Or(nodes) => {
            for node in nodes {
                if node_implied(all, node, place, effort)? {
                    return Ok(true);
                }
            }
            any_or_implies(all, node, place, effort)
        }
        Node::AlwaysTrue | Node::Comment(_) => Ok(true),
        Node::Field { path, test } => {
            for predicate in &all.predicates {
                if predicate.scope.is_none()
                    && predicate.path.is(path.as_str())
                    && test_implies(predicate.test, test, place, effort)?
                {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

/// Whether each branch of one of the disjunctions implies `node`.
fn any_or_implies(
    all: &Conjunction<'_>,
    node: &Node,
    place: Place<'_>,
    effort: &mut Effort,
) -> Result<bool> {
    for (at, branches) in all.ors.iter().enumerate() {
        let mut implied = true;
        for branch in *branches {
            if !effort.imply(all)? {
                return Ok(false);
            }
            let all = all.with_branch(at, branch);
            if !node_implied(&all, node, place, effort)? {
                implied = false;
                break;
            }
        }
        if implied {
            return Ok(true);
        }
    }
    Ok(false)
}

fn test_implies(
    given: &Test,
    wanted: &Test,
    place: Place<'_>,
    effort: &mut Effort,
) -> Result<bool> {
    if matches!(wanted, Test::Exists(true)) {
        return Ok(!accepts_missing(given));
    }
    let of_index = Place {
        same_collation: true,
        ..place
    };
    let Some(given) = bounds(given, place, effort)? else {
        return Ok(false);
    };
    let Some(wanted) = bounds(wanted, of_index, effort)? else {
        return Ok(false);
    };
    let outside = wanted.set.complement(place.collator, effort)?;
    let outside = given.set.intersect(&outside, place.collator, effort)?;
    Ok(given.exact && wanted.exact && outside.is_none())
}

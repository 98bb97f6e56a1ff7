//! Whether every document that matches a conjunction also matches the filter of a partial index.

use query::collation::Collator;
use query::filter::{Node, Test};

use super::bounds::{Place, accepts_missing, bounds};
use super::predicate::Conjunction;

/// Whether `all` implies the filter of a partial index. `collator` is the index's, and
/// `same_collation` is true if the query compares strings in the same way. False if unknown.
pub(crate) fn implies(
    all: &Conjunction<'_>,
    partial: &Node,
    collator: Option<&Collator>,
    same_collation: bool,
) -> bool {
    let place = Place {
        collator,
        same_collation,
        multikey: true,
    };
    node_implied(all, partial, place)
}

fn node_implied(all: &Conjunction<'_>, node: &Node, place: Place<'_>) -> bool {
    match node {
        Node::And(nodes) => nodes.iter().all(|node| node_implied(all, node, place)),
        Node::Or(nodes) => {
            nodes.iter().any(|node| node_implied(all, node, place))
                || all.ors.iter().enumerate().any(|(at, branches)| {
                    branches
                        .iter()
                        .all(|branch| node_implied(&all.with_branch(at, branch), node, place))
                })
        }
        Node::AlwaysTrue | Node::Comment(_) => true,
        Node::Field { path, test } => all.predicates.iter().any(|predicate| {
            predicate.scope.is_none()
                && predicate.path.is(path.as_str())
                && test_implies(predicate.test, test, place)
        }),
        _ => false,
    }
}

fn test_implies(given: &Test, wanted: &Test, place: Place<'_>) -> bool {
    if matches!(wanted, Test::Exists(true)) {
        return !accepts_missing(given);
    }
    let of_index = Place {
        same_collation: true,
        ..place
    };
    let (Some(given), Some(wanted)) = (bounds(given, place), bounds(wanted, of_index)) else {
        return false;
    };
    let outside = wanted.set.complement(place.collator);
    let outside = given.set.intersect(&outside, place.collator);
    given.exact && wanted.exact && outside.is_none()
}

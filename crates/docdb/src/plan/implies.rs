//! Whether every document that matches a conjunction matches a partial index's filter too.

use query::filter::{Node, Test};

use super::bounds::{Place, accepts_missing, bounds};
use super::predicate::Conjunction;

const PLACE: Place<'static> = Place {
    collator: None,
    same_collation: true,
    multikey: true,
};

/// Whether `all` implies `node`. When in doubt, no.
pub(crate) fn implies(all: &Conjunction<'_>, node: &Node) -> bool {
    match node {
        Node::And(nodes) => nodes.iter().all(|node| implies(all, node)),
        Node::Or(nodes) => {
            nodes.iter().any(|node| implies(all, node))
                || all.ors.iter().enumerate().any(|(at, branches)| {
                    branches
                        .iter()
                        .all(|branch| implies(&all.with_branch(at, branch), node))
                })
        }
        Node::AlwaysTrue | Node::Comment(_) => true,
        Node::Field { path, test } => all.predicates.iter().any(|predicate| {
            predicate.scope.is_none()
                && predicate.path.is(path.as_str())
                && test_implies(predicate.test, test)
        }),
        _ => false,
    }
}

fn test_implies(given: &Test, wanted: &Test) -> bool {
    if matches!(wanted, Test::Exists(true)) {
        return !accepts_missing(given);
    }
    let (Some(given), Some(wanted)) = (bounds(given, PLACE), bounds(wanted, PLACE)) else {
        return false;
    };
    let outside = wanted.set.complement(None);
    given.exact && wanted.exact && given.set.intersect(&outside, None).is_none()
}

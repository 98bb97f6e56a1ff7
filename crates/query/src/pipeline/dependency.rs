//! The fields that a pipeline reads of its input.

use std::collections::BTreeSet;

use crate::expr::Dependencies;
use crate::filter::{Filter, Node};
use crate::stage::{Stage, Transform};

/// The paths that `stages` read; `None` when the result depends on whole documents.
pub(super) fn fields(stages: &[Stage]) -> Option<BTreeSet<String>> {
    let mut found = Dependencies::default();
    for stage in stages {
        match stage {
            Stage::Match(filter) => of_filter(filter, &mut found),
            Stage::Sort(sort, _) => {
                let paths = sort.fields().iter();
                let paths = paths.map(|(path, _)| path.as_str().to_owned());
                found.fields.extend(paths);
            }
            Stage::Limit(_) | Stage::Skip(_) => {}
            Stage::Group(group) => {
                group.dependencies(&mut found);
                return finish(found);
            }
            Stage::BucketAuto(bucket) => {
                bucket.dependencies(&mut found);
                return finish(found);
            }
            Stage::Count(_) => return finish(found),
            Stage::Transform(transform) => {
                transform.dependencies(&mut found);
                match transform {
                    Transform::Project(projection) if projection.is_inclusion() => {
                        return finish(found);
                    }
                    Transform::ReplaceRoot(_) => return finish(found),
                    // The stage passes on the rest of the document, so later stages decide what is
                    // read.
                    _ => {}
                }
            }
            Stage::Unwind(unwind) => {
                found.fields.insert(unwind.path.to_string());
            }
            Stage::Lookup(lookup) => lookup.dependencies(&mut found),
            _ => return None,
        }
        if found.whole {
            return None;
        }
    }
    // The documents at the end of the stages are the result, with all their fields.
    None
}

fn finish(found: Dependencies) -> Option<BTreeSet<String>> {
    (!found.whole).then_some(found.fields)
}

/// Adds what a filter reads.
pub(super) fn of_filter(filter: &Filter, found: &mut Dependencies) {
    of_node(filter.root(), found);
}

/// Recursion is bounded by the depth of filters, which parsing bounds.
fn of_node(node: &Node, found: &mut Dependencies) {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().for_each(|node| of_node(node, found));
        }
        Node::Field { path, .. } => {
            found.fields.insert(path.as_str().to_owned());
        }
        Node::Expr { expr, .. } => expr.dependencies(found),
        Node::AlwaysTrue | Node::AlwaysFalse => {}
        // Rare conditions, such as `$jsonSchema`, which may read any field.
        _ => found.whole = true,
    }
}

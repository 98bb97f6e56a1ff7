//! Plan selection: runs all candidates for a trial period, and caches the winner by the shape of
//! the query.
//!
//! Each candidate gets the same amount of work in turn, until one has returned 101 items or has
//! reached its end. The plan with the most items per unit of work wins. As in MongoDB, ties go to
//! plans that need no sort and no document reads.

use std::fmt::Write as _;
use std::sync::Arc;

use query::Result;
use query::filter::{Filter, Node, Test};
use query::sort::Sort;

use super::build::{Purpose, build};
use crate::collection::Collection;
use crate::exec::{Cx, Executor, Step};
use crate::plan::{Access, Candidate};
use crate::txn::View;

/// Items after which a trial ends.
const TRIAL_ITEMS: u64 = 101;
/// Work units per plan in the first round of a trial; doubled every round.
const FIRST_ROUND: u64 = 32;
/// Maximum work units per plan in a trial.
const TRIAL_WORK: u64 = 10_000;
/// Maximum bytes of a shape and of the description of its plan in the cache: with its 1000 shapes
/// a cache takes at most 16 MiB.
const CACHED_BYTES: usize = 16 << 10;

/// Result of a trial for one plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Score {
    items: u64,
    works: u64,
    ended: bool,
}

impl Score {
    /// The score; higher is better.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the numbers of a trial are small"
    )]
    fn value(&self, candidate: &Candidate) -> f64 {
        let productivity = self.items as f64 / self.works.max(1) as f64;
        let epsilon = (1.0 / (10.0 * self.works.max(1) as f64)).min(1e-4);
        let sorted = if candidate.sorted { epsilon } else { 0.0 };
        let covered = if candidate.covered { epsilon } else { 0.0 };
        let ended = if self.ended { 1.0 } else { 0.0 };
        1.0 + productivity + sorted + covered + ended
    }
}

/// The index of the best of `candidates`.
///
/// # Errors
/// Errors of execution.
pub(crate) fn choose(
    collection: &Arc<Collection>,
    candidates: &[Candidate],
    purpose: &Purpose,
    view: &mut View<'_>,
) -> Result<usize> {
    if candidates.len() < 2 {
        return Ok(0);
    }
    let shape = shape(
        &purpose.filter,
        purpose.sort.as_deref(),
        purpose.kept.as_deref(),
    );
    let names: Vec<String> = candidates.iter().map(describe).collect();
    if let Some(plan) = collection.plans().choice(&shape)
        && let Some(at) = names.iter().position(|name| *name == plan)
    {
        return Ok(at);
    }
    let scores = try_all(collection, candidates, purpose, view)?;
    let mut best = 0;
    let mut value = f64::NEG_INFINITY;
    let mut works = 0;
    for (at, ((_, score), candidate)) in scores.iter().zip(candidates).enumerate() {
        if value < score.value(candidate) {
            best = at;
            value = score.value(candidate);
            works = score.works;
        }
    }
    if let Some(plan) = names.into_iter().nth(best)
        && shape.len() + plan.len() <= CACHED_BYTES
    {
        collection.plans().remember(shape, plan, works);
    }
    Ok(best)
}

/// Run the trial of all candidates in turn.
///
/// # Errors
/// Errors of execution.
pub(crate) fn try_all(
    collection: &Arc<Collection>,
    candidates: &[Candidate],
    purpose: &Purpose,
    view: &View<'_>,
) -> Result<Vec<(Executor, Score)>> {
    let mut runs: Vec<(Executor, Score)> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let score = Score {
            items: 0,
            works: 0,
            ended: false,
        };
        runs.push((build(collection, candidate, purpose)?, score));
    }
    let op = view.op();
    let mut round = FIRST_ROUND;
    let mut total = 0;
    while total < TRIAL_WORK {
        let mut over = false;
        for (executor, score) in &mut runs {
            let mut check = || op.check();
            let mut cx = Cx::new(view.snapshot()?, &mut check);
            cx.set_budget(round);
            over |= advance(executor, score, &mut cx)?;
        }
        if over {
            break;
        }
        total += round;
        round *= 2;
    }
    Ok(runs)
}

/// Continue one plan; returns whether the trial is decided.
fn advance(executor: &mut Executor, score: &mut Score, cx: &mut Cx<'_>) -> Result<bool> {
    let decided = loop {
        cx.rows_left = usize::try_from(TRIAL_ITEMS - score.items).unwrap_or(1);
        match executor.next_item(cx)? {
            Step::Row(_) => {
                score.items += 1;
                if TRIAL_ITEMS <= score.items {
                    break true;
                }
            }
            Step::Pause => break false,
            Step::End => {
                score.ended = true;
                break true;
            }
        }
    };
    let counts = executor.counts();
    score.works = counts.works + counts.documents;
    Ok(decided)
}

/// Describes a plan by the indexes it uses.
pub(crate) fn describe(candidate: &Candidate) -> String {
    fn add(access: &Access, out: &mut String) {
        match access {
            Access::Nothing => out.push_str("EOF"),
            Access::Collection { backward, ranges } => {
                let ranges = if ranges.is_some() { " by _id" } else { "" };
                let back = if *backward { " backward" } else { "" };
                let _ = write!(out, "COLLSCAN{ranges}{back}");
            }
            Access::Id(_) => out.push_str("IDHACK"),
            Access::Index(scan) => {
                let back = if scan.backward { " backward" } else { "" };
                let _ = write!(out, "IXSCAN {}{back}", scan.index.name);
            }
            Access::Or(inputs) | Access::Merge(inputs) => {
                out.push_str(if matches!(access, Access::Or(_)) {
                    "OR("
                } else {
                    "MERGE("
                });
                // Merged point scans may be many and differ only in the point: equal neighbors are
                // written once.
                let mut last = String::new();
                for input in inputs {
                    let mut one = String::new();
                    add(input, &mut one);
                    if one != last {
                        out.push_str(&one);
                        out.push(',');
                    }
                    last = one;
                }
                out.push(')');
            }
        }
    }
    let mut out = String::new();
    add(&candidate.access, &mut out);
    if !candidate.sorted {
        out.push_str(" SORT");
    }
    out
}

/// The shape of a query, shared by queries that can use the same plan: paths and tests without
/// values.
fn shape(filter: &Filter, sort: Option<&Sort>, kept: Option<&[String]>) -> String {
    let mut out = String::new();
    shape_of(filter.root(), &mut out);
    if let Some(sort) = sort {
        for (path, direction) in sort.fields() {
            let _ = write!(out, "|{}:{direction:?}", path.as_str());
        }
    }
    if let Some(kept) = kept {
        let _ = write!(out, "|{kept:?}");
    }
    out
}

fn shape_of(node: &Node, out: &mut String) {
    let (name, nodes) = match node {
        Node::And(nodes) => ("and", nodes),
        Node::Or(nodes) => ("or", nodes),
        Node::Nor(nodes) => ("nor", nodes),
        Node::Field { path, test } => {
            let _ = write!(out, "{}:", path.as_str());
            shape_of_test(test, out);
            return;
        }
        other => {
            let _ = write!(out, "{:?}", std::mem::discriminant(other));
            return;
        }
    };
    out.push_str(name);
    out.push('(');
    for node in nodes {
        shape_of(node, out);
        out.push(',');
    }
    out.push(')');
}

fn shape_of_test(test: &Test, out: &mut String) {
    let _ = write!(out, "{:?}", std::mem::discriminant(test));
    match test {
        // The type of a value decides which indexes can serve the test.
        Test::Eq(value)
        | Test::Gt(value)
        | Test::Gte(value)
        | Test::Lt(value)
        | Test::Lte(value) => {
            let _ = write!(out, "{}", query::value::rank(value));
        }
        Test::Exists(exists) => {
            let _ = write!(out, "{exists}");
        }
        Test::ElemMatchObject(node) => shape_of(node, out),
        Test::ElemMatchValue(tests) | Test::Not(tests) => {
            for test in tests {
                shape_of_test(test, out);
            }
        }
        _ => {}
    }
}

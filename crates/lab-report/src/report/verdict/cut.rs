//! Targets that ran out of time before they had done all operations: their numbers are those of the
//! operations done, which are easier if a store slows down as it grows.

use crate::analysis::EqualRows;
use crate::format;
use crate::record::{Ended, Main};
use crate::report::model::{CellView, StepView, View};

use super::contest::ranking;

/// The progress of a target.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) target: usize,
    /// Main operations done.
    pub(crate) done: u64,
    /// Main operations asked for.
    pub(crate) asked: u64,
}

impl Cut {
    /// The fraction of the operations that it did.
    pub(crate) fn share(&self) -> f64 {
        self.done as f64 / (self.asked as f64).max(1.0)
    }
}

/// The targets that ran out of time, by their shown repeats. A step without a number of operations
/// is meant to end by time, so no target is listed for it.
pub(crate) fn cuts(step: &StepView<'_>) -> Vec<Cut> {
    let shown = step.shown();
    let cut = shown.iter().filter_map(|cell| of(step, cell));
    cut.collect()
}

fn of(step: &StepView<'_>, cell: &CellView<'_>) -> Option<Cut> {
    let summary = cell.summary;
    let done = match summary.main {
        Main::Rows => summary.rows,
        Main::Queries => summary.queries.as_ref().map_or(0, |q| q.queries),
    };
    let asked = step.plan.operations;
    (summary.ended == Ended::Time && done < asked).then_some(Cut {
        target: cell.target,
        done,
        asked,
    })
}

/// A sentence about a target that ran out of time.
pub(crate) fn sentence(view: &View<'_>, step: &StepView<'_>, cut: &Cut) -> String {
    let what = step.operation.many;
    let mut text = format!(
        "{} was stopped by its time in {} after {} of {} {what} ({}): its numbers, first and last \
         tenth included, are of those {what} only.",
        view.name(cut.target),
        step.plan.name,
        format::count(cut.done),
        format::count(cut.asked),
        format::percent(cut.share())
    );
    if let Some(sentence) = over_the_same_rows(view, step, cut) {
        text.push(' ');
        text.push_str(&sentence);
    }
    text
}

/// The times of it and the fastest other target over the rows that both wrote in all repeats. Their
/// ratio is the headline's matter, which has an interval.
fn over_the_same_rows(view: &View<'_>, step: &StepView<'_>, cut: &Cut) -> Option<String> {
    if step.queries() {
        return None;
    }
    let ranked = ranking(view, step);
    let (other, _) = ranked.into_iter().find(|r| r.0 != cut.target)?;
    let (other, own) = (view.name(other), view.name(cut.target));
    let equal = EqualRows::of(view.run, &step.plan.name, &[other, own])?;
    let took = |name| Some(format::number(equal.rows as f64 / equal.rate(name)?));
    Some(format!(
        "Over the first {} rows {other} took {} s and {own} {} s.",
        format::count(equal.rows),
        took(other)?,
        took(own)?
    ))
}

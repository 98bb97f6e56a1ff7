//! The fastest target of a step, and whether it is faster than the others beyond noise.
//!
//! Only targets with valid numbers take part. The load generator's ceiling (the target that keeps
//! nothing) does not: it is no store.

use crate::analysis::{ComparisonRow, Verdict};
use crate::report::model::{StepView, View};

/// The contest of a step by its mean rates.
pub(crate) struct Contest<'v> {
    /// The target with the highest rate.
    pub(crate) first: usize,
    /// That rate.
    pub(crate) rate: f64,
    /// The other targets, fastest first, each with the comparison of the first one's rate with its
    /// own.
    pub(crate) rivals: Vec<(usize, Option<&'v ComparisonRow>)>,
}

impl<'v> Contest<'v> {
    /// The contest of a step; `None` when no target has valid numbers.
    pub(crate) fn of(view: &'v View<'_>, step: &StepView<'_>) -> Option<Contest<'v>> {
        let ranked = ranking(view, step);
        let (&(first, rate), others) = ranked.split_first()?;
        let rivals = others.iter().map(|&(rival, _)| {
            let row = view.compared(step, "rate_mean", first, rival);
            (rival, row.filter(|r| r.ratio.is_some()))
        });
        Some(Contest {
            first,
            rate,
            rivals: rivals.collect(),
        })
    }

    /// The next fastest, and the ratio to it.
    pub(crate) fn next(&self) -> Option<(usize, Option<&'v ComparisonRow>)> {
        self.rivals.first().copied()
    }

    /// Whether the first is faster than every other target.
    pub(crate) fn won(&self) -> bool {
        let beaten =
            |row: Option<&ComparisonRow>| row.is_some_and(|r| r.verdict == Some(Verdict::Faster));
        !self.rivals.is_empty() && self.rivals.iter().all(|r| beaten(r.1))
    }

    /// The rivals whose rates do not differ from the first one's beyond noise.
    pub(crate) fn equals(&self) -> Vec<usize> {
        let equal = |row: Option<&ComparisonRow>| {
            row.is_some_and(|r| r.verdict == Some(Verdict::NoDifference))
        };
        let rivals = self.rivals.iter().filter(|r| equal(r.1));
        rivals.map(|r| r.0).collect()
    }
}

/// Usable targets of a step with their mean rates, fastest first, without the load generator alone.
pub(crate) fn ranking(view: &View<'_>, step: &StepView<'_>) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> = (0..view.targets.len())
        .filter(|t| step.usable(*t) && !view.ceiling(*t))
        .filter_map(|t| Some((t, step.metric(t, "rate_mean")?)))
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

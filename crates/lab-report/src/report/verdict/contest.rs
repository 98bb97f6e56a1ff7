//! The fastest target of a step, and whether it is faster than the others beyond noise.
//!
//! - K1. Only targets with valid numbers take part. The load generator's ceiling (the target that
//!   keeps nothing) does not: it is no store.
//! - K2. Where a target was stopped by its time in a load, the rates are those over the rows that
//!   all of them wrote.

use crate::analysis::{ComparisonRow, EqualRows, Verdict};
use crate::format;
use crate::report::model::{StepView, View};

use super::cut::cuts;

/// The contest of a step by its rates.
pub(crate) struct Contest {
    /// The target with the highest rate.
    pub(crate) first: usize,
    /// That rate.
    pub(crate) rate: f64,
    /// The rows that the rates are about, where they are not all rows of the step (K2).
    pub(crate) over: Option<u64>,
    /// The other targets, fastest first, each with the comparison of the first one's rate with its
    /// own.
    pub(crate) rivals: Vec<(usize, Option<ComparisonRow>)>,
}

impl Contest {
    /// The contest of a step; `None` when no target has valid numbers.
    pub(crate) fn of(view: &View<'_>, step: &StepView<'_>) -> Option<Contest> {
        let ranked = ranking(view, step);
        if let Some(contest) = over_equal_rows(view, step, &ranked) {
            return Some(contest);
        }
        let (&(first, rate), others) = ranked.split_first()?;
        let rivals = others.iter().map(|&(rival, _)| {
            let row = view.compared(step, "rate_mean", first, rival);
            (rival, row.filter(|r| r.ratio.is_some()).cloned())
        });
        Some(Contest {
            first,
            rate,
            over: None,
            rivals: rivals.collect(),
        })
    }

    /// ` over the first 1,200 rows`, or nothing.
    pub(crate) fn over(&self) -> String {
        self.over.map_or(String::new(), |rows| {
            format!(" over the first {} rows", format::count(rows))
        })
    }

    /// The next fastest, and the ratio to it.
    pub(crate) fn next(&self) -> Option<(usize, Option<&ComparisonRow>)> {
        self.rivals
            .first()
            .map(|(rival, row)| (*rival, row.as_ref()))
    }

    /// Whether the first is faster than every other target.
    pub(crate) fn won(&self) -> bool {
        let beaten =
            |row: Option<&ComparisonRow>| row.is_some_and(|r| r.verdict == Some(Verdict::Faster));
        !self.rivals.is_empty() && self.rivals.iter().all(|r| beaten(r.1.as_ref()))
    }

    /// The rivals whose rates do not differ from the first one's beyond noise.
    pub(crate) fn equals(&self) -> Vec<usize> {
        let equal = |row: Option<&ComparisonRow>| {
            row.is_some_and(|r| r.verdict == Some(Verdict::NoDifference))
        };
        let rivals = self.rivals.iter().filter(|r| equal(r.1.as_ref()));
        rivals.map(|r| r.0).collect()
    }
}

/// The contest of a load in which a target was stopped by its time (K2); `None` for other steps.
fn over_equal_rows(
    view: &View<'_>,
    step: &StepView<'_>,
    ranked: &[(usize, f64)],
) -> Option<Contest> {
    let cut = cuts(step);
    let any = ranked.iter().any(|r| cut.iter().any(|c| c.target == r.0));
    if step.queries() || !any || ranked.len() < 2 {
        return None;
    }
    let names: Vec<&str> = ranked.iter().map(|r| view.name(r.0)).collect();
    let equal = EqualRows::of(view.run, &step.plan.name, &names)?;
    let mut rates: Vec<(usize, f64)> = ranked
        .iter()
        .filter_map(|r| Some((r.0, equal.rate(view.name(r.0))?)))
        .collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (&(first, rate), others) = rates.split_first()?;
    let against = |rival: usize| {
        let row = equal.compared(view.name(first), view.name(rival));
        (rival, row.filter(|r| r.ratio.is_some()))
    };
    Some(Contest {
        first,
        rate,
        over: Some(equal.rows),
        rivals: others.iter().map(|r| against(r.0)).collect(),
    })
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

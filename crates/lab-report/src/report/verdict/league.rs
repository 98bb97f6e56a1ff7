//! The ranking table of a step: the fastest first, then the load generator alone, then unusable
//! results.

use serde::Serialize;

use crate::analysis::{ComparisonRow, Verdict};
use crate::format;
use crate::report::compare::{self, times};
use crate::report::model::{StepView, View};
use crate::report::svg;

use super::contest::ranking;
use super::cut::cuts;

/// A row of the ranking.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Rank {
    pub(crate) target: String,
    pub(crate) color: usize,
    /// A special state: stopped by time, load generator alone.
    pub(crate) note: String,
    pub(crate) rate: String,
    /// SVG.
    pub(crate) spark: String,
    pub(crate) ratio: String,
    pub(crate) interval: String,
    /// SVG, empty without an interval.
    pub(crate) mark: String,
    pub(crate) word: String,
    pub(crate) class: String,
}

/// All targets of a step.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct League {
    pub(crate) step: String,
    pub(crate) href: String,
    pub(crate) about: String,
    pub(crate) unit: String,
    /// Whether the run has a single target: there is nothing to rank.
    pub(crate) alone: bool,
    pub(crate) rows: Vec<Rank>,
    pub(crate) tags: Vec<String>,
}

/// The lowest ratio for which marks are drawn.
const LEAST: f64 = 1.0 / 1024.0;

/// The ranking of a step.
pub(crate) fn league(view: &View<'_>, step: &StepView<'_>) -> League {
    let mut order: Vec<usize> = ranking(view, step).into_iter().map(|r| r.0).collect();
    let best = order.first().copied();
    let rest: Vec<usize> = (0..view.targets.len())
        .filter(|t| !order.contains(t))
        .collect();
    let (ceilings, out): (Vec<usize>, Vec<usize>) = rest
        .into_iter()
        .partition(|t| view.ceiling(*t) && step.usable(*t));
    order.extend(ceilings);
    order.extend(out);
    let against = |target: usize| -> Option<&ComparisonRow> {
        let base = best.filter(|b| *b != target)?;
        let row = view.compared(step, "rate_mean", target, base)?;
        (step.usable(target) && row.ratio.is_some()).then_some(row)
    };
    let pairs: Vec<(usize, Option<&ComparisonRow>)> =
        order.into_iter().map(|t| (t, against(t))).collect();
    let known = || {
        pairs
            .iter()
            .filter(|p| !view.ceiling(p.0))
            .filter_map(|p| p.1)
    };
    let least = known()
        .filter_map(|row| row.low)
        .fold(0.8, f64::min)
        .max(LEAST);
    let floor_known = view.floor("rate_mean").is_some();
    let mut tags: Vec<String> = known()
        .flat_map(|row| compare::caveats(row, floor_known))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    let alone = view.targets.len() == 1;
    let row = |(target, row): &(usize, Option<&ComparisonRow>)| {
        let mut rank = rank(view, step, *target, *row, best == Some(*target), least);
        if alone {
            rank.interval = of_rate(step, *target);
            if step.usable(*target) {
                "measured".clone_into(&mut rank.word);
            }
        }
        rank
    };
    League {
        step: step.plan.name.clone(),
        href: step.id.clone(),
        about: step.plan.about.clone(),
        unit: step.unit().to_owned(),
        alone,
        rows: pairs.iter().map(row).collect(),
        tags,
    }
}

fn rank(
    view: &View<'_>,
    step: &StepView<'_>,
    target: usize,
    row: Option<&ComparisonRow>,
    best: bool,
    least: f64,
) -> Rank {
    let (word, class) = word(view, step, target, row, best);
    let ceiling = view.ceiling(target);
    let ratio = match row.and_then(|r| r.ratio) {
        Some(ratio) => format!("{}\u{d7}", times(ratio)),
        None if best => "1".to_owned(),
        None => format::MISSING.to_owned(),
    };
    let ends = row.and_then(|r| Some((r.low?, r.high?)));
    Rank {
        target: view.name(target).to_owned(),
        color: view.color(target),
        note: note(view, step, target),
        rate: format::maybe(step.metric(target, "rate_mean")),
        spark: spark(view, step, target).unwrap_or_default(),
        ratio,
        interval: ends.map_or(String::new(), |(low, high)| {
            match compare::is_wide(low, high) {
                true => "too wide".to_owned(),
                false => format!("{} \u{2013} {}", times(low), times(high)),
            }
        }),
        mark: row
            .filter(|_| !ceiling)
            .and_then(|r| mark(view, target, r, least))
            .unwrap_or_default(),
        word,
        class,
    }
}

/// The 95 % interval of the rate of a target.
fn of_rate(step: &StepView<'_>, target: usize) -> String {
    let result = step.results.get(target).copied().flatten();
    let estimate = result.and_then(|r| r.estimates.get("rate_mean"));
    estimate.map_or(format::MISSING.to_owned(), |e| {
        let ends = [e.low, e.high].map(format::number);
        ends.join(" \u{2013} ")
    })
}

/// The verdict on a target, and its style class.
fn word(
    view: &View<'_>,
    step: &StepView<'_>,
    target: usize,
    row: Option<&ComparisonRow>,
    best: bool,
) -> (String, String) {
    let (word, class) = if !step.usable(target) {
        (step.standing(view, target), "invalid")
    } else if view.ceiling(target) {
        ("ceiling".to_owned(), "ref")
    } else if best {
        ("reference".to_owned(), "ref")
    } else {
        let verdict = row.and_then(|row| row.verdict);
        let verdict = verdict.unwrap_or(Verdict::Inconclusive);
        (verdict.to_string(), compare::class(Some(verdict)))
    };
    (word, class.to_owned())
}

fn note(view: &View<'_>, step: &StepView<'_>, target: usize) -> String {
    if view.ceiling(target) {
        return "keeps nothing: the generator alone".to_owned();
    }
    let all = cuts(step);
    let cut = all.iter().find(|c| c.target == target);
    cut.map_or(String::new(), |c| {
        format!("stopped by time at {}", format::percent(c.share()))
    })
}

fn spark(view: &View<'_>, step: &StepView<'_>, target: usize) -> Option<String> {
    let shown = step.shown();
    let cell = shown.iter().find(|c| c.target == target)?;
    let seconds = cell.whole_seconds();
    let points: Vec<_> = seconds.map(|r| (r.t, Some(step.rate(r)))).collect();
    let label = format!("rate of {} over time", view.name(target));
    Some(svg::sparkline(&points, view.color(target), &label))
}

fn mark(view: &View<'_>, target: usize, row: &ComparisonRow, least: f64) -> Option<String> {
    let mark = svg::Mark {
        median: row.ratio?,
        low: row.low?,
        high: row.high?,
        floor: row.floor,
        color: view.color(target),
    };
    let interval = compare::interval(row)?;
    let label = format!("{}: {}, {interval}", view.name(target), times(mark.median));
    Some(svg::mark(&mark, least, 1.25, &label))
}

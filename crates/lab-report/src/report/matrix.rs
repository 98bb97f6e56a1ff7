//! The summary matrix: metrics down, targets across, absolute and relative.
//!
//! Every cell carries its comparison with the best of its row and with each target, so that the
//! reader chooses the baseline; nothing is computed in the browser. A cell is coloured when
//! [`crate::analysis`] calls it better or worse by more than 5 %; invalid ones are grey and in no
//! comparison.

use serde::Serialize;

use crate::analysis::Better;

use super::compare::{class, times};
use super::metrics::{SHOWN, Shown};
use super::model::{StepView, View};
use crate::format;

/// Differences up to this are not colored, even if they exceed the noise.
const COLOURED: f64 = 0.05;

/// A relation to one baseline.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Relation {
    pub(crate) text: String,
    pub(crate) class: String,
}

/// One target's value of a metric.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) interval: String,
    pub(crate) class: String,
    /// Against the best of the row, then against each target.
    pub(crate) relations: Vec<Relation>,
}

/// One metric.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) unit: String,
    pub(crate) about: String,
    /// Which direction is better, and whether the noise floor is known.
    pub(crate) note: String,
    /// Set on the first row of a group.
    pub(crate) group: String,
    pub(crate) entries: Vec<Entry>,
}

/// A target as a column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Head {
    pub(crate) name: String,
    pub(crate) color: usize,
    pub(crate) ours: bool,
    pub(crate) validity: String,
    pub(crate) valid: bool,
}

/// The matrix of one step.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Matrix {
    pub(crate) id: String,
    pub(crate) step: String,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Row>,
}

/// The matrix of a step. Metrics that no target has are left out, except the rate.
pub(crate) fn matrix(view: &View<'_>, step: &StepView<'_>) -> Matrix {
    let targets = 0..view.targets.len();
    let mut rows = Vec::new();
    let mut group = String::new();
    for metric in &SHOWN {
        let known = targets
            .clone()
            .any(|t| step.metric(t, metric.name).is_some());
        let optional = metric.name.starts_with("query");
        if optional && (!known || step.queries()) {
            continue;
        }
        let own = metric.group(step.operation);
        rows.push(Row {
            label: metric.label(step.operation),
            unit: metric.unit(step.operation),
            about: metric.about().to_owned(),
            note: row_note(view, metric),
            group: if own == group {
                String::new()
            } else {
                own.clone()
            },
            entries: entries(view, step, metric),
        });
        group = own;
    }
    let heads = targets.map(|t| head(view, step, t)).collect();
    Matrix {
        id: format!("matrix-{}", step.id),
        step: step.plan.name.clone(),
        heads,
        rows,
    }
}

fn row_note(view: &View<'_>, metric: &Shown) -> String {
    let better = match metric.better() {
        Better::Higher => "Higher is better.",
        Better::Lower => "Lower is better.",
        Better::Neither => "It describes, it does not judge.",
    };
    match view.floor(metric.name) {
        Some(floor) => format!("{better} Noise floor {}.", format::percent(floor)),
        None => format!("{better} Uncalibrated: a noise floor of 2 % is assumed."),
    }
}

fn head(view: &View<'_>, step: &StepView<'_>, target: usize) -> Head {
    let record = view.targets.get(target).and_then(|t| t.record);
    let result = step.results.get(target).copied().flatten();
    let valid = step.usable(target);
    let validity = match result {
        Some(r) if valid => format!("valid, {} of {} repeats", r.repeats_valid, r.repeats),
        Some(r) if step.missed_rate(target).is_some() => {
            format!("missed its rate, {} repeats", r.repeats)
        }
        Some(r) if 0 < r.repeats => format!(
            "{}, {} of {} repeats valid",
            step.standing(view, target),
            r.repeats_valid,
            view.run.manifest.plan.repeats
        ),
        _ => step.standing(view, target),
    };
    Head {
        name: view.name(target).to_owned(),
        color: view.color(target),
        ours: record.is_some_and(|r| r.ours),
        validity,
        valid,
    }
}

fn entries(view: &View<'_>, step: &StepView<'_>, metric: &Shown) -> Vec<Entry> {
    let targets = 0..view.targets.len();
    // A target that stores nothing is never the best of a row.
    let usable = || {
        targets
            .clone()
            .filter(|t| step.usable(*t) && !view.ceiling(*t))
    };
    let values = usable().filter_map(|t| Some((t, step.metric(t, metric.name)?)));
    let best = match metric.better() {
        Better::Higher | Better::Neither => values.max_by(|a, b| a.1.total_cmp(&b.1)),
        Better::Lower => values.min_by(|a, b| a.1.total_cmp(&b.1)),
    }
    .map(|b| b.0);
    targets
        .clone()
        .map(|t| {
            let value = step.metric(t, metric.name);
            let bases = std::iter::once(best).chain(targets.clone().map(Some));
            let class = match value {
                None => "na",
                Some(_) if !step.usable(t) => "invalid",
                Some(_) => "",
            };
            Entry {
                text: metric.text(value),
                interval: interval(step, metric, t),
                class: class.to_owned(),
                relations: bases.map(|b| relation(view, step, metric, t, b)).collect(),
            }
        })
        .collect()
}

fn interval(step: &StepView<'_>, metric: &Shown, target: usize) -> String {
    let result = step.results.get(target).copied().flatten();
    let estimate = result.and_then(|r| r.estimates.get(metric.name));
    estimate.map_or(String::new(), |e| {
        let ends = [e.low, e.high].map(|v| format::number(v / metric.divisor));
        ends.join(" \u{2013} ")
    })
}

fn relation(
    view: &View<'_>,
    step: &StepView<'_>,
    metric: &Shown,
    target: usize,
    base: Option<usize>,
) -> Relation {
    let say = |text: String, class: &str| Relation {
        text,
        class: class.to_owned(),
    };
    let Some(base) = base.filter(|b| step.usable(*b) && step.usable(target)) else {
        return say(String::new(), "");
    };
    let (Some(a), Some(b)) = (
        step.metric(target, metric.name),
        step.metric(base, metric.name),
    ) else {
        return say(String::new(), "");
    };
    if target == base {
        return say("1".to_owned(), "ref");
    }
    let row = view.compared(step, metric.name, target, base);
    let ratio = row.and_then(|r| r.ratio);
    let small = ratio.is_some_and(|r| (r - 1.0).abs() <= COLOURED);
    let verdict = row.and_then(|r| r.verdict).filter(|_| !small);
    let text = match ratio {
        Some(ratio) => format!("{}\u{d7}", times(ratio)),
        None if b < a => "above 0".to_owned(),
        None => "1".to_owned(),
    };
    say(text, class(verdict))
}

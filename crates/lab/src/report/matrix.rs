//! The summary matrix: metrics down, targets across, absolute and relative.
//!
//! Every cell carries its comparison with the best of its row and with each target, so that the
//! reader chooses the baseline; nothing is computed in the browser. A cell is coloured only when
//! the difference counts and is above 5 %; invalid ones are grey and in no comparison.

use serde::Serialize;

use super::compare::{Word, times};
use super::findings::ratio;
use super::format;
use super::metrics::{Better, METRICS, Metric};
use super::model::{StepView, View};

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
    /// Which way is better, and whether the noise floor is known.
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

/// The matrix of a step. Metrics no target has are left out, except the rate.
pub(crate) fn matrix(view: &View<'_>, step: &StepView<'_>) -> Matrix {
    let targets = 0..view.targets.len();
    let mut rows = Vec::new();
    let mut group = "";
    for metric in &METRICS {
        let known = targets
            .clone()
            .any(|t| step.metric(t, metric.name).is_some());
        let optional = metric.name.starts_with("query");
        if optional && (!known || step.queries()) {
            continue;
        }
        let (label, unit) = named(step, metric);
        rows.push(Row {
            label,
            unit,
            about: metric.about.to_owned(),
            note: row_note(view, metric),
            group: if metric.group == group {
                ""
            } else {
                metric.group
            }
            .to_owned(),
            entries: entries(view, step, metric),
        });
        group = metric.group;
    }
    let heads = targets.map(|t| head(view, step, t)).collect();
    Matrix {
        id: format!("matrix-{}", step.id),
        step: step.plan.name.clone(),
        heads,
        rows,
    }
}

fn row_note(view: &View<'_>, metric: &Metric) -> String {
    let better = match metric.better {
        Better::Higher => "Higher is better.",
        Better::Lower => "Lower is better.",
    };
    match view.floor(metric.name) {
        Some(floor) => format!("{better} Noise floor {}.", format::percent(floor)),
        None => format!("{better} Uncalibrated: its noise floor is not known."),
    }
}

/// Label and unit: in query steps rates and latencies are those of queries.
fn named(step: &StepView<'_>, metric: &Metric) -> (String, String) {
    if !step.queries() {
        return (metric.label.to_owned(), metric.unit.to_owned());
    }
    let unit = if metric.unit == "rows/s" {
        step.unit()
    } else {
        metric.unit
    };
    (metric.label.replace("Commit", "Query"), unit.to_owned())
}

fn head(view: &View<'_>, step: &StepView<'_>, target: usize) -> Head {
    let record = view.targets.get(target).and_then(|t| t.record);
    let result = step.results.get(target).copied().flatten();
    let valid = step.usable(target);
    let validity = match result {
        None => "not run".to_owned(),
        Some(r) if valid => format!("valid, {} of {} repeats", r.repeats_valid, r.repeats),
        Some(r) if step.missed_rate(target).is_some() => {
            format!("missed its rate, {} repeats", r.repeats)
        }
        Some(r) => format!(
            "invalid, {} of {} repeats valid",
            r.repeats_valid, r.repeats
        ),
    };
    Head {
        name: view.name(target).to_owned(),
        color: view.color(target),
        ours: record.is_some_and(|r| r.ours),
        validity,
        valid,
    }
}

fn entries(view: &View<'_>, step: &StepView<'_>, metric: &Metric) -> Vec<Entry> {
    let targets = 0..view.targets.len();
    let usable = || targets.clone().filter(|t| step.usable(*t));
    let values = usable().filter_map(|t| Some((t, step.metric(t, metric.name)?)));
    let best = match metric.better {
        Better::Higher => values.max_by(|a, b| a.1.total_cmp(&b.1)),
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

fn interval(step: &StepView<'_>, metric: &Metric, target: usize) -> String {
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
    metric: &Metric,
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
    if b <= 0.0 {
        return if a > b {
            above_zero(step, metric, target, base)
        } else {
            say("1".to_owned(), "same")
        };
    }
    let text = format!("{}\u{d7}", times(a / b));
    let floor = view.floor(metric.name);
    let Some(ratio) = ratio(step, metric.name, target, base) else {
        return say(text, "same");
    };
    let large = ratio.median > 1.05 || ratio.median < 0.95;
    match ratio.word(metric.better, floor) {
        Word::Faster if large => say(text, "good"),
        Word::Slower if large => say(text, "bad"),
        _ => say(text, "same"),
    }
}

/// A relation to a baseline of zero: no ratio, but intervals that may be apart.
fn above_zero(step: &StepView<'_>, metric: &Metric, target: usize, base: usize) -> Relation {
    let ends = |t: usize| {
        let result = step.results.get(t).copied().flatten()?;
        result.estimates.get(metric.name).map(|e| (e.low, e.high))
    };
    let apart = match (ends(target), ends(base)) {
        (Some((low, _)), Some((_, high))) => low > high,
        _ => false,
    };
    let class = match metric.better {
        _ if !apart => "same",
        Better::Higher => "good",
        Better::Lower => "bad",
    };
    Relation {
        text: "above 0".to_owned(),
        class: class.to_owned(),
    }
}

//! Bars: costs per row, amplification, bytes written by reason.

use super::Figure;
use crate::format;
use crate::report::compare::times;
use crate::report::metrics::Shown;
use crate::report::model::{StepView, View};
use crate::report::svg;

/// Bars of one metric.
pub(crate) fn bars(view: &View<'_>, step: &StepView<'_>, name: &str) -> Option<Figure> {
    let metric = Shown::named(name)?;
    let unit = metric.unit(step.operation);
    let bars: Vec<svg::Bar> = (0..view.targets.len())
        .map(|t| {
            let value = step.metric(t, name).map(|v| v / metric.divisor);
            let result = step.results.get(t).copied().flatten();
            let estimate = result.and_then(|r| r.estimates.get(name));
            let text = match (value, unit.as_str()) {
                (Some(v), "x") => format!("{}\u{d7}", times(v)),
                (v, _) => format::maybe(v),
            };
            let pale = value.is_some() && !step.usable(t);
            svg::Bar {
                label: view.name(t).to_owned(),
                color: view.color(t),
                value,
                interval: estimate.map(|e| (e.low / metric.divisor, e.high / metric.divisor)),
                text,
                pale,
            }
        })
        .collect();
    let pale = bars.iter().any(|b| b.pale);
    if bars.iter().all(|b| b.value.is_none()) {
        return None;
    }
    let beside = if unit == "x" { "" } else { &unit };
    let title = format!("{} {beside}", metric.label(step.operation));
    Some(Figure {
        id: format!("{}-{}", step.id, name.replace('_', "-")),
        title: title.trim().to_owned(),
        note: if pale {
            format!("{} Pale: invalid.", metric.about())
        } else {
            metric.about().to_owned()
        },
        kind: String::new(),
        panel: String::new(),
        drawing: svg::Bars {
            label: format!("{} ({unit}), step {}", metric.about(), step.plan.name),
            bars,
        }
        .render(),
        wide: false,
    })
}

/// Bytes written by reason, of the shown repeats; `None` when no engine counts them.
pub(crate) fn reasons(view: &View<'_>, step: &StepView<'_>) -> Option<Figure> {
    let shown = step.shown();
    let mut kinds: Vec<String> = Vec::new();
    for kind in shown
        .iter()
        .flat_map(|c| c.summary.written_by_reason.keys())
    {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    if kinds.is_empty() {
        return None;
    }
    let stacks = shown
        .iter()
        .map(|cell| {
            let by = &cell.summary.written_by_reason;
            let total: u64 = by.values().sum();
            let segments = kinds.iter().enumerate().filter_map(|(kind, name)| {
                let value = *by.get(name)? as f64;
                let title = format!("{name}: {}", format::bytes(value));
                Some(svg::Segment { kind, value, title })
            });
            svg::Stack {
                label: view.name(cell.target).to_owned(),
                segments: segments.collect(),
                text: if by.is_empty() {
                    format::MISSING.to_owned()
                } else {
                    format::bytes(total as f64)
                },
            }
        })
        .collect();
    Some(Figure {
        id: format!("{}-reasons", step.id),
        title: "Bytes written by reason".to_owned(),
        note: "As the engines count them; they may differ from the device's bytes.".to_owned(),
        kind: String::new(),
        panel: String::new(),
        drawing: svg::Stacks {
            label: format!("bytes written by reason, step {}", step.plan.name),
            kinds,
            stacks,
        }
        .render(),
        wide: false,
    })
}

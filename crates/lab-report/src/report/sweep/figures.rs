//! Heat maps, curves, bars and prices of one step of a sweep.

use crate::format;
use crate::record::{SweepAxis, SweepRecord};
use crate::report::model::anchor;
use crate::report::plots::Figure;
use crate::report::svg;
use crate::sweep::{Point, Series, StepGrid};

/// A range of values above which an axis is logarithmic.
const LOG_FROM: f64 = 50.0;

/// Maximum number of bars of a figure.
const BARS_MAX: usize = 24;

/// All drawings of a step.
pub(super) fn figures(record: &SweepRecord, step: &StepGrid) -> Vec<Figure> {
    let mut all = heat_maps(record, step);
    for axis in 0..record.sweep.axes.len() {
        all.extend(curves(record, step, axis));
    }
    if record.sweep.axes.iter().all(|axis| !axis.ordered()) {
        all.extend(bars(record, step));
    }
    all.extend(prices(record, step));
    all
}

fn figure(step: &StepGrid, kind: &str, title: String, note: &str, drawing: String) -> Figure {
    Figure {
        id: format!("{kind}-{}", anchor(&step.name)),
        title,
        note: note.to_owned(),
        kind: String::new(),
        panel: String::new(),
        drawing,
        wide: false,
    }
}

fn target_name(record: &SweepRecord, target: usize) -> &str {
    let name = record.sweep.targets.get(target);
    name.map_or("", String::as_str)
}

/// The last axis across; down the targets, or, with further axes, their values for each target.
fn heat_maps(record: &SweepRecord, step: &StepGrid) -> Vec<Figure> {
    let Some(across) = record.sweep.axes.last() else {
        return Vec::new();
    };
    let map = |rows| svg::HeatMap {
        label: format!("{} by {}, step {}", step.unit, across.name, step.name),
        across: across.name.clone(),
        columns: across.values.iter().map(|v| v.text.clone()).collect(),
        rows,
    };
    let note = "Shade: share of the largest rate in the map.";
    if record.sweep.axes.len() == 1 {
        let rows = step.points.iter().enumerate().map(|(target, points)| {
            let name = target_name(record, target).to_owned();
            (name, svg::color(target), points.iter().map(heat).collect())
        });
        let drawing = map(rows.collect()).render();
        let title = format!("{} by {}", step.unit, across.name);
        return vec![figure(step, "heat", title, note, drawing)];
    }
    let each = step.points.iter().enumerate().map(|(target, points)| {
        let name = target_name(record, target);
        let rows = combinations(record);
        let rows = rows.into_iter().map(|(label, cells)| {
            let heat = |cell: &usize| points.get(*cell).map_or_else(svg::Heat::default, heat);
            (label, svg::color(target), cells.iter().map(heat).collect())
        });
        let drawing = map(rows.collect()).render();
        let title = format!("{name}: {}", step.unit);
        figure(step, &format!("heat-{target}"), title, note, drawing)
    });
    each.collect()
}

fn heat(point: &Point) -> svg::Heat {
    svg::Heat {
        value: point.rate,
        text: format::maybe(point.rate),
        title: point.fault.clone().unwrap_or_else(|| match point.between {
            Some([low, high]) => format!("{} to {}", format::number(low), format::number(high)),
            None => format!("{} repeats", point.repeats),
        }),
    }
}

/// For each combination of values of all axes but the last: its name, and its cells.
fn combinations(record: &SweepRecord) -> Vec<(String, Vec<usize>)> {
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, cell) in record.sweep.cells.iter().enumerate() {
        let texts = record.sweep.texts(cell);
        let kept = texts.len().saturating_sub(1);
        let named = record.sweep.axes.iter().zip(texts).take(kept);
        let named: Vec<String> = named
            .map(|(axis, t)| format!("{} {t}", axis.name))
            .collect();
        let label = named.join(", ");
        match all.iter_mut().find(|(known, _)| *known == label) {
            Some((_, cells)) => cells.push(at),
            None => all.push((label, vec![at])),
        }
    }
    all
}

/// The rate against the values of an ordered axis: one figure for all targets or, where other
/// settings are swept too, one for each.
fn curves(record: &SweepRecord, step: &StepGrid, axis: usize) -> Vec<Figure> {
    let own: Vec<&Series> = step.series.iter().filter(|s| s.axis == axis).collect();
    let Some(swept) = record.sweep.axes.get(axis).filter(|_| !own.is_empty()) else {
        return Vec::new();
    };
    if record.sweep.axes.len() == 1 {
        let mut lines = Vec::new();
        for series in &own {
            let name = target_name(record, series.target).to_owned();
            lines.push((*series, name, svg::color(series.target)));
        }
        let title = format!("Rate against {}", swept.name);
        return vec![curve(record, step, (axis, swept), &lines, title)];
    }
    let targets = 0..record.sweep.targets.len();
    let each = targets.map(|target| {
        let mut lines = Vec::new();
        for series in own.iter().filter(|series| series.target == target) {
            lines.push((*series, series.at.clone(), svg::color(lines.len())));
        }
        let title = format!(
            "{}: rate against {}",
            target_name(record, target),
            swept.name
        );
        let mut figure = curve(record, step, (axis, swept), &lines, title);
        figure.id = format!("{}-{target}", figure.id);
        figure
    });
    each.collect()
}

fn curve(
    record: &SweepRecord,
    step: &StepGrid,
    (at, axis): (usize, &SweepAxis),
    lines: &[(&Series, String, usize)],
    title: String,
) -> Figure {
    let (by, unit) = scale(axis);
    let place = |cell: usize| {
        let value = record.sweep.cells.get(cell).and_then(|c| c.values.get(at));
        let value = value.and_then(|value| axis.values.get(*value));
        value.and_then(|value| value.number).unwrap_or(0.0) / by
    };
    let numbers = || axis.values.iter().filter_map(|v| v.number);
    let least = numbers().fold(f64::INFINITY, f64::min);
    let most = numbers().fold(0.0, f64::max);
    let mut chart = svg::LineChart {
        label: format!("{} against {}, step {}", step.unit, axis.name, step.name),
        x_label: format!("{}{unit}", axis.name),
        y_label: step.unit.clone(),
        x_log: 0.0 < least && LOG_FROM <= most / least,
        marked: true,
        ..svg::LineChart::default()
    };
    for (series, label, color) in lines {
        let points = step.points.get(series.target);
        let point = |cell: &usize| points.and_then(|points| points.get(*cell));
        let cells = || series.cells.iter();
        let with_rate = |cell: &usize| (place(*cell), point(cell).and_then(|p| p.rate));
        chart.lines.push(svg::Line {
            label: label.clone(),
            color: *color,
            dashed: false,
            points: cells().map(with_rate).collect(),
        });
        let range = |cell: &usize| {
            let point = point(cell).filter(|p| p.rate.is_some())?;
            let (low, high) = ends(&point.rates.repeats)?;
            Some((place(*cell), low, high))
        };
        chart.areas.push(svg::Area {
            color: *color,
            points: cells().filter_map(range).collect(),
        });
        let from = series.plateau.and_then(|from| series.cells.get(from));
        if let (Some(from), Some(last)) = (from, series.cells.last()) {
            chart.bands.push(svg::Band {
                from: place(*from),
                to: place(*last),
                color: *color,
            });
        }
    }
    let note = "Line: median of the repeats; area: their range; band: plateau.";
    figure(step, &format!("curve-{at}"), title, note, chart.render())
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let most = values.iter().copied().max_by(f64::total_cmp)?;
    Some((least, most))
}

/// The divisor of the numbers of an axis, and its unit.
fn scale(axis: &SweepAxis) -> (f64, String) {
    let numbers = axis.values.iter().filter_map(|v| v.number);
    let most = numbers.fold(0.0, f64::max);
    let (mib, gib) = (f64::from(1 << 20), f64::from(1 << 30));
    match axis.unit.as_str() {
        "B" if 8.0 * gib <= most => (gib, ", GiB".to_owned()),
        "B" if mib <= most => (mib, ", MiB".to_owned()),
        "B" => (1024.0, ", KiB".to_owned()),
        "" => (1.0, String::new()),
        unit => (1.0, format!(", {unit}")),
    }
}

/// The rates of all cells, where no axis has an order.
fn bars(record: &SweepRecord, step: &StepGrid) -> Option<Figure> {
    let mut bars = Vec::new();
    for (at, cell) in record.sweep.cells.iter().enumerate() {
        for (target, points) in step.points.iter().enumerate() {
            let Some(point) = points.get(at) else {
                continue;
            };
            let values = record.sweep.texts(cell).join(", ");
            bars.push(svg::Bar {
                label: format!("{values} {}", target_name(record, target)),
                color: svg::color(target),
                value: point.rate,
                interval: point.between.map(|[low, high]| (low, high)),
                text: format::maybe(point.rate),
                pale: point.disturbed.is_some(),
            });
        }
    }
    bars.truncate(BARS_MAX);
    let chart = svg::Bars {
        label: format!("{}, step {}", step.unit, step.name),
        bars,
    };
    let note = "Line: 95 % interval, with 3 repeats or more.";
    let title = format!("{} of each run", step.unit);
    (!chart.bars.is_empty()).then(|| figure(step, "bars", title, note, chart.render()))
}

/// Dollars per month against the rate.
fn prices(record: &SweepRecord, step: &StepGrid) -> Option<Figure> {
    let mut points = Vec::new();
    for (at, cell) in record.sweep.cells.iter().enumerate() {
        for (target, of_target) in step.points.iter().enumerate() {
            let point = of_target.get(at);
            let priced = point.and_then(|p| Some((p.cost.total?, p.rate?)));
            if let Some((dollars, rate)) = priced {
                let values = record.sweep.texts(cell).join(", ");
                points.push(svg::Point {
                    x: dollars,
                    y: rate,
                    color: svg::color(target),
                    label: format!("{values} {}", target_name(record, target)),
                    hollow: false,
                });
            }
        }
    }
    let chart = svg::Scatter {
        label: format!("dollars a month against rate, step {}", step.name),
        x_label: "dollars a month".to_owned(),
        y_label: step.unit.clone(),
        x_log: false,
        front: true,
        points,
    };
    let note = "The line joins the points that no cheaper one exceeds.";
    let title = "Rate against total dollars".to_owned();
    (!chart.points.is_empty()).then(|| figure(step, "prices", title, note, chart.render()))
}

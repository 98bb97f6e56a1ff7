//! The section of one step: published-style interval table, plots, response-time buckets, costs.

use serde::Serialize;

use crate::record::{Ended, IntervalRow, LoadKind, Operation};

use super::counters;
use super::data::StepData;
use super::kinds;
use super::model::{CellView, StepView, View};
use super::plots::{self, Figure};
use super::spread;
use super::tables::{Cell, Column, Table};
use super::usage;
use crate::format;

/// Approximate number of points per line in the static drawings of all steps together, so that a
/// run with many steps stays small.
const POINTS_TOTAL: usize = 900;

/// The data of a step for the template.
#[derive(Debug, Serialize)]
pub(crate) struct StepPart {
    pub(crate) index: usize,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) about: String,
    /// The budget, and the reason why the step ended.
    pub(crate) asked: String,
    /// The operation that costs are divided by: `row` or `query`.
    pub(crate) operation: &'static str,
    pub(crate) repeats: Vec<u32>,
    /// One table per target.
    pub(crate) intervals: Vec<Table>,
    pub(crate) time: Vec<Figure>,
    pub(crate) shapes: Vec<Figure>,
    pub(crate) buckets: Vec<Table>,
    pub(crate) costs: Vec<Figure>,
    pub(crate) amplification: Vec<Figure>,
    pub(crate) reasons: Option<Figure>,
    /// Use of the machine, by the run and by others.
    pub(crate) usage: Option<Table>,
    /// A sentence about the repeats that others disturbed; empty if there are none.
    pub(crate) disturbed: String,
    /// Percentiles and variation.
    pub(crate) spread: Option<Table>,
    /// The kinds of operations of a mix.
    pub(crate) kinds: Option<Table>,
    /// The engine's counters, one table per target.
    pub(crate) counters: Vec<Table>,
    pub(crate) warnings: Vec<String>,
}

impl StepPart {
    /// Bytes of its drawings.
    pub(crate) fn drawn_bytes(&self) -> usize {
        let groups = [&self.time, &self.shapes, &self.costs, &self.amplification];
        let figures = groups.into_iter().flatten().chain(&self.reasons);
        figures.map(|f| f.drawing.len()).sum()
    }
}

/// Makes the section and the numbers for the browser.
pub(crate) fn part(view: &View<'_>, step: &StepView<'_>, index: usize) -> (StepPart, StepData) {
    let data = StepData {
        panels: plots::panels(step),
        knees: plots::knees(view, step),
        commits: plots::spectra(view, step, false),
        queries: plots::spectra(view, step, true),
        log: plots::far_apart(step),
    };
    let points = (POINTS_TOTAL / view.steps.len().max(1)).clamp(60, 300);
    let time = data
        .panels
        .iter()
        .map(|p| plots::time_figure(view, step, p, points));
    let shown = step.shown();
    let buckets = [false, true].map(|queries| buckets(view, step, queries));
    let part = StepPart {
        index,
        id: step.id.clone(),
        name: step.plan.name.clone(),
        about: step.plan.about.clone(),
        asked: asked(step),
        operation: step.operation.one,
        repeats: repeats(step),
        intervals: shown
            .iter()
            .filter_map(|c| intervals(view, step, c))
            .collect(),
        time: time.collect(),
        shapes: shapes(view, step, &data),
        buckets: buckets.into_iter().flatten().collect(),
        costs: bars(view, step, &COSTS),
        amplification: bars(view, step, &AMPLIFICATION),
        reasons: plots::reasons(view, step),
        spread: spread::table(view, step),
        kinds: kinds::table(view, step),
        counters: counters::tables(view, step),
        usage: usage::usage(view, step),
        disturbed: disturbed(view, step),
        warnings: warnings(view, step),
    };
    (part, data)
}

const COSTS: [&str; 4] = [
    "device_write_bytes_per_row",
    "device_read_bytes_per_row",
    "cpu_us_per_row",
    "switches_per_row",
];
const AMPLIFICATION: [&str; 3] = [
    "write_amplification",
    "read_amplification",
    "space_amplification",
];

fn bars(view: &View<'_>, step: &StepView<'_>, metrics: &[&str]) -> Vec<Figure> {
    let bars = metrics.iter().map(|name| plots::bars(view, step, name));
    bars.flatten().collect()
}

fn shapes(view: &View<'_>, step: &StepView<'_>, data: &StepData) -> Vec<Figure> {
    let shapes = [
        plots::knee_figure(view, step, &data.knees),
        plots::density_figure(view, step),
        plots::spectrum_figure(view, step, &data.commits, false),
        plots::spectrum_figure(view, step, &data.queries, true),
    ];
    shapes.into_iter().flatten().collect()
}

fn repeats(step: &StepView<'_>) -> Vec<u32> {
    let mut repeats: Vec<u32> = step.cells.iter().map(|c| c.repeat).collect();
    repeats.sort_unstable();
    repeats.dedup();
    repeats
}

/// The budget in words.
fn asked(step: &StepView<'_>) -> String {
    let plan = step.plan;
    let load = match plan.load {
        LoadKind::Open { poisson, .. } if plan.setting.share.is_some() => format!(
            "open loop at a share of a rate measured before, {} gaps",
            if poisson { "Poisson" } else { "equal" }
        ),
        LoadKind::Closed => "closed loop".to_owned(),
        LoadKind::Open { rate, poisson } => format!(
            "open loop at {}/s, {} gaps",
            format::number(rate),
            if poisson { "Poisson" } else { "equal" }
        ),
    };
    let operations = if plan.operations > 0 {
        format!(
            "{} {} or ",
            format::count(plan.operations),
            step.operation.many
        )
    } else {
        String::new()
    };
    let settle = if plan.settle {
        "; settles afterwards"
    } else {
        ""
    };
    let timed = step
        .cells
        .iter()
        .filter(|c| c.summary.ended == Ended::Time)
        .count();
    let ended = match timed {
        0 => "every run did all its operations".to_owned(),
        n if n == step.cells.len() => "every run was ended by its time".to_owned(),
        n => format!("{n} of {} runs were ended by their time", step.cells.len()),
    };
    format!(
        "{load}; {operations}at most {} s{settle}; {ended}.",
        format::number(plan.seconds_max)
    )
}

/// Which repeats were disturbed, by target, and what follows.
fn disturbed(view: &View<'_>, step: &StepView<'_>) -> String {
    let of = |target: usize| {
        let own = step.cells.iter().filter(|c| c.target == target);
        let hit = own.filter(|c| !c.summary.disturbed().is_empty());
        let repeats: Vec<String> = hit.map(|c| c.repeat.to_string()).collect();
        let plural = if repeats.len() == 1 { "" } else { "s" };
        (!repeats.is_empty()).then(|| {
            let (name, numbers) = (view.name(target), repeats.join(", "));
            format!("repeat{plural} {numbers} of {name}")
        })
    };
    let all: Vec<String> = (0..view.targets.len()).filter_map(of).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(
            "Other programs disturbed {}: verdicts of this step are inconclusive.",
            all.join(" and ")
        ),
    }
}

fn warnings(view: &View<'_>, step: &StepView<'_>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for cell in &step.cells {
        for warning in &cell.summary.warnings {
            let text = format!("{}: {warning}", view.name(cell.target));
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    texts
}

/// The interval table of a cell; `None` for steps without intervals.
fn intervals(view: &View<'_>, step: &StepView<'_>, cell: &CellView<'_>) -> Option<Table> {
    if cell.summary.intervals.is_empty() {
        return None;
    }
    let name = view.name(cell.target);
    let device = cell.summary.device_source != "none";
    let queries = cell.summary.intervals.iter().any(|r| r.query_rate > 0.0);
    let mut table = Table::new(
        format!("{}-intervals-{}", step.id, cell.target),
        format!("{name}, {}, repeat {}", step.plan.name, cell.repeat),
    )
    .texts(&["interval"])
    .numbers(&[
        "rows",
        "size GB",
        "bytes/row",
        "MB/s written",
        "GB written",
        "GB total",
        "secs",
        "inserts/s",
        "exit rate",
        "max stall s",
        "q/s",
        "q avg ms",
        "q p99 ms",
    ]);
    for row in &cell.summary.intervals {
        table.push(interval(row, device, queries));
    }
    Some(table)
}

fn interval(row: &IntervalRow, device: bool, queries: bool) -> Vec<Cell> {
    let known = |value: f64, is: bool, digits: usize| {
        let text = if is {
            format::fixed(value, digits)
        } else {
            format::MISSING.to_owned()
        };
        Cell::num(text)
    };
    let seconds = row.seconds.max(1e-9);
    let written = row.device_write_bytes as f64;
    vec![
        Cell::text(row.interval.to_string()),
        Cell::num(format::count(row.rows)),
        known(row.file_bytes as f64 / 1e9, true, 3),
        known(row.bytes_per_row, true, 0),
        known(written / 1e6 / seconds, device, 1),
        known(written / 1e9, device, 2),
        known(row.device_write_bytes_total as f64 / 1e9, device, 2),
        known(row.seconds, true, 1),
        Cell::number(row.rate),
        Cell::number(row.exit_rate),
        known(row.max_stall_seconds, true, 2),
        known(row.query_rate, queries, 1),
        known(row.query_mean_ms, queries, 2),
        known(row.query_p99_ms, queries, 2),
    ]
}

/// The upper ends of the response-time buckets of the insert benchmark, in microseconds.
const BUCKETS: [(&str, u64); 9] = [
    ("256us", 256),
    ("1ms", 1_000),
    ("4ms", 4_000),
    ("16ms", 16_000),
    ("64ms", 64_000),
    ("256ms", 256_000),
    ("1s", 1_000_000),
    ("4s", 4_000_000),
    ("16s", 16_000_000),
];

/// Response times in the buckets of the insert benchmark: shares per target, shaded.
fn buckets(view: &View<'_>, step: &StepView<'_>, queries: bool) -> Option<Table> {
    let what = match step.operation {
        _ if queries => Operation::QUERY.one,
        Operation::ROW => "commit",
        operation => operation.one,
    };
    let mut table = Table::new(
        format!("{}-buckets-{what}", step.id),
        format!("Response times of a {what}: share in each bucket (upper ends)"),
    )
    .texts(&["target"]);
    let labels: Vec<&str> = BUCKETS
        .iter()
        .map(|b| b.0)
        .chain(["gt", "max ms", "count"])
        .collect();
    table.columns.extend(labels.into_iter().map(|l| Column {
        label: l.to_owned(),
        number: true,
        title: String::new(),
        swatch: None,
    }));
    table.class = "heat".to_owned();
    for target in 0..view.targets.len() {
        let Some(histogram) = step.histogram(target, queries) else {
            continue;
        };
        let total = (histogram.len() as f64).max(1.0);
        let mut row = vec![Cell::target(view.name(target), view.color(target))];
        let mut from = 0;
        for end in BUCKETS.iter().map(|b| b.1).chain([u64::MAX]) {
            let count: u64 = histogram
                .iter_recorded()
                .filter(|v| v.value_iterated_to() >= from && v.value_iterated_to() < end)
                .map(|v| v.count_since_last_iteration())
                .sum();
            let share = count as f64 / total;
            row.push(Cell::num(bucket_text(share)).heat(share.sqrt()));
            from = end;
        }
        row.push(Cell::number(histogram.max() as f64 / 1e3));
        row.push(Cell::num(format::count(histogram.len())));
        table.push(row);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// A percentage in which small values are not rounded to 0.
fn bucket_text(share: f64) -> String {
    if share <= 0.0 {
        "0".to_owned()
    } else if share < 0.0001 {
        "<0.01 %".to_owned()
    } else {
        format!("{:.2} %", share * 100.0)
    }
}

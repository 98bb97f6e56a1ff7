//! The section of costs: a headline, a table for each step, and dollars against rates.

use serde::Serialize;

use crate::cost::{self, Cost, CostLine, CostOptions, Mode};
use crate::record::{Operation, Prices};
use crate::{analysis, format};

use super::model::{StepView, View};
use super::plots::Figure;
use super::svg;
use super::tables::{Cell, Table};

/// Section 5.
#[derive(Debug, Serialize)]
pub(crate) struct CostPart {
    /// The prices, in one line.
    pub(crate) prices: String,
    /// The best target per dollar, for each step.
    pub(crate) headlines: Vec<String>,
    /// The open-loop rates that were tried; `None` if there were none.
    pub(crate) sustained: Option<Table>,
    /// A table for each step.
    pub(crate) tables: Vec<Table>,
    /// Dollars against rates, for each step.
    pub(crate) figures: Vec<Figure>,
    pub(crate) notes: Vec<String>,
}

/// The section, with the run's own prices or with the default prices.
pub(crate) fn part(view: &View<'_>) -> CostPart {
    let prices = view.run.prices.clone();
    let prices = prices.unwrap_or_else(Prices::default_prices);
    let cost = cost::estimate(view.run, &prices, &CostOptions::default());
    let steps = || view.steps.iter().map(|s| s.plan.name.as_str());
    let priced = |step: &&str| cost.lines.iter().any(|l| l.step == *step);
    CostPart {
        prices: format!(
            "Prices {} of {}, {} ({}). {}: {} dollars an hour, {}.",
            prices.name,
            prices.date,
            prices.region,
            prices.source,
            prices.instance.name,
            prices.instance.dollars_per_hour,
            prices.instance.terms
        ),
        headlines: steps()
            .filter_map(|s| headline(view, &cost, s))
            .chain(cost.leaders.iter().map(cost::Leaders::sentence))
            .collect(),
        sustained: sustained(view),
        tables: steps()
            .filter(priced)
            .flat_map(|s| [bought(view, &cost, s), rates(view, &cost, s)])
            .collect(),
        figures: steps().filter_map(|s| figure(view, &cost, s)).collect(),
        notes: cost.notes.clone(),
    }
}

/// The target with the most operations per dollar; sustainable operations if they were measured.
fn headline(view: &View<'_>, cost: &Cost, step: &str) -> Option<String> {
    let lines = || {
        let all = cost.lines.iter();
        all.filter(move |l| l.step == step && l.mode == Mode::Required)
    };
    let best = |of: fn(&CostLine) -> Option<f64>| {
        lines()
            .filter_map(|l| Some((of(l)?, l)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (value, line, word) = match best(|l| l.sustainable_per_dollar) {
        Some((value, line)) => (value, line, "sustained"),
        None => {
            let (value, line) = best(|l| l.rate_per_dollar)?;
            let mut plans = view.run.manifest.plan.steps.iter();
            match plans.any(|s| s.name == step && s.held()) {
                true => (value, line, "at a rate that was asked for and not kept"),
                false => (value, line, "at the highest rate of a closed loop"),
            }
        }
    };
    Some(format!(
        "{step}: {} on {} does the most for its money, {} {}/s {word} for a dollar a month \
         ({} for a dollar of storage alone).",
        line.target,
        line.volume,
        format::number(value),
        line.operation,
        format::maybe(line.rate_per_storage_dollar),
    ))
}

/// Which rates were sustained, and which not.
fn sustained(view: &View<'_>) -> Option<Table> {
    let limit = view.run.manifest.plan.p99_ms;
    let mut table = Table::new(
        "sustained",
        format!(
            "Open loops: a rate is kept with a p99 of at most {limit} ms and no stall (below {} a \
             second stalls are not held against it)",
            analysis::STALLS_FROM
        ),
    )
    .texts(&["target", "step"])
    .numbers(&["asked for"])
    .texts(&["unit"])
    .numbers(&["p99 ms", "stalls s"])
    .texts(&["kept", "because"]);
    for one in analysis::sustained(view.run, limit) {
        let color = view.color_of(&one.target).unwrap_or(0);
        for tried in &one.tried {
            table.push(vec![
                Cell::target(&one.target, color),
                Cell::text(&tried.step),
                Cell::number(tried.rate),
                Cell::text(one.unit()),
                Cell::number(tried.p99_ms),
                Cell::num(tried.stall_seconds.to_string()),
                Cell::text(if tried.fault.is_none() { "yes" } else { "no" }),
                Cell::text(tried.fault.clone().unwrap_or_default()),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The unit of the rates of a step.
fn unit(view: &View<'_>, step: &str) -> &'static str {
    let found = view.steps.iter().find(|s| s.plan.name == step);
    found.map_or(Operation::ROW.per_second, StepView::unit)
}

/// What is bought, by target and kind of volume.
fn bought(view: &View<'_>, cost: &Cost, step: &str) -> Table {
    let mut table = Table::new(
        format!("cost-{}", super::model::anchor(step)),
        format!("{step}: dollars a month"),
    )
    .texts(&["target", "volume", "I/O paid for"])
    .numbers(&["GB", "IOPS", "MB/s", "storage $", "total $", "wear $"])
    .texts(&["not priced because"]);
    for line in cost.lines.iter().filter(|l| l.step == step) {
        let mut row = names(view, line);
        let numbers = [
            line.gb,
            line.required.map(|r| r.iops),
            line.required.map(|r| r.mb),
            line.storage,
            line.total,
            line.wear,
        ];
        row.extend(numbers.map(|v| Cell::num(format::maybe(v))));
        row.push(Cell::text(line.reason.clone().unwrap_or_default()));
        table.push(row);
    }
    table
}

/// What the money buys, for the same lines.
fn rates(view: &View<'_>, cost: &Cost, step: &str) -> Table {
    let unit = unit(view, step);
    let mut table = Table::new(
        format!("cost-rates-{}", super::model::anchor(step)),
        format!("{step}: rates for a dollar a month"),
    )
    .texts(&["target", "volume", "I/O paid for"])
    .numbers(&[
        unit,
        &format!("sustained {unit}"),
        &format!("{unit} per $"),
        "per storage $",
        "sustained per $",
        "$ per million",
    ])
    .texts(&["no sustained rate because"]);
    // If nothing was repeated in an open loop, one note says so for all.
    let repeated = cost.repeated();
    for line in cost.lines.iter().filter(|l| l.step == step) {
        let mut row = names(view, line);
        row.extend(rate_cells(line));
        let why = line.sustainable_reason.clone().filter(|_| repeated);
        row.push(Cell::text(why.unwrap_or_default()));
        table.push(row);
    }
    table
}

/// The cells that name a line.
fn names(view: &View<'_>, line: &CostLine) -> Vec<Cell> {
    let color = view.color_of(&line.target).unwrap_or(0);
    let volume = match line.volumes {
        Some(n) if n > 1 => format!("{n} x {}", line.volume),
        _ => line.volume.clone(),
    };
    vec![
        Cell::target(&line.target, color),
        Cell::text(volume),
        Cell::text(line.mode.name()),
    ]
}

fn rate_cells(line: &CostLine) -> [Cell; 6] {
    let number = |v: Option<f64>| Cell::num(format::maybe(v));
    let between = |cell: Cell, by: f64| match line.rate_interval {
        Some((low, high)) => cell.sub(format!(
            "{} to {}",
            format::number(low / by),
            format::number(high / by)
        )),
        None => cell,
    };
    let per_dollar = number(line.rate_per_dollar);
    [
        between(number(Some(line.rate)), 1.0),
        number(line.sustainable),
        match line.total.filter(|total| *total > 0.0) {
            Some(total) => between(per_dollar, total),
            None => per_dollar,
        },
        number(line.rate_per_storage_dollar),
        number(line.sustainable_per_dollar),
        number(line.dollars_per_million),
    ]
}

/// Dollars per month against the rate, one point per target and volume; the line connects the
/// points that no cheaper point exceeds.
fn figure(view: &View<'_>, cost: &Cost, step: &str) -> Option<Figure> {
    let lines = cost.lines.iter();
    let lines = lines.filter(|l| l.step == step && l.mode == Mode::Required);
    let points: Vec<svg::Point> = lines
        .filter_map(|line| {
            let color = view.color_of(&line.target)?;
            let rate = line.sustainable.unwrap_or(line.rate);
            Some(svg::Point {
                x: line.total?,
                y: rate,
                color,
                label: format!("{} {}", line.target, line.volume),
                hollow: line.sustainable.is_none(),
            })
        })
        .collect();
    if points.is_empty() {
        return None;
    }
    let chart = svg::Scatter {
        label: format!("dollars a month against rate, step {step}"),
        x_label: "dollars a month".to_owned(),
        y_label: unit(view, step).to_owned(),
        x_log: false,
        front: true,
        points,
    };
    Some(Figure {
        id: format!("cost-plot-{}", super::model::anchor(step)),
        title: format!("{step}: total dollars against rate"),
        note: "Required input and output. Hollow: not a sustained rate, but the highest of a \
               closed loop, or one that was asked for and not kept. The line joins what nothing \
               cheaper outdoes."
            .to_owned(),
        kind: String::new(),
        panel: String::new(),
        drawing: chart.render(),
        wide: false,
    })
}

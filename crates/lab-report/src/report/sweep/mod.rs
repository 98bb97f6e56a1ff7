//! The page of a sweep: what the series of rates show, the matrix of rates, heat maps, curves and
//! costs, with links to the report of each run.

mod figures;

use minijinja::value::Serde;
use serde::Serialize;

use super::plots::Figure;
use super::tables::{Cell, Table};
use super::{CSS, ReportError, svg, templates};
use crate::format;
use crate::record::{SweepAxis, SweepCell, SweepRecord};
use crate::sweep::{Grid, Point, Series, StepGrid};

#[derive(Serialize)]
struct Finding {
    word: &'static str,
    class: &'static str,
    subject: String,
    text: String,
}

#[derive(Serialize)]
struct StepPart {
    id: String,
    name: String,
    about: String,
    note: String,
    rates: Table,
    costs: Table,
    figures: Vec<Figure>,
}

#[derive(Serialize)]
struct Page<'a> {
    version: &'static str,
    experiment: &'a str,
    axes: &'a [SweepAxis],
    targets: &'a [String],
    preset: String,
    repeats: String,
    headline: String,
    warnings: Vec<String>,
    findings: Vec<Finding>,
    values: Table,
    cells: Table,
    steps: Vec<StepPart>,
    prices: &'a str,
    css: &'static str,
}

/// Make the page of a sweep.
///
/// # Errors
/// As [`super::render`].
pub fn sweep(record: &SweepRecord) -> Result<String, ReportError> {
    let grid = Grid::of(record);
    let sweep = &record.sweep;
    let plan = sweep.cells.first().map(|cell| &cell.plan);
    let repeats = plan.map_or(0, |plan| plan.repeats);
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        experiment: &sweep.experiment,
        axes: &sweep.axes,
        targets: &sweep.targets,
        preset: plan.map_or(String::new(), |plan| plan.preset.to_string()),
        repeats: match repeats {
            1 => "1 repeat".to_owned(),
            n => format!("{n} repeats"),
        },
        headline: headline(record, &grid),
        warnings: warnings(record),
        findings: findings(record, &grid),
        values: values(&sweep.axes),
        cells: cells(record),
        steps: grid.steps.iter().map(|step| part(record, step)).collect(),
        prices: &grid.prices,
        css: CSS,
    };
    let template = templates()?;
    let page = template.get_template("sweep.html")?.render(Serde(&page))?;
    Ok(page)
}

fn headline(record: &SweepRecord, grid: &Grid) -> String {
    let names: Vec<&str> = record.sweep.axes.iter().map(|a| a.name.as_str()).collect();
    let subject = format!("{} by {}", record.sweep.experiment, names.join(" and "));
    let all: Vec<&Series> = grid.steps.iter().flat_map(|step| &step.series).collect();
    let count = |word: &str| all.iter().filter(|series| series.word == word).count();
    let words = [
        ("plateau", "with a plateau"),
        ("flat", "flat"),
        ("peak", "with a peak"),
        ("rising", "still rising"),
        ("inconclusive", "inconclusive"),
    ];
    let found: Vec<String> = words
        .iter()
        .filter(|(word, _)| 0 < count(word))
        .map(|(word, name)| format!("{} {name}", count(word)))
        .collect();
    match all.len() {
        0 => subject,
        _ if count("inconclusive") == all.len() => format!("{subject}: inconclusive"),
        n => format!("{subject}: of {n} series {}", found.join(", ")),
    }
}

/// What every reader must know: missing runs, limits that are not in force, no calibration.
fn warnings(record: &SweepRecord) -> Vec<String> {
    let mut warnings = Vec::new();
    let runs = || record.runs.iter().filter_map(|run| run.as_ref().ok());
    let (all, done) = (record.runs.len(), runs().count());
    if done < all {
        warnings.push(format!("{} of {all} runs have no result", all - done));
    }
    let unfinished = runs().filter(|run| !run.summary.complete).count();
    if 0 < unfinished {
        warnings.push(format!("{unfinished} runs are not complete"));
    }
    let invalid = runs().filter(|run| !run.summary.valid).count();
    if 0 < invalid {
        warnings.push(format!("{invalid} runs have invalid results"));
    }
    let uncapped = |run: &&crate::record::RunRecord| {
        let mut steps = run.steps.iter().filter(|step| step.summary.is_some());
        steps.any(|step| !step.envelope.enforced)
    };
    let uncapped = runs().filter(uncapped).count();
    if 0 < uncapped {
        warnings.push(format!(
            "limits are not in force in {uncapped} runs: see their reports"
        ));
    }
    if runs().any(|run| run.noise.is_empty()) {
        warnings.push(
            "this host is not calibrated: a noise floor of 2 % is assumed (measure it with \
             `romanesco lab calibrate`)"
                .to_owned(),
        );
    }
    warnings
}

fn findings(record: &SweepRecord, grid: &Grid) -> Vec<Finding> {
    let found = grid.findings(record).into_iter();
    let finding = |(series, subject): (&Series, String)| Finding {
        word: series.word,
        class: match series.word {
            "plateau" | "flat" => "good",
            "inconclusive" => "warn",
            _ => "",
        },
        subject,
        text: series.text.clone(),
    };
    found.map(finding).collect()
}

/// The values of each setting, with the limits of named volumes.
fn values(axes: &[SweepAxis]) -> Table {
    let mut table = Table::new("sweep-values", "Settings and their values")
        .texts(&["setting", "value"])
        .numbers(&["volumes", "operations/s", "MB/s"])
        .texts(&["prices"]);
    for axis in axes {
        for value in &axis.values {
            let volume = value.volume.as_ref();
            let number = |n: Option<f64>| n.map_or(String::new(), format::number);
            let mb = volume.map(|v| v.bytes_per_second as f64 / 1e6);
            table.push(vec![
                Cell::text(&axis.name),
                Cell::text(&value.text),
                Cell::num(volume.map_or(String::new(), |v| v.volumes.to_string())),
                Cell::num(number(volume.map(|v| v.iops as f64))),
                Cell::num(number(mb)),
                Cell::text(volume.map_or(String::new(), |v| v.prices.clone())),
            ]);
        }
    }
    if axes
        .iter()
        .flat_map(|a| &a.values)
        .all(|v| v.volume.is_none())
    {
        table.columns.truncate(2);
        table.rows.iter_mut().for_each(|row| row.truncate(2));
    }
    table
}

/// The columns of the swept settings.
fn axis_columns(table: Table, axes: &[SweepAxis]) -> Table {
    let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    table.texts(&names)
}

/// The values of a cell, the first one a link to its report if there is one.
fn axis_cells(record: &SweepRecord, at: usize, cell: &SweepCell) -> Vec<Cell> {
    let texts = record.sweep.texts(cell);
    let mut cells: Vec<Cell> = texts
        .into_iter()
        .map(|t| Cell::text(t).class("short"))
        .collect();
    let has_run = record.runs.get(at).is_some_and(Result::is_ok);
    if let Some(first) = cells.first_mut().filter(|_| has_run) {
        first.href = format!("{}/report.html", cell.directory);
    }
    cells
}

/// The state of each run.
fn cells(record: &SweepRecord) -> Table {
    let table = Table::new(
        "sweep-cells",
        "Runs: each value leads to the report of its run",
    );
    let mut table = axis_columns(table, &record.sweep.axes).texts(&["state", "directory"]);
    for (at, (cell, run)) in record.sweep.cells.iter().zip(&record.runs).enumerate() {
        let state = match run {
            Err(why) => why.clone(),
            Ok(run) if !run.summary.valid => "invalid".to_owned(),
            Ok(run) if !run.summary.complete => "not complete".to_owned(),
            Ok(_) => "valid".to_owned(),
        };
        let mut row = axis_cells(record, at, cell);
        row.push(Cell::text(state));
        row.push(Cell::text(&cell.directory).class("code"));
        table.push(row);
    }
    table
}

fn part(record: &SweepRecord, step: &StepGrid) -> StepPart {
    let rows = step.rows.map(|rows| {
        format!(
            "Time stopped a load: all rates are over the first {} rows, the most that every repeat \
             reached.",
            format::count(rows)
        )
    });
    StepPart {
        id: format!("step-{}", super::model::anchor(&step.name)),
        name: step.name.clone(),
        about: step.about.clone(),
        note: rows.unwrap_or_default(),
        rates: rates(record, step),
        costs: costs(record, step),
        figures: figures::figures(record, step),
    }
}

fn rates(record: &SweepRecord, step: &StepGrid) -> Table {
    let sweep = &record.sweep;
    let caption = format!(
        "{}: {}, with the 95 % interval of 3 repeats or more",
        step.name, step.unit
    );
    let id = format!("rates-{}", super::model::anchor(&step.name));
    let targets: Vec<&str> = sweep.targets.iter().map(String::as_str).collect();
    let mut table = axis_columns(Table::new(id, caption), &sweep.axes).numbers(&targets);
    "swept".clone_into(&mut table.class);
    for (at, cell) in sweep.cells.iter().enumerate() {
        let mut row = axis_cells(record, at, cell);
        let points = step.points.iter().map(|points| points.get(at));
        row.extend(points.map(|point| point.map_or_else(Cell::default, rate_cell)));
        table.push(row);
    }
    table
}

fn rate_cell(point: &Point) -> Cell {
    let Some(rate) = point.rate else {
        let why = point.fault.clone().unwrap_or_default();
        return Cell::num(format::MISSING).sub(why);
    };
    let mut under = match point.between {
        Some(ends) => ends.map(format::number).join(" \u{2013} "),
        None if point.repeats == 1 => "1 repeat".to_owned(),
        None => format!("{} repeats", point.repeats),
    };
    if point.disturbed.is_some() {
        under.push_str(", disturbed");
    }
    Cell::number(rate).sub(under)
}

fn costs(record: &SweepRecord, step: &StepGrid) -> Table {
    let sweep = &record.sweep;
    let id = format!("costs-{}", super::model::anchor(&step.name));
    let caption = format!(
        "{}: cost, a month and for each of the {}",
        step.name, step.operation
    );
    let table = axis_columns(Table::new(id, caption), &sweep.axes);
    let mut table = table.texts(&["target", "volume"]).numbers(&[
        "storage $",
        "total $",
        "$ per million",
        "p99 ms",
        "CPU us",
        "device KB",
    ]);
    "swept".clone_into(&mut table.class);
    for (at, cell) in sweep.cells.iter().enumerate() {
        for (target, points) in step.points.iter().enumerate() {
            let Some(point) = points.get(at).filter(|point| point.rate.is_some()) else {
                continue;
            };
            let name = sweep.targets.get(target).map_or("", String::as_str);
            let cost = &point.cost;
            let mut row = axis_cells(record, at, cell);
            row.push(Cell::target(name, svg::color(target)));
            let volume = Cell::text(&cost.volume);
            row.push(match &cost.reason {
                Some(why) => volume.sub(why),
                None => volume,
            });
            let numbers = [cost.storage, cost.total, cost.per_million];
            let used = [
                point.p99_ms,
                point.cpu_us,
                point.device_bytes.map(|b| b / 1e3),
            ];
            let all = numbers.into_iter().chain(used);
            row.extend(all.map(|number| Cell::num(format::maybe(number))));
            table.push(row);
        }
    }
    table
}

#[cfg(test)]
mod tests;

//! Rates and costs of every step, target and cell.

use serde::Serialize;

use super::cost::{CellCost, costs};
use super::series::{Series, series};
use crate::analysis::{Clock, Rates, mean_between};
use crate::cost::Cost;
use crate::record::{
    Ended, Main, Operation, RunRecord, StepPlan, StepSummary, SweepRecord, TargetStepSummary,
};

/// One target in one step of one cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Point {
    /// The index of its cell.
    pub cell: usize,
    /// The name of the step in the run of the cell.
    pub step: String,
    /// Median rate over the valid repeats.
    pub rate: Option<f64>,
    /// The 95 % interval of the mean rate, with 3 repeats or more.
    pub between: Option<[f64; 2]>,
    /// Valid repeats.
    pub repeats: usize,
    /// 99th percentile of the latency in milliseconds.
    pub p99_ms: Option<f64>,
    /// CPU time for each operation in microseconds.
    pub cpu_us: Option<f64>,
    /// Bytes of the device, read and written, for each operation.
    pub device_bytes: Option<f64>,
    /// The price of its storage and of its operations.
    pub cost: CellCost,
    /// Why there is no rate, or why it may not be used.
    pub fault: Option<String>,
    /// Why other programs disturbed a repeat.
    pub disturbed: Option<String>,
    /// The rate of each valid repeat.
    #[serde(skip)]
    pub(crate) rates: Rates,
}

/// One step of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct StepGrid {
    /// Its name, the same in all runs.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// The unit of its rates.
    pub unit: String,
    /// Its main operation, in the plural.
    pub operation: String,
    /// The rows over which rates are compared, if time stopped a load (S1).
    pub rows: Option<u64>,
    /// For each target the points of all cells.
    pub points: Vec<Vec<Point>>,
    /// What the series of the ordered axes show.
    pub series: Vec<Series>,
}

/// A sweep as a grid.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// The steps that have a result in any cell.
    pub steps: Vec<StepGrid>,
    /// Prices and their date, and how cells are priced.
    pub prices: String,
}

/// The run of a cell with its price.
struct Cell<'a> {
    at: usize,
    run: Result<(&'a RunRecord, Cost), &'a str>,
}

impl Grid {
    /// The grid of a sweep.
    #[must_use]
    pub fn of(record: &SweepRecord) -> Grid {
        let cells: Vec<Cell<'_>> = (record.runs.iter().enumerate())
            .map(|(at, run)| Cell {
                at,
                run: match run {
                    Ok(run) => Ok((run, costs(run))),
                    Err(why) => Err(why.as_str()),
                },
            })
            .collect();
        let mut steps: Vec<StepGrid> = Vec::new();
        let plans = record.sweep.cells.iter().flat_map(|cell| &cell.plan.steps);
        for plan in plans {
            let name = record.sweep.step_name(plan);
            if steps.iter().all(|step| step.name != name) {
                steps.push(step(record, &cells, plan, name));
            }
        }
        steps.retain(|step| step.points.iter().flatten().any(|p| p.rate.is_some()));
        let noise = record.runs.iter().find_map(|run| run.as_ref().ok());
        let noise = noise.map_or(&[][..], |run| &run.noise);
        let all: Vec<Vec<Series>> = series(&record.sweep, &steps, noise);
        for (step, series) in steps.iter_mut().zip(all) {
            step.series = series;
        }
        Grid {
            prices: super::cost::prices_text(record),
            steps,
        }
    }
}

/// Findings with the same text are one; this number of their subjects is listed.
const SUBJECTS_MAX: usize = 4;

impl Grid {
    /// The series with different findings, each with the targets and steps that share it.
    pub(crate) fn findings(&self, record: &SweepRecord) -> Vec<(&Series, String)> {
        let mut all: Vec<(&Series, Vec<String>)> = Vec::new();
        for step in &self.steps {
            for series in &step.series {
                let target = record.sweep.targets.get(series.target);
                let target = target.map_or("", String::as_str);
                let subject = match series.at.as_str() {
                    "" => format!("{target}, {}", step.name),
                    at => format!("{target}, {} at {at}", step.name),
                };
                match all.iter_mut().find(|(known, _)| known.text == series.text) {
                    Some((_, subjects)) => subjects.push(subject),
                    None => all.push((series, vec![subject])),
                }
            }
        }
        let listed = |subjects: Vec<String>| {
            let more = subjects.len().saturating_sub(SUBJECTS_MAX);
            let first: Vec<String> = subjects.into_iter().take(SUBJECTS_MAX).collect();
            match more {
                0 => first.join("; "),
                n => format!("{}; and {n} more", first.join("; ")),
            }
        };
        all.into_iter()
            .map(|(series, subjects)| (series, listed(subjects)))
            .collect()
    }
}

fn step(record: &SweepRecord, cells: &[Cell<'_>], plan: &StepPlan, name: String) -> StepGrid {
    let sweep = &record.sweep;
    let of = |cell: &Cell<'_>, target: usize| point(record, cell, target, &name);
    let targets = 0..sweep.targets.len();
    let points: Vec<Vec<Point>> = targets
        .map(|target| cells.iter().map(|cell| of(cell, target)).collect())
        .collect();
    let swept_rows = sweep.axes.iter().any(|axis| axis.name == "rows");
    let mut grid = StepGrid {
        about: plan.about.clone(),
        unit: Operation::ROW.per_second.to_owned(),
        operation: Operation::ROW.many.to_owned(),
        rows: None,
        points,
        series: Vec::new(),
        name,
    };
    let done = || summaries(cells, &grid);
    let main = done().next().map_or(Main::Rows, |s| s.main);
    let operation = Operation::of(&sweep.experiment, plan, main);
    let cut = done().any(|s| s.ended == Ended::Time) && main == Main::Rows && !swept_rows;
    if cut {
        over_equal_rows(cells, &mut grid);
    }
    operation.per_second.clone_into(&mut grid.unit);
    operation.many.clone_into(&mut grid.operation);
    grid
}

/// The valid summaries of a step in all cells.
fn summaries<'a>(
    cells: &'a [Cell<'_>],
    grid: &'a StepGrid,
) -> impl Iterator<Item = &'a StepSummary> {
    let points = grid.points.iter().flatten();
    points.flat_map(move |point| {
        let cell = cells
            .get(point.cell)
            .and_then(|cell| cell.run.as_ref().ok());
        let steps = cell.into_iter().flat_map(|(run, _)| &run.steps);
        let summaries = steps.filter_map(|record| record.summary.as_ref());
        summaries.filter(move |s| s.step == point.step && s.valid && s.unsupported.is_none())
    })
}

fn point(record: &SweepRecord, cell: &Cell<'_>, target: usize, name: &str) -> Point {
    let nothing = |why: &str| Point {
        cell: cell.at,
        fault: Some(why.to_owned()),
        ..Point::default()
    };
    let (run, cost) = match &cell.run {
        Ok(run) => run,
        Err(why) => return nothing(why),
    };
    let plan = &run.manifest.plan;
    let step = plan
        .steps
        .iter()
        .find(|s| record.sweep.step_name(s) == name);
    let (Some(step), Some(spec)) = (step, plan.targets.get(target)) else {
        return nothing("its run has no such step");
    };
    let rates = Rates::of(run, &spec.name, &step.name);
    let results = run.summary.results.iter();
    let result = { results }.find(|r| r.target == spec.name && r.step == step.name);
    let metric = |name: &str| metric(result, name);
    let reads = metric("device_read_bytes_per_row");
    let writes = metric("device_write_bytes_per_row");
    let rate = rates.median();
    Point {
        cell: cell.at,
        step: step.name.clone(),
        rate,
        between: rate.and(mean_between(&rates.repeats)),
        repeats: rates.repeats.len(),
        p99_ms: metric("latency_p99_ms").or_else(|| metric("query_p99_ms")),
        cpu_us: metric("cpu_us_per_row"),
        device_bytes: match (reads, writes) {
            (None, None) => None,
            (reads, writes) => Some(reads.unwrap_or(0.0) + writes.unwrap_or(0.0)),
        },
        cost: CellCost::of(run, cost, &spec.name, &step.name),
        fault: rates.fault.clone(),
        disturbed: rates.disturbed.clone(),
        rates,
    }
}

fn metric(result: Option<&TargetStepSummary>, name: &str) -> Option<f64> {
    result
        .filter(|r| r.valid)?
        .metrics
        .get(name)
        .copied()
        .flatten()
}

/// Replace the rates by those over the most rows that every valid repeat reaches (S1).
fn over_equal_rows(cells: &[Cell<'_>], grid: &mut StepGrid) {
    let clocks = |point: &Point| -> Vec<Clock> {
        let cell = cells
            .get(point.cell)
            .and_then(|cell| cell.run.as_ref().ok());
        let Some((run, _)) = cell.filter(|_| point.fault.is_none()) else {
            return Vec::new();
        };
        let target = target_of(grid, point).and_then(|at| run.manifest.plan.targets.get(at));
        let name = target.map_or("", |t| t.name.as_str());
        let own = run.steps.iter().filter(|record| {
            let summary = record.summary.as_ref();
            summary.is_some_and(|s| s.target == name && s.step == point.step && s.valid)
        });
        own.map(|record| Clock::of(&record.series)).collect()
    };
    let all: Vec<Vec<Vec<Clock>>> = (grid.points.iter())
        .map(|points| points.iter().map(&clocks).collect())
        .collect();
    let rows = all.iter().flatten().flatten().map(Clock::rows).min();
    let Some(rows) = rows.filter(|rows| 0 < *rows) else {
        return;
    };
    let rate = |clock: &Clock| {
        let seconds = clock.at(rows as f64).filter(|seconds| 0.0 < *seconds)?;
        Some(rows as f64 / seconds)
    };
    for (points, clocks) in grid.points.iter_mut().zip(&all) {
        for (point, clocks) in points.iter_mut().zip(clocks) {
            let rates: Option<Vec<f64>> = clocks.iter().map(&rate).collect();
            if let Some(rates) = rates.filter(|rates| !rates.is_empty()) {
                point.rates.repeats = rates;
                point.rate = point.rates.median();
                point.between = mean_between(&point.rates.repeats);
            }
        }
    }
    grid.rows = Some(rows);
}

/// The target that a point belongs to.
fn target_of(grid: &StepGrid, point: &Point) -> Option<usize> {
    let is_in = |points: &Vec<Point>| points.iter().any(|p| std::ptr::eq(p, point));
    grid.points.iter().position(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::SeriesRow;

    /// A sweep of two caches, three repeats each at these rates.
    fn swept(rates: [f64; 2]) -> SweepRecord {
        let run = |rate: f64| {
            let steps = (1..=3).map(|repeat| fixture::step("lmdb", repeat, rate));
            Ok(fixture::run("cell", &["lmdb"], 3, steps.collect()))
        };
        SweepRecord {
            sweep: fixture::sweep(&[8.0, 16.0]),
            runs: rates.map(run).into(),
        }
    }

    #[test]
    fn every_cell_has_its_rate_or_the_reason() {
        let mut record = swept([100.0, 200.0]);
        let grid = Grid::of(&record);
        assert_eq!(grid.steps.len(), 1);
        let points = &grid.steps[0].points[0];
        assert_eq!((points[0].rate, points[1].rate), (Some(100.0), Some(200.0)));
        assert_eq!((points[0].repeats, grid.steps[0].rows), (3, None));
        assert!(points[1].between.is_some() && points[1].cpu_us.is_some());
        record.runs[1] = Err("not run yet".to_owned());
        let grid = Grid::of(&record);
        let point = &grid.steps[0].points[0][1];
        assert_eq!(
            (point.rate, point.fault.as_deref()),
            (None, Some("not run yet")),
            "S3: no rate, and the reason"
        );
    }

    #[test]
    fn rates_of_loads_stopped_by_time_are_over_equal_rows() {
        let mut record = swept([1.0, 1.0]);
        for (run, rates) in record
            .runs
            .iter_mut()
            .zip([[300, 100, 100], [300, 300, 300]])
        {
            for step in &mut run.as_mut().unwrap().steps {
                let mut rows = 0;
                let row = |(second, rate): (usize, u64)| {
                    rows += rate;
                    SeriesRow {
                        t: (second + 1) as f64,
                        rows,
                        ..SeriesRow::default()
                    }
                };
                step.series = rates.into_iter().enumerate().map(row).collect();
                let summary = step.summary.as_mut().unwrap();
                summary.ended = Ended::Time;
            }
        }
        let grid = Grid::of(&record);
        let step = &grid.steps[0];
        // 500 rows in 3 s against 500 in 5/3 s.
        assert_eq!(step.rows, Some(500), "S1");
        let rate = |cell: usize| step.points[0][cell].rate.unwrap();
        assert!((rate(0) - 500.0 / 3.0).abs() < 1e-6, "S1: {}", rate(0));
        assert!((rate(1) - 300.0).abs() < 1e-6, "S1: {}", rate(1));
        "rows".clone_into(&mut record.sweep.axes[0].name);
        assert_eq!(Grid::of(&record).steps[0].rows, None, "S1: rows are swept");
    }
}

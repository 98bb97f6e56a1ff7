//! A sweep for other tools: a line for each target, step and cell.

use serde_json::json;

use super::Format;
use super::table::escape;
use crate::error::{Error, Result};
use crate::record::{SCHEMA, SweepRecord};
use crate::sweep::{Grid, Point, StepGrid};

/// The columns after those of the settings.
const COLUMNS: [&str; 17] = [
    "target",
    "step",
    "unit",
    "rows_compared",
    "rate",
    "rate_low",
    "rate_high",
    "repeats",
    "p99_ms",
    "cpu_us",
    "device_bytes",
    "volume",
    "storage_dollars",
    "total_dollars",
    "dollars_per_million",
    "fault",
    "directory",
];

/// The sweep in a format.
///
/// # Errors
/// The formats of single runs are refused by name.
pub fn export_sweep(record: &SweepRecord, format: Format) -> Result<String> {
    let grid = Grid::of(record);
    let mut text = match format {
        Format::Csv => separated(record, &grid, b',')?,
        Format::Tsv => separated(record, &grid, b'\t')?,
        Format::Markdown => markdown(record, &grid),
        Format::Json => {
            let all = json!({ "schema": SCHEMA, "sweep": record.sweep, "grid": grid });
            serde_json::to_string_pretty(&all)
                .map_err(|e| Error::environment(format!("cannot export the sweep: {e}")))?
        }
        Format::Hgrm | Format::Otava => {
            let first = record
                .sweep
                .cells
                .first()
                .map_or("", |c| c.directory.as_str());
            return Err(Error::usage(format!(
                "--format {format} is for single runs: name the directory of one of the sweep's \
                 runs, such as {first}; a sweep has json, csv, tsv and md"
            )));
        }
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn separated(record: &SweepRecord, grid: &Grid, delimiter: u8) -> Result<String> {
    let mut table = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    let axes = record.sweep.axes.iter().map(|axis| axis.name.as_str());
    let failed = |e: csv::Error| Error::environment(format!("cannot export the sweep: {e}"));
    let header: Vec<&str> = axes.chain(COLUMNS).collect();
    table.write_record(&header).map_err(failed)?;
    for step in &grid.steps {
        for (target, points) in step.points.iter().enumerate() {
            for point in points {
                let row = line(record, step, target, point);
                table.write_record(&row).map_err(failed)?;
            }
        }
    }
    let bytes = table.into_inner();
    let bytes = bytes.map_err(|e| Error::environment(format!("cannot export the sweep: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn line(record: &SweepRecord, step: &StepGrid, target: usize, point: &Point) -> Vec<String> {
    let number = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.4}"));
    let cell = record.sweep.cells.get(point.cell);
    let values = cell
        .map(|cell| record.sweep.texts(cell))
        .unwrap_or_default();
    let mut row: Vec<String> = values.into_iter().map(str::to_owned).collect();
    let cost = &point.cost;
    row.extend([
        record
            .sweep
            .targets
            .get(target)
            .cloned()
            .unwrap_or_default(),
        step.name.clone(),
        step.unit.clone(),
        step.rows.map_or(String::new(), |rows| rows.to_string()),
        number(point.rate),
        number(point.between.map(|b| b[0])),
        number(point.between.map(|b| b[1])),
        point.repeats.to_string(),
        number(point.p99_ms),
        number(point.cpu_us),
        number(point.device_bytes),
        cost.volume.clone(),
        number(cost.storage),
        number(cost.total),
        number(cost.per_million),
        point.fault.clone().unwrap_or_default(),
        cell.map_or(String::new(), |cell| cell.directory.clone()),
    ]);
    row
}

fn markdown(record: &SweepRecord, grid: &Grid) -> String {
    let mut text = String::new();
    for step in &grid.steps {
        text.push_str(&format!("### {} ({})\n\n|", escape(&step.name), step.unit));
        let axes = record.sweep.axes.iter().map(|axis| &axis.name);
        let heads: Vec<String> = axes
            .chain(&record.sweep.targets)
            .map(|h| escape(h))
            .collect();
        text.push_str(&format!(" {} |\n|", heads.join(" | ")));
        text.push_str(&"---|".repeat(record.sweep.axes.len()));
        text.push_str(&"---:|".repeat(record.sweep.targets.len()));
        text.push('\n');
        for (at, cell) in record.sweep.cells.iter().enumerate() {
            let values = record.sweep.texts(cell).into_iter().map(escape);
            let rates = step.points.iter().map(|points| {
                let rate = points.get(at).and_then(|point| point.rate);
                rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"))
            });
            let row: Vec<String> = values.chain(rates).collect();
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
        text.push('\n');
        for series in &step.series {
            let target = record.sweep.targets.get(series.target);
            let target = target.map_or("", String::as_str);
            let at = if series.at.is_empty() { "" } else { " at " };
            let subject = escape(&format!("{target}{at}{}", series.at));
            text.push_str(&format!("- {subject}: {}\n", escape(&series.text)));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn record() -> SweepRecord {
        let run = |rate: f64| {
            let steps = (1..=3).map(|repeat| fixture::step("lmdb", repeat, rate));
            Ok(fixture::run("cell", &["lmdb"], 3, steps.collect()))
        };
        SweepRecord {
            sweep: fixture::sweep(&[8.0, 16.0]),
            runs: vec![run(100.0), run(200.0)],
        }
    }

    #[test]
    fn every_cell_is_a_line() {
        let text = export_sweep(&record(), Format::Csv).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0][..3], ["cache", "target", "step"]);
        assert_eq!(
            lines[2][..6],
            ["16M", "lmdb", "load", "rows/s", "", "200.0000"]
        );
        assert_eq!(lines[2].last(), Some(&"cache-16M"));
        let markdown = export_sweep(&record(), Format::Markdown).unwrap();
        assert!(
            markdown.contains("| cache | lmdb |\n|---|---:|\n| 8M | 100.0 |"),
            "{markdown}"
        );
        assert!(
            markdown.contains("- lmdb: no plateau: cache 16M is still 2.00 times"),
            "{markdown}"
        );
        let json = export_sweep(&record(), Format::Json).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["grid"]["steps"][0]["points"][0][1]["rate"], 200.0);
        assert_eq!(json["sweep"]["axes"][0]["name"], "cache");
    }

    #[test]
    fn formats_of_single_runs_are_refused_with_one_to_name() {
        for format in [Format::Hgrm, Format::Otava] {
            let error = export_sweep(&record(), format).unwrap_err().message;
            assert!(
                error.contains("cache-8M") && error.contains("md"),
                "{error}"
            );
        }
    }
}

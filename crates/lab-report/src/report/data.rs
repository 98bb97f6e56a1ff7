//! The numbers inside the page: compact JSON columns, from which the browser draws, and from which
//! it makes the CSV and JSON files for download.
//!
//! Invariant: nothing in the text can end the script element it stands in: `<`, `>` and `&` are
//! written as JSON escapes. Above [`PLAIN_MAX`] the text is gzip in base64.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Number, Value, json};

use crate::record::SeriesRow;

use super::ReportError;
use super::model::{CellView, StepView, View};
use super::plots::{self, Knee, Panel, Spectrum};

/// Maximum bytes of JSON and drawings together for uncompressed JSON; beyond that the JSON is
/// compressed.
pub(crate) const PLAIN_MAX: usize = 1 << 20;

/// Maximum rows of one series in the page. A standard run of an hour fits; longer series are
/// thinned by groups of seconds, and the report says so.
pub(crate) const ROWS_MAX: usize = 4000;

/// Maximum rows of all series together, which keeps a report below 2 MB.
pub(crate) const ROWS_TOTAL_MAX: usize = 40_000;

/// The number columns of `series.csv`, in its order.
const COLUMNS: [&str; 22] = [
    "t",
    "rows",
    "rate",
    "query_rate",
    "errors",
    "p50_ms",
    "p99_ms",
    "max_ms",
    "read_ios",
    "write_ios",
    "read_bytes",
    "write_bytes",
    "cpu",
    "cpu_client",
    "switches",
    "rss",
    "cgroup_memory",
    "page_cache",
    "psi_io",
    "psi_memory",
    "file_bytes",
    "debt_bytes",
];

/// The text for the data element, and whether it is compressed.
pub(crate) struct Packed {
    pub(crate) text: String,
    pub(crate) gzip: bool,
}

/// The numbers of one step that the browser draws.
pub(crate) struct StepData {
    pub(crate) panels: Vec<Panel>,
    pub(crate) knees: Vec<Knee>,
    pub(crate) commits: Vec<Spectrum>,
    pub(crate) queries: Vec<Spectrum>,
    /// Whether rates are initially drawn on a logarithmic axis.
    pub(crate) log: bool,
}

/// Number of seconds combined into one row of the page; 1 if all rows fit.
pub(crate) fn grouping(view: &View<'_>) -> usize {
    let lengths = || {
        view.steps
            .iter()
            .flat_map(|s| &s.cells)
            .map(|c| c.record.series.len())
    };
    let longest = lengths().max().unwrap_or(0);
    let total: usize = lengths().sum();
    longest
        .div_ceil(ROWS_MAX)
        .max(total.div_ceil(ROWS_TOTAL_MAX))
        .max(1)
}

/// All numbers of the page.
pub(crate) fn document(view: &View<'_>, steps: &[StepData]) -> Result<Value, ReportError> {
    let group = grouping(view);
    let targets: Vec<Value> = view
        .targets
        .iter()
        .map(|t| json!({"name": t.name, "color": t.color}))
        .collect();
    let all: Vec<Value> = view
        .steps
        .iter()
        .zip(steps)
        .map(|(step, data)| step_value(step, data, group))
        .collect();
    Ok(json!({
        "run": view.run.manifest.run,
        "group": group,
        "cap": plots::memory_cap(view),
        "targets": targets,
        "steps": all,
        "summary": serde_json::to_value(&view.run.summary)?,
        "manifest": serde_json::to_value(&view.run.manifest)?,
        "targetRecords": serde_json::to_value(&view.run.targets)?,
    }))
}

fn step_value(step: &StepView<'_>, data: &StepData, group: usize) -> Value {
    let knees: Vec<Value> = data
        .knees
        .iter()
        .map(|k| {
            let column = |f: fn(&plots::KneePoint) -> f64| -> Vec<Value> {
                k.points.iter().map(|p| number(f(p))).collect()
            };
            json!({
                "target": k.target,
                "x": column(|p| p.rows),
                "y": column(|p| p.median),
                "low": column(|p| p.low),
                "high": column(|p| p.high),
            })
        })
        .collect();
    let spectra = |all: &[Spectrum]| -> Vec<Value> {
        all.iter()
            .map(|s| {
                let x: Vec<Value> = s.points.iter().map(|p| number(p.0)).collect();
                let y: Vec<Value> = s.points.iter().map(|p| number(p.1)).collect();
                json!({"target": s.target, "x": x, "y": y})
            })
            .collect()
    };
    json!({
        "name": step.plan.name,
        "id": step.id,
        "panels": data.panels,
        "log": data.log,
        "cells": step.cells.iter().map(|c| cell_value(c, group)).collect::<Vec<_>>(),
        "knee": knees,
        "spectrum": spectra(&data.commits),
        "queryspectrum": spectra(&data.queries),
    })
}

fn cell_value(cell: &CellView<'_>, group: usize) -> Value {
    let rows = thin(&cell.record.series, group);
    let mut columns = Map::new();
    for name in COLUMNS {
        let values: Vec<Value> = rows
            .iter()
            .map(|r| plots::value(r, name).map_or(Value::Null, |v| column_number(name, v)))
            .collect();
        if values.iter().any(|v| !v.is_null()) {
            columns.insert(name.to_owned(), Value::Array(values));
        }
    }
    for (name, of) in [
        (
            "phase",
            (|r: &SeriesRow| r.phase.clone()) as fn(&SeriesRow) -> String,
        ),
        ("activity", |r: &SeriesRow| r.activity.clone()),
    ] {
        columns.insert(name.to_owned(), runs(rows.iter().map(of)));
    }
    let stalls: Vec<Value> = cell
        .record
        .stalls
        .iter()
        .map(|s| json!([number(s.start), number(s.seconds)]))
        .collect();
    // Combined rows have no truncated last row.
    let whole = if group == 1 {
        cell.whole_seconds().count()
    } else {
        0
    };
    json!({
        "target": cell.target,
        "whole": whole,
        "repeat": cell.repeat,
        "shown": cell.shown,
        "valid": cell.summary.valid,
        "directory": cell.record.directory,
        "columns": columns,
        "stalls": stalls,
    })
}

/// A column of words in run-length encoding: `[[word, length], ...]`.
fn runs(words: impl Iterator<Item = String>) -> Value {
    let mut out: Vec<(String, u64)> = Vec::new();
    for word in words {
        match out.last_mut() {
            Some((last, count)) if *last == word => *count += 1,
            _ => out.push((word, 1)),
        }
    }
    json!(out)
}

/// Combine rows in groups: flows are averaged, states are those at the end, latencies the maximum.
fn thin(series: &[SeriesRow], group: usize) -> Vec<SeriesRow> {
    if group <= 1 {
        return series.to_vec();
    }
    series.chunks(group).filter_map(join).collect()
}

fn join(rows: &[SeriesRow]) -> Option<SeriesRow> {
    let mut out = rows.last()?.clone();
    let n = rows.len() as f64;
    let mean = |f: fn(&SeriesRow) -> f64| rows.iter().map(f).sum::<f64>() / n;
    let mean_of = |f: fn(&SeriesRow) -> Option<f64>| -> Option<f64> {
        let known: Vec<f64> = rows.iter().filter_map(f).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let mean_count = |f: fn(&SeriesRow) -> Option<u64>| -> Option<u64> {
        let known: Vec<u64> = rows.iter().filter_map(f).collect();
        let total: u64 = known.iter().sum();
        total.checked_div(known.len() as u64)
    };
    let most = |f: fn(&SeriesRow) -> Option<f64>| rows.iter().filter_map(f).reduce(f64::max);
    out.rate = mean(|r| r.rate);
    out.query_rate = mean(|r| r.query_rate);
    out.errors = rows.iter().map(|r| r.errors).sum();
    out.p50_ms = most(|r| r.p50_ms);
    out.p99_ms = most(|r| r.p99_ms);
    out.max_ms = most(|r| r.max_ms);
    out.read_ios = mean_count(|r| r.read_ios);
    out.write_ios = mean_count(|r| r.write_ios);
    out.read_bytes = mean_count(|r| r.read_bytes);
    out.write_bytes = mean_count(|r| r.write_bytes);
    out.switches = mean_count(|r| r.switches);
    out.cpu = mean_of(|r| r.cpu);
    out.cpu_client = mean_of(|r| r.cpu_client);
    out.psi_io = mean_of(|r| r.psi_io);
    out.psi_memory = mean_of(|r| r.psi_memory);
    Some(out)
}

/// A number of a column: row counts are exact, others have five significant digits.
fn column_number(column: &str, value: f64) -> Value {
    number(if column == "rows" {
        value
    } else {
        rounded(value)
    })
}

fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// A number with six significant digits; whole numbers are exact.
fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value.fract() == 0.0 && value.abs() < 9e15 {
        let text = format!("{value:.0}");
        return text
            .parse::<i64>()
            .map_or(Value::Null, |n| Value::Number(n.into()));
    }
    let short: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    Number::from_f64(short).map_or(Value::Null, Value::Number)
}

/// Makes a document ready to stand in a script element of a page with `drawings` bytes of drawings.
pub(crate) fn pack(document: &Value, drawings: usize) -> Result<Packed, ReportError> {
    let text = serde_json::to_string(document)?;
    if text.len() + drawings > PLAIN_MAX {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes())?;
        return Ok(Packed {
            text: STANDARD.encode(encoder.finish()?),
            gzip: true,
        });
    }
    Ok(Packed {
        text: harmless(&text),
        gzip: false,
    })
}

/// JSON without characters that have a meaning in HTML or end a line in old JavaScript.
fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn text_cannot_end_its_element_and_stays_the_same_json() {
        let value = json!({"name": "</script><!--\u{2028}&"});
        let packed = pack(&value, 0).unwrap();
        assert!(!packed.gzip && !packed.text.contains('<') && !packed.text.contains('&'));
        assert_eq!(serde_json::from_str::<Value>(&packed.text).unwrap(), value);
    }

    #[test]
    fn large_documents_are_compressed_and_come_back() {
        let value = json!(vec!["row"; PLAIN_MAX / 4]);
        let packed = pack(&value, 0).unwrap();
        assert!(packed.gzip && packed.text.len() < 100_000);
        let bytes = STANDARD.decode(packed.text).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn numbers_are_short_and_whole_ones_exact() {
        assert_eq!(number(12_345_678_901.0).to_string(), "12345678901");
        assert_eq!(number(1.0 / 3.0).to_string(), "0.333333");
        assert_eq!(number(f64::NAN), Value::Null);
        assert_eq!(
            column_number("write_bytes", 123_456_789.0).to_string(),
            "123460000"
        );
        assert_eq!(
            column_number("rows", 123_456_789.0).to_string(),
            "123456789"
        );
    }

    #[test]
    fn joined_rows_keep_means_ends_and_peaks() {
        let row = |t: f64, rate: f64, max: f64| SeriesRow {
            t,
            rate,
            max_ms: Some(max),
            write_bytes: Some(100),
            ..SeriesRow::default()
        };
        let joined = thin(
            &[row(1.0, 10.0, 5.0), row(2.0, 30.0, 2.0), row(3.0, 7.0, 1.0)],
            2,
        );
        assert_eq!(joined.len(), 2);
        assert_eq!(
            (joined[0].t, joined[0].rate, joined[0].max_ms),
            (2.0, 20.0, Some(5.0))
        );
        assert_eq!(joined[0].write_bytes, Some(100));
    }
}

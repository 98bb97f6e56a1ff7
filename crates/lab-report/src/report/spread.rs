//! Percentiles of latency, and how much rates vary: between the repeats and between the seconds.

use hdrhistogram::Histogram;

use crate::format;
use crate::record::Operation;

use super::model::{StepView, View};
use super::tables::{Cell, Table};

/// The percentiles shown, with the quantile of each.
const PERCENTILES: [(&str, f64); 4] = [
    ("p50 ms", 0.5),
    ("p95 ms", 0.95),
    ("p99 ms", 0.99),
    ("p99.9 ms", 0.999),
];

/// The table of a step: a row for each target, and one for the queries beside a load.
pub(crate) fn table(view: &View<'_>, step: &StepView<'_>) -> Option<Table> {
    let mut table = Table::new(
        format!("{}-spread", step.id),
        "Percentiles of latency over all repeats, and coefficients of variation of the rate",
    )
    .texts(&["target", "latency of a"])
    .numbers(&PERCENTILES.map(|p| p.0))
    .numbers(&["max ms", "rate", "CV of repeats", "CV of seconds"]);
    for target in 0..view.targets.len() {
        for queries in [false, true] {
            let histogram = step.histogram(target, queries);
            let main = !queries && step.cells.iter().any(|c| c.target == target);
            if histogram.is_none() && !main {
                continue;
            }
            let what = match step.operation {
                _ if queries => Operation::QUERY.one,
                Operation::ROW => "commit",
                operation => operation.one,
            };
            let mut row = vec![
                Cell::target(view.name(target), view.color(target)),
                Cell::text(what),
            ];
            row.extend(latencies(histogram.as_ref()));
            let rate = step.metric(target, "rate_mean").filter(|_| !queries);
            row.push(Cell::num(format::maybe(rate)));
            let (repeats, seconds) = rates(step, target);
            row.push(share(variation(&repeats).filter(|_| !queries)));
            row.push(share(variation(&seconds).filter(|_| !queries)));
            table.push(row);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn latencies(histogram: Option<&Histogram<u64>>) -> Vec<Cell> {
    let ms = |value: Option<u64>| match value {
        Some(micros) => Cell::number(micros as f64 / 1e3),
        None => Cell::num(format::MISSING),
    };
    let at = |quantile: f64| ms(histogram.map(|h| h.value_at_quantile(quantile)));
    let mut cells: Vec<Cell> = PERCENTILES.iter().map(|p| at(p.1)).collect();
    cells.push(ms(histogram.map(Histogram::max)));
    cells
}

/// The mean rates of the valid repeats, and the rates of the whole seconds of the shown one.
fn rates(step: &StepView<'_>, target: usize) -> (Vec<f64>, Vec<f64>) {
    let own = step.cells.iter().filter(|c| c.target == target);
    let valid = own.filter(|c| c.summary.valid);
    let repeats = valid.map(|c| c.summary.rate_mean).collect();
    let shown = step.shown();
    let shown = shown.iter().find(|c| c.target == target);
    let seconds = shown.map_or_else(Vec::new, |cell| {
        cell.whole_seconds().map(|row| step.rate(row)).collect()
    });
    (repeats, seconds)
}

fn share(value: Option<f64>) -> Cell {
    Cell::num(value.map_or(format::MISSING.to_owned(), format::percent))
}

/// The coefficient of variation: standard deviation by mean; `None` with fewer than two values or a
/// mean of 0.
fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 || mean <= 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (count - 1.0)).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Shape};

    #[test]
    fn variation_is_that_of_a_sample() {
        // Mean 10, sum of squares 8, 2 degrees of freedom.
        assert!((variation(&[8.0, 10.0, 12.0]).unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(variation(&[8.0]), None);
        assert_eq!(variation(&[0.0, 0.0]), None);
    }

    #[test]
    fn every_target_has_percentiles_and_variations() {
        let run = fixture::run(&Shape::default());
        let view = View::new(&run);
        let table = table(&view, &view.steps[0]).unwrap();
        let labels: Vec<&str> = table.columns.iter().map(|c| c.label.as_str()).collect();
        assert!(labels.contains(&"p95 ms") && labels.contains(&"p99.9 ms"));
        for row in &table.rows {
            assert_eq!(row.len(), labels.len());
        }
        let named = |name: &str| table.rows.iter().any(|r| r[0].text == name);
        assert!(view.targets.iter().all(|t| named(t.name)));
    }
}

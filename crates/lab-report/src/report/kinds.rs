//! The kinds of operations of a mix: how many there were, and their latencies.

use std::collections::BTreeSet;

use crate::format;

use super::model::{StepView, View};
use super::tables::{Cell, Table};

/// The number that says how many operations of a kind there were, by its suffix.
const COUNT: &str = "_count";

/// Latencies: heading and suffix.
const LATENCIES: [(&str, &str); 4] = [
    ("p50 ms", "_p50_ms"),
    ("p95 ms", "_p95_ms"),
    ("p99 ms", "_p99_ms"),
    ("max ms", "_max_ms"),
];

/// The table of a step: a row for each target and kind; `None` if its operations have no kinds.
pub(crate) fn table(view: &View<'_>, step: &StepView<'_>) -> Option<Table> {
    let mut table = Table::new(
        format!("{}-kinds", step.id),
        "Kinds of operations, medians of the repeats",
    )
    .texts(&["target", "kind"])
    .numbers(&["count", "share"])
    .numbers(&LATENCIES.map(|latency| latency.0));
    let kinds = kinds(step);
    for target in 0..view.targets.len() {
        let of = |kind: &str, suffix: &str| step.extra(target, &format!("{kind}{suffix}"));
        let all: f64 = kinds.iter().filter_map(|kind| of(kind, COUNT)).sum();
        for kind in &kinds {
            let Some(count) = of(kind, COUNT).filter(|count| 0.0 < *count) else {
                continue;
            };
            let mut row = vec![
                Cell::target(view.name(target), view.color(target)),
                Cell::text(kind.replace('_', " ")),
                Cell::num(format::plain(Some(count))),
                Cell::num(format::percent(count / all)),
            ];
            let latencies = LATENCIES.map(|(_, suffix)| of(kind, suffix));
            row.extend(latencies.map(|value| Cell::num(format::plain(value))));
            table.push(row);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The kinds that have a count and latencies.
fn kinds<'a>(step: &StepView<'a>) -> BTreeSet<&'a str> {
    let extras = step.cells.iter().map(|cell| &cell.summary.extra);
    let counted = extras.flat_map(|extra| {
        let kinds = extra.keys().filter_map(|name| name.strip_suffix(COUNT));
        kinds.filter(|kind| extra.contains_key(&format!("{kind}_p99_ms")))
    });
    counted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Shape};

    #[test]
    fn kinds_with_latencies_have_a_row_for_each_target() {
        let mut run = fixture::run(&Shape::default());
        let names = |kind: &str, count: f64| {
            let numbers = [("count", count), ("p50_ms", 1.0), ("p95_ms", 2.0)];
            let more = [("p99_ms", 3.0), ("max_ms", 4.0)];
            let all = numbers.into_iter().chain(more);
            all.map(|(name, value)| (format!("{kind}_{name}"), value))
                .collect::<Vec<_>>()
        };
        let summaries = run.steps.iter_mut().filter_map(|s| s.summary.as_mut());
        let steps = summaries.map(|summary| {
            summary.extra.extend(names("read_modify_write", 30.0));
            summary.extra.extend(names("read", 10.0));
            summary.extra.extend(names("scan", 0.0));
            // A count without latencies is no kind.
            summary.extra.insert("other_count".to_owned(), 7.0);
            (summary.clone(), Vec::new())
        });
        let steps: Vec<_> = steps.collect();
        run.summary = crate::analysis::summarize(&run.manifest, &steps, true);
        let view = View::new(&run);
        let table = table(&view, &view.steps[0]).unwrap();
        let texts = |row: usize| {
            table.rows[row]
                .iter()
                .map(|c| c.text.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(0)[1..4], ["read", "10", "25 %"].map(str::to_owned));
        assert_eq!(texts(1)[1], "read modify write");
        assert_eq!(table.rows.len(), 2 * view.targets.len());
        let run = fixture::run(&Shape::default());
        let view = View::new(&run);
        assert!(super::table(&view, &view.steps[0]).is_none());
    }
}

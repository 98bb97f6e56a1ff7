//! The engine's own counters over time, one table per target: drawn, with their means and last
//! values.
//!
//! - G1. A counter that never falls is drawn as its growth per second, one that falls somewhere (a
//!   gauge) as its value. Sizes (`_bytes`) are gauges even if they only grow, but for what was
//!   written and read.
//! - G2. Counters that do not change during the step are left out, and counted.

use crate::format;
use crate::record::CounterSeries;

use super::model::{CellView, StepView, View};
use super::svg;
use super::tables::{Cell, Table};

/// Rows of all steps together, so that a run with many steps stays small.
const ROWS_TOTAL: usize = 60;

/// The tables of the shown repeats; empty where no counters were recorded.
pub(crate) fn tables(view: &View<'_>, step: &StepView<'_>) -> Vec<Table> {
    let most = (ROWS_TOTAL / view.steps.len().max(1)).clamp(12, 40);
    let shown = step.shown();
    let all = shown.iter();
    all.filter_map(|cell| table(view, step, cell, most))
        .collect()
}

fn table(view: &View<'_>, step: &StepView<'_>, cell: &CellView<'_>, most: usize) -> Option<Table> {
    let all = &cell.record.counters;
    let changing = all.iter().filter(|c| changes(c));
    let mut changing: Vec<&CounterSeries> = changing.collect();
    changing.sort_by_key(|c| (class(&c.counter), c.counter.clone()));
    if changing.is_empty() {
        return None;
    }
    let left = all.len() - changing.len().min(most);
    let name = view.name(cell.target);
    let mut table = Table::new(
        format!("{}-counters-{}", step.id, cell.target),
        format!(
            "{name}, repeat {}{}",
            cell.repeat,
            match left {
                0 => String::new(),
                n => format!(" ({n} more in engine.csv)"),
            }
        ),
    )
    .texts(&["counter", "over time"])
    .numbers(&["mean", "largest", "at the end"])
    .texts(&["drawn"]);
    table.class = "counters".to_owned();
    for counter in changing.into_iter().take(most) {
        table.push(row(counter, view.color(cell.target)));
    }
    Some(table)
}

/// The order: what was written and read, the cache, waits, then the engine's own.
fn class(name: &str) -> usize {
    let first = name.split('.').next().unwrap_or_default();
    let order = ["written", "read", "cache", "stall"];
    order.iter().position(|o| *o == first).unwrap_or(4)
}

/// G2.
fn changes(counter: &CounterSeries) -> bool {
    let mut points = counter.points.iter().map(|p| p.1);
    let first = points.next();
    points.any(|value| Some(value) != first)
}

/// G1.
fn is_gauge(counter: &CounterSeries) -> bool {
    let size = 1 < class(&counter.counter) && counter.counter.ends_with("_bytes");
    size || counter.points.windows(2).any(|w| match w {
        [(_, before), (_, after)] => after < before,
        _ => false,
    })
}

fn row(counter: &CounterSeries, color: usize) -> Vec<Cell> {
    let gauge = is_gauge(counter);
    let points: Vec<(f64, f64)> = match gauge {
        true => counter.points.iter().map(|p| (p.0, p.1 as f64)).collect(),
        false => growth(&counter.points),
    };
    let values = || points.iter().map(|p| p.1);
    let mean = values().sum::<f64>() / points.len().max(1) as f64;
    let largest = values().fold(0.0, f64::max);
    let last = counter.points.last().map_or(0, |p| p.1);
    let bytes = ["written.", "read."]
        .iter()
        .any(|p| counter.counter.starts_with(p))
        || counter.counter.ends_with("_bytes");
    let text = |value: f64| match bytes {
        true => format::bytes(value),
        false => format::number(value),
    };
    let per = if gauge { "" } else { "/s" };
    let drawn: Vec<_> = points.iter().map(|p| (p.0, Some(p.1))).collect();
    let label = format!("{} over time", counter.counter);
    vec![
        Cell::text(&counter.counter).class("code"),
        Cell::drawing(svg::sparkline(&drawn, color, &label)),
        Cell::num(format!("{}{per}", text(mean))),
        Cell::num(format!("{}{per}", text(largest))),
        Cell::num(text(last as f64)),
        Cell::text(if gauge { "value" } else { "growth per second" }),
    ]
}

/// The growth per second between points.
fn growth(points: &[(f64, u64)]) -> Vec<(f64, f64)> {
    let pairs = points.windows(2).filter_map(|w| match w {
        [(from, before), (to, after)] if from < to => {
            Some((*to, after.saturating_sub(*before) as f64 / (to - from)))
        }
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Shape};

    fn series(name: &str, values: &[u64]) -> CounterSeries {
        CounterSeries {
            counter: name.to_owned(),
            points: (1..)
                .zip(values)
                .map(|(t, v): (u32, &u64)| (f64::from(t), *v))
                .collect(),
        }
    }

    #[test]
    fn counters_are_drawn_by_growth_and_gauges_by_value() {
        let grows = row(&series("written.log", &[0, 1000, 3000]), 0);
        assert_eq!(
            (grows[2].text.as_str(), grows[5].text.as_str()),
            ("1.50 KB/s", "growth per second"),
            "G1"
        );
        assert!(grows[1].drawing.starts_with("<svg"));
        let falls = row(&series("pages", &[5, 9, 7]), 0);
        assert_eq!(
            (falls[4].text.as_str(), falls[5].text.as_str()),
            ("7.00", "value"),
            "G1"
        );
        for size in ["cache.used_bytes", "file_bytes"] {
            assert_eq!(row(&series(size, &[1, 2, 3]), 0)[5].text, "value", "G1");
        }
        let read = row(&series("read.page_bytes", &[1, 2, 3]), 0);
        assert_eq!(read[5].text, "growth per second", "G1");
    }

    #[test]
    fn what_does_not_change_is_left_out_and_the_order_is_fixed() {
        let mut run = fixture::run(&Shape::default());
        for step in &mut run.steps {
            step.counters = vec![
                series("a.own", &[1, 2]),
                series("constant", &[4, 4]),
                series("stall.full.count", &[0, 1]),
                series("written.log", &[0, 10]),
            ];
        }
        let view = View::new(&run);
        let tables = tables(&view, &view.steps[0]);
        assert_eq!(tables.len(), 3, "one for each target");
        let names: Vec<&str> = tables[0].rows.iter().map(|r| r[0].text.as_str()).collect();
        assert_eq!(names, ["written.log", "stall.full.count", "a.own"], "G2");
        assert!(tables[0].caption.contains("1 more in engine.csv"), "G2");
    }
}

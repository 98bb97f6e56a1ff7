//! Series of rates along an ordered axis, with their plateaus.

use serde::Serialize;

use super::grid::{Point, StepGrid};
use crate::analysis::{Plateau, Rates, Together, plateau};
use crate::format;
use crate::record::{Sweep, SweepAxis};

/// The rates of a target along an ordered axis, with the values of the other axes fixed.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// The axis.
    pub axis: usize,
    /// The target.
    pub target: usize,
    /// The fixed values of the other axes: `cache 27G`; empty if there are none.
    pub at: String,
    /// The cells in ascending order of their values.
    pub cells: Vec<usize>,
    /// What the series shows, in one word.
    pub word: &'static str,
    /// The same in a sentence.
    pub text: String,
    /// The place in `cells` at which the plateau begins.
    pub plateau: Option<usize>,
}

/// The series of each step, judged together (S2).
pub(super) fn series(
    sweep: &Sweep,
    steps: &[StepGrid],
    noise: &[(String, f64)],
) -> Vec<Vec<Series>> {
    let planned = lines(sweep);
    let comparisons: usize = planned.iter().map(|(_, _, cells)| cells.len() - 1).sum();
    let together = Together::of(comparisons * sweep.targets.len() * steps.len(), noise);
    let of_step = |step: &StepGrid| {
        let lines = planned.iter();
        lines
            .flat_map(|(axis, at, cells)| {
                let targets = step.points.iter().enumerate();
                targets.map(move |(target, points)| {
                    one(sweep, step, (*axis, target, at), (cells, points), together)
                })
            })
            .collect::<Vec<Series>>()
    };
    steps.iter().map(of_step).collect()
}

/// For each ordered axis with two values or more, and each combination of values of the others: the
/// axis, the fixed values as text, and the cells in ascending order.
fn lines(sweep: &Sweep) -> Vec<(usize, String, Vec<usize>)> {
    let mut all: Vec<(usize, Vec<usize>, Vec<usize>)> = Vec::new();
    for (axis, swept) in sweep.axes.iter().enumerate() {
        if !swept.ordered() || swept.values.len() < 2 {
            continue;
        }
        for (cell, planned) in sweep.cells.iter().enumerate() {
            let mut fixed = planned.values.clone();
            if axis < fixed.len() {
                fixed.remove(axis);
            }
            match all
                .iter_mut()
                .find(|(of, at, _)| *of == axis && *at == fixed)
            {
                Some((_, _, cells)) => cells.push(cell),
                None => all.push((axis, fixed, vec![cell])),
            }
        }
    }
    let value = |axis: usize, cell: usize| {
        let cell = sweep.cells.get(cell);
        cell.and_then(|cell| cell.values.get(axis)).copied()
    };
    let mut lines = Vec::new();
    for (axis, fixed, mut cells) in all {
        // Values of ordered axes are in ascending order.
        cells.sort_by_key(|cell| value(axis, *cell));
        lines.push((axis, fixed_text(sweep, axis, &fixed), cells));
    }
    lines
}

fn fixed_text(sweep: &Sweep, axis: usize, fixed: &[usize]) -> String {
    let others = sweep.axes.iter().enumerate().filter(|(at, _)| *at != axis);
    let each = others.zip(fixed).map(|((_, other), value)| {
        let text = other.values.get(*value).map_or("", |v| v.text.as_str());
        format!("{} {text}", other.name)
    });
    each.collect::<Vec<_>>().join(", ")
}

fn one(
    sweep: &Sweep,
    step: &StepGrid,
    (axis, target, at): (usize, usize, &str),
    (cells, points): (&[usize], &[Point]),
    together: Together,
) -> Series {
    let rates: Vec<Rates> = cells
        .iter()
        .map(|cell| {
            points
                .get(*cell)
                .map_or_else(Rates::default, |p| p.rates.clone())
        })
        .collect();
    // A run that is missing has no rates of its own to name the reason.
    let rates: Vec<Rates> = rates
        .into_iter()
        .zip(cells)
        .map(|(rates, cell)| Rates {
            fault: points.get(*cell).and_then(|p| p.fault.clone()),
            ..rates
        })
        .collect();
    let found = sweep.axes.get(axis);
    let names: Vec<String> = cells
        .iter()
        .map(|cell| value_name(sweep, axis, *cell))
        .collect();
    let shown = plateau(&rates, &names, together);
    let (word, text) = sentence(&shown, found, step, &names);
    Series {
        axis,
        target,
        at: at.to_owned(),
        cells: cells.to_vec(),
        word,
        text,
        plateau: match shown {
            Plateau::From { value, .. } => Some(value),
            _ => None,
        },
    }
}

fn value_name(sweep: &Sweep, axis: usize, cell: usize) -> String {
    let at = sweep.cells.get(cell).and_then(|c| c.values.get(axis));
    let values = sweep.axes.get(axis).map(|a| &a.values);
    let value = values.zip(at).and_then(|(values, at)| values.get(*at));
    value.map_or(String::new(), |value| value.text.clone())
}

fn sentence(
    shown: &Plateau,
    axis: Option<&SweepAxis>,
    step: &StepGrid,
    names: &[String],
) -> (&'static str, String) {
    let axis = axis.map_or("", |axis| axis.name.as_str());
    let name = |at: usize| names.get(at).map_or("", String::as_str);
    let last = name(names.len().saturating_sub(1));
    let (unit, within) = (&step.unit, "within 5 %");
    match shown {
        Plateau::From { value: 0, .. } => (
            "flat",
            format!(
                "{axis} makes no difference from {} to {last}: equal {within}",
                name(0)
            ),
        ),
        Plateau::From { value, proved } => {
            let begins = if *proved {
                "from"
            } else {
                "at the latest from"
            };
            (
                "plateau",
                format!(
                    "the plateau begins {begins} {axis} {}: up to {last} the rate ({unit}) is \
                     equal {within}",
                    name(*value)
                ),
            )
        }
        Plateau::Rising { ratio, between } => {
            let before = name(names.len().saturating_sub(2));
            (
                "rising",
                format!(
                    "no plateau: {axis} {last} is still {} times as fast as {before} [{} to {}]",
                    format::fixed(*ratio, 2),
                    format::fixed(between[0], 2),
                    format::fixed(between[1], 2)
                ),
            )
        }
        Plateau::Peak { value, ratio } => (
            "peak",
            format!(
                "no plateau: the rate is highest at {axis} {}, {} times that at {last}",
                name(*value),
                format::fixed(*ratio, 2)
            ),
        ),
        Plateau::Inconclusive(why) => ("inconclusive", format!("inconclusive ({axis}): {why}")),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture;
    use crate::record::{SweepAxis, SweepRecord, SweepValue};
    use crate::sweep::Grid;

    fn record(sizes: &[f64], rates: &[f64], repeats: u32) -> SweepRecord {
        let run = |rate: &f64| {
            let steps = (1..=repeats).map(|r| fixture::step("lmdb", r, *rate + f64::from(r)));
            Ok(fixture::run("cell", &["lmdb"], repeats, steps.collect()))
        };
        SweepRecord {
            sweep: fixture::sweep(sizes),
            runs: rates.iter().map(run).collect(),
        }
    }

    #[test]
    fn a_plateau_is_named_with_its_value() {
        let found = |rates: &[f64], repeats| {
            let grid = Grid::of(&record(&[8.0, 16.0, 32.0], rates, repeats));
            let series = grid.steps[0].series[0].clone();
            assert_eq!(series.cells, [0, 1, 2], "S2: ascending");
            (series.word, series.plateau, series.text)
        };
        let (word, at, text) = found(&[1000.0, 5000.0, 5000.0], 3);
        assert_eq!((word, at), ("plateau", Some(1)));
        assert!(text.contains("from cache 16M: up to 32M"), "{text}");
        assert_eq!(found(&[5000.0; 3], 3).0, "flat");
        assert_eq!(found(&[1000.0, 2000.0, 4000.0], 3).0, "rising");
        assert_eq!(found(&[1000.0, 4000.0, 2000.0], 3).0, "peak");
        let (word, at, text) = found(&[1000.0, 5000.0, 5000.0], 1);
        assert_eq!((word, at), ("inconclusive", None));
        assert!(text.contains("8M: 1 repeat"), "{text}");
    }

    #[test]
    fn a_missing_run_makes_its_series_inconclusive_and_names_itself() {
        let mut record = record(&[8.0, 16.0], &[1000.0, 2000.0], 3);
        record.runs[1] = Err("not run yet".to_owned());
        let grid = Grid::of(&record);
        let text = &grid.steps[0].series[0].text;
        assert!(text.contains("16M: not run yet"), "{text}");
    }

    #[test]
    fn only_ordered_axes_have_series_one_for_each_value_of_the_others() {
        let mut record = record(&[8.0, 16.0, 8.0, 16.0], &[1000.0; 4], 3);
        let value = |text: &str| SweepValue {
            text: text.to_owned(),
            number: None,
            volume: None,
        };
        record.sweep.axes.push(SweepAxis {
            name: "codec".to_owned(),
            unit: String::new(),
            values: vec![value("none"), value("fast")],
        });
        record.sweep.axes[0].values.truncate(2);
        for (cell, values) in [[0, 0], [1, 0], [0, 1], [1, 1]].into_iter().enumerate() {
            record.sweep.cells[cell].values = values.to_vec();
        }
        let grid = Grid::of(&record);
        let series = &grid.steps[0].series;
        let at: Vec<(&str, &[usize])> = series.iter().map(|s| (&*s.at, &*s.cells)).collect();
        assert_eq!(at, [("codec none", &[0, 1][..]), ("codec fast", &[2, 3])]);
    }
}

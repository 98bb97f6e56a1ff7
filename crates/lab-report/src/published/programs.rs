//! Tables and plots of experiments whose steps are points of a curve: numbers of tables, caps,
//! clients.

use super::{Curve, Grid, Line, Plot, Value, figure, result, targets, words};
use crate::record::RunRecord;

/// The names of the steps of a run that start with `prefix`, without open-loop repetitions.
pub(super) fn steps<'a>(run: &'a RunRecord, prefix: &str) -> Vec<&'a str> {
    let all = run.manifest.plan.steps.iter();
    let own = all.filter(|s| s.setting.share.is_none());
    let names = own.map(|s| s.name.as_str());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// The number a step's name ends with.
pub(super) fn number(step: &str) -> Option<f64> {
    step.rsplit('-').next()?.parse().ok()
}

/// A column: its heading, the number it shows, and a factor.
pub(super) type Column = (&'static str, &'static str, f64);

/// One row per target and step with numbers of the step, or the reason why there are none.
pub(super) fn grid(run: &RunRecord, caption: &str, steps: &[&str], columns: &[Column]) -> Grid {
    let mut lines = Vec::new();
    for target in targets(run) {
        for step in steps {
            let mut values = vec![Value::Text((*step).to_owned())];
            values.extend(columns.iter().map(|(_, name, factor)| {
                Value::Number(figure(run, target, step, name).map(|x| x * factor))
            }));
            let why = result(run, target, step).and_then(|r| r.unsupported.clone());
            values.push(Value::Text(why.unwrap_or_default()));
            lines.push(Line {
                name: target.to_owned(),
                values,
            });
        }
    }
    let mut heads = vec!["step".to_owned()];
    heads.extend(columns.iter().map(|(head, _, _)| (*head).to_owned()));
    heads.push("n/a because".to_owned());
    Grid {
        caption: caption.to_owned(),
        columns: heads,
        lines,
    }
}

/// A published table: names, and one value per column; NaN for missing ones.
pub(super) fn published<const N: usize>(
    caption: &str,
    columns: &[&str],
    rows: &[(&str, [f64; N])],
) -> Grid {
    let line = |(name, values): &(&str, [f64; N])| Line {
        name: (*name).to_owned(),
        values: values
            .iter()
            .map(|v| Value::Number(v.is_finite().then_some(*v)))
            .collect(),
    };
    Grid {
        caption: caption.to_owned(),
        columns: words(columns),
        lines: rows.iter().map(line).collect(),
    }
}

/// A plot of a number against the number in the step's name, one curve per target, plus published
/// curves.
pub(super) fn curves(
    run: &RunRecord,
    [title, x, y]: [&str; 3],
    steps: &[&str],
    name: &str,
    published: Vec<Curve>,
) -> Plot {
    let mut curves: Vec<Curve> = Vec::new();
    for target in targets(run) {
        let point = |step: &&str| Some((number(step)?, figure(run, target, step, name)?));
        let mut points: Vec<(f64, f64)> = steps.iter().filter_map(point).collect();
        points.retain(|(x, y)| 0.0 < *x && 0.0 < *y);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() {
            curves.push(Curve {
                name: target.to_owned(),
                target: Some(target.to_owned()),
                points,
            });
        }
    }
    curves.extend(published);
    Plot::Lines {
        title: title.to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        curves,
    }
}

/// A published curve.
pub(super) fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
    Curve {
        name: name.to_owned(),
        target: None,
        points: points.to_vec(),
    }
}

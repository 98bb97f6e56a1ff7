//! Published results next to measured ones, as tables and plots.

use serde::Serialize;

use crate::published::{self, Beside, Curve, Grid, Plot, Reproduced, Value};

use super::model::View;
use super::plots::Figure;
use super::svg;
use super::tables::{Cell, Table};
use crate::format;

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct PublishedPart {
    pub(crate) source: String,
    pub(crate) measured: Vec<Table>,
    pub(crate) published: Table,
    pub(crate) shapes: Table,
    pub(crate) figures: Vec<Figure>,
    pub(crate) notes: Vec<String>,
}

/// The section of an experiment that an article is about.
pub(crate) fn part(view: &View<'_>) -> Option<PublishedPart> {
    let beside = published::beside(view.run)?;
    let measured = beside.measured.iter().enumerate();
    let plots = beside.plots.iter().enumerate();
    Some(PublishedPart {
        measured: measured.map(|(i, g)| table(view, g, i)).collect(),
        published: table(view, &beside.published, beside.measured.len()),
        shapes: shapes(view, &beside),
        figures: plots.map(|(i, p)| figure(view, p, i)).collect(),
        source: beside.source,
        notes: beside.notes,
    })
}

/// Longer texts are wrapped.
const LONG: usize = 28;

fn name(view: &View<'_>, name: &str) -> Cell {
    match view.color_of(name) {
        Some(color) => Cell::target(name, color),
        None => Cell::text(name),
    }
}

fn table(view: &View<'_>, grid: &Grid, index: usize) -> Table {
    let mut table =
        Table::new(format!("published-{index}"), grid.caption.clone()).texts(&["target"]);
    for (i, column) in grid.columns.iter().enumerate() {
        let mut values = grid.lines.iter().filter_map(|l| l.values.get(i));
        let text = values.any(|v| matches!(v, Value::Text(_)));
        table = if text {
            table.texts(&[column.as_str()])
        } else {
            table.numbers(&[column.as_str()])
        };
    }
    for line in &grid.lines {
        let mut row = vec![name(view, &line.name)];
        row.extend(line.values.iter().map(|value| match value {
            Value::Number(number) => Cell::num(format::plain(*number)),
            Value::Text(text) if LONG < text.chars().count() => Cell::text(text).class("prose"),
            Value::Text(text) => Cell::text(text).class("short"),
        }));
        table.push(row);
    }
    table
}

fn shapes(view: &View<'_>, beside: &Beside) -> Table {
    let mut table = Table::new("published-shapes", "Does the published shape come out?")
        .texts(&["target", "what was found"])
        .numbers(&["ratio then", "ratio now"])
        .texts(&["verdict"]);
    for shape in &beside.shapes {
        let verdict = Cell::text(shape.verdict_text());
        table.push(vec![
            name(view, &shape.target),
            Cell::text(&shape.claim),
            Cell::num(shape.published_text()),
            Cell::num(shape.measured_text()),
            match shape.verdict {
                Reproduced::NotMeasured | Reproduced::NotJudged | Reproduced::Inconclusive => {
                    verdict.class("na")
                }
                _ => verdict,
            },
        ]);
    }
    table
}

fn figure(view: &View<'_>, plot: &Plot, index: usize) -> Figure {
    let (title, note, drawing) = match plot {
        Plot::Lines {
            title,
            x,
            y,
            curves,
        } => {
            let drawing = lines(view, [title.as_str(), x.as_str(), y.as_str()], curves);
            let published = curves.iter().any(|c| c.target.is_none());
            let note = if published {
                "Dashed: published, on other machines."
            } else {
                ""
            };
            (title, note, drawing)
        }
        Plot::Scatter {
            title,
            x,
            y,
            points,
        } => {
            let drawing = scatter([title.as_str(), x.as_str(), y.as_str()], points);
            (title, "", drawing)
        }
        Plot::Bars { title, bars } => (title, "", drawn_bars(view, title, bars)),
    };
    Figure {
        id: format!("published-plot-{index}"),
        title: title.clone(),
        note: note.to_owned(),
        kind: String::new(),
        panel: String::new(),
        drawing,
        wide: false,
    }
}

fn lines(view: &View<'_>, [title, x, y]: [&str; 3], curves: &[Curve]) -> String {
    let line = |(i, curve): (usize, &Curve)| {
        let own = curve.target.as_deref().and_then(|t| view.color_of(t));
        svg::Line {
            label: curve.name.clone(),
            color: own.unwrap_or_else(|| svg::color(view.targets.len() + i)),
            dashed: curve.target.is_none(),
            points: curve.points.iter().map(|(x, y)| (*x, Some(*y))).collect(),
        }
    };
    svg::LineChart {
        label: title.to_owned(),
        x_label: x.to_owned(),
        y_label: y.to_owned(),
        x_log: true,
        y_log: true,
        lines: curves.iter().enumerate().map(line).collect(),
        ..svg::LineChart::default()
    }
    .render()
}

fn scatter([title, x, y]: [&str; 3], points: &[(String, f64, f64)]) -> String {
    let point = |(i, (label, x, y)): (usize, &(String, f64, f64))| svg::Point {
        x: *x,
        y: *y,
        color: svg::color(i),
        label: label.clone(),
        hollow: false,
    };
    svg::Scatter {
        label: title.to_owned(),
        x_label: x.to_owned(),
        y_label: y.to_owned(),
        // Codecs differ by orders of magnitude.
        x_log: true,
        // More of both is better, so the line of the cheapest points has no meaning here.
        front: false,
        points: points.iter().enumerate().map(point).collect(),
    }
    .render()
}

fn drawn_bars(view: &View<'_>, title: &str, bars: &[(String, String, Option<f64>)]) -> String {
    let bar = |(target, of, value): &(String, String, Option<f64>)| svg::Bar {
        label: format!("{of} {target}"),
        color: view.color_of(target).unwrap_or(0),
        value: *value,
        interval: None,
        text: format::plain(*value),
        pale: false,
    };
    svg::Bars {
        label: title.to_owned(),
        bars: bars.iter().map(bar).collect(),
    }
    .render()
}

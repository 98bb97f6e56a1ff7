//! The plots of a step: the panels over time, the knee, the latency spectrum, densities, costs.
//!
//! Each plot over time or rows exists twice from the same description: as a static drawing here and
//! as numbers for the plots in the browser ([`super::data`]).

mod costs;
mod shapes;

use serde::Serialize;

use crate::record::SeriesRow;

use super::model::{CellView, StepView, View};
use super::svg;
use crate::format;

pub(crate) use costs::{bars, reasons};
pub(crate) use shapes::{
    Knee, KneePoint, Spectrum, density_figure, knee_figure, knees, spectra, spectrum_figure,
};

/// One panel over time: a column of the series per target, and a second one drawn dashed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Panel {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    /// Column and its name.
    pub(crate) solid: (&'static str, &'static str),
    /// The second column; an empty one for none.
    pub(crate) dashed: (&'static str, &'static str),
    /// Divisor of the recorded numbers.
    pub(crate) div: f64,
    pub(crate) log: bool,
    /// Whether the memory limit is drawn.
    pub(crate) cap: bool,
    /// Whether values are amounts per second, drawn in the middle of it; otherwise they are states,
    /// drawn at its end.
    pub(crate) flow: bool,
    /// Not drawn while settling.
    pub(crate) load_only: bool,
    /// Whether it shows the step's main operation: stalls are marked in it.
    pub(crate) main: bool,
}

impl Panel {
    const fn state(mut self) -> Panel {
        self.flow = false;
        self
    }

    const fn load_only(mut self) -> Panel {
        self.load_only = true;
        self
    }

    const fn capped(mut self) -> Panel {
        self.cap = true;
        self
    }

    const fn logarithmic(mut self) -> Panel {
        self.log = true;
        self
    }
}

const fn panel(
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    solid: (&'static str, &'static str),
    dashed: (&'static str, &'static str),
    div: f64,
) -> Panel {
    Panel {
        id,
        title,
        unit,
        solid,
        dashed,
        div,
        log: false,
        cap: false,
        flow: true,
        load_only: false,
        main: false,
    }
}

const NONE: (&str, &str) = ("", "");

/// The panels, in the order they are shown.
pub(crate) const PANELS: [Panel; 9] = [
    panel(
        "rate",
        "Rate, 1-second resolution",
        "rows/s",
        ("rate", "rate"),
        NONE,
        1.0,
    )
    .load_only(),
    panel(
        "latency",
        "Latency",
        "ms",
        ("p99_ms", "p99"),
        ("max_ms", "max"),
        1.0,
    )
    .load_only()
    .logarithmic(),
    panel(
        "io",
        "Device I/O",
        "MB/s",
        ("write_bytes", "write"),
        ("read_bytes", "read"),
        1e6,
    ),
    panel(
        "iops",
        "Device operations",
        "IO/s",
        ("write_ios", "write"),
        ("read_ios", "read"),
        1.0,
    ),
    panel(
        "cpu",
        "CPU",
        "cores",
        ("cpu", "worker"),
        ("cpu_client", "client"),
        1.0,
    ),
    panel(
        "memory",
        "Memory",
        "MB",
        ("cgroup_memory", "charged"),
        ("page_cache", "page cache"),
        1e6,
    )
    .state()
    .capped(),
    panel("rss", "Resident memory", "MB", ("rss", "rss"), NONE, 1e6)
        .state()
        .capped(),
    panel(
        "size",
        "Files and debt",
        "MB",
        ("file_bytes", "files"),
        ("debt_bytes", "debt"),
        1e6,
    )
    .state(),
    panel(
        "queries",
        "Queries",
        "q/s",
        ("query_rate", "queries"),
        NONE,
        1.0,
    )
    .load_only(),
];

/// The number of a series row by its column name.
pub(crate) fn value(row: &SeriesRow, column: &str) -> Option<f64> {
    let whole = |v: Option<u64>| v.map(|v| v as f64);
    match column {
        "t" => Some(row.t),
        "rows" => Some(row.rows as f64),
        "rate" => Some(row.rate),
        "query_rate" => Some(row.query_rate),
        "errors" => Some(row.errors as f64),
        "p50_ms" => row.p50_ms,
        "p99_ms" => row.p99_ms,
        "max_ms" => row.max_ms,
        "read_ios" => whole(row.read_ios),
        "write_ios" => whole(row.write_ios),
        "read_bytes" => whole(row.read_bytes),
        "write_bytes" => whole(row.write_bytes),
        "cpu" => row.cpu,
        "cpu_client" => row.cpu_client,
        "switches" => whole(row.switches),
        "rss" => whole(row.rss),
        "cgroup_memory" => whole(row.cgroup_memory),
        "page_cache" => whole(row.page_cache),
        "psi_io" => row.psi_io,
        "psi_memory" => row.psi_memory,
        "file_bytes" => whole(row.file_bytes),
        "debt_bytes" => whole(row.debt_bytes),
        _ => None,
    }
}

/// The panels with numbers for a step, that of the main operation first. Resident memory is shown
/// where no control group counted.
pub(crate) fn panels(step: &StepView<'_>) -> Vec<Panel> {
    let has = |column: &str, zero_counts: bool| {
        let mut rows = step.cells.iter().flat_map(|c| &c.record.series);
        rows.any(|r| value(r, column).is_some_and(|v| zero_counts || v > 0.0))
    };
    let charged = has("cgroup_memory", true);
    let (main, beside) = if step.queries() {
        ("queries", "rate")
    } else {
        ("rate", "queries")
    };
    let mut panels: Vec<Panel> = PANELS
        .into_iter()
        .filter(|p| match p.id {
            id if id == main => true,
            id if id == beside => has(p.solid.0, false),
            "rss" => !charged && has("rss", true),
            _ => has(p.solid.0, true),
        })
        .map(|p| Panel {
            main: p.id == main,
            log: p.log || (p.id == main && far_apart(step)),
            title: match p.id {
                "rate" if p.id == beside => "Rows in the background",
                "queries" if p.id == main => "Rate, 1-second resolution",
                _ => p.title,
            },
            unit: if p.id == main { step.unit() } else { p.unit },
            solid: match p.id {
                "queries" if p.id == main => (p.solid.0, step.operation.many),
                _ => p.solid,
            },
            ..p
        })
        .collect();
    panels.sort_by_key(|p| !p.main);
    panels
}

/// A figure for the template.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) note: String,
    /// `time`, `knee`, `spectrum`, or empty for a drawing only.
    pub(crate) kind: String,
    /// The panel, for kind `time`.
    pub(crate) panel: String,
    /// SVG.
    pub(crate) drawing: String,
    /// Takes the whole width.
    pub(crate) wide: bool,
}

/// The static drawing of a panel: the shown repeat of each target.
pub(crate) fn time_figure(
    view: &View<'_>,
    step: &StepView<'_>,
    panel: &Panel,
    points_max: usize,
) -> Figure {
    let shown = step.shown();
    let cap = memory_cap(view).filter(|_| panel.cap);
    let chart = svg::LineChart {
        label: format!("{} over time, step {}", panel.title, step.plan.name),
        x_label: "seconds".to_owned(),
        y_label: panel.unit.to_owned(),
        y_log: panel.log,
        width: if panel.main { 1000.0 } else { 0.0 },
        points_max,
        lines: shown.iter().flat_map(|c| lines(view, panel, c)).collect(),
        bands: if panel.main {
            shown.iter().flat_map(|c| bands(view, c)).collect()
        } else {
            Vec::new()
        },
        limit: cap.map(|cap| (cap / panel.div, "limit".to_owned())),
        ..svg::LineChart::default()
    };
    Figure {
        id: format!("{}-{}", step.id, panel.id),
        title: panel.title.to_owned(),
        note: time_note(panel),
        kind: "time".to_owned(),
        panel: panel.id.to_owned(),
        drawing: chart.render(),
        wide: panel.main,
    }
}

/// The lines of a target in a panel, if it has numbers for them.
fn lines(view: &View<'_>, panel: &Panel, cell: &CellView<'_>) -> Vec<svg::Line> {
    let name = view.name(cell.target);
    let back = if panel.flow { 0.5 } else { 0.0 };
    let line = |((column, word), dashed): ((&str, &str), bool)| {
        let rows: Vec<&SeriesRow> = if panel.load_only {
            cell.whole_seconds().collect()
        } else {
            cell.record.series.iter().collect()
        };
        let points: Vec<_> = rows
            .into_iter()
            .map(|r| {
                (
                    (r.t - back).max(r.t / 2.0),
                    value(r, column).map(|v| v / panel.div),
                )
            })
            .collect();
        points.iter().any(|p| p.1.is_some()).then(|| svg::Line {
            label: match panel.dashed.1 {
                "" => name.to_owned(),
                _ => format!("{name} {word}"),
            },
            color: view.color(cell.target),
            dashed,
            points,
        })
    };
    let columns = [(panel.solid, false), (panel.dashed, true)];
    columns.into_iter().filter_map(line).collect()
}

/// The stalls of a target.
fn bands<'c>(view: &View<'_>, cell: &'c CellView<'_>) -> impl Iterator<Item = svg::Band> + 'c {
    let color = view.color(cell.target);
    cell.record.stalls.iter().map(move |s| svg::Band {
        from: s.start,
        to: s.start + s.seconds,
        color,
    })
}

fn time_note(panel: &Panel) -> String {
    let mut note: Vec<String> = Vec::new();
    if !panel.dashed.1.is_empty() {
        note.push(format!(
            "Solid: {}; dashed: {}.",
            panel.solid.1, panel.dashed.1
        ));
    }
    if !panel.load_only {
        note.push("Settling included.".to_owned());
    }
    if panel.main {
        note.push("Shaded: stall seconds, in the colour of their target.".to_owned());
    }
    if panel.main && panel.log {
        note.push("Logarithmic, for rates far apart; zero stands at the foot.".to_owned());
    }
    note.join(" ")
}

/// Rates further apart than this are drawn on a logarithmic axis.
const FAR: f64 = 30.0;

/// Whether the rates of a step are too far apart for a common linear axis: the 90th percentile of
/// the seconds of the fastest target against the 10th of the slowest one.
pub(crate) fn far_apart(step: &StepView<'_>) -> bool {
    let ends = |cell: &&CellView<'_>| {
        let rates = cell.whole_seconds().map(|r| step.rate(r));
        let rates: Vec<f64> = rates.filter(|r| 0.0 < *r).collect();
        let at = |q| format::quantile_of(&rates, q);
        Some((at(0.1)?, at(0.9)?))
    };
    let all: Vec<(f64, f64)> = step.shown().iter().filter_map(ends).collect();
    let low = all.iter().map(|e| e.0).fold(f64::INFINITY, f64::min);
    let high = all.iter().map(|e| e.1).fold(0.0, f64::max);
    FAR * low < high
}

/// The memory limit in force, in bytes.
pub(crate) fn memory_cap(view: &View<'_>) -> Option<f64> {
    view.run
        .steps
        .iter()
        .flat_map(|s| &s.envelope.lines)
        .find(|l| l.limit == "memory")
        .and_then(|l| l.effective)
        .map(|v| v as f64)
}

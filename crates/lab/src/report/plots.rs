//! What is drawn of a step: the panels over time, the knee, the latency spectrum, densities, costs.
//!
//! Each plot over time or rows exists twice from the same description: as a static drawing here and
//! as numbers for the plots in the browser ([`super::data`]).

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::record::SeriesRow;

use super::compare::times;
use super::format;
use super::metrics::metric;
use super::model::{StepView, View};
use super::svg;

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
    /// What the recorded numbers are divided by.
    pub(crate) div: f64,
    pub(crate) log: bool,
    /// Whether the memory limit is drawn.
    pub(crate) cap: bool,
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
    }
}

/// The panels, in the order they are shown.
pub(crate) const PANELS: [Panel; 9] = [
    panel("rate", "Rate, 1-second resolution", "rows/s", ("rate", "rate"), ("", ""), 1.0),
    Panel {
        log: true,
        ..panel("latency", "Commit latency", "ms", ("p99_ms", "p99"), ("max_ms", "max"), 1.0)
    },
    panel("io", "Device I/O", "MB/s", ("write_bytes", "write"), ("read_bytes", "read"), 1e6),
    panel("iops", "Device operations", "IO/s", ("write_ios", "write"), ("read_ios", "read"), 1.0),
    panel("cpu", "CPU", "cores", ("cpu", "worker"), ("cpu_client", "client part"), 1.0),
    Panel {
        cap: true,
        ..panel("memory", "Memory", "MB", ("cgroup_memory", "charged"), ("page_cache", "page cache"), 1e6)
    },
    Panel {
        cap: true,
        ..panel("rss", "Resident memory", "MB", ("rss", "rss"), ("", ""), 1e6)
    },
    panel("size", "Files and debt", "MB", ("file_bytes", "files"), ("debt_bytes", "debt"), 1e6),
    panel("queries", "Queries", "q/s", ("query_rate", "queries"), ("", ""), 1.0),
];

/// A number of a series by its column's name.
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

/// The panels a step has numbers for. Resident memory is shown where no cgroup counted.
pub(crate) fn panels(step: &StepView<'_>) -> Vec<Panel> {
    let has = |column: &str, zero_counts: bool| {
        step.cells.iter().flat_map(|c| &c.record.series).any(|r| {
            value(r, column).is_some_and(|v| zero_counts || v > 0.0)
        })
    };
    let charged = has("cgroup_memory", true);
    PANELS
        .into_iter()
        .filter(|p| match p.id {
            "queries" => has("query_rate", false),
            "rss" => !charged && has("rss", true),
            _ => has(p.solid.0, true),
        })
        .collect()
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
    let mut chart = svg::LineChart {
        label: format!("{} over time, step {}", panel.title, step.plan.name),
        x_label: "seconds".to_owned(),
        y_label: panel.unit.to_owned(),
        y_log: panel.log,
        points_max,
        ..svg::LineChart::default()
    };
    for cell in step.shown() {
        let color = view.color(cell.target);
        for (column, word, dashed) in [
            (panel.solid.0, panel.solid.1, false),
            (panel.dashed.0, panel.dashed.1, true),
        ] {
            let series = &cell.record.series;
            let points: Vec<_> = series
                .iter()
                .map(|r| (r.t, value(r, column).map(|v| v / panel.div)))
                .collect();
            if points.iter().any(|p| p.1.is_some()) {
                chart.lines.push(svg::Line {
                    label: format!("{} {word}", view.name(cell.target)),
                    color,
                    dashed,
                    points,
                });
            }
        }
        if panel.id == "rate" {
            chart.bands.extend(cell.record.stalls.iter().map(|s| svg::Band {
                from: s.start,
                to: s.start + s.seconds,
                color,
            }));
        }
    }
    chart.limit = memory_cap(view)
        .filter(|_| panel.cap)
        .map(|cap| (cap / panel.div, "limit".to_owned()));
    Figure {
        id: format!("{}-{}", step.id, panel.id),
        title: panel.title.to_owned(),
        note: time_note(panel),
        kind: "time".to_owned(),
        panel: panel.id.to_owned(),
        drawing: chart.render(),
        wide: panel.id == "rate",
    }
}

fn time_note(panel: &Panel) -> String {
    let mut note = match panel.dashed.1 {
        "" => String::new(),
        dashed => format!("Solid: {}; dashed: {dashed}.", panel.solid.1),
    };
    if panel.id == "rate" {
        note.push_str("Shaded: stall seconds, in the colour of their target.");
    }
    note
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

/// Rate over rows of one target: places in rows, median over the repeats, and their range.
pub(crate) struct Knee {
    pub(crate) target: usize,
    pub(crate) points: Vec<KneePoint>,
}

/// One place of a [`Knee`].
#[derive(Clone, Copy)]
pub(crate) struct KneePoint {
    /// Rows written since the step began.
    pub(crate) rows: f64,
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Stretches of equal rows a knee is cut into.
const KNEE_PARTS: u32 = 80;

/// The knee of each target; targets whose series do not grow are left out.
pub(crate) fn knees(view: &View<'_>, step: &StepView<'_>) -> Vec<Knee> {
    let most = step
        .cells
        .iter()
        .filter_map(|c| c.record.series.iter().map(|r| r.rows).max())
        .max()
        .unwrap_or(0);
    if most == 0 {
        return Vec::new();
    }
    let width = most as f64 / f64::from(KNEE_PARTS);
    (0..view.targets.len())
        .map(|target| Knee {
            target,
            points: knee_points(step, target, width),
        })
        .filter(|k| !k.points.is_empty())
        .collect()
}

fn knee_points(step: &StepView<'_>, target: usize, width: f64) -> Vec<KneePoint> {
    let cells: Vec<_> = step.cells.iter().filter(|c| c.target == target).collect();
    let clocks: Vec<Vec<(f64, f64)>> = cells
        .iter()
        .map(|c| {
            let load = c.record.series.iter().filter(|r| r.phase != "settle");
            std::iter::once((0.0, 0.0))
                .chain(load.map(|r| (r.rows as f64, r.t)))
                .collect()
        })
        .collect();
    let mut points = Vec::new();
    for part in 0..KNEE_PARTS {
        let (from, to) = (width * f64::from(part), width * f64::from(part + 1));
        let rates: Vec<f64> = clocks
            .iter()
            .filter_map(|clock| {
                let seconds = time_at(clock, to)? - time_at(clock, from)?;
                (seconds > 0.0).then(|| width / seconds)
            })
            .collect();
        let Some(median) = format::median(&rates) else {
            break;
        };
        points.push(KneePoint {
            rows: to,
            median,
            low: rates.iter().copied().fold(f64::INFINITY, f64::min),
            high: rates.iter().copied().fold(0.0, f64::max),
        });
    }
    points
}

/// When so many rows were written, interpolated; `None` when they never were.
fn time_at(clock: &[(f64, f64)], rows: f64) -> Option<f64> {
    let after = clock.iter().position(|p| p.0 >= rows * (1.0 - 1e-9))?;
    let (rows_after, t_after) = *clock.get(after)?;
    let Some((rows_before, t_before)) = after.checked_sub(1).and_then(|i| clock.get(i)) else {
        return Some(t_after);
    };
    let span = rows_after - rows_before;
    let share = if span > 0.0 { (rows - rows_before) / span } else { 1.0 };
    Some(t_before + share * (t_after - t_before))
}

/// The static drawing of the knee.
pub(crate) fn knee_figure(view: &View<'_>, step: &StepView<'_>, knees: &[Knee]) -> Option<Figure> {
    if knees.is_empty() {
        return None;
    }
    let mut chart = svg::LineChart {
        label: format!("rate over rows, step {}", step.plan.name),
        x_label: "rows written in this step".to_owned(),
        y_label: "rows/s".to_owned(),
        ..svg::LineChart::default()
    };
    for knee in knees {
        let color = view.color(knee.target);
        chart.areas.push(svg::Area {
            color,
            points: knee.points.iter().map(|p| (p.rows, p.low, p.high)).collect(),
        });
        chart.lines.push(svg::Line {
            label: view.name(knee.target).to_owned(),
            color,
            dashed: false,
            points: knee.points.iter().map(|p| (p.rows, Some(p.median))).collect(),
        });
    }
    Some(Figure {
        id: format!("{}-knee", step.id),
        title: "Rate over rows: the knee".to_owned(),
        note: format!(
            "Each point is 1/{KNEE_PARTS} of the rows; line: median of the repeats, area: their \
             range."
        ),
        kind: "knee".to_owned(),
        panel: String::new(),
        drawing: chart.render(),
        wide: false,
    })
}

/// The latency spectrum of one target: (1/(1-q), milliseconds).
pub(crate) struct Spectrum {
    pub(crate) target: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Places per decade of 1/(1-q).
const SPECTRUM_STEPS: u32 = 12;

/// The spectra of the commits, or of the queries.
pub(crate) fn spectra(view: &View<'_>, step: &StepView<'_>, queries: bool) -> Vec<Spectrum> {
    (0..view.targets.len())
        .filter_map(|target| {
            let histogram = step.histogram(target, queries)?;
            Some(Spectrum {
                target,
                points: spectrum(&histogram),
            })
        })
        .collect()
}

fn spectrum(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let most = (histogram.len() as f64).max(1.0);
    let mut points = Vec::new();
    for i in 0..=9 * SPECTRUM_STEPS {
        let x = 10f64.powf(f64::from(i) / f64::from(SPECTRUM_STEPS));
        let last = x >= most;
        let x = x.min(most);
        let quantile = 1.0 - 1.0 / x;
        let micros = if last { histogram.max() } else { histogram.value_at_quantile(quantile) };
        points.push((x, (micros as f64 / 1e3).max(1e-3)));
        if last {
            break;
        }
    }
    points
}

/// The static drawing of the spectrum.
pub(crate) fn spectrum_figure(
    view: &View<'_>,
    step: &StepView<'_>,
    spectra: &[Spectrum],
    queries: bool,
) -> Option<Figure> {
    if spectra.is_empty() {
        return None;
    }
    let what = if queries { "Query" } else { "Commit" };
    let kind = if queries { "queryspectrum" } else { "spectrum" };
    let chart = svg::LineChart {
        label: format!("{what} latency by quantile, step {}", step.plan.name),
        x_label: "quantile".to_owned(),
        y_label: "ms".to_owned(),
        y_log: true,
        x_quantile: true,
        lines: spectra
            .iter()
            .map(|s| svg::Line {
                label: view.name(s.target).to_owned(),
                color: view.color(s.target),
                dashed: false,
                points: s.points.iter().map(|p| (p.0, Some(p.1))).collect(),
            })
            .collect(),
        ..svg::LineChart::default()
    };
    Some(Figure {
        id: format!("{}-{kind}", step.id),
        title: format!("{what} latency spectrum"),
        note: "Histograms of all valid repeats, merged; the right end is the slowest.".to_owned(),
        kind: kind.to_owned(),
        panel: String::new(),
        drawing: chart.render(),
        wide: false,
    })
}

/// The density of the rates of single seconds.
pub(crate) fn density_figure(view: &View<'_>, step: &StepView<'_>) -> Figure {
    let ridges = (0..view.targets.len())
        .map(|t| svg::Ridge {
            label: view.name(t).to_owned(),
            color: view.color(t),
            values: step
                .cells
                .iter()
                .filter(|c| c.target == t)
                .flat_map(|c| &c.record.series)
                .filter(|r| r.phase != "settle")
                .map(|r| r.rate)
                .collect(),
        })
        .collect();
    let drawing = svg::Ridges {
        label: format!("density of 1-second rates, step {}", step.plan.name),
        unit: "rows/s".to_owned(),
        ridges,
    }
    .render();
    Figure {
        id: format!("{}-density", step.id),
        title: "Density of 1-second rates".to_owned(),
        note: "All repeats; each ridge has its own height; dashed: median second.".to_owned(),
        kind: String::new(),
        panel: String::new(),
        drawing,
        wide: false,
    }
}

/// Bars of one metric.
pub(crate) fn bars(view: &View<'_>, step: &StepView<'_>, name: &str) -> Option<Figure> {
    let metric = metric(name)?;
    let bars: Vec<svg::Bar> = (0..view.targets.len())
        .map(|t| {
            let value = step.metric(t, name).map(|v| v / metric.divisor);
            let result = step.results.get(t).copied().flatten();
            let estimate = result.and_then(|r| r.estimates.get(name));
            let text = match (value, metric.unit) {
                (Some(v), "x") => format!("{}\u{d7}", times(v)),
                (v, _) => format::maybe(v),
            };
            svg::Bar {
                label: view.name(t).to_owned(),
                color: view.color(t),
                value,
                interval: estimate.map(|e| (e.low / metric.divisor, e.high / metric.divisor)),
                text,
            }
        })
        .collect();
    if bars.iter().all(|b| b.value.is_none()) {
        return None;
    }
    let unit = if metric.unit == "x" { "" } else { metric.unit };
    let title = format!("{} {}", metric.label, unit);
    Some(Figure {
        id: format!("{}-{}", step.id, name.replace('_', "-")),
        title: title.trim().to_owned(),
        note: metric.about.to_owned(),
        kind: String::new(),
        panel: String::new(),
        drawing: svg::Bars {
            label: format!("{} ({}), step {}", metric.about, metric.unit, step.plan.name),
            bars,
        }
        .render(),
        wide: false,
    })
}

/// Bytes written by reason, of the shown repeats; `None` when no engine counts them.
pub(crate) fn reasons(view: &View<'_>, step: &StepView<'_>) -> Option<Figure> {
    let shown = step.shown();
    let mut kinds: Vec<String> = Vec::new();
    for kind in shown.iter().flat_map(|c| c.summary.written_by_reason.keys()) {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    if kinds.is_empty() {
        return None;
    }
    let stacks = shown
        .iter()
        .map(|cell| {
            let by = &cell.summary.written_by_reason;
            let total: u64 = by.values().sum();
            let segments = kinds.iter().enumerate().filter_map(|(kind, name)| {
                let value = *by.get(name)? as f64;
                let title = format!("{name}: {}", format::bytes(value));
                Some(svg::Segment { kind, value, title })
            });
            svg::Stack {
                label: view.name(cell.target).to_owned(),
                segments: segments.collect(),
                text: if by.is_empty() {
                    format::MISSING.to_owned()
                } else {
                    format::bytes(total as f64)
                },
            }
        })
        .collect();
    Some(Figure {
        id: format!("{}-reasons", step.id),
        title: "Bytes written by reason".to_owned(),
        note: "As the engines count them; they may differ from the device's bytes.".to_owned(),
        kind: String::new(),
        panel: String::new(),
        drawing: svg::Stacks {
            label: format!("bytes written by reason, step {}", step.plan.name),
            kinds,
            stacks,
        }
        .render(),
        wide: false,
    })
}

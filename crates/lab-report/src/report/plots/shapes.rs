//! The shapes of rates and latencies: rate over rows, latency by quantile, density of the rate.

use hdrhistogram::Histogram;

use super::{Figure, far_apart};
use crate::analysis::Clock;
use crate::format;
use crate::record::Operation;
use crate::report::model::{CellView, StepView, View};
use crate::report::svg;

/// Rate over rows of one target: the median over the repeats at several row counts, and the range.
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

/// Number of intervals of equal row counts in a knee.
const KNEE_PARTS: u32 = 80;

/// The knee of each target; empty for steps that measure queries.
pub(crate) fn knees(view: &View<'_>, step: &StepView<'_>) -> Vec<Knee> {
    let most = step
        .cells
        .iter()
        .filter_map(|c| c.record.series.iter().map(|r| r.rows).max())
        .max()
        .unwrap_or(0);
    if most == 0 || step.queries() {
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
    let cells = step.cells.iter().filter(|c| c.target == target);
    let clocks: Vec<Clock> = cells.map(|c| Clock::of(&c.record.series)).collect();
    let mut points = Vec::new();
    for part in 0..KNEE_PARTS {
        let (from, to) = (width * f64::from(part), width * f64::from(part + 1));
        let rates: Vec<f64> = clocks
            .iter()
            .filter_map(|clock| {
                let seconds = clock.at(to)? - clock.at(from)?;
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

/// The static drawing of the knee.
pub(crate) fn knee_figure(view: &View<'_>, step: &StepView<'_>, knees: &[Knee]) -> Option<Figure> {
    if knees.is_empty() {
        return None;
    }
    let mut chart = svg::LineChart {
        label: format!("rate over rows, step {}", step.plan.name),
        x_label: "rows written in this step".to_owned(),
        y_label: "rows/s".to_owned(),
        y_log: far_apart(step),
        ..svg::LineChart::default()
    };
    for knee in knees {
        let color = view.color(knee.target);
        chart.areas.push(svg::Area {
            color,
            points: knee
                .points
                .iter()
                .map(|p| (p.rows, p.low, p.high))
                .collect(),
        });
        chart.lines.push(svg::Line {
            label: view.name(knee.target).to_owned(),
            color,
            dashed: false,
            points: knee
                .points
                .iter()
                .map(|p| (p.rows, Some(p.median)))
                .collect(),
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
        let micros = if last {
            histogram.max()
        } else {
            histogram.value_at_quantile(quantile)
        };
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
    let operation = if queries {
        Operation::QUERY
    } else {
        step.operation
    };
    let what = operation.latency;
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

/// Minimum number of seconds for a meaningful density.
const DENSITY_MIN: usize = 5;

/// The density of the rates of single seconds; `None` when no target ran long enough.
pub(crate) fn density_figure(view: &View<'_>, step: &StepView<'_>) -> Option<Figure> {
    let ridges: Vec<svg::Ridge> = (0..view.targets.len())
        .map(|t| ridge(view, step, t))
        .collect();
    if ridges.iter().all(|r| r.values.len() < DENSITY_MIN) {
        return None;
    }
    let log = far_apart(step);
    let drawing = svg::Ridges {
        label: format!("density of 1-second rates, step {}", step.plan.name),
        unit: step.unit().to_owned(),
        log,
        ridges,
    }
    .render();
    let mut note = "All repeats; each ridge has its own height; dashed: median second.".to_owned();
    if log {
        note.push_str(" Logarithmic.");
    }
    Some(Figure {
        id: format!("{}-density", step.id),
        title: "Density of 1-second rates".to_owned(),
        note,
        kind: String::new(),
        panel: String::new(),
        drawing,
        wide: false,
    })
}

fn ridge(view: &View<'_>, step: &StepView<'_>, target: usize) -> svg::Ridge {
    let cells = step.cells.iter().filter(|c| c.target == target);
    let seconds = cells.flat_map(CellView::whole_seconds);
    svg::Ridge {
        label: view.name(target).to_owned(),
        color: view.color(target),
        values: seconds.map(|r| step.rate(r)).collect(),
    }
}

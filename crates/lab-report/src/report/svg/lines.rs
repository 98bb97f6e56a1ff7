//! Line charts: series over time, over rows, or over the quantile, with bands and limits.

use super::bars::clip;
use super::{Anchor, Canvas, Scale, extent};
use crate::format;

/// One line; a `None` is a gap.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name in the legend; lines without one are not in it.
    pub label: String,
    /// Its colour class.
    pub color: usize,
    /// Drawn dashed: the secondary quantity of the same target.
    pub dashed: bool,
    /// Points in the order of x.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A vertical band, for instance a stall.
#[derive(Clone, Copy, Debug)]
pub struct Band {
    /// Where it begins on the x axis.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Its colour class.
    pub color: usize,
}

/// The area between two lines, for instance all repeats.
#[derive(Clone, Debug)]
pub struct Area {
    /// Its colour class.
    pub color: usize,
    /// Points (x, low, high) in the order of x.
    pub points: Vec<(f64, f64, f64)>,
}

/// A chart of lines on common axes.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// What it shows, for screen readers.
    pub label: String,
    /// The unit of x.
    pub x_label: String,
    /// The unit of y.
    pub y_label: String,
    /// Logarithmic x; otherwise x begins at zero.
    pub x_log: bool,
    /// Logarithmic y; otherwise y begins at zero.
    pub y_log: bool,
    /// x is 1/(1-q), drawn in decades and marked with the quantile.
    pub x_quantile: bool,
    /// Whether each point of a line is marked by a square: few points that were measured.
    pub marked: bool,
    /// The lines.
    pub lines: Vec<Line>,
    /// The areas under them.
    pub areas: Vec<Area>,
    /// The bands behind them.
    pub bands: Vec<Band>,
    /// A horizontal limit with its name.
    pub limit: Option<(f64, String)>,
    /// Its width in units of the drawing; 0 for the usual 640.
    pub width: f64,
    /// Maximum number of points of a line; longer lines are thinned to the minimum and maximum of
    /// each interval, so that no peak is lost.
    pub points_max: usize,
}

const USUAL_WIDTH: f64 = 640.0;
const HEIGHT: f64 = 208.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 37.0;

impl LineChart {
    /// The drawing.
    #[must_use]
    pub fn render(&self) -> String {
        let rows = self.legend_rows();
        let height = HEIGHT + 14.0 * rows;
        let right = self.right();
        let mut canvas = Canvas::new(right + RIGHT, height);
        let (x, y) = self.scales();
        self.axes(&mut canvas, &x, &y);
        for band in &self.bands {
            let (a, b) = (x.map(band.from), x.map(band.to));
            canvas.rect(
                (a, TOP),
                ((b - a).max(1.0), HEIGHT - TOP - BOTTOM),
                &format!("bd f{}", band.color),
            );
        }
        for area in &self.areas {
            let up = area.points.iter().map(|p| (p.0, p.2));
            let down = area.points.iter().rev().map(|p| (p.0, p.1));
            let path: Vec<_> = up
                .chain(down)
                .map(|(px, py)| Some((x.map(px), y.map(py))))
                .collect();
            canvas.path(&path, &format!("ar f{}", area.color), true);
        }
        if let Some((value, name)) = &self.limit {
            let at = y.map(*value);
            canvas.line((LEFT, at), (right, at), "lim");
            canvas.text((right, at - 3.0), Anchor::End, "limt", name);
        }
        let most = if self.points_max == 0 {
            300
        } else {
            self.points_max
        };
        for line in &self.lines {
            let path: Vec<_> = thin(&line.points, &x, most)
                .into_iter()
                .map(|(px, v)| v.map(|v| (px, y.map(v))))
                .collect();
            let dash = if line.dashed { " da" } else { "" };
            canvas.path(&path, &format!("ln k{}{dash}", line.color), false);
            // A single second is drawn as a square.
            let single = path.iter().flatten().count() == 1;
            for at in path.iter().flatten().filter(|_| single || self.marked) {
                let corner = (at.0 - 2.5, at.1 - 2.5);
                canvas.rect(corner, (5.0, 5.0), &format!("f{}", line.color));
            }
        }
        self.legend(&mut canvas);
        canvas.finish(&self.label)
    }

    /// Where the plotting area ends.
    fn right(&self) -> f64 {
        let width = if self.width > 0.0 {
            self.width
        } else {
            USUAL_WIDTH
        };
        width - RIGHT
    }

    fn scales(&self) -> (Scale, Scale) {
        let right = self.right();
        let points = || self.lines.iter().flat_map(|l| l.points.iter());
        let across = extent(points().map(|p| p.0));
        let span = (LEFT, right);
        let x = if self.x_quantile {
            Scale::log((1.0, across.1), span)
        } else if self.x_log {
            Scale::log(across, span)
        } else {
            Scale::linear((across.0.min(0.0), across.1), span)
        };
        let values = points()
            .filter_map(|p| p.1)
            .chain(self.areas.iter().flat_map(|a| a.points.iter().map(|p| p.2)))
            .chain(self.limit.iter().map(|l| l.0))
            .filter(|v| !self.y_log || *v > 0.0);
        let up = extent(values);
        let rise = (HEIGHT - BOTTOM, TOP);
        let y = if self.y_log {
            Scale::log(up, rise)
        } else {
            Scale::linear((up.0.min(0.0), up.1 * 1.05), rise)
        };
        (x, y)
    }

    fn axes(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        let (floor, right) = (HEIGHT - BOTTOM, self.right());
        for tick in y.ticks(4) {
            let at = y.map(tick);
            canvas.line((LEFT, at), (right, at), "grid");
            canvas.text(
                (LEFT - 5.0, at + 3.5),
                Anchor::End,
                "t",
                &format::short(tick),
            );
        }
        for tick in x.ticks(8) {
            let at = x.map(tick);
            canvas.line((at, floor), (at, floor + 4.0), "ax");
            let text = if self.x_quantile {
                format::quantile(tick)
            } else {
                format::short(tick)
            };
            canvas.text((at, floor + 15.0), Anchor::Middle, "t", &text);
        }
        canvas.line((LEFT, floor), (right, floor), "ax");
        canvas.text((4.0, 11.0), Anchor::Start, "t u", &self.y_label);
        canvas.text((right, HEIGHT - 4.0), Anchor::End, "t u", &self.x_label);
    }

    fn legend_rows(&self) -> f64 {
        let names = self.lines.iter().filter(|l| !l.label.is_empty()).count();
        (names as f64 / 3.0).ceil()
    }

    /// The names of the lines, three in a row below the axis.
    fn legend(&self, canvas: &mut Canvas) {
        let step = (self.right() - LEFT) / 3.0;
        let letters = if step > 250.0 { 40 } else { 26 };
        for (i, line) in self
            .lines
            .iter()
            .filter(|l| !l.label.is_empty())
            .enumerate()
        {
            let at = (
                LEFT + step * (i % 3) as f64,
                HEIGHT + 8.0 + 14.0 * (i / 3) as f64,
            );
            let dash = if line.dashed { " da" } else { "" };
            canvas.line(
                (at.0, at.1 - 4.0),
                (at.0 + 18.0, at.1 - 4.0),
                &format!("ln k{}{dash}", line.color),
            );
            canvas.text(
                (at.0 + 23.0, at.1),
                Anchor::Start,
                "t",
                &clip(&line.label, letters),
            );
        }
    }
}

/// Points mapped to x coordinates and thinned to about `most`: each interval of x keeps its minimum
/// and maximum in their order. An interval without values is a gap.
pub(super) fn thin(
    points: &[(f64, Option<f64>)],
    x: &Scale,
    most: usize,
) -> Vec<(f64, Option<f64>)> {
    if points.len() <= most {
        return points.iter().map(|(px, v)| (x.map(*px), *v)).collect();
    }
    let group = points.len().div_ceil((most / 2).max(1));
    let mut out = Vec::with_capacity(most);
    for chunk in points.chunks(group) {
        let known = || chunk.iter().filter_map(|(px, v)| Some((*px, (*v)?)));
        let least = known().min_by(|a, b| a.1.total_cmp(&b.1));
        let most = known().max_by(|a, b| a.1.total_cmp(&b.1));
        match (least, most, chunk.first()) {
            (Some(a), Some(b), _) => {
                let (first, last) = if a.0 <= b.0 { (a, b) } else { (b, a) };
                out.push((x.map(first.0), Some(first.1)));
                out.push((x.map(last.0), Some(last.1)));
            }
            (_, _, Some(first)) => out.push((x.map(first.0), None)),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_peaks_and_gaps() {
        let mut points: Vec<_> = (0..1000).map(|i| (f64::from(i), Some(5.0))).collect();
        points[503].1 = Some(99.0);
        points[700..800].iter_mut().for_each(|p| p.1 = None);
        let x = Scale::linear((0.0, 1000.0), (0.0, 1000.0));
        let thinned = thin(&points, &x, 100);
        assert!(thinned.len() <= 102, "{}", thinned.len());
        assert!(thinned.iter().any(|p| p.1 == Some(99.0)));
        assert!(thinned.iter().any(|p| p.1.is_none()));
    }

    #[test]
    fn a_single_second_is_a_point() {
        let chart = |points| LineChart {
            lines: vec![Line {
                color: 3,
                points,
                ..Line::default()
            }],
            ..LineChart::default()
        };
        let one = chart(vec![(0.5, Some(9.0)), (1.5, None)]).render();
        assert!(one.contains("<rect class=\"f3\""), "{one}");
        let two = chart(vec![(0.5, Some(9.0)), (1.5, Some(8.0))]).render();
        assert!(!two.contains("<rect"), "{two}");
    }

    #[test]
    fn a_chart_without_points_still_draws_its_axes() {
        let svg = LineChart::default().render();
        assert!(svg.starts_with("<svg") && svg.contains("class=\"ax\""));
    }
}

//! Named points on two axes, and the Pareto front.

use super::bars::clip;
use super::{Anchor, Canvas, Scale, extent};
use crate::format;

/// One point.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its place across.
    pub x: f64,
    /// Its place up.
    pub y: f64,
    /// Its colour class.
    pub color: usize,
    /// Its name.
    pub label: String,
    /// Drawn as an outline: a weaker kind of number.
    pub hollow: bool,
}

/// Points on common axes.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// What it shows, for screen readers.
    pub label: String,
    /// The unit of x.
    pub x_label: String,
    /// The unit of y.
    pub y_label: String,
    /// Logarithmic x; otherwise x begins at zero.
    pub x_log: bool,
    /// Whether to connect the points that have no other point above them and to their left.
    pub front: bool,
    /// The points.
    pub points: Vec<Point>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 37.0;
const SIZE: f64 = 7.0;

impl Scatter {
    /// The drawing.
    #[must_use]
    pub fn render(&self) -> String {
        let mut canvas = Canvas::new(WIDTH, HEIGHT);
        let across = extent(self.points.iter().map(|p| p.x));
        let span = (LEFT, WIDTH - RIGHT);
        let x = if self.x_log {
            Scale::log(across, span)
        } else {
            Scale::linear((0.0, across.1 * 1.05), span)
        };
        let up = extent(self.points.iter().map(|p| p.y));
        let y = Scale::linear((0.0, up.1 * 1.1), (HEIGHT - BOTTOM, TOP));
        self.axes(&mut canvas, &x, &y);
        if self.front {
            let path: Vec<_> = self
                .pareto()
                .into_iter()
                .map(|p| Some((x.map(p.x), y.map(p.y))))
                .collect();
            canvas.path(&path, "lim", false);
        }
        let mut taken: Vec<f64> = Vec::new();
        for point in &self.points {
            let (px, py) = (x.map(point.x), y.map(point.y));
            let half = SIZE / 2.0;
            let pale = if point.hollow { " pale" } else { "" };
            let class = format!("f{}{pale}", point.color);
            let corner = (px - half, py - half);
            let title = format!(
                "{}: {}, {}",
                point.label,
                format::number(point.x),
                format::number(point.y)
            );
            canvas.titled_rect(corner, (SIZE, SIZE), &class, &title);
            // A name that would overlap another is left out: the tables list all.
            let free = taken.iter().all(|t| (t - py).abs() > 11.0);
            if free {
                taken.push(py);
                let at = (px + SIZE, py + 3.5);
                canvas.text(at, Anchor::Start, "t", &clip(&point.label, 24));
            }
        }
        canvas.finish(&self.label)
    }

    /// The points that are higher than every point to their left, from the left.
    fn pareto(&self) -> Vec<&Point> {
        let mut all: Vec<&Point> = self.points.iter().collect();
        all.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
        let mut front: Vec<&Point> = Vec::new();
        for point in all {
            if front.last().is_none_or(|best| best.y < point.y) {
                front.push(point);
            }
        }
        front
    }

    fn axes(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in y.ticks(4) {
            let at = y.map(tick);
            canvas.line((LEFT, at), (right, at), "grid");
            let text = format::short(tick);
            canvas.text((LEFT - 5.0, at + 3.5), Anchor::End, "t", &text);
        }
        for tick in x.ticks(8) {
            let at = x.map(tick);
            canvas.line((at, floor), (at, floor + 4.0), "ax");
            let text = format::short(tick);
            canvas.text((at, floor + 15.0), Anchor::Middle, "t", &text);
        }
        canvas.line((LEFT, floor), (right, floor), "ax");
        canvas.text((4.0, 11.0), Anchor::Start, "t u", &self.y_label);
        canvas.text((right, HEIGHT - 4.0), Anchor::End, "t u", &self.x_label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_leaves_out_what_is_dearer_and_slower() {
        let point = |x: f64, y: f64| Point {
            x,
            y,
            color: 0,
            label: format!("{x}"),
            hollow: false,
        };
        let chart = Scatter {
            label: "t".to_owned(),
            x_label: String::new(),
            y_label: String::new(),
            x_log: false,
            front: true,
            points: vec![
                point(3.0, 5.0),
                point(1.0, 2.0),
                point(2.0, 1.0),
                point(3.0, 9.0),
                point(4.0, 9.0),
            ],
        };
        let front: Vec<(f64, f64)> = chart.pareto().iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(front, [(1.0, 2.0), (3.0, 9.0)]);
        assert!(chart.render().contains("class=\"lim\""));
    }
}

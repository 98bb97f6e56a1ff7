//! A ratio and its interval as a mark on a logarithmic line, for a row of a table.

use super::{Canvas, Scale};

/// A ratio to draw.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// The ratio.
    pub median: f64,
    /// The low end of its interval.
    pub low: f64,
    /// The high end.
    pub high: f64,
    /// The noise floor around 1, shaded; 0 for none.
    pub floor: f64,
    /// Its colour class.
    pub color: usize,
}

/// Draws the mark; `least` and `most` are the ends of the line, the same for all rows of a table.
#[must_use]
pub fn mark(mark: &Mark, least: f64, most: f64, label: &str) -> String {
    let (width, height) = (160.0, 18.0);
    let log = |v: f64| v.clamp(least, most).ln();
    let x = Scale::linear((least.ln(), most.ln()), (4.0, width - 4.0));
    let mut canvas = Canvas::new(width, height);
    if mark.floor > 0.0 {
        let a = x.map(log(1.0 - mark.floor));
        let b = x.map(log(1.0 + mark.floor));
        canvas.rect((a, 0.0), (b - a, height), "track");
    }
    let one = x.map(0.0);
    canvas.line((one, 0.0), (one, height), "ax");
    let (a, b) = (x.map(log(mark.low)), x.map(log(mark.high)));
    let class = format!("ln k{}", mark.color);
    canvas.line((a, 9.0), (b, 9.0), &class);
    canvas.line((a, 5.5), (a, 12.5), &class);
    canvas.line((b, 5.5), (b, 12.5), &class);
    let at = x.map(log(mark.median));
    canvas.rect((at - 3.0, 6.0), (6.0, 6.0), &format!("f{}", mark.color));
    canvas.finish(label)
}

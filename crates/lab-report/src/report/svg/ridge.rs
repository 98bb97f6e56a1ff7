//! Densities of the rate of single seconds, one ridge per target on a common axis.
//!
//! A mean hides two modes; a density shows them. Gaussian kernel; the width is Silverman's rule
//! (Silverman 1986, eq. 3.31): 0.9 min(sd, IQR/1.34) n^(-1/5).

use super::bars::clip;
use super::{Anchor, Canvas, Scale, extent};
use crate::format;

/// The seconds of one target.
#[derive(Clone, Debug)]
pub struct Ridge {
    /// The target.
    pub label: String,
    /// Its colour class.
    pub color: usize,
    /// One value per second, in any order.
    pub values: Vec<f64>,
}

/// Ridges on a common axis.
#[derive(Clone, Debug)]
pub struct Ridges {
    /// What it shows, for screen readers.
    pub label: String,
    /// The unit of the axis.
    pub unit: String,
    /// Logarithmic axis: densities of decades; zeros stand at its lower end.
    pub log: bool,
    /// The ridges from the top.
    pub ridges: Vec<Ridge>,
}

const WIDTH: f64 = 400.0;
const NAME: f64 = 78.0;
const ROW: f64 = 58.0;
const GRID: u32 = 120;

impl Ridges {
    /// The drawing. The tick on each ridge's base is the median of its seconds.
    #[must_use]
    pub fn render(&self) -> String {
        let floor = ROW * self.ridges.len() as f64 + 4.0;
        let mut canvas = Canvas::new(WIDTH, floor + 32.0);
        let domain = self.domain();
        let x = Scale::linear(domain, (NAME, WIDTH - 12.0));
        for (place, text) in self.ticks(&x, domain) {
            let at = x.map(place);
            canvas.line((at, 4.0), (at, floor), "grid");
            canvas.text((at, floor + 14.0), Anchor::Middle, "t", &text);
        }
        canvas.text((WIDTH - 12.0, floor + 28.0), Anchor::End, "t u", &self.unit);
        for (i, ridge) in self.ridges.iter().enumerate() {
            let base = ROW * (i + 1) as f64;
            self.ridge(&mut canvas, ridge, (&x, domain), base);
        }
        canvas.finish(&self.label)
    }

    /// The ends of the axis; powers of ten on a logarithmic one.
    fn domain(&self) -> (f64, f64) {
        let values = self.ridges.iter().flat_map(|r| r.values.iter().copied());
        let all = extent(values.filter(|v| !self.log || 0.0 < *v));
        if !self.log {
            return (0.0, all.1 * 1.15);
        }
        let low = all.0.max(1e-9).log10().floor();
        (low, all.1.max(1e-9).log10().ceil().max(low + 1.0))
    }

    /// The position of a value on the axis.
    fn place(&self, value: f64, domain: (f64, f64)) -> f64 {
        if self.log {
            value.max(1e-12).log10().max(domain.0)
        } else {
            value
        }
    }

    /// The ticks with their texts.
    fn ticks(&self, x: &Scale, domain: (f64, f64)) -> Vec<(f64, String)> {
        let text = |place: f64| {
            let value = if self.log { 10f64.powf(place) } else { place };
            (place, format::short(value))
        };
        // A decade is one on a logarithmic axis, whatever its length.
        let most = if self.log { domain.1 - domain.0 } else { 5.0 };
        let whole = |place: &f64| !self.log || (place - place.round()).abs() < 1e-9;
        let count = if most <= 3.0 { 3 } else { 5 };
        x.ticks(count).into_iter().filter(whole).map(text).collect()
    }

    fn ridge(
        &self,
        canvas: &mut Canvas,
        ridge: &Ridge,
        (x, domain): (&Scale, (f64, f64)),
        base: f64,
    ) {
        canvas.line((NAME, base), (WIDTH - 12.0, base), "ax");
        let name = clip(&ridge.label, 12);
        canvas.text((NAME - 7.0, base - 6.0), Anchor::End, "t", &name);
        let places: Vec<f64> = ridge
            .values
            .iter()
            .map(|v| self.place(*v, domain))
            .collect();
        let curve = density(&places, domain);
        let peak = curve.iter().map(|p| p.1).fold(0.0, f64::max);
        if peak <= 0.0 {
            canvas.text((NAME + 4.0, base - 6.0), Anchor::Start, "t", "n/a");
            return;
        }
        let y = Scale::linear((0.0, peak), (base, base - ROW + 8.0));
        let line: Vec<_> = curve
            .iter()
            .map(|p| Some((x.map(p.0), y.map(p.1))))
            .collect();
        let mut shape = vec![Some((x.map(domain.0), base))];
        shape.extend(line.iter().copied());
        shape.push(Some((x.map(domain.1), base)));
        canvas.path(&shape, &format!("ar f{}", ridge.color), true);
        canvas.path(&line, &format!("ln k{}", ridge.color), false);
        if let Some(median) = format::median(&places) {
            let at = x.map(median);
            let class = format!("ln k{} da", ridge.color);
            canvas.line((at, base - ROW + 8.0), (at, base), &class);
        }
    }
}

/// The density at [`GRID`] places of the domain; empty without values.
fn density(values: &[f64], domain: (f64, f64)) -> Vec<(f64, f64)> {
    if values.is_empty() {
        return Vec::new();
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    let span = domain.1 - domain.0;
    let quarter = |q| format::quantile_of(values, q).unwrap_or(mean);
    let iqr = (quarter(0.75) - quarter(0.25)) / 1.34;
    let spread = if iqr > 0.0 { sd.min(iqr) } else { sd };
    let width = (0.9 * spread * n.powf(-0.2)).max(span / 150.0).max(1e-9);
    (0..=GRID)
        .map(|i| {
            let at = domain.0 + span * f64::from(i) / f64::from(GRID);
            let sum: f64 = values
                .iter()
                .map(|v| (-0.5 * ((at - v) / width).powi(2)).exp())
                .sum();
            (at, sum / (n * width))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_modes_make_two_peaks() {
        let values: Vec<f64> = (0..200)
            .map(|i| f64::from(i % 5) + if i % 2 == 0 { 100.0 } else { 900.0 })
            .collect();
        let curve = density(&values, (0.0, 1000.0));
        let at = |x: f64| {
            curve
                .iter()
                .min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs()))
                .map(|p| p.1)
                .unwrap()
        };
        assert!(at(100.0) > 2.0 * at(500.0) && at(900.0) > 2.0 * at(500.0));
    }

    #[test]
    fn rates_of_different_decades_have_each_their_place() {
        let ridge = |label: &str, value: f64| Ridge {
            label: label.into(),
            color: 0,
            values: vec![value, value * 1.2, 0.0],
        };
        let ridges = Ridges {
            label: "l".into(),
            unit: "u".into(),
            log: true,
            ridges: vec![ridge("slow", 900.0), ridge("fast", 160_000.0)],
        };
        assert_eq!(ridges.domain(), (2.0, 6.0));
        assert_eq!(ridges.place(0.0, (2.0, 6.0)), 2.0);
        let svg = ridges.render();
        for tick in ["100", "1000", "10k", "100k", "1M"] {
            assert!(svg.contains(&format!(">{tick}</text>")), "{tick}: {svg}");
        }
    }

    #[test]
    fn missing_seconds_are_marked() {
        let svg = Ridges {
            label: "l".into(),
            unit: "u".into(),
            log: false,
            ridges: vec![Ridge {
                label: "a".into(),
                color: 0,
                values: Vec::new(),
            }],
        }
        .render();
        assert!(svg.contains("n/a"));
    }
}

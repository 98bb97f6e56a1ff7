//! Static charts as SVG text, drawn without a browser: the print and no-script form of every plot,
//! and the only form of bars and densities.
//!
//! Colours are classes (`k3` strokes, `f3` fills with series colour 3), so that one drawing serves
//! the dark and the light theme; [`standalone`] puts the colours of the light theme into the file
//! for use outside the report. Invariant: every text from outside goes through [`escape`].

mod bars;
mod forest;
mod heat;
mod lines;
pub mod map;
mod ridge;
mod scale;
mod scatter;

use std::fmt::Write as _;

pub use bars::{Bar, Bars, Segment, Stack, Stacks};
pub use forest::{Mark, mark};
pub use heat::{Heat, HeatMap};
pub use lines::{Area, Band, Line, LineChart};
pub use ridge::{Ridge, Ridges};
pub use scale::Scale;
pub use scatter::{Point, Scatter};

/// The colours of the series in the light theme: Okabe and Ito's palette for colour-blind readers,
/// the ones that hold on white first.
pub const PALETTE: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3aa6dd", "#7a5195", "#5b6470",
];

/// The colour class of the `index`-th series; the palette repeats after its end.
#[must_use]
pub fn color(index: usize) -> usize {
    index % PALETTE.len()
}

/// A text made safe for SVG and HTML content and attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A self-contained drawing, with the XML namespace and the light colors added.
#[must_use]
pub fn standalone(svg: &str) -> String {
    let mut style = String::from(
        "<style>text{font:11px system-ui,sans-serif;fill:#444}.grid{stroke:#ddd}\
         .ax{stroke:#999}.ln{fill:none;stroke-width:1.5}.da{stroke-dasharray:4 3}\
         .ar{opacity:.18}.bd{opacity:.14}.lim{stroke:#b3261e;stroke-dasharray:6 3}\
         .track{fill:#eee}.wk{stroke:#222}.num{fill:#111}.pale{opacity:.3}",
    );
    for (i, c) in PALETTE.iter().enumerate() {
        let _ = write!(style, ".k{i}{{stroke:{c}}}.f{i}{{fill:{c}}}");
    }
    style.push_str("</style>");
    match svg.split_once('>') {
        Some((head, rest)) => {
            format!("{head} xmlns=\"http://www.w3.org/2000/svg\">{style}{rest}")
        }
        None => svg.to_owned(),
    }
}

/// The anchor of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in progress.
pub(crate) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    pub(crate) fn new(width: f64, height: f64) -> Canvas {
        Canvas {
            width,
            height,
            body: String::new(),
        }
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>",
            coord(from.0),
            coord(from.1),
            coord(to.0),
            coord(to.1)
        );
    }

    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), class: &str) {
        self.titled_rect(at, size, class, "");
    }

    /// A rectangle that shows `title` when pointed at.
    pub(crate) fn titled_rect(
        &mut self,
        at: (f64, f64),
        size: (f64, f64),
        class: &str,
        title: &str,
    ) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            coord(at.0),
            coord(at.1),
            coord(size.0.max(0.0)),
            coord(size.1.max(0.0))
        );
        if title.is_empty() {
            self.body.push_str("/>");
        } else {
            let _ = write!(self.body, "><title>{}</title></rect>", escape(title));
        }
    }

    /// A rectangle of which only a share of the colour shows, from 0 to 1. It does not take the
    /// pointer from what is below it.
    pub(crate) fn shaded_rect(
        &mut self,
        at: (f64, f64),
        size: (f64, f64),
        class: &str,
        shade: f64,
    ) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
             opacity=\"{:.2}\" pointer-events=\"none\"/>",
            coord(at.0),
            coord(at.1),
            coord(size.0.max(0.0)),
            coord(size.1.max(0.0)),
            shade.clamp(0.0, 1.0)
        );
    }

    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            coord(at.0),
            coord(at.1),
            escape(text)
        );
    }

    /// A path of already mapped points; `None` lifts the pen. Steps are relative, which is half as
    /// long; they are taken between rounded points, so that errors do not add up.
    pub(crate) fn path(&mut self, points: &[Option<(f64, f64)>], class: &str, close: bool) {
        let mut d = String::new();
        let mut last: Option<(f64, f64)> = None;
        for point in points {
            let Some(at) = point.map(|(x, y)| (tenths(x), tenths(y))) else {
                last = None;
                continue;
            };
            match last {
                None => {
                    let _ = write!(d, "M{} {}l0 0", coord(at.0), coord(at.1));
                }
                Some(from) => {
                    for step in [at.0 - from.0, at.1 - from.1].map(coord) {
                        if !step.starts_with('-') {
                            d.push(' ');
                        }
                        d.push_str(&step);
                    }
                }
            }
            last = Some(at);
        }
        if d.is_empty() {
            return;
        }
        if close {
            d.push('Z');
        }
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    pub(crate) fn finish(self, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            coord(self.width),
            coord(self.height),
            escape(label),
            self.body
        )
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A coordinate in tenths, in the shortest form.
fn coord(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A line of rates without axes, for tables: `width` by `height` units.
#[must_use]
pub fn sparkline(points: &[(f64, Option<f64>)], color: usize, label: &str) -> String {
    let (width, height) = (120.0, 24.0);
    let x = Scale::linear(extent(points.iter().map(|p| p.0)), (1.0, width - 1.0));
    let top = points.iter().filter_map(|p| p.1).fold(0.0, f64::max);
    let y = Scale::linear((0.0, top), (height - 2.0, 2.0));
    let mut canvas = Canvas::new(width, height);
    let mapped: Vec<_> = lines::thin(points, &x, 60)
        .into_iter()
        .map(|(px, v)| v.map(|v| (px, y.map(v))))
        .collect();
    canvas.path(&mapped, &format!("ln k{color}"), false);
    canvas.finish(label)
}

/// The minimum and maximum of finite values; (0, 1) if there are none.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut range: Option<(f64, f64)> = None;
    for v in values.filter(|v| v.is_finite()) {
        range = Some(range.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v))));
    }
    range.unwrap_or((0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_coordinates_are_short() {
        let mut canvas = Canvas::new(10.0, 10.0);
        canvas.text((1.04, -0.01), Anchor::Start, "a", "</script><b a='\"'>&");
        let svg = canvas.finish("x\"y");
        assert!(svg.contains("&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;"));
        assert!(svg.contains("x=\"1\" y=\"0\""), "{svg}");
        assert!(svg.contains("aria-label=\"x&quot;y\""));
    }

    #[test]
    fn paths_are_relative_and_lift_the_pen_at_gaps() {
        let mut canvas = Canvas::new(1.0, 1.0);
        let points = [(0.0, 9.0), (1.04, 8.0), (2.0, 8.46)].map(Some);
        let mut all = points.to_vec();
        all.extend([None, Some((5.0, 5.0))]);
        canvas.path(&all, "c", false);
        assert!(
            canvas.body.contains("d=\"M0 9l0 0 1-1 1 0.5M5 5l0 0\""),
            "{}",
            canvas.body
        );
    }

    #[test]
    fn a_standalone_file_has_its_colours() {
        let svg = standalone(&Canvas::new(1.0, 1.0).finish("t"));
        assert!(svg.starts_with("<svg viewBox=\"0 0 1 1\""));
        assert!(svg.contains("xmlns=\"http://www.w3.org/2000/svg\"><style>"));
        assert!(svg.contains(".k0{stroke:#0072b2}"));
    }
}

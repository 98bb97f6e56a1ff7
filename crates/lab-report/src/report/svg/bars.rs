//! Horizontal bars, one per target, and stacked bars by reason.

use super::{Anchor, Canvas, Scale};

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The target.
    pub label: String,
    /// Its colour class.
    pub color: usize,
    /// Its length; `None` is shown as `n/a`.
    pub value: Option<f64>,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// The number written beside it.
    pub text: String,
    /// Drawn pale: the number may not be used.
    pub pale: bool,
}

/// Bars of one quantity from zero, to be read against each other.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What it shows, for screen readers.
    pub label: String,
    /// The bars from the top.
    pub bars: Vec<Bar>,
}

const WIDTH: f64 = 250.0;
const NAME: f64 = 78.0;
const NUMBER: f64 = 54.0;
/// Maximum number of characters of a name; the drawing is wider if names are longer than usual.
const NAME_MAX: usize = 28;
/// Approximate width of a character of a name.
const CHARACTER: f64 = 6.0;
const ROW: f64 = 24.0;

impl Bars {
    /// The drawing.
    #[must_use]
    pub fn render(&self) -> String {
        let longest = self.bars.iter().map(|b| b.label.chars().count()).max();
        let longest = longest.unwrap_or(0).min(NAME_MAX);
        let name = (longest as f64 * CHARACTER + 9.0).max(NAME);
        let width = WIDTH + name - NAME;
        let mut canvas = Canvas::new(width, ROW * self.bars.len() as f64 + 2.0);
        let top = self
            .bars
            .iter()
            .flat_map(|b| [b.value, b.interval.map(|i| i.1)])
            .flatten()
            .fold(0.0, f64::max);
        let x = Scale::linear((0.0, top), (name, width - NUMBER));
        for (i, bar) in self.bars.iter().enumerate() {
            let y = ROW * i as f64 + 2.0;
            let mid = y + ROW / 2.0;
            canvas.text(
                (name - 7.0, mid + 3.0),
                Anchor::End,
                "t",
                &clip(&bar.label, NAME_MAX),
            );
            canvas.rect(
                (name, y + 4.0),
                (width - NUMBER - name, ROW - 10.0),
                "track",
            );
            if let Some(value) = bar.value {
                canvas.titled_rect(
                    (name, y + 4.0),
                    ((x.map(value) - name).max(1.0), ROW - 10.0),
                    &format!("f{}{}", bar.color, if bar.pale { " pale" } else { "" }),
                    &format!("{}: {}", bar.label, bar.text),
                );
            }
            if let Some((low, high)) = bar.interval {
                let (a, b) = (x.map(low), x.map(high));
                let at = mid - 1.0;
                canvas.line((a, at), (b, at), "wk");
                canvas.line((a, at - 3.0), (a, at + 3.0), "wk");
                canvas.line((b, at - 3.0), (b, at + 3.0), "wk");
            }
            canvas.text(
                (width - NUMBER + 6.0, mid + 3.0),
                Anchor::Start,
                "num",
                &bar.text,
            );
        }
        canvas.finish(&self.label)
    }
}

/// A part of a stacked bar.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Index into the legend.
    pub kind: usize,
    /// Its length.
    pub value: f64,
    /// Shown on hover.
    pub title: String,
}

/// One stacked bar.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The target.
    pub label: String,
    /// Its parts from the left.
    pub segments: Vec<Segment>,
    /// The sum, as text.
    pub text: String,
}

/// Stacked bars with one legend.
#[derive(Clone, Debug)]
pub struct Stacks {
    /// What it shows, for screen readers.
    pub label: String,
    /// The names of the kinds.
    pub kinds: Vec<String>,
    /// The bars from the top.
    pub stacks: Vec<Stack>,
}

impl Stacks {
    /// The drawing. Kinds have the classes `q0` to `q7`.
    #[must_use]
    pub fn render(&self) -> String {
        let width = 460.0;
        let rows = self.kinds.len().div_ceil(4) as f64;
        let base = ROW * self.stacks.len() as f64 + 6.0;
        let mut canvas = Canvas::new(width, base + 16.0 * rows + 4.0);
        let sum = |s: &Stack| s.segments.iter().map(|p| p.value).sum::<f64>();
        let top = self.stacks.iter().map(sum).fold(0.0, f64::max);
        let x = Scale::linear((0.0, top), (0.0, width - NUMBER - NAME));
        for (i, stack) in self.stacks.iter().enumerate() {
            let y = ROW * i as f64 + 2.0;
            let text_y = y + ROW / 2.0 + 3.0;
            canvas.text(
                (NAME - 7.0, text_y),
                Anchor::End,
                "t",
                &clip(&stack.label, 12),
            );
            let mut at = NAME;
            for part in &stack.segments {
                let length = x.map(part.value);
                let class = format!("q{}", part.kind % 8);
                canvas.titled_rect((at, y + 4.0), (length, ROW - 10.0), &class, &part.title);
                at += length;
            }
            canvas.text((at + 6.0, text_y), Anchor::Start, "num", &stack.text);
        }
        for (i, kind) in self.kinds.iter().enumerate() {
            let at = (
                NAME + (width - NAME) / 4.0 * (i % 4) as f64,
                base + 16.0 * (i / 4) as f64 + 10.0,
            );
            canvas.rect((at.0, at.1 - 8.0), (9.0, 9.0), &format!("q{}", i % 8));
            canvas.text((at.0 + 13.0, at.1), Anchor::Start, "t", &clip(kind, 12));
        }
        canvas.finish(&self.label)
    }
}

/// A name cut to `most` characters, with dots when something is missing.
pub(super) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(most.saturating_sub(2)).collect();
    out.push_str("..");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_has_no_bar_but_a_text() {
        let svg = Bars {
            label: "l".into(),
            bars: vec![Bar {
                label: "a<b".into(),
                color: 1,
                value: None,
                interval: None,
                text: "n/a".into(),
                pale: false,
            }],
        }
        .render();
        assert!(svg.contains("n/a") && svg.contains("a&lt;b") && !svg.contains("class=\"f1\""));
    }
}

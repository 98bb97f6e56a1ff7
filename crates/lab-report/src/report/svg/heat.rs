//! Heat maps: a number for each pair of a row and a column, shaded by its size.

use super::bars::clip;
use super::{Anchor, Canvas};

/// One number.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    /// Its size, for the shade; `None` is drawn without a shade.
    pub value: Option<f64>,
    /// What is written in it.
    pub text: String,
    /// Shown when pointed at.
    pub title: String,
}

/// Rows and columns of numbers. The darkest shade is the largest number of the map.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// What it shows, for screen readers.
    pub label: String,
    /// The name of the columns.
    pub across: String,
    /// The columns from the left.
    pub columns: Vec<String>,
    /// The rows from the top, each with its numbers, one for each column, and its colour class.
    pub rows: Vec<(String, usize, Vec<Heat>)>,
}

const WIDTH: f64 = 640.0;
const ROW: f64 = 34.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 22.0;
/// Approximate width of a character of a name.
const CHARACTER: f64 = 6.2;
/// The shades of the smallest and of the largest number.
const SHADES: (f64, f64) = (0.06, 0.62);

impl HeatMap {
    /// The drawing.
    #[must_use]
    pub fn render(&self) -> String {
        let longest = self.rows.iter().map(|r| r.0.chars().count()).max();
        let name = (longest.unwrap_or(0).min(26) as f64 * CHARACTER + 10.0).max(40.0);
        let columns = self.columns.len().max(1) as f64;
        let width = ((WIDTH - name) / columns).min(150.0);
        let letters = letters(width);
        let floor = TOP + ROW * self.rows.len() as f64;
        let mut canvas = Canvas::new(name + width * columns, floor + BOTTOM);
        for (at, column) in self.columns.iter().enumerate() {
            let middle = name + width * (at as f64 + 0.5);
            let text = clip(column, letters);
            canvas.text((middle, TOP - 8.0), Anchor::Middle, "t", &text);
        }
        let numbers = self.rows.iter().flat_map(|row| &row.2);
        let most = numbers.filter_map(|heat| heat.value).fold(0.0, f64::max);
        for (at, (label, color, cells)) in self.rows.iter().enumerate() {
            let top = TOP + ROW * at as f64;
            let text = clip(label, 26);
            canvas.text((name - 7.0, top + 21.0), Anchor::End, "t", &text);
            for (column, heat) in cells.iter().enumerate() {
                let corner = (name + width * column as f64 + 1.0, top + 1.0);
                let size = (width - 2.0, ROW - 2.0);
                canvas.titled_rect(corner, size, "track", &heat.title);
                if let Some(value) = heat.value.filter(|_| 0.0 < most) {
                    let share = (value / most).clamp(0.0, 1.0);
                    let shade = SHADES.0 + share * (SHADES.1 - SHADES.0);
                    canvas.shaded_rect(corner, size, &format!("f{color}"), shade);
                }
                let middle = (corner.0 + size.0 / 2.0, top + 21.0);
                let class = if heat.value.is_some() { "num" } else { "t" };
                canvas.text(middle, Anchor::Middle, class, &clip(&heat.text, letters));
            }
        }
        let right = name + width * columns;
        canvas.text((right, floor + 16.0), Anchor::End, "t u", &self.across);
        canvas.finish(&self.label)
    }
}

/// The number of characters that fit into a column.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small positive number"
)]
fn letters(width: f64) -> usize {
    (width / CHARACTER).max(3.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_is_the_darkest_and_a_missing_one_has_no_shade() {
        let heat = |value: Option<f64>| Heat {
            value,
            text: value.map_or("n/a".to_owned(), |v| v.to_string()),
            title: "<b>".to_owned(),
        };
        let map = HeatMap {
            label: "t".to_owned(),
            across: "cache".to_owned(),
            columns: vec!["8M".to_owned(), "16M".to_owned()],
            rows: vec![
                ("a".to_owned(), 1, vec![heat(Some(0.0)), heat(Some(10.0))]),
                ("b".to_owned(), 2, vec![heat(None), heat(Some(5.0))]),
            ],
        };
        let svg = map.render();
        assert!(
            svg.contains("class=\"f1\"") && svg.contains("opacity=\"0.62\""),
            "{svg}"
        );
        assert!(svg.contains("opacity=\"0.06\"") && svg.contains("opacity=\"0.34\""));
        assert_eq!(
            svg.matches("opacity=").count(),
            3,
            "a missing number has no shade"
        );
        assert!(svg.contains("n/a") && svg.contains("&lt;b&gt;"));
        assert!(HeatMap::default().render().starts_with("<svg"));
    }
}

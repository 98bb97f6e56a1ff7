//! Maps as SVG: the same cells as on the terminal. One page is one square; its colour says whose it
//! is, its height how full it is.
//!
//! Equal neighbours in a line are one rectangle, and all rectangles of a class are one path: a
//! panel of 4096 cells takes some tens of KB at most.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{PALETTE, escape};
use crate::record::map::{Cell, FileExtents, Kind, Panel};

/// Side of a cell, in units of the drawing.
const SIDE: u32 = 10;
/// Room for the names of lines.
const LEFT: u32 = 74;
/// Room for a line of the legend.
const LEGEND: u32 = 16;
/// Steps of height.
const STEPS: u32 = 8;
/// Names in the legend.
const OWNERS_MAX: usize = 8;
/// Approximate width of a character of the legend.
const LETTER: u32 = 6;

/// The boxes behind cells that are not full.
const BACKS: [&str; 2] = ["mp-f", "track"];

/// Rectangles by class and opacity, as path data. Background rectangles come first, because later
/// ones cover them.
#[derive(Default)]
struct Layers(BTreeMap<(bool, String, u8), String>);

impl Layers {
    fn rect(&mut self, class: &str, opacity: u8, at: (u32, u32), size: (u32, u32)) {
        let front = !BACKS.contains(&class);
        let layer = (front, class.to_owned(), opacity);
        let path = self.0.entry(layer).or_default();
        let ((x, y), (w, h)) = (at, size);
        let _ = write!(path, "M{x} {y}h{w}v{h}h-{w}z");
    }

    fn render(&self, out: &mut String) {
        for ((_, class, opacity), path) in &self.0 {
            let faint = match opacity {
                100 => String::new(),
                some => format!(" opacity=\".{some:02}\""),
            };
            let _ = write!(out, "<path class=\"{class}\"{faint} d=\"{path}\"/>");
        }
    }
}

/// The appearance of a cell.
#[derive(Clone, PartialEq, Eq)]
struct Look {
    class: String,
    /// Steps of height, from 0.
    height: u32,
    opacity: u8,
    /// The box behind it.
    back: &'static str,
}

fn look(cell: &Cell) -> Look {
    let owned = || format!("f{}", cell.owner.map_or(0, usize::from) % PALETTE.len());
    let full = u32::from(cell.used.unwrap_or(100));
    // Rounded up, so that any content is visible.
    let height = (full * STEPS).div_ceil(100).min(STEPS);
    let shade = 20 + u32::from(cell.weight.min(100)) * 4 / 5;
    let shade = u8::try_from(shade).unwrap_or(100);
    let (class, height, opacity) = match cell.kind {
        Kind::Data => (owned(), height, shade),
        Kind::Inner => (format!("{} mp-i", owned()), STEPS, 100),
        Kind::Overflow => (owned(), STEPS, 45),
        Kind::Buffer => ("mp-b".to_owned(), height.max(1), shade),
        Kind::Meta => ("mp-m".to_owned(), STEPS, 100),
        Kind::Log => ("mp-l".to_owned(), STEPS, 100),
        Kind::Unknown => ("mp-u".to_owned(), STEPS, 100),
        Kind::Free => (String::new(), 0, 100),
    };
    let back = if cell.kind == Kind::Free {
        "mp-f"
    } else {
        "track"
    };
    Look {
        class,
        height,
        opacity,
        back,
    }
}

/// A panel as a drawing.
#[must_use]
pub fn panel(panel: &Panel) -> String {
    let columns = panel.columns.max(1);
    let rows = panel.cells.len().div_ceil(columns);
    let mut layers = Layers::default();
    let mut body = String::new();
    for (row, cells) in panel.cells.chunks(columns).enumerate() {
        let y = u32::try_from(row).unwrap_or(0) * (SIDE + 1);
        draw_line(&mut layers, cells, y);
        // As many labels as fit.
        if row.is_multiple_of(rows.div_ceil(32).max(1)) {
            let name = escape(&panel.line_name(row));
            let _ = write!(
                body,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
                LEFT - 6,
                y + 9
            );
        }
    }
    layers.render(&mut body);
    let floor = u32::try_from(rows).unwrap_or(0) * (SIDE + 1) + 6;
    let width = LEFT + u32::try_from(columns).unwrap_or(64) * SIDE + 2;
    let lines = legend(panel, &mut body, floor, width);
    format!(
        "<svg viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"{}\">{body}</svg>",
        floor + lines * LEGEND,
        escape(&panel.title)
    )
}

fn draw_line(layers: &mut Layers, cells: &[Cell], y: u32) {
    let mut x = 0_u32;
    let looks: Vec<Look> = cells.iter().map(look).collect();
    for run in looks.chunk_by(|a, b| a == b) {
        let Some(look) = run.first() else { continue };
        let length = u32::try_from(run.len()).unwrap_or(0) * SIDE;
        let at = LEFT + x;
        if look.height < STEPS {
            layers.rect(look.back, 100, (at, y), (length, SIDE));
        }
        if 0 < look.height {
            let height = SIDE * look.height / STEPS;
            let place = (at, y + SIDE - height);
            layers.rect(&look.class, look.opacity, place, (length, height));
        }
        x += length;
    }
}

/// Draw the legend below; returns its number of lines.
fn legend(panel: &Panel, body: &mut String, top: u32, width: u32) -> u32 {
    let mut items: Vec<(Cell, String)> = Vec::new();
    let drawn = |owner: usize| {
        let owner = u8::try_from(owner).ok();
        panel
            .cells
            .iter()
            .any(|c| c.owner.is_some() && c.owner == owner)
    };
    let owners = panel.owners.iter().enumerate().filter(|(i, _)| drawn(*i));
    for (owner, name) in owners.take(OWNERS_MAX) {
        let cell = Cell {
            owner: u8::try_from(owner).ok(),
            ..Cell::of(Kind::Data)
        };
        items.push((cell, name.clone()));
    }
    for kind in panel.kinds() {
        let cell = Cell {
            used: (kind == Kind::Data).then_some(60),
            ..panel.example(kind)
        };
        let name = match kind {
            Kind::Data => "data: the height is what is in use",
            other => other.name(),
        };
        items.push((cell, name.to_owned()));
    }
    let (mut x, mut line) = (LEFT, 0);
    for (cell, name) in items {
        let room = u32::try_from(name.chars().count()).unwrap_or(0) * LETTER + SIDE + 22;
        if LEFT < x && width < x + room {
            x = LEFT;
            line += 1;
        }
        let y = top + line * LEGEND;
        let mut layers = Layers::default();
        draw_line(&mut layers, &[cell], y);
        let mut one = String::new();
        layers.render(&mut one);
        let _ = write!(
            body,
            "<g transform=\"translate({} 0)\">{one}</g><text x=\"{}\" y=\"{}\">{}</text>",
            x - LEFT,
            x + SIDE + 5,
            y + 9,
            escape(&name)
        );
        x += room;
    }
    line + 1
}

/// The location of files on the device: one line per file, in file order; the tone changes where
/// the file continues at another location.
#[must_use]
pub fn extents(files: &[FileExtents]) -> String {
    let width = LEFT + 64 * SIDE;
    let mut body = String::new();
    for (row, file) in files.iter().enumerate() {
        let y = u32::try_from(row).unwrap_or(0) * 16;
        let most = file.pieces.iter().map(|p| p.logical + p.length).max();
        let length = most.unwrap_or(0).max(file.bytes).max(1);
        let place = |bytes: u64| {
            let part = u128::from(bytes) * u128::from(64 * SIDE) / u128::from(length);
            LEFT + u32::try_from(part).unwrap_or(0)
        };
        let mut layers = Layers::default();
        layers.rect("track", 100, (LEFT, y), (64 * SIDE, SIDE));
        for (index, piece) in file.pieces.iter().enumerate() {
            let (from, to) = (place(piece.logical), place(piece.logical + piece.length));
            let opacity = if index.is_multiple_of(2) { 90 } else { 50 };
            layers.rect("f7", opacity, (from, y), ((to - from).max(1), SIDE));
        }
        layers.render(&mut body);
        let name = escape(&clip(&file.file));
        let _ = write!(
            body,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6,
            y + 9
        );
    }
    let height = u32::try_from(files.len()).unwrap_or(0) * 16;
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"files on the \
         device\">{body}</svg>"
    )
}

/// A name, truncated to the available width.
fn clip(name: &str) -> String {
    let length = name.chars().count();
    if length <= 12 {
        return name.to_owned();
    }
    name.chars().take(9).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_a_cell_is_drawn_before_it() {
        let half = Cell {
            owner: Some(0),
            used: Some(50),
            ..Cell::of(Kind::Data)
        };
        let mut layers = Layers::default();
        draw_line(&mut layers, &[half, Cell::of(Kind::Free)], 0);
        let mut drawn = String::new();
        layers.render(&mut drawn);
        let place = |class: &str| drawn.find(&format!("class=\"{class}\"")).unwrap();
        assert!(place("track") < place("f0"), "{drawn}");
        assert!(place("mp-f") < place("f0"), "{drawn}");
    }
}

//! Prints maps on a terminal: one cell is one character. With colour, the height of a block is the
//! share in use and its colour shows the owner; without, a digit is the share in use in tenths.

use std::fmt::Write as _;

use stdx::ByteSize;

use lab_report::record::map::{Cell, FileExtents, Kind, Map, Panel};
use lab_report::report::svg::PALETTE;

/// Capabilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// ASCII characters only, no colours.
    Plain,
    /// 256 colours.
    Colours,
    /// 24-bit colours.
    TrueColour,
}

/// For each colour of the palette, the nearest of the terminal's 256 colours.
const NEAREST: [u8; 8] = [32, 208, 36, 175, 178, 75, 97, 245];
/// Blocks from one eighth to eight eighths.
const BLOCKS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];
/// Maximum number of files whose extents are printed.
const FILES_MAX: usize = 8;
/// Width of the strip of a file on the device, in characters.
const STRIP: usize = 64;

/// The map as text.
#[must_use]
pub fn text(map: &Map, ink: Ink) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  {}", map.kind, map.path);
    for (name, fact) in &map.facts {
        let _ = writeln!(out, "  {name}: {fact}");
    }
    let _ = writeln!(out, "  {}", sums(map));
    for note in &map.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    if !map.trees.is_empty() {
        let _ = writeln!(out);
        trees(map, &mut out);
    }
    for panel in &map.panels {
        let _ = writeln!(out);
        draw(panel, ink, &mut out);
    }
    if !map.extents.is_empty() {
        let _ = writeln!(
            out,
            "\nfiles on the device (a bar where a file continues elsewhere)"
        );
        for file in map.extents.iter().take(FILES_MAX) {
            strip(file, &mut out);
        }
    }
    out
}

/// The totals as a sentence.
fn sums(map: &Map) -> String {
    let sums = &map.sums;
    let free = 100.0 * sums.free_bytes as f64 / (sums.file_bytes as f64).max(1.0);
    let fill = sums.leaf_fill.map_or(String::new(), |fill| {
        format!(", leaves {:.1} % full", 100.0 * fill)
    });
    let pieces = sums
        .extents
        .map_or(String::new(), |n| format!(", {n} extents"));
    format!(
        "{} in files, {} free ({free:.1} %){fill}{pieces}",
        ByteSize(sums.file_bytes),
        ByteSize(sums.free_bytes)
    )
}

fn trees(map: &Map, out: &mut String) {
    let _ = writeln!(
        out,
        "{:<28} {:>8} {:>7} {:>8} {:>6} {:>7} {:>8} {:>8}",
        "tree", "leaves", "inner", "overflow", "depth", "fill %", "garbage%", "bytes"
    );
    let share =
        |value: Option<f64>| value.map_or("n/a".to_owned(), |v| format!("{:.1}", 100.0 * v));
    for tree in &map.trees {
        let depth = tree.depth.map_or("n/a".to_owned(), |d| d.to_string());
        let _ = writeln!(
            out,
            "{:<28} {:>8} {:>7} {:>8} {:>6} {:>7} {:>8} {:>8}",
            printable(&tree.name),
            tree.leaves,
            tree.inner,
            tree.overflow,
            depth,
            share(tree.leaf_fill),
            share(tree.garbage),
            ByteSize(tree.bytes).to_string()
        );
    }
}

/// Names come from files: a control character must not reach the terminal.
fn printable(name: &str) -> String {
    let safe = |c: char| if c.is_control() { '?' } else { c };
    name.chars().map(safe).collect()
}

fn draw(panel: &Panel, ink: Ink, out: &mut String) {
    let each = match panel.pages_per_cell {
        1 => String::new(),
        n => format!("; {n} of them share a cell"),
    };
    let _ = writeln!(out, "{} ({}{each})", printable(&panel.title), panel.about);
    let heat = panel.cells.iter().any(|c| c.weight != 100);
    let columns = panel.columns.max(1);
    for (row, cells) in panel.cells.chunks(columns).enumerate() {
        let _ = write!(out, "{:>10} |", panel.line_name(row));
        for run in cells.chunk_by(|a, b| paint(a, ink) == paint(b, ink)) {
            let Some(first) = run.first() else { continue };
            let glyphs: String = run.iter().map(|cell| glyph(cell, ink, heat)).collect();
            match paint(first, ink) {
                Some(colour) => {
                    let _ = write!(out, "\u{1b}[{colour}m{glyphs}\u{1b}[0m");
                }
                None => out.push_str(&glyphs),
            }
        }
        let _ = writeln!(out, "|");
    }
    legend(panel, ink, heat, out);
}

fn glyph(cell: &Cell, ink: Ink, heat: bool) -> char {
    let used = cell.used.unwrap_or(100);
    match cell.kind {
        Kind::Data | Kind::Buffer if ink != Ink::Plain => {
            let step = usize::from(used) * BLOCKS.len() / 101;
            BLOCKS.get(step).copied().unwrap_or('#')
        }
        Kind::Data | Kind::Buffer => {
            let known = if heat { Some(cell.weight) } else { cell.used };
            let Some(percent) = known else { return '#' };
            char::from_digit(u32::from(percent / 10).min(9), 10).unwrap_or('#')
        }
        Kind::Inner => 'I',
        Kind::Overflow => 'o',
        Kind::Meta => 'M',
        Kind::Log => 'L',
        Kind::Free => '.',
        Kind::Unknown => '?',
    }
}

/// The colour of a cell, as the parameters of an escape sequence.
fn paint(cell: &Cell, ink: Ink) -> Option<String> {
    let owner = cell.owner.map_or(0, usize::from) % PALETTE.len();
    let owned = matches!(cell.kind, Kind::Data | Kind::Inner | Kind::Overflow);
    match ink {
        Ink::Plain => None,
        _ if cell.kind == Kind::Free => Some("2".to_owned()),
        Ink::Colours if owned => Some(format!("38;5;{}", NEAREST.get(owner)?)),
        Ink::TrueColour if owned => {
            let [r, g, b] = rgb(PALETTE.get(owner)?, cell.weight);
            Some(format!("38;2;{r};{g};{b}"))
        }
        Ink::Colours | Ink::TrueColour => match cell.kind {
            Kind::Buffer => Some("38;5;208".to_owned()),
            Kind::Unknown => Some("31".to_owned()),
            _ => Some("38;5;245".to_owned()),
        },
    }
}

/// `#rrggbb`, darker for a smaller weight.
fn rgb(colour: &str, weight: u8) -> [u32; 3] {
    let number = u32::from_str_radix(colour.trim_start_matches('#'), 16).unwrap_or(0);
    let shade = 35 + u32::from(weight.min(100)) * 65 / 100;
    // Slightly lighter than in HTML: most terminals are dark.
    [16, 8, 0].map(|shift| ((number >> shift & 0xff) * shade / 100 + 24).min(255))
}

fn legend(panel: &Panel, ink: Ink, heat: bool, out: &mut String) {
    let mut words: Vec<String> = Vec::new();
    for kind in panel.kinds() {
        let cell = Cell {
            used: Some(60),
            ..panel.example(kind)
        };
        let name = match (kind, ink, heat) {
            (Kind::Data, Ink::Plain, false) => "data, tenths in use (# unknown)",
            (Kind::Data, Ink::Plain, true) => "data, tenths of the fullest",
            _ => kind.name(),
        };
        words.push(format!(
            "{} {name}",
            inked(glyph(&cell, ink, heat), &cell, ink)
        ));
    }
    if ink != Ink::Plain {
        for (owner, name) in panel.owners.iter().enumerate().take(PALETTE.len()) {
            let cell = Cell {
                owner: u8::try_from(owner).ok(),
                ..Cell::of(Kind::Data)
            };
            let drawn = panel.cells.iter().any(|c| c.owner == cell.owner);
            if drawn {
                words.push(format!(
                    "{} {}",
                    inked('\u{2588}', &cell, ink),
                    printable(name)
                ));
            }
        }
    }
    let _ = writeln!(out, "{:>10}  {}", "", words.join("   "));
}

fn inked(glyph: char, cell: &Cell, ink: Ink) -> String {
    match paint(cell, ink) {
        Some(colour) => format!("\u{1b}[{colour}m{glyph}\u{1b}[0m"),
        None => glyph.to_string(),
    }
}

fn strip(file: &FileExtents, out: &mut String) {
    let most = file.pieces.iter().map(|p| p.logical + p.length).max();
    let length = most.unwrap_or(0).max(file.bytes).max(1);
    let place = |bytes: u64| {
        let part = u128::from(bytes) * STRIP as u128 / u128::from(length);
        usize::try_from(part).unwrap_or(STRIP).min(STRIP)
    };
    let mut line = vec!['.'; STRIP];
    for piece in &file.pieces {
        let (from, to) = (place(piece.logical), place(piece.logical + piece.length));
        if let Some(part) = line.get_mut(from..to.max(from + 1).min(STRIP)) {
            part.fill('=');
        }
        if let Some(first) = line.get_mut(from.min(STRIP - 1)) {
            *first = '|';
        }
    }
    let line: String = line.into_iter().collect();
    let longest = file.pieces.iter().map(|p| p.length).max().unwrap_or(0);
    let _ = writeln!(
        out,
        "{:>20} |{line}| {} pieces, the longest {}",
        printable(&file.file),
        file.count,
        ByteSize(longest)
    );
}

//! The content of a map: cells in panels, sums over them, and the location of files on the device.
//!
//! - M1. A panel has at most [`CELLS_MAX`] cells, whatever the size of the file: several pages
//!   share a cell then, and the panel states how many.
//! - M2. Sums are those of the pages, however many share a cell.

use serde::{Deserialize, Serialize};

/// Cells of a panel: 64 lines of 64. More would neither fit a screen nor show more.
pub const CELLS_MAX: usize = 4096;

/// Cells in a line, as many as there are pages in an extent of InnoDB.
pub const COLUMNS: usize = 64;

/// The content of a cell.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Entries: leaf pages, runs.
    Data,
    /// Inner pages, which only route.
    Inner,
    /// Overflow pages of large values.
    Overflow,
    /// Changes waiting to be merged.
    Buffer,
    /// Metadata: headers, free lists, catalogs.
    Meta,
    /// The redo log, undo.
    Log,
    /// Free for reuse, or never used.
    #[default]
    Free,
    /// Unknown, or damaged.
    Unknown,
}

impl Kind {
    /// All kinds, in the order of the legend.
    pub const ALL: [Kind; 8] = [
        Kind::Data,
        Kind::Inner,
        Kind::Overflow,
        Kind::Buffer,
        Kind::Meta,
        Kind::Log,
        Kind::Free,
        Kind::Unknown,
    ];

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Inner => "inner",
            Kind::Overflow => "overflow",
            Kind::Buffer => "changes",
            Kind::Meta => "meta",
            Kind::Log => "log",
            Kind::Free => "free",
            Kind::Unknown => "unknown",
        }
    }
}

/// One page, or several adjacent ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its predominant content.
    #[serde(rename = "k")]
    pub kind: Kind,
    /// Its owner: an index into [`Panel::owners`].
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u8>,
    /// The per cent of its bytes in use, where known.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u8>,
    /// Its content in per cent of the fullest cell; 100 in a map of pages.
    #[serde(rename = "w", default = "whole", skip_serializing_if = "is_whole")]
    pub weight: u8,
}

fn whole() -> u8 {
    100
}

fn is_whole(weight: &u8) -> bool {
    *weight == 100
}

impl Cell {
    /// A whole cell of a kind.
    #[must_use]
    pub fn of(kind: Kind) -> Cell {
        Cell {
            kind,
            weight: 100,
            ..Cell::default()
        }
    }
}

/// The labels of the lines of a panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// By the offset of their first cell in the file; each cell stands for this number of bytes.
    Offsets(u64),
    /// By the number of their first cell.
    Numbers,
    /// By these names.
    Names(Vec<String>),
}

/// A grid of cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// Cells in a line.
    pub columns: usize,
    /// The labels of its lines.
    pub lines: Lines,
    /// Pages (or buckets) to a cell.
    pub pages_per_cell: u64,
    /// Trees, indexes: each has a colour.
    pub owners: Vec<String>,
    /// Line by line.
    pub cells: Vec<Cell>,
}

impl Panel {
    /// A panel of a file's pages, in the order of the file.
    #[must_use]
    pub fn pages(
        title: &str,
        about: &str,
        page_bytes: u64,
        owners: &[String],
        pages: &[Cell],
    ) -> Panel {
        let (cells, each) = merge(pages);
        Panel {
            title: title.to_owned(),
            about: about.to_owned(),
            columns: COLUMNS,
            lines: Lines::Offsets(page_bytes.saturating_mul(each)),
            pages_per_cell: each,
            owners: owners.to_vec(),
            cells,
        }
    }

    /// The name of a line.
    #[must_use]
    pub fn line_name(&self, line: usize) -> String {
        let first = (line * self.columns) as u64;
        match &self.lines {
            Lines::Offsets(bytes) => stdx::ByteSize(first.saturating_mul(*bytes)).to_string(),
            Lines::Numbers => (first * self.pages_per_cell).to_string(),
            Lines::Names(names) => names.get(line).cloned().unwrap_or_default(),
        }
    }

    /// The panel with fewer cells; unchanged if its lines have names.
    #[must_use]
    pub fn coarser(&self, most: usize) -> Panel {
        let each = self.cells.len().div_ceil(most.max(1)).max(1);
        if matches!(self.lines, Lines::Names(_)) || each == 1 {
            return self.clone();
        }
        let lines = match &self.lines {
            Lines::Offsets(bytes) => Lines::Offsets(bytes.saturating_mul(each as u64)),
            other => other.clone(),
        };
        Panel {
            lines,
            pages_per_cell: self.pages_per_cell.saturating_mul(each as u64),
            cells: self.cells.chunks(each).map(join).collect(),
            ..self.clone()
        }
    }

    /// The kinds that occur, in the order of the legend.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let there = |kind: &Kind| self.cells.iter().any(|cell| cell.kind == *kind);
        Kind::ALL.into_iter().filter(there).collect()
    }

    /// A cell of a kind for the legend, in the colour of the first one of it.
    pub fn example(&self, kind: Kind) -> Cell {
        let first = self.cells.iter().find(|cell| cell.kind == kind);
        Cell {
            owner: first.and_then(|cell| cell.owner),
            ..Cell::of(kind)
        }
    }
}

/// Combine adjacent cells until there are at most [`CELLS_MAX`]; returns how many share one.
#[must_use]
pub fn merge(pages: &[Cell]) -> (Vec<Cell>, u64) {
    let each = pages.len().div_ceil(CELLS_MAX).max(1);
    let cells = pages.chunks(each).map(join).collect();
    (cells, each as u64)
}

/// Combine cells into one: the most frequent kind and owner, the mean of the bytes in use.
fn join(pages: &[Cell]) -> Cell {
    if let [only] = pages {
        return *only;
    }
    let most = |key: &dyn Fn(&Cell) -> bool| pages.iter().filter(|c| key(c)).count();
    let kind = Kind::ALL
        .into_iter()
        .rev()
        .max_by_key(|kind| most(&|c: &Cell| c.kind == *kind))
        .unwrap_or_default();
    let same = || pages.iter().filter(move |c| c.kind == kind);
    let owner = same()
        .filter_map(|c| c.owner)
        .max_by_key(|owner| most(&|c: &Cell| c.owner == Some(*owner)));
    let known: Vec<u64> = pages
        .iter()
        .filter_map(|c| match c.kind {
            // Free pages count as empty; otherwise a cell would look fuller than it is.
            Kind::Free => Some(0),
            _ => c.used.map(u64::from),
        })
        .collect();
    let any = same().any(|c| c.used.is_some());
    let mean = known.iter().sum::<u64>() / (known.len() as u64).max(1);
    let weight = pages.iter().map(|c| u64::from(c.weight)).sum::<u64>() / pages.len() as u64;
    let byte = |n: u64| u8::try_from(n.min(100)).unwrap_or(100);
    Cell {
        kind,
        owner,
        used: any.then(|| byte(mean)),
        weight: byte(weight),
    }
}

/// Sums over the pages of a tree or an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeSum {
    /// Its name, with that of its file if there are several.
    pub name: String,
    /// Leaf pages; buckets or files where there are no pages.
    pub leaves: u64,
    /// Pages that only route.
    pub inner: u64,
    /// Overflow pages.
    pub overflow: u64,
    /// Levels, where known.
    pub depth: Option<u32>,
    /// The share of the leaves' bytes in use, 0 to 1, where known.
    pub leaf_fill: Option<f64>,
    /// The share of entries that are deletions or dead, where known.
    pub garbage: Option<f64>,
    /// Bytes of all its pages.
    pub bytes: u64,
}

/// Sums over the whole store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Bytes of the files that are drawn.
    pub file_bytes: u64,
    /// Of these, free for reuse.
    pub free_bytes: u64,
    /// The share of the leaves' bytes in use, over all trees, where known.
    pub leaf_fill: Option<f64>,
    /// Leaf pages.
    pub leaves: u64,
    /// Number of extents of the files on the device, where known.
    pub extents: Option<u64>,
}

/// The location of a file on its device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileExtents {
    /// The file.
    pub file: String,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Its pieces, in the order of the file; only the first of many.
    pub pieces: Vec<Piece>,
    /// How many pieces there are.
    pub count: u64,
}

/// An extent of a file on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where it begins in the file, in bytes.
    pub logical: u64,
    /// Where it begins on the device, in bytes.
    pub physical: u64,
    /// Its length, in bytes.
    pub length: u64,
}

/// A map of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// The program that wrote the store: `betree`, `lmdb`, `wiredtiger`, `rocksdb`, `innodb`.
    pub kind: String,
    /// What was drawn.
    pub path: String,
    /// Notes for the reader: what is approximate, what was in use.
    pub notes: Vec<String>,
    /// Facts for the head: format, page size.
    pub facts: Vec<(String, String)>,
    /// Sums over all.
    pub sums: Sums,
    /// Sums by tree.
    pub trees: Vec<TreeSum>,
    /// The drawings.
    pub panels: Vec<Panel>,
    /// The files on the device.
    pub extents: Vec<FileExtents>,
}

impl Map {
    /// An empty map.
    #[must_use]
    pub fn new(kind: &str, path: &std::path::Path) -> Map {
        Map {
            kind: kind.to_owned(),
            path: path.display().to_string(),
            notes: Vec::new(),
            facts: Vec::new(),
            sums: Sums::default(),
            trees: Vec::new(),
            panels: Vec::new(),
            extents: Vec::new(),
        }
    }

    /// Compute the sums of the store's leaves from those of its trees.
    pub fn sum_trees(&mut self) {
        self.sums.leaves = self.trees.iter().map(|t| t.leaves).sum();
        let known = || {
            self.trees
                .iter()
                .filter_map(|t| Some((t.leaves, t.leaf_fill?)))
        };
        let leaves: u64 = known().map(|(leaves, _)| leaves).sum();
        let used: f64 = known().map(|(leaves, fill)| leaves as f64 * fill).sum();
        self.sums.leaf_fill = (0 < leaves).then(|| used / leaves as f64);
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn page(kind: Kind, used: Option<u8>) -> Cell {
        Cell {
            used,
            ..Cell::of(kind)
        }
    }

    #[test]
    fn neighbours_share_a_cell_only_when_there_are_too_many() {
        let few = vec![page(Kind::Data, Some(70)); CELLS_MAX];
        assert_eq!(merge(&few), (few.clone(), 1));
        let many = vec![page(Kind::Data, Some(70)); CELLS_MAX + 1];
        let (cells, each) = merge(&many);
        assert!(cells.len() <= CELLS_MAX, "M1: the limit");
        assert_eq!((cells.len(), each), (CELLS_MAX.div_ceil(2) + 1, 2));
        assert_eq!(cells.first().unwrap().used, Some(70));
    }

    #[test]
    fn sums_are_those_of_the_pages_though_cells_are_shared() {
        let pages = vec![page(Kind::Data, Some(50)); 3 * CELLS_MAX];
        let mut map = Map::new("lmdb", std::path::Path::new("x"));
        map.panels
            .push(Panel::pages("file", "about", 4096, &[], &pages));
        map.trees.push(TreeSum {
            leaves: pages.len() as u64,
            leaf_fill: Some(0.5),
            ..TreeSum::default()
        });
        map.sum_trees();
        assert_eq!(map.panels[0].cells.len(), CELLS_MAX);
        assert_eq!(map.sums.leaves, 3 * CELLS_MAX as u64, "M2: pages");
        assert_eq!(map.sums.leaf_fill, Some(0.5));
    }

    #[test]
    fn free_pages_take_from_the_fill_of_a_shared_cell() {
        let cell = join(&[
            page(Kind::Data, Some(80)),
            page(Kind::Data, Some(100)),
            page(Kind::Free, None),
        ]);
        assert_eq!((cell.kind, cell.used), (Kind::Data, Some(60)));
    }

    #[test]
    fn a_map_is_the_same_after_a_trip_through_json() {
        let mut map = Map::new("lmdb", std::path::Path::new("x"));
        let owners = vec!["rows".to_owned()];
        let cells = [page(Kind::Data, Some(5)), page(Kind::Free, None)];
        map.panels
            .push(Panel::pages("file", "about", 4096, &owners, &cells));
        let text = serde_json::to_string(&map).unwrap();
        assert_eq!(serde_json::from_str::<Map>(&text).unwrap(), map);
        assert_eq!(map.panels.first().unwrap().line_name(0), "0B");
    }
}

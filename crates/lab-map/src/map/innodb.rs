//! Draws an InnoDB tablespace (`.ibd`, `ibdata1`), page by page, in the format of MariaDB and
//! MySQL.
//!
//! Layout of a page (big-endian), after MariaDB's `fil0fil.h`, `page0types.h` and `fsp0fsp.h`:
//! ```text
//!   0 checksum 4   4 page number 4   24 type 2   34 tablespace 4
//!  38 of an index page: directory slots 2, heap top 2, ... 46 garbage 2, ... 64 level 2, index 8
//!  38 of page 0: ... 46 size in pages 4, 50 free limit 4, 54 flags 4
//! 150 of page 0 and each page-size-th page: descriptors of extents, each with a state at +20 and
//!     two bits a page from +24 on, of which the first says that the page is free
//! ```
//! A freed page keeps its contents, so free pages are found in the descriptors. With the format
//! `full_crc32` (MariaDB 10.5 and later) the last four bytes of a page are its CRC-32C: pages that
//! do not match are shown as unknown.

use std::path::Path;

use lab_report::error::{Error, Result};
use lab_report::record::map::{Cell, Kind, Map, Panel, TreeSum};

use super::bytes::{Source, be16, be32, be64, percent};

/// Type number of page 0.
const FSP_HDR: u16 = 8;
/// The flag of the format `full_crc32`.
const FULL_CRC32: u32 = 1 << 4;
/// Offset of the first descriptor.
const DESCRIPTORS: usize = 150;
/// Bytes of a descriptor before its bitmap.
const DESCRIPTOR_HEAD: usize = 24;
/// Offset of the first record of an index page.
const RECORDS: u32 = 120;
/// Maximum number of indexes with a separate colour and name; all others share one.
const INDEXES_MAX: usize = 64;

/// Fields of page 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    space: u32,
    page_bytes: usize,
    full_crc32: bool,
    /// The first page of those that were never used.
    free_limit: u32,
    flags: u32,
}

/// Whether `head` is the beginning of a tablespace.
pub(super) fn begins(head: &[u8]) -> bool {
    header(head).is_some()
}

fn header(head: &[u8]) -> Option<Header> {
    let is_first = be16(head, 24) == FSP_HDR && be32(head, 4) == 0;
    let space = be32(head, 34);
    if !is_first || be32(head, 38) != space {
        return None;
    }
    let flags = be32(head, 54);
    let full_crc32 = flags & FULL_CRC32 != 0;
    let size = if full_crc32 {
        flags & 0xf
    } else {
        flags >> 6 & 0xf
    };
    let page_bytes = match size {
        0 if !full_crc32 => 16 << 10,
        3..=7 => 512_usize << size,
        _ => return None,
    };
    Some(Header {
        space,
        page_bytes,
        full_crc32,
        free_limit: be32(head, 50),
        flags,
    })
}

impl Header {
    /// Number of pages in an extent: 1 MiB, but at least 64 pages.
    fn extent_pages(self) -> usize {
        ((1 << 20) / self.page_bytes).max(64)
    }

    /// Whether the checksum of a page matches.
    fn intact(self, page: &[u8]) -> bool {
        let Some((body, sum)) = page.split_last_chunk::<4>() else {
            return false;
        };
        !self.full_crc32 || u32::from_be_bytes(*sum) == crc32c::crc32c(body)
    }
}

/// Totals of an index.
#[derive(Default)]
struct Index {
    id: u64,
    leaves: u64,
    inner: u64,
    levels: u32,
    used: u64,
}

/// The current page.
struct Page<'a> {
    number: u64,
    bytes: &'a [u8],
}

/// Results collected while the file is read from its first page to its last.
struct Survey {
    header: Header,
    /// Whether each page is free, as far as the descriptors have been read.
    free: Vec<bool>,
    /// The indexes, in the order in which they were found.
    indexes: Vec<Index>,
    cells: Vec<Cell>,
    damaged: u64,
}

/// Draw the tablespace at `path` into `map`.
pub(super) fn draw(map: &mut Map, path: &Path, title: &str) -> Result<()> {
    let source = Source::open(path)?;
    let mut head = vec![0; 1 << 10];
    source.read(&mut head, 0)?;
    let header = header(&head).ok_or_else(|| {
        Error::environment(format!(
            "{}: not a tablespace of InnoDB: its first page is none",
            path.display()
        ))
    })?;
    if !header.full_crc32 && header.flags >> 1 & 0xf != 0 {
        let message = "tables of ROW_FORMAT=COMPRESSED cannot be drawn: their pages have no fill";
        return Err(Error::environment(format!("{}: {message}", path.display())));
    }
    let mut survey = Survey {
        header,
        free: Vec::new(),
        indexes: Vec::new(),
        cells: Vec::new(),
        damaged: 0,
    };
    let mut page = vec![0; header.page_bytes];
    let pages = source.length / header.page_bytes as u64;
    for number in 0..pages {
        source.read(&mut page, number * header.page_bytes as u64)?;
        survey.meet(&Page {
            number,
            bytes: &page,
        });
    }
    survey.into_map(map, &source, title);
    Ok(())
}

impl Survey {
    fn meet(&mut self, page: &Page<'_>) {
        let period = self.header.page_bytes as u64;
        if page.number.is_multiple_of(period) {
            self.descriptors(page);
        }
        let at = usize::try_from(page.number).unwrap_or(usize::MAX);
        let free = self.free.get(at).copied().unwrap_or(true);
        let cell = if free {
            Cell::of(Kind::Free)
        } else {
            self.used(page)
        };
        self.cells.push(cell);
    }

    /// Read the descriptors in a page. They describe the pages from this page on.
    fn descriptors(&mut self, page: &Page<'_>) {
        let extent = self.header.extent_pages();
        let size = DESCRIPTOR_HEAD + extent / 4;
        let limit = u64::from(self.header.free_limit);
        for index in 0..self.header.page_bytes / extent {
            let at = DESCRIPTORS + index * size;
            // State 0: never initialized; state 1: completely free.
            let state = be32(page.bytes, at + 20);
            for place in 0..extent {
                let bits = page.bytes.get(at + DESCRIPTOR_HEAD + place / 4);
                let bit = bits.map_or(1, |byte| byte >> (2 * (place % 4)) & 1);
                let number = page.number + (index * extent + place) as u64;
                self.free.push(state <= 1 || bit == 1 || limit <= number);
            }
        }
    }

    /// The cell of a page that is in use.
    fn used(&mut self, page: &Page<'_>) -> Cell {
        let bytes = page.bytes;
        let kind = be16(bytes, 24);
        let right = u64::from(be32(bytes, 4)) == page.number;
        // A page that was allocated but never written contains zeros.
        if kind == 0 {
            return Cell {
                used: Some(0),
                ..Cell::of(Kind::Data)
            };
        }
        if kind & 0x8000 != 0 || matches!(kind, 34_354 | 37_401) {
            // The page is compressed or encrypted as a whole: it is in use, but its contents are
            // unknown.
            return Cell::of(Kind::Data);
        }
        if !right || !self.header.intact(bytes) {
            self.damaged += 1;
            return Cell::of(Kind::Unknown);
        }
        match kind {
            17_855 | 17_854 | 18 => self.index(bytes),
            10..=12 => Cell::of(Kind::Overflow),
            2 | 7 => Cell::of(Kind::Log),
            3..=6 | FSP_HDR | 9 => Cell::of(Kind::Meta),
            _ => Cell::of(Kind::Unknown),
        }
    }

    fn index(&mut self, bytes: &[u8]) -> Cell {
        let slots = u32::from(be16(bytes, 38));
        let top = u32::from(be16(bytes, 40));
        let garbage = u32::from(be16(bytes, 46));
        let level = be16(bytes, 64);
        let id = be64(bytes, 66);
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // If a 64 KiB page is completely full, its heap top does not fit in the field.
        let used = top.max(RECORDS) + 2 * slots + 8;
        let used = used.saturating_sub(garbage).min(size);
        let place = self.place_of(id);
        if let Some(index) = self.indexes.get_mut(place) {
            index.levels = index.levels.max(u32::from(level) + 1);
            if level == 0 {
                index.leaves += 1;
                index.used += u64::from(used);
            } else {
                index.inner += 1;
            }
        }
        Cell {
            owner: u8::try_from(place).ok(),
            used: Some(percent(u64::from(used), u64::from(size))),
            ..Cell::of(if level == 0 { Kind::Data } else { Kind::Inner })
        }
    }

    /// The position of an index among the indexes found so far; all beyond [`INDEXES_MAX`] share
    /// one more position.
    fn place_of(&mut self, id: u64) -> usize {
        if let Some(place) = self.indexes.iter().position(|index| index.id == id) {
            return place;
        }
        let place = self.indexes.len();
        if INDEXES_MAX < place {
            return INDEXES_MAX;
        }
        let id = if place < INDEXES_MAX { id } else { u64::MAX };
        self.indexes.push(Index {
            id,
            ..Index::default()
        });
        place
    }

    fn into_map(self, map: &mut Map, source: &Source, title: &str) {
        let page_bytes = self.header.page_bytes as u64;
        let free = self.cells.iter().filter(|c| c.kind == Kind::Free).count() as u64;
        map.sums.file_bytes += source.length;
        map.sums.free_bytes += free * page_bytes;
        let names: Vec<String> = self.indexes.iter().map(|i| name(i.id)).collect();
        for index in &self.indexes {
            let pages = index.leaves + index.inner;
            let full = (index.leaves * page_bytes) as f64;
            map.trees.push(TreeSum {
                name: format!("{title} {}", name(index.id)),
                leaves: index.leaves,
                inner: index.inner,
                depth: Some(index.levels),
                leaf_fill: (0 < index.leaves).then(|| index.used as f64 / full),
                bytes: pages * page_bytes,
                ..TreeSum::default()
            });
        }
        if 0 < self.damaged {
            map.notes.push(format!(
                "{title}: {} pages do not match their checksum: they were being written, or are \
                 damaged",
                self.damaged
            ));
        }
        let format = if self.header.full_crc32 {
            "full_crc32"
        } else {
            "classic"
        };
        map.facts.push((
            title.to_owned(),
            format!(
                "tablespace {}, format {format}, pages of {}, {} of {} free",
                self.header.space,
                stdx::ByteSize(page_bytes),
                free,
                self.cells.len()
            ),
        ));
        let about = "one cell a page, 64 to an extent; the height is the share of the page in use";
        map.panels
            .push(Panel::pages(title, about, page_bytes, &names, &self.cells));
    }
}

fn name(id: u64) -> String {
    if id == u64::MAX {
        return "other indexes".to_owned();
    }
    format!("index {id}")
}

//! Draws WiredTiger files (`*.wt`), block by block.
//!
//! A file is read from its second allocation unit on. If a block with a valid CRC-32C starts at a
//! unit, it is drawn as its page header describes; otherwise the scan continues with the next unit.
//! A freed block keeps its bytes until it is overwritten, so free blocks are found in the list of
//! the file's newest checkpoint (its address is in `WiredTiger.wt`, as text). If that list cannot
//! be read, freed blocks look used, and the map states so.
//!
//! Little-endian, after WiredTiger's `block.h` and `btmem.h`:
//! ```text
//! file   first unit: magic 120897 4, major 2, minor 2, checksum 4
//! block  record number 8, write generation 8, size in memory 4, entries 4, type 1, flags 1, pad 2,
//!        size on disk 4, checksum 4, flags 1 (1: of all bytes, else of the first 64), pad 3
//! ```
//! The fill of a page is its size in memory divided by `leaf_page_max`: before compression.

use std::path::Path;

use lab_report::error::{Error, Result};
use lab_report::record::map::{Cell, Kind, Map, Panel, TreeSum};

use super::bytes::{Source, le16, le32, le64, percent};
use super::wiredtiger_catalog::{Catalog, Entry};

const MAGIC: u32 = 120_897;
/// The smallest allocation unit.
const UNIT_MIN: u64 = 512;
/// Bytes of the page header and the block header.
pub(super) const HEADERS: usize = 40;
/// Maximum size of a block (WiredTiger's limit is 512 MiB; this limit bounds the memory).
const BLOCK_MAX: u64 = 64 << 20;
/// Number of bytes of a file that the search for blocks reads at once.
const WINDOW: usize = 1 << 20;

/// Whether `head` is the beginning of a WiredTiger file.
pub(super) fn begins(head: &[u8]) -> bool {
    le32(head, 0) == MAGIC && le16(head, 4) == 1
}

/// A block with a valid checksum.
pub(super) struct Block<'a> {
    pub(super) offset: u64,
    /// The bytes after the headers.
    pub(super) body: &'a [u8],
    pub(super) generation: u64,
    memory: u32,
    kind: u8,
}

/// Draw one file into `map`.
pub(super) fn draw(map: &mut Map, path: &Path, title: &str, entry: Option<&Entry>) -> Result<()> {
    let source = Source::open(path)?;
    let unit = entry.map_or(4096, |e| e.unit).clamp(UNIT_MIN, 1 << 20);
    let units = source.length / unit;
    let count = usize::try_from(units)
        .map_err(|_| Error::environment(format!("{}: too large to be drawn", path.display())))?;
    let mut cells = vec![Cell::of(Kind::Unknown); count];
    let mut sum = TreeSum {
        name: entry.map_or_else(|| title.to_owned(), |e| e.name.clone()),
        ..TreeSum::default()
    };
    fill(&mut cells, 0, 1, Cell::of(Kind::Meta));
    let free = entry
        .and_then(|e| e.free(&source).transpose())
        .transpose()?;
    let leaf_max = entry.map_or(32 << 10, |e| e.leaf_page_max).max(1);
    let mut used = 0_u64;
    blocks(&source, unit, &mut |block, length| {
        let gone = |list: &Vec<(u64, u64)>| within(list, block.offset);
        if free.as_ref().is_some_and(gone) {
            return;
        }
        let kind = block.kind();
        let memory = u64::from(block.memory);
        let cell = Cell {
            owner: Some(0),
            used: (kind == Kind::Data).then(|| percent(memory, leaf_max)),
            ..Cell::of(kind)
        };
        match kind {
            Kind::Data => {
                sum.leaves += 1;
                used += memory.min(leaf_max);
            }
            Kind::Inner => sum.inner += 1,
            Kind::Overflow => sum.overflow += 1,
            _ => {}
        }
        sum.bytes += length;
        fill(&mut cells, block.offset / unit, length / unit, cell);
    })?;
    for (offset, length) in free.iter().flatten() {
        let empty = Cell::of(Kind::Free);
        fill(&mut cells, offset / unit, length / unit, empty);
    }
    if free.is_none() {
        map.notes.push(format!(
            "{title}: its list of free blocks was not found, so blocks that were freed and not \
             written again are drawn as used"
        ));
    }
    if 0 < sum.leaves {
        sum.leaf_fill = Some(used as f64 / (sum.leaves * leaf_max) as f64);
    }
    add(map, title, (unit, leaf_max), &cells, sum);
    map.sums.file_bytes += source.length;
    Ok(())
}

/// Add a file to the map.
fn add(map: &mut Map, title: &str, (unit, leaf_max): (u64, u64), cells: &[Cell], sum: TreeSum) {
    let count = cells.len();
    let empty = cells.iter().filter(|c| c.kind == Kind::Free).count() as u64;
    let unknown = cells.iter().filter(|c| c.kind == Kind::Unknown).count() as u64;
    map.sums.free_bytes += empty * unit;
    map.facts.push((
        title.to_owned(),
        format!(
            "units of {}, {empty} of {count} free, {unknown} without a block; pages of at most {}",
            stdx::ByteSize(unit),
            stdx::ByteSize(leaf_max)
        ),
    ));
    let about = "one cell an allocation unit, in the order of the file; the height is the size of \
                 the page before compression against the largest (approximate)";
    let owners = [sum.name.clone()];
    map.panels
        .push(Panel::pages(title, about, unit, &owners, cells));
    map.trees.push(sum);
}

impl Block<'_> {
    /// The kind of the block's page.
    fn kind(&self) -> Kind {
        match self.kind {
            2 | 4 | 7 => Kind::Data,
            3 | 6 => Kind::Inner,
            5 => Kind::Overflow,
            _ => Kind::Meta,
        }
    }
}

/// The catalog of the store in `directory`, as far as it can be read.
pub(super) fn catalog(directory: &Path) -> Result<Catalog> {
    let source = Source::open(&directory.join("WiredTiger.wt"))?;
    let mut catalog = Catalog::default();
    blocks(&source, 4096, &mut |block, _| catalog.learn(block))?;
    Ok(catalog)
}

fn fill(cells: &mut [Cell], from: u64, count: u64, cell: Cell) {
    let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(cells.len());
    let (from, to) = (place(from), place(from.saturating_add(count)));
    if let Some(part) = cells.get_mut(from..to) {
        part.fill(cell);
    }
}

/// Whether an offset is in one of `extents`, which are in ascending order.
fn within(extents: &[(u64, u64)], offset: u64) -> bool {
    let after = extents.partition_point(|(start, _)| *start <= offset);
    let before = after.checked_sub(1).and_then(|at| extents.get(at));
    before.is_some_and(|(start, length)| offset - start < *length)
}

/// Call `each` with every block that has a valid checksum, and its length.
fn blocks(source: &Source, unit: u64, each: &mut dyn FnMut(&Block<'_>, u64)) -> Result<()> {
    let mut window = vec![0; WINDOW];
    let mut base = 0;
    let mut filled = source.read(&mut window, base)? as u64;
    let mut large = Vec::new();
    let mut offset = unit;
    while offset + HEADERS as u64 <= source.length {
        if offset < base || base + filled < offset + unit {
            base = offset;
            filled = source.read(&mut window, base)? as u64;
            if filled < HEADERS as u64 {
                break;
            }
        }
        let at = usize::try_from(offset - base).unwrap_or(0);
        let head = window.get(at..).unwrap_or_default();
        let length = u64::from(le32(head, 28));
        let possible = length.is_multiple_of(unit)
            && (unit..=BLOCK_MAX).contains(&length)
            && offset + length <= source.length
            && (1..=7).contains(&head.get(24).copied().unwrap_or(0));
        let size = usize::try_from(length).unwrap_or(0);
        let bytes = if !possible {
            None
        } else if let Some(here) = head.get(..size) {
            Some(here)
        } else {
            large.resize(size, 0);
            source.read(&mut large, offset)?;
            Some(large.as_slice())
        };
        match bytes.and_then(|bytes| block(bytes, offset)) {
            Some(found) => {
                each(&found, length);
                offset += length;
            }
            None => offset += unit,
        }
    }
    Ok(())
}

/// Parse a block; `None` if its checksum is invalid.
pub(super) fn block(bytes: &[u8], offset: u64) -> Option<Block<'_>> {
    let stored = le32(bytes, 32);
    let covered = match bytes.get(36)? & 1 {
        1 => bytes,
        _ => bytes.get(..64)?,
    };
    let (before, rest) = covered.split_at_checked(32)?;
    let sum = crc32c::crc32c(before);
    let sum = crc32c::crc32c_append(sum, &[0; 4]);
    let sum = crc32c::crc32c_append(sum, rest.get(4..)?);
    (sum == stored).then_some(Block {
        offset,
        body: bytes.get(HEADERS..)?,
        generation: le64(bytes, 8),
        memory: le32(bytes, 16),
        kind: bytes.get(24).copied()?,
    })
}

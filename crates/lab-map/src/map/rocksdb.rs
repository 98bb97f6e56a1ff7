//! Draws a RocksDB store: levels by key ranges, from its manifest and the properties of its files.
//!
//! The manifest is a log of edits: the files, their column family and level, and their first and
//! last key. A file's properties include the number of deletions among its entries. Nothing is
//! opened for writing; a running store only appends to its manifest and never changes a file.
//!
//! After RocksDB's `log_format.h`, `version_edit.cc` and `format.cc`: blocks of 32 KiB, records of
//! checksum 4, length 2, type 1 (1 whole, 2 first, 3 middle, 4 last; 5 to 8 with a log number 4
//! more); an edit is tags and values as varints.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lab_report::error::{Error, Result};
use lab_report::record::map::{COLUMNS, Cell, Kind, Lines, Map, Panel, TreeSum};

use super::bytes::{Source, Varints, le16, le32, le64, percent};

const BLOCK: usize = 32 << 10;
/// Maximum size of a manifest (RocksDB's default rolls it at 1 GiB; this limit bounds the memory).
const MANIFEST_MAX: u64 = 256 << 20;
/// Maximum size of the properties and of the metaindex block.
const META_MAX: u64 = 16 << 20;
/// Magic number at the end of a file in RocksDB's own format.
const FOOTER_MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const FOOTER: u64 = 53;
/// Maximum number of levels that are drawn.
const LEVELS_MAX: usize = 16;

/// A data file.
#[derive(Clone, Debug, Default)]
struct Table {
    family: u64,
    level: usize,
    bytes: u64,
    low: Vec<u8>,
    high: Vec<u8>,
    /// Number of entries, and number of deletions among them.
    entries: Option<(u64, u64)>,
}

/// The files and column families after all edits of the manifest.
#[derive(Default)]
struct Version {
    families: BTreeMap<u64, String>,
    tables: BTreeMap<(u64, u64), Table>,
}

/// Draw the store whose files are in `directory` into `map`.
pub(super) fn draw(map: &mut Map, directory: &Path) -> Result<()> {
    let current = directory.join("CURRENT");
    let name = fs::read_to_string(&current).map_err(|e| Error::io("read", &current, &e))?;
    let name = name.trim();
    if !name.starts_with("MANIFEST-") || name.contains('/') {
        let at = current.display();
        return Err(Error::environment(format!(
            "{at}: does not name a manifest"
        )));
    }
    let manifest = Source::open(&directory.join(name))?;
    if MANIFEST_MAX < manifest.length {
        let at = manifest.path.display();
        return Err(Error::environment(format!("{at}: too large to be read")));
    }
    let mut bytes = vec![0; usize::try_from(manifest.length).unwrap_or(0)];
    manifest.read(&mut bytes, 0)?;
    let mut version = Version::default();
    for record in records(&bytes) {
        if version.apply(&record).is_none() {
            map.notes.push(format!(
                "{name} has a record that this program does not understand: files may be missing"
            ));
        }
    }
    let mut gone = 0;
    for ((_, number), table) in &mut version.tables {
        match Source::open(&directory.join(format!("{number:06}.sst"))) {
            Ok(source) => table.entries = properties(&source)?,
            Err(_) => gone += 1,
        }
    }
    if 0 < gone {
        map.notes.push(format!(
            "{gone} files of the manifest are not there: the store was merging meanwhile"
        ));
    }
    logs(map, directory)?;
    version.into_map(map);
    Ok(())
}

/// Count the write-ahead logs.
fn logs(map: &mut Map, directory: &Path) -> Result<()> {
    let mut bytes = 0;
    let entries = fs::read_dir(directory).map_err(|e| Error::io("read", directory, &e))?;
    for entry in entries.flatten() {
        let is_log = entry.path().extension().is_some_and(|e| e == "log");
        if let Ok(data) = entry.metadata()
            && is_log
        {
            bytes += data.len();
        }
    }
    let text = format!("{} in the log, not in a file yet", stdx::ByteSize(bytes));
    map.facts.push(("log".to_owned(), text));
    Ok(())
}

/// The records of a log, up to the first that is damaged or incomplete.
fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut whole: Vec<u8> = Vec::new();
    for block in bytes.chunks(BLOCK) {
        let mut rest = block;
        while let Some((head, after)) = rest.split_at_checked(7) {
            let [.., kind] = *head else { break };
            let length = usize::from(le16(head, 4));
            let extra = if 5 <= kind { 4 } else { 0 };
            let Some((record, next)) = after.split_at_checked(extra + length) else {
                return all;
            };
            let sum = crc32c::crc32c_append(crc32c::crc32c(&[kind]), record);
            if kind == 0 {
                break;
            }
            if le32(head, 0) != mask(sum) {
                return all;
            }
            let data = record.get(extra..).unwrap_or_default();
            match kind {
                1 | 5 => all.push(data.to_vec()),
                2 | 6 => whole = data.to_vec(),
                3 | 7 => whole.extend_from_slice(data),
                4 | 8 => {
                    whole.extend_from_slice(data);
                    all.push(std::mem::take(&mut whole));
                }
                _ => return all,
            }
            rest = next;
        }
    }
    all
}

/// The masked form of a checksum, as it is stored: the checksum of data that contains its own
/// checksum would be degenerate.
fn mask(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

impl Version {
    /// Apply an edit; `None` if it has an unknown tag.
    fn apply(&mut self, edit: &[u8]) -> Option<()> {
        let mut rest = Varints(edit);
        let mut family = 0;
        let mut deleted: Vec<(u64, u64)> = Vec::new();
        let mut added: Vec<(u64, Table)> = Vec::new();
        let mut named = None;
        let mut dropped = false;
        while !rest.0.is_empty() {
            let tag = rest.next()?;
            match tag {
                // Tag 1, the comparator, or the name of a column family: a string.
                1 => {
                    rest.slice()?;
                }
                2..=4 | 9 | 10 | 203 | 300 => {
                    rest.next()?;
                }
                // Tag 5, the compaction cursor of a level: the level and a key.
                5 => {
                    rest.next()?;
                    rest.slice()?;
                }
                6 => deleted.push((rest.next()?, rest.next()?)),
                7 | 100 | 102 | 103 => added.push(table(&mut rest, tag)?),
                200 => family = rest.next()?,
                201 => named = Some(String::from_utf8_lossy(rest.slice()?).into_owned()),
                202 => dropped = true,
                // A tag with this bit set may be skipped; it has a length prefix.
                tag if tag & (1 << 13) != 0 => {
                    rest.slice()?;
                }
                _ => return None,
            }
        }
        if let Some(name) = named {
            self.families.insert(family, name);
        }
        for (_, number) in deleted {
            self.tables.remove(&(family, number));
        }
        for (number, table) in added {
            self.tables
                .insert((family, number), Table { family, ..table });
        }
        if dropped {
            self.families.remove(&family);
            self.tables.retain(|(of, _), _| *of != family);
        }
        Some(())
    }
}

/// Parse a new file in an edit, in one of the four generations of its encoding.
fn table(rest: &mut Varints<'_>, tag: u64) -> Option<(u64, Table)> {
    let level = usize::try_from(rest.next()?).ok()?;
    let number = rest.next()?;
    if tag == 102 {
        rest.next()?;
    }
    let bytes = rest.next()?;
    let key = |stored: &[u8]| {
        // The stored key ends with its sequence number and type.
        let own = stored.len().saturating_sub(8);
        stored.get(..own).unwrap_or_default().to_vec()
    };
    let low = key(rest.slice()?);
    let high = key(rest.slice()?);
    if tag != 7 {
        rest.next()?;
        rest.next()?;
    }
    if tag == 103 {
        while rest.next()? != 1 {
            rest.slice()?;
        }
    }
    let table = Table {
        level: level.min(LEVELS_MAX - 1),
        bytes,
        low,
        high,
        ..Table::default()
    };
    Some((number, table))
}

/// Numbers of entries and deletions from a file's properties; `None` if they are not found.
fn properties(source: &Source) -> Result<Option<(u64, u64)>> {
    let Some(at) = source.length.checked_sub(FOOTER) else {
        return Ok(None);
    };
    let mut footer = vec![0; 53];
    source.read(&mut footer, at)?;
    if le64(&footer, 45) != FOOTER_MAGIC {
        return Ok(None);
    }
    let index = if le32(&footer, 41) < 6 {
        // The handle of the metaindex block is the first one.
        handle(&mut Varints(footer.get(1..41).unwrap_or_default()))
    } else {
        // Since format 6 the metaindex block lies right before the footer, followed by 5 bytes.
        let length = u64::from(le32(&footer, 13));
        at.checked_sub(length + 5).map(|offset| (offset, length))
    };
    let Some(index) = index else {
        return Ok(None);
    };
    let Some(index) = read_block(source, index)? else {
        return Ok(None);
    };
    let found = entries(&index)
        .into_iter()
        .find(|(k, _)| k == b"rocksdb.properties");
    let place = found.and_then(|(_, value)| handle(&mut Varints(value)));
    let Some(place) = place else { return Ok(None) };
    let Some(block) = read_block(source, place)? else {
        return Ok(None);
    };
    let all = entries(&block);
    let number = |name: &[u8]| {
        let (_, value) = all.iter().find(|(key, _)| key == name)?;
        Varints(value).next()
    };
    let entries = number(b"rocksdb.num.entries");
    let deletions = number(b"rocksdb.deleted.keys").unwrap_or(0);
    Ok(entries.map(|all| (all, deletions.min(all))))
}

fn handle(rest: &mut Varints<'_>) -> Option<(u64, u64)> {
    Some((rest.next()?, rest.next()?))
}

/// Read an uncompressed block; `None` if it is compressed.
fn read_block(source: &Source, (offset, length): (u64, u64)) -> Result<Option<Vec<u8>>> {
    let end = offset.checked_add(length);
    if META_MAX < length || end.is_none_or(|end| source.length < end) {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(length + 1).unwrap_or(0)];
    source.read(&mut bytes, offset)?;
    // The byte after the block is its compression type.
    Ok((bytes.pop() == Some(0)).then_some(bytes))
}

/// The entries of a block. Each key is stored without the prefix that it shares with the previous
/// key.
fn entries(block: &[u8]) -> Vec<(Vec<u8>, &[u8])> {
    let mut all: Vec<(Vec<u8>, &[u8])> = Vec::new();
    let Some(tail) = block.len().checked_sub(4) else {
        return all;
    };
    let restarts = usize::try_from(le32(block, tail)).unwrap_or(usize::MAX);
    let end = restarts.checked_mul(4).and_then(|n| tail.checked_sub(n));
    let Some(body) = end.and_then(|end| block.get(..end)) else {
        return all;
    };
    let mut rest = Varints(body);
    let mut last: Vec<u8> = Vec::new();
    while !rest.0.is_empty() {
        let mut next = || Some((rest.next()?, rest.next()?, rest.next()?));
        let Some((shared, own, length)) = next() else {
            break;
        };
        let (Some(key), Some(value)) = (rest.take(own), rest.take(length)) else {
            break;
        };
        last.truncate(usize::try_from(shared).unwrap_or(usize::MAX));
        last.extend_from_slice(key);
        all.push((last.clone(), value));
    }
    all
}

/// The name of the tree in a column family. In this project's stores the family's name begins with
/// a digit, which encodes the purpose of the tree, and a colon.
fn tree_name(family: &str) -> &str {
    match family.split_once(':') {
        Some(("0" | "1" | "2" | "3", name)) => name,
        _ => family,
    }
}

impl Version {
    fn into_map(self, map: &mut Map) {
        for (family, name) in &self.families {
            let tables: Vec<&Table> = self
                .tables
                .values()
                .filter(|t| t.family == *family)
                .collect();
            if !tables.is_empty() {
                let name = tree_name(name);
                map.trees.push(sum(name, &tables));
                map.panels.push(panel(name, &tables));
            }
        }
        map.sums.file_bytes += self.tables.values().map(|t| t.bytes).sum::<u64>();
        let count = format!("{} files of data", self.tables.len());
        map.facts.push(("files".to_owned(), count));
    }
}

fn sum(name: &str, tables: &[&Table]) -> TreeSum {
    let known = tables.iter().filter_map(|t| t.entries);
    let (all, gone) = known.fold((0, 0), |(a, g), (entries, deleted)| {
        (a + entries, g + deleted)
    });
    TreeSum {
        name: name.to_owned(),
        leaves: tables.len() as u64,
        depth: tables
            .iter()
            .map(|t| t.level)
            .max()
            .and_then(|l| u32::try_from(l + 1).ok()),
        garbage: (0 < all).then(|| gone as f64 / all as f64),
        bytes: tables.iter().map(|t| t.bytes).sum(),
        ..TreeSum::default()
    }
}

/// Draw the levels by key ranges. The ranges hold equal shares of the bytes of the largest level,
/// so that one column is the same share of the data for any distribution of keys.
fn panel(name: &str, tables: &[&Table]) -> Panel {
    let scale = Scale::new(tables);
    let levels = tables.iter().map(|t| t.level).max().unwrap_or(0) + 1;
    let mut bytes = vec![[0_u64; COLUMNS]; levels];
    let mut garbage = vec![[(0_u64, 0_u64); COLUMNS]; levels];
    for table in tables {
        let (first, last) = scale.columns(&table.low, &table.high);
        let span = (last - first) as u64 + 1;
        for column in first..=last {
            let cell = bytes.get_mut(table.level).and_then(|l| l.get_mut(column));
            if let Some(cell) = cell {
                *cell += table.bytes / span;
            }
            let cell = garbage.get_mut(table.level).and_then(|l| l.get_mut(column));
            if let (Some(cell), Some((entries, deleted))) = (cell, table.entries) {
                *cell = (cell.0 + entries / span, cell.1 + deleted / span);
            }
        }
    }
    let most = bytes.iter().flatten().copied().max().unwrap_or(0);
    let shade = |(bytes, (entries, deleted)): (&u64, &(u64, u64))| Cell {
        owner: (0 < *bytes).then_some(0),
        used: (0 < *entries).then(|| 100 - percent(*deleted, *entries)),
        // A non-empty range stays visible, however small.
        weight: if *bytes == 0 {
            0
        } else {
            percent(*bytes, most).max(5)
        },
        kind: if *bytes == 0 { Kind::Free } else { Kind::Data },
    };
    let rows = bytes.iter().zip(&garbage);
    let cells = rows.flat_map(|(b, g)| b.iter().zip(g).map(shade)).collect();
    let names = bytes
        .iter()
        .enumerate()
        .map(|(level, b)| format!("L{level} {}", stdx::ByteSize(b.iter().sum::<u64>())));
    Panel {
        title: name.to_owned(),
        about: "a line a level, a column a 64th of the largest level's bytes in key order; the \
                colour is deeper where more bytes are, the height is the share of entries that are \
                not deletions"
            .to_owned(),
        columns: COLUMNS,
        lines: Lines::Names(names.collect()),
        pages_per_cell: 1,
        owners: vec![name.to_owned()],
        cells,
    }
}

/// The key ranges of the columns: files of the largest level in key order, each with the cumulative
/// bytes up to its end.
struct Scale<'a> {
    files: Vec<(&'a [u8], u64)>,
    total: u64,
}

impl<'a> Scale<'a> {
    fn new(tables: &[&'a Table]) -> Scale<'a> {
        let mut levels: BTreeMap<usize, u64> = BTreeMap::new();
        for table in tables {
            *levels.entry(table.level).or_default() += table.bytes;
        }
        let largest = levels.iter().max_by_key(|(_, bytes)| **bytes);
        let level = largest.map(|(level, _)| *level);
        let mut own: Vec<&&Table> = tables.iter().filter(|t| Some(t.level) == level).collect();
        own.sort_by(|a, b| a.high.cmp(&b.high));
        let mut total = 0;
        let files = own.iter().map(|table| {
            total += table.bytes;
            (table.high.as_slice(), total)
        });
        let files = files.collect();
        Scale { files, total }
    }

    /// The columns from one key to another: all columns of the files whose ranges contain the two
    /// keys.
    fn columns(&self, low: &[u8], high: &[u8]) -> (usize, usize) {
        let file = |key: &[u8]| self.files.partition_point(|(end, _)| *end < key);
        let end = |file: usize| self.files.get(file).map_or(self.total, |(_, end)| *end);
        let column = |bytes: u64| {
            let part = u128::from(bytes) * COLUMNS as u128 / u128::from(self.total.max(1));
            usize::try_from(part).unwrap_or(COLUMNS).min(COLUMNS)
        };
        let first = column(file(low).checked_sub(1).map_or(0, end)).min(COLUMNS - 1);
        let last = column(end(file(high))).max(first + 1);
        (first, last - 1)
    }
}

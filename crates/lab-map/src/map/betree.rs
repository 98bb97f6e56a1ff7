//! Draws a store of betree: its data file in allocation units, and its buckets in key order.

use std::path::Path;

use kv::{Region, RegionKind, TreeId};
use kv_betree::{AtRest, Bucket};
use lab_report::error::{Error, Result};
use lab_report::record::map::{CELLS_MAX, COLUMNS, Cell, Kind, Lines, Map, Panel, TreeSum, merge};

use super::bytes::percent;

/// Allocation unit of the data file, in bytes.
const UNIT: u64 = 4096;

/// Draw the store in `directory` into `map`; an encrypted one with its master key.
pub(super) fn draw(map: &mut Map, directory: &Path, key_file: Option<&Path>) -> Result<()> {
    let found = kv_betree::map_at_rest(directory, key_file)
        .map_err(|e| Error::environment(e.to_string()))?;
    let owners: Vec<String> = found.trees.iter().map(|(_, name)| name.clone()).collect();
    let place = |tree: TreeId| found.trees.iter().position(|(id, _)| *id == tree);
    let owner = |tree: Option<TreeId>| u8::try_from(place(tree?)?).ok();
    let regions = &found.map.regions;
    let length = regions
        .iter()
        .map(|r| r.offset + r.length)
        .max()
        .unwrap_or(0);
    // A file may have too many units for one cell in memory per unit.
    let each = length.div_ceil(UNIT).div_ceil(CELLS_MAX as u64).max(1) * UNIT;
    let mut cells = Vec::new();
    let mut next = regions.iter().peekable();
    for start in (0..length).step_by(usize::try_from(each).unwrap_or(usize::MAX)) {
        let end = start + each;
        let mut here: Vec<&Region> = Vec::new();
        while let Some(region) = next.peek() {
            if end <= region.offset {
                break;
            }
            here.push(region);
            if end < region.offset + region.length {
                break;
            }
            next.next();
        }
        cells.push(cell(&here, start, end, &owner));
    }
    let mut file = Panel::pages(
        "data.betree",
        "one cell a unit, in the order of the file; the height is the share of it in use",
        each,
        &owners,
        &cells,
    );
    file.pages_per_cell = each / UNIT;
    map.panels.push(file);
    buckets(map, &found, &owners);
    sums(map, &found, length);
    Ok(())
}

/// The cell of the bytes from `start` to `end`.
fn cell(
    here: &[&Region],
    start: u64,
    end: u64,
    owner: &dyn Fn(Option<TreeId>) -> Option<u8>,
) -> Cell {
    let part = |r: &Region| (r.offset + r.length).min(end) - r.offset.max(start);
    let Some(most) = here.iter().max_by_key(|r| part(r)) else {
        return Cell::of(Kind::Unknown);
    };
    let used: f64 = here
        .iter()
        .map(|r| part(r) as f64 * f64::from(r.used.unwrap_or(1.0)))
        .sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive"
    )]
    let used = percent(used as u64, end - start);
    let kind = match most.kind {
        RegionKind::Data => Kind::Data,
        RegionKind::Buffer => Kind::Buffer,
        RegionKind::Free => Kind::Free,
        _ => Kind::Meta,
    };
    Cell {
        owner: owner(most.tree),
        used: (kind != Kind::Free).then_some(used),
        ..Cell::of(kind)
    }
}

/// Add the buckets of each tree in key order: bytes of the base, and bytes of changes above it.
fn buckets(map: &mut Map, found: &AtRest, owners: &[String]) {
    let size = |b: &Bucket| b.base_bytes + b.delta_bytes;
    let most = found.buckets.iter().map(size).max().unwrap_or(0);
    let shade = |b: &Bucket| {
        let place = found.trees.iter().position(|(id, _)| *id == b.tree);
        Cell {
            kind: match (b.base_bytes, b.delta_bytes) {
                (0, 0) => Kind::Free,
                (base, delta) if base < delta => Kind::Buffer,
                _ => Kind::Data,
            },
            owner: place.and_then(|p| u8::try_from(p).ok()),
            used: (0 < size(b)).then(|| percent(b.base_bytes, size(b))),
            weight: percent(size(b), most).max(5),
        }
    };
    let all: Vec<Cell> = found.buckets.iter().map(shade).collect();
    let (cells, each) = merge(&all);
    map.panels.push(Panel {
        title: "buckets".to_owned(),
        about:
            "one cell a bucket, tree by tree in key order; the height is the share of its bytes \
                in its base, the rest are changes above it; the colour is deeper where a bucket \
                holds more"
                .to_owned(),
        columns: COLUMNS,
        lines: Lines::Numbers,
        pages_per_cell: each,
        owners: owners.to_vec(),
        cells,
    });
}

fn sums(map: &mut Map, found: &AtRest, length: u64) {
    let regions = &found.map.regions;
    for (id, name) in &found.trees {
        let own = || found.buckets.iter().filter(|b| b.tree == *id);
        let base: u64 = own().map(|b| b.base_bytes).sum();
        let delta: u64 = own().map(|b| b.delta_bytes).sum();
        let used = |r: &Region| r.length as f64 * f64::from(r.used.unwrap_or(1.0));
        let mine = || {
            regions
                .iter()
                .filter(|r| r.tree == Some(*id) && r.kind != RegionKind::Free)
        };
        let bytes: u64 = mine().map(|r| r.length).sum();
        map.trees.push(TreeSum {
            name: name.clone(),
            leaves: own().count() as u64,
            leaf_fill: (0 < bytes).then(|| mine().map(used).sum::<f64>() / bytes as f64),
            garbage: (0 < base + delta).then(|| delta as f64 / (base + delta) as f64),
            bytes,
            ..TreeSum::default()
        });
    }
    let free = regions.iter().filter(|r| r.kind == RegionKind::Free);
    map.sums.file_bytes += length;
    map.sums.free_bytes += free.map(|r| r.length).sum::<u64>();
    map.notes.push(
        "the newest checkpoint is drawn; what was committed after it is in the log, and goes into \
         buffers when the store is opened. Of a tree the buckets are counted as leaves, and the \
         share of its bytes in changes above the bases is given as garbage"
            .to_owned(),
    );
}

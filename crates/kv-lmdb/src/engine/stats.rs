//! Statistics, the storage map and the check, all from LMDB's own counts of pages.
//!
//! LMDB counts the pages of every database exactly. It lists free pages in a database that `heed`
//! does not open, so their number is computed: every page up to the last used one that belongs to
//! no database and is not one of the two meta pages. The few pages of the free list itself count as
//! free.

use std::sync::atomic::Ordering;

use heed::DatabaseStat;
use kv::{
    Count, Cursor, Direction, EngineStats, Error, ErrorKind, KeyRange, Region, RegionKind, Result,
    StatScope, StorageMap, TreeId, TreeStats,
};

use super::Lmdb;
use super::backup::DATA;
use super::catalog::{Db, Tree};
use super::snapshot::View;
use crate::support::NAME;

/// Meta pages of an environment.
const META_PAGES: u64 = 2;
/// Bytes of the header of a page.
const PAGE_HEADER: u64 = 16;
/// Bytes of the header of a node.
const NODE_HEADER: u64 = 8;
/// Bytes of the slot that points to a node.
const NODE_SLOT: u64 = 2;
/// Bytes of a page number, which replaces a value stored in overflow pages.
const PAGE_NUMBER: u64 = 8;

/// Numbers of pages by kind.
#[derive(Clone, Copy, Default)]
struct Pages {
    size: u64,
    data: u64,
    index: u64,
    overflow: u64,
}

impl Pages {
    fn of(stat: &DatabaseStat) -> Pages {
        Pages {
            size: u64::from(stat.page_size),
            data: stat.leaf_pages as u64,
            index: stat.branch_pages as u64,
            overflow: stat.overflow_pages as u64,
        }
    }

    fn sum(&self) -> u64 {
        self.data + self.index + self.overflow
    }
}

/// The pages of the store by use, in pages.
struct Layout {
    page_size: u64,
    trees: Vec<(TreeId, Pages)>,
    /// Meta pages, the catalog and the unnamed database.
    meta: u64,
    free: u64,
}

fn stat(view: &View<'_>, db: Db) -> Result<DatabaseStat> {
    db.stat(view.txn).map_err(|e| view.store.error(e, "stat"))
}

fn layout(engine: &Lmdb) -> Result<Layout> {
    let reader = engine.reader()?;
    let view = reader.view();
    let mut trees = Vec::new();
    let mut used = 0;
    for tree in view.trees.iter() {
        let pages = Pages::of(&stat(&view, tree.db)?);
        used += pages.sum();
        trees.push((tree.id, pages));
    }
    let catalog = Pages::of(&stat(&view, engine.catalog.db())?);
    let env = &engine.store.env;
    let unnamed = env.stat();
    let unnamed = unnamed.branch_pages + unnamed.leaf_pages + unnamed.overflow_pages;
    let meta = META_PAGES + catalog.sum() + unnamed as u64;
    // Read after the counts, so that a concurrent commit cannot make it too small.
    let all = env.info().last_page_number as u64 + 1;
    Ok(Layout {
        page_size: catalog.size,
        trees,
        meta,
        free: all.saturating_sub(used + meta),
    })
}

pub(super) fn engine(engine: &Lmdb) -> Result<EngineStats> {
    let layout = match layout(engine) {
        Ok(layout) => Some(layout),
        // No reader slot is left: the statistics report that; they must not fail.
        Err(e) if e.kind() == ErrorKind::Full => None,
        Err(e) => return Err(e),
    };
    let store = &engine.store;
    let info = store.env.info();
    let page_bytes = u64::from(store.env.stat().page_size);
    let mut stats = EngineStats {
        // How much the kernel has still to write is unknown; only the absence of debt is known.
        debt_bytes: (!store.owes()).then_some(0),
        ..EngineStats::default()
    };
    if store.is_syncing() {
        stats.activity.push("sync".to_owned());
    }
    let used_pages = info.last_page_number as u64 + 1;
    let counters = [
        ("map_bytes", info.map_size as u64),
        ("used_bytes", used_pages * page_bytes),
        ("page_bytes", page_bytes),
        ("empty_slots", engine.catalog.free_slots() as u64),
        ("snapshots_open", engine.snapshots.load(Ordering::Relaxed)),
        ("reader_slots", u64::from(store.settings.readers)),
        ("commits", engine.commits.load(Ordering::Relaxed)),
        ("last_transaction", info.last_txn_id as u64),
    ];
    let named = counters.map(|(name, value)| (name.to_owned(), value));
    stats.counters.extend(named);
    if let Some(layout) = layout {
        let free_bytes = layout.free * page_bytes;
        stats.counters.insert("free_bytes".to_owned(), free_bytes);
    }
    Ok(stats)
}

pub(super) fn tree(view: &View<'_>, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
    let tree = view.trees.get(tree)?;
    let stat = stat(view, tree.db)?;
    let pages = Pages::of(&stat);
    let scan = match scope {
        StatScope::Quick => None,
        StatScope::Exact => Some(scan(view, tree, pages.size)?),
    };
    let fill = |scan: &Scan| {
        let used = scan.node_bytes + PAGE_HEADER * pages.data;
        used as f64 / (pages.size * pages.data) as f64
    };
    Ok(TreeStats {
        entries: Count {
            value: stat.entries as u64,
            exact: true,
        },
        live_bytes: scan.as_ref().map(|scan| scan.live_bytes),
        allocated_bytes: Some(pages.sum() * pages.size),
        pages: Some(pages.sum()),
        depth: Some(stat.depth),
        mean_fill: scan.as_ref().filter(|_| 0 < pages.data).map(fill),
        splits: None,
        merges: None,
    })
}

/// The totals of a scan of a whole tree.
struct Scan {
    entries: u64,
    live_bytes: u64,
    /// Bytes of the entries in leaf pages.
    node_bytes: u64,
}

/// Read all of `tree`; its keys must ascend.
fn scan(view: &View<'_>, tree: &Tree, page_size: u64) -> Result<Scan> {
    // The longest node that stays in a leaf: half a page, less its slot.
    let node_max = (((page_size - PAGE_HEADER) / 2) & !1) - NODE_SLOT;
    let mut scan = Scan {
        entries: 0,
        live_bytes: 0,
        node_bytes: 0,
    };
    let mut walk = view.walk(tree.id, KeyRange::ALL, Direction::Forward)?;
    let mut before: &[u8] = b"";
    while walk.advance()? {
        let (key, value) = walk.entry();
        if key <= before {
            let error = Error::new(ErrorKind::Corrupt, "keys are not in ascending order");
            let error = error.with_engine(NAME).with_tree(&*tree.name);
            return Err(error.with_key(key));
        }
        before = key;
        let (key, value) = (key.len() as u64, value.len() as u64);
        let whole = NODE_HEADER + key + value;
        let node = if whole <= node_max {
            whole
        } else {
            NODE_HEADER + key + PAGE_NUMBER
        };
        scan.entries += 1;
        scan.live_bytes += key + value;
        scan.node_bytes += node.next_multiple_of(2) + NODE_SLOT;
    }
    Ok(scan)
}

pub(super) fn map(engine: &Lmdb) -> Result<StorageMap> {
    let layout = layout(engine)?;
    let mut map = StorageMap::default();
    let mut offset = 0;
    let mut add = |pages: u64, kind, tree, level| {
        let length = pages * layout.page_size;
        if 0 < length {
            map.regions.push(Region {
                file: DATA.to_owned(),
                offset,
                length,
                kind,
                tree,
                level,
                used: None,
            });
        }
        offset += length;
    };
    add(layout.meta, RegionKind::Meta, None, 0);
    for &(tree, pages) in &layout.trees {
        add(pages.data, RegionKind::Data, Some(tree), 0);
        add(pages.index, RegionKind::Index, Some(tree), 1);
        add(pages.overflow, RegionKind::Overflow, Some(tree), 0);
    }
    add(layout.free, RegionKind::Free, None, 0);
    Ok(map)
}

/// Read every tree and check that its keys ascend and that their number equals LMDB's count.
pub(super) fn verify(view: &View<'_>) -> Result<()> {
    for tree in view.trees.iter() {
        let stat = stat(view, tree.db)?;
        let found = scan(view, tree, u64::from(stat.page_size))?.entries;
        let counted = stat.entries as u64;
        if found != counted {
            let message = format!("{counted} entries are counted, {found} are there");
            let error = Error::new(ErrorKind::Corrupt, message);
            return Err(error.with_engine(NAME).with_tree(&*tree.name));
        }
    }
    Ok(())
}

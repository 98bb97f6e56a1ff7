//! An LMDB file (`data.mdb`), page by page.
//!
//! The newer of the two meta pages names two trees: the list of free pages, and the catalog of the
//! named trees. All trees are walked from their roots, so that the owner of a page is known from
//! the page that points at it; pages on the list are free, and pages beyond the last were never
//! used. Little-endian, after LMDB's `mdb.c` (0.9):
//! ```text
//! page  number 8, pad 2, flags 2 (1 branch, 2 leaf, 4 overflow, 8 meta, 32 leaf of fixed keys),
//!       lower 2, upper 2 (or pages 4 of an overflow), then slots of 2
//! node  lo 2, hi 2, flags 2 (1 big, 2 tree, 4 duplicates), key length 2, key, data
//! meta  at 16: magic BEEFC0DE 4, version 4, address 8, map size 8, 2 trees, last page 8, txn 8
//! tree  pad 4, flags 2, depth 2, branch 8, leaf 8, overflow 8, entries 8, root 8
//! ```

use std::path::Path;

use lab_report::error::{Error, Result};
use lab_report::record::map::{Cell, Kind, Map, Panel, TreeSum};

use super::bytes::{Source, le16, le32, le64, percent};

const MAGIC: u32 = 0xBEEF_C0DE;
const HEADER: usize = 16;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const NODE: usize = 8;
/// The tree in which this program stores the names of the other trees.
const CATALOG: &str = "catalog";
/// Page number that means that the tree has no pages.
const NONE: u64 = u64::MAX;
/// Maximum depth of a tree (LMDB's own limit).
const DEPTH_MAX: u32 = 32;
/// Maximum number of trees that are shown separately.
const TREES_MAX: usize = 128;

/// Whether `head` is the beginning of an LMDB file.
pub(super) fn begins(head: &[u8]) -> bool {
    le32(head, HEADER) == MAGIC && le16(head, 10) & 8 != 0
}

/// A tree as the file describes it.
#[derive(Clone, Copy)]
struct Tree {
    depth: u16,
    root: u64,
}

impl Tree {
    fn at(bytes: &[u8], at: usize) -> Tree {
        Tree {
            depth: le16(bytes, at + 6),
            root: le64(bytes, at + 40),
        }
    }
}

/// A meta page.
#[derive(Clone, Copy)]
struct Meta {
    page_bytes: usize,
    free: Tree,
    main: Tree,
    last: u64,
    txn: u64,
}

fn meta(page: &[u8]) -> Option<Meta> {
    if !begins(page) {
        return None;
    }
    let page_bytes = usize::try_from(le32(page, HEADER + 24)).ok()?;
    let fits = page_bytes.is_power_of_two() && (512..=32768).contains(&page_bytes);
    fits.then(|| Meta {
        page_bytes,
        free: Tree::at(page, HEADER + 24),
        main: Tree::at(page, HEADER + 72),
        last: le64(page, HEADER + 120),
        txn: le64(page, HEADER + 128),
    })
}

fn newest(source: &Source) -> Result<Option<Meta>> {
    let mut head = vec![0; 4096];
    source.read(&mut head, 0)?;
    let Some(first) = meta(&head) else {
        return Ok(None);
    };
    source.read(&mut head, first.page_bytes as u64)?;
    Ok(match meta(&head) {
        Some(second) if first.txn < second.txn => Some(second),
        _ => Some(first),
    })
}

/// A walk over all trees.
struct Walk<'a> {
    source: &'a Source,
    meta: Meta,
    cells: Vec<Cell>,
    trees: Vec<TreeSum>,
    used: Vec<u64>,
    /// Number of invalid pages.
    wrong: u64,
}

/// Draw the file at `path` into `map`.
pub(super) fn draw(map: &mut Map, path: &Path) -> Result<()> {
    let source = Source::open(path)?;
    let wrong = || Error::environment(format!("{}: not a file of LMDB 0.9", path.display()));
    let meta = newest(&source)?.ok_or_else(wrong)?;
    let pages = source.length / meta.page_bytes as u64;
    let in_memory = usize::try_from(pages).map_err(|_| wrong())?;
    let mut walk = Walk {
        source: &source,
        meta,
        cells: vec![Cell::of(Kind::Unknown); in_memory],
        trees: Vec::new(),
        used: Vec::new(),
        wrong: 0,
    };
    for page in 0..2 {
        walk.set(page, Cell::of(Kind::Meta));
    }
    for page in meta.last.saturating_add(1)..pages {
        walk.set(page, Cell::of(Kind::Free));
    }
    let list = walk.tree("list of free pages");
    walk.free_list(meta.free.root, list, 0)?;
    walk.catalog()?;
    if let Some(later) = newest(&source)?.filter(|later| later.txn != meta.txn) {
        map.notes.push(format!(
            "the file was written to meanwhile (transactions {} to {}): pages freed and used again \
             since then are shown as they are now",
            meta.txn, later.txn
        ));
    }
    walk.into_map(map);
    Ok(())
}

impl Walk<'_> {
    fn tree(&mut self, name: &str) -> usize {
        let place = self.trees.len();
        if TREES_MAX <= place {
            return TREES_MAX - 1;
        }
        self.trees.push(TreeSum {
            name: name.to_owned(),
            ..TreeSum::default()
        });
        self.used.push(0);
        place
    }

    fn set(&mut self, page: u64, cell: Cell) {
        let place = usize::try_from(page).ok();
        if let Some(there) = place.and_then(|place| self.cells.get_mut(place)) {
            *there = cell;
        }
    }

    /// Read a page and draw it; `None` if it is not a page of a tree, or was visited before (a
    /// damaged file must not cause an endless walk).
    fn page(&mut self, number: u64, tree: usize) -> Result<Option<Vec<u8>>> {
        let size = self.meta.page_bytes;
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let untouched = self.cells.get(place) == Some(&Cell::of(Kind::Unknown));
        let mut page = vec![0; size];
        self.source
            .read(&mut page, number.saturating_mul(size as u64))?;
        let flags = le16(&page, 10);
        let (lower, upper) = (usize::from(le16(&page, 12)), usize::from(le16(&page, 14)));
        let sound = flags & (BRANCH | LEAF) != 0
            && le64(&page, 0) == number
            && (HEADER..=size).contains(&lower)
            && (lower..=size).contains(&upper);
        if !untouched || !sound {
            self.wrong += 1;
            return Ok(None);
        }
        let used = (size - (upper - lower)) as u64;
        let leaf = flags & LEAF != 0;
        self.set(
            number,
            Cell {
                owner: u8::try_from(tree).ok(),
                used: Some(percent(used, size as u64)),
                ..Cell::of(if leaf { Kind::Data } else { Kind::Inner })
            },
        );
        if let (Some(sum), Some(bytes)) = (self.trees.get_mut(tree), self.used.get_mut(tree)) {
            sum.bytes += size as u64;
            if leaf {
                sum.leaves += 1;
                *bytes += used;
            } else {
                sum.inner += 1;
            }
        }
        Ok(Some(page))
    }

    /// Visit a tree; `each` receives the nodes of its leaves.
    fn walk(
        &mut self,
        root: u64,
        tree: usize,
        depth: u32,
        each: &mut dyn FnMut(&mut Self, &Node<'_>) -> Result<()>,
    ) -> Result<()> {
        if root == NONE || DEPTH_MAX <= depth {
            return Ok(());
        }
        let Some(page) = self.page(root, tree)? else {
            return Ok(());
        };
        if let Some(sum) = self.trees.get_mut(tree) {
            sum.depth = Some(sum.depth.unwrap_or(0).max(depth + 1));
        }
        let branch = le16(&page, 10) & BRANCH != 0;
        for node in nodes(&page) {
            if branch {
                self.walk(node.child, tree, depth + 1, each)?;
            } else {
                if node.flags & 1 != 0 {
                    self.overflow(le64(node.data, 0), tree)?;
                }
                each(self, &node)?;
            }
        }
        Ok(())
    }

    fn overflow(&mut self, first: u64, tree: usize) -> Result<()> {
        let size = self.meta.page_bytes as u64;
        let mut head = [0; HEADER];
        self.source.read(&mut head, first.saturating_mul(size))?;
        let room = (self.cells.len() as u64).saturating_sub(first);
        let pages = u64::from(le32(&head, 12));
        if le64(&head, 0) != first || room < pages {
            self.wrong += 1;
            return Ok(());
        }
        for page in first..first + pages {
            let owner = u8::try_from(tree).ok();
            self.set(
                page,
                Cell {
                    owner,
                    ..Cell::of(Kind::Overflow)
                },
            );
        }
        if let Some(sum) = self.trees.get_mut(tree) {
            sum.overflow += pages;
            sum.bytes += pages * size;
        }
        Ok(())
    }

    /// Walk the list of free pages: each entry is a count of pages and their numbers.
    fn free_list(&mut self, root: u64, tree: usize, depth: u32) -> Result<()> {
        self.walk(root, tree, depth, &mut |walk, node| {
            let own;
            let mut list = node.data;
            if node.flags & 1 != 0 {
                own = walk.large(node)?;
                list = &own;
            }
            let room = list.len() / 8;
            let count = usize::try_from(le64(list, 0)).unwrap_or(room);
            for index in 1..=count.min(room.saturating_sub(1)) {
                walk.set(le64(list, index * 8), Cell::of(Kind::Free));
            }
            Ok(())
        })
    }

    /// Read a value from its overflow pages.
    fn large(&self, node: &Node<'_>) -> Result<Vec<u8>> {
        let size = self.meta.page_bytes as u64;
        let at = le64(node.data, 0).saturating_mul(size) + HEADER as u64;
        let most = self.source.length.saturating_sub(at);
        let length = u64::from(node.length).min(most);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.source.read(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Walk the catalog, and every tree that it names.
    fn catalog(&mut self) -> Result<()> {
        let main = self.tree("names of trees");
        let mut found: Vec<(String, Tree)> = Vec::new();
        self.walk(self.meta.main.root, main, 0, &mut |_, node| {
            if node.flags & 2 != 0 {
                let name = String::from_utf8_lossy(node.key).into_owned();
                found.push((name, Tree::at(node.data, 0)));
            }
            Ok(())
        })?;
        let mut named: Vec<(String, u32)> = Vec::new();
        for (name, tree) in found {
            let place = self.tree(&name);
            self.walk(tree.root, place, 0, &mut |walk, node| {
                if let (CATALOG, Some(slot)) = (name.as_str(), node.data.first_chunk()) {
                    let tree = String::from_utf8_lossy(node.key).into_owned();
                    named.push((tree, u32::from_be_bytes(*slot)));
                }
                // The duplicate values of a key are in a separate tree.
                if node.flags & 6 == 6 {
                    let below = Tree::at(node.data, 0);
                    walk.walk(below.root, place, u32::from(tree.depth), &mut |_, _| Ok(()))?;
                }
                Ok(())
            })?;
        }
        // This program's own stores name their trees `t0`, `t1` ..., and store the users' names of
        // the trees in the catalog.
        for (name, slot) in named {
            let slot = format!("t{slot}");
            let mut trees = self.trees.iter_mut();
            if let Some(tree) = trees.find(|tree| tree.name == slot) {
                tree.name = name;
            }
        }
        Ok(())
    }

    fn into_map(mut self, map: &mut Map) {
        let size = self.meta.page_bytes as u64;
        for (sum, used) in self.trees.iter_mut().zip(&self.used) {
            let full = (sum.leaves * size) as f64;
            sum.leaf_fill = (0 < sum.leaves).then(|| *used as f64 / full);
        }
        let free = self.cells.iter().filter(|c| c.kind == Kind::Free).count() as u64;
        let unknown = self
            .cells
            .iter()
            .filter(|c| c.kind == Kind::Unknown)
            .count();
        if 0 < unknown + usize::try_from(self.wrong).unwrap_or(0) {
            map.notes.push(format!(
                "{unknown} pages are in no tree and not free, {} are not what points at them says",
                self.wrong
            ));
        }
        map.sums.file_bytes += self.source.length;
        map.sums.free_bytes += free * size;
        map.facts.push((
            "file".to_owned(),
            format!(
                "pages of {}, transaction {}, {free} of {} free",
                stdx::ByteSize(size),
                self.meta.txn,
                self.cells.len()
            ),
        ));
        let owners: Vec<String> = self.trees.iter().map(|t| t.name.clone()).collect();
        let about = "one cell a page, in the order of the file; the height is the share of the \
                     page in use";
        map.panels
            .push(Panel::pages("data.mdb", about, size, &owners, &self.cells));
        map.trees.append(&mut self.trees);
    }
}

/// A node of a page.
struct Node<'a> {
    flags: u16,
    key: &'a [u8],
    /// The value, or the number of the first overflow page that holds it.
    data: &'a [u8],
    /// Length of the value, in bytes.
    length: u32,
    /// The child page; in branch nodes only.
    child: u64,
}

fn nodes(page: &[u8]) -> impl Iterator<Item = Node<'_>> {
    let flags = le16(page, 10);
    // Leaves with keys of fixed size have no nodes, so they provide no further information.
    let plain = flags & 32 == 0;
    let lower = usize::from(le16(page, 12));
    let slots = if plain {
        lower.saturating_sub(HEADER) / 2
    } else {
        0
    };
    (0..slots).filter_map(move |slot| {
        let at = usize::from(le16(page, HEADER + 2 * slot));
        let node = page.get(at..)?;
        let (lo, hi, own) = (le16(node, 0), le16(node, 2), le16(node, 4));
        let (key, rest) = node
            .get(NODE..)?
            .split_at_checked(usize::from(le16(node, 6)))?;
        let length = u32::from(hi) << 16 | u32::from(lo);
        let here = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(rest.len());
        Some(Node {
            flags: own,
            key,
            data: rest.get(..here)?,
            length,
            child: u64::from(own) << 32 | u64::from(length),
        })
    })
}

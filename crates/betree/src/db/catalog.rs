//! The trees of a store, by name and by number.
//!
//! - I1. A number is never given twice.
//! - I2. A dropped tree stays until no snapshot is left that saw it; then its runs are retired.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::RwLock;

use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::tree::Tree;
use crate::types::{Seq, TreeId};

#[derive(Default)]
struct Trees {
    by_id: BTreeMap<TreeId, Arc<Tree>>,
    by_name: BTreeMap<String, TreeId>,
    /// Dropped trees, with the commit that dropped them.
    dropped: BTreeMap<TreeId, (Arc<Tree>, Seq)>,
    next: u32,
}

/// The trees.
pub(crate) struct Catalog {
    trees: RwLock<Trees>,
}

impl Catalog {
    /// A catalog of these trees; new trees are numbered from `next`.
    pub(crate) fn new(trees: Vec<Arc<Tree>>, next: u32) -> Catalog {
        let mut all = Trees {
            next,
            ..Trees::default()
        };
        for tree in trees {
            assert!(tree.id.0 < next, "I1: numbers are given in order");
            all.by_name.insert(tree.name.clone(), tree.id);
            all.by_id.insert(tree.id, tree);
        }
        Catalog {
            trees: RwLock::new(all),
        }
    }

    /// The tree for a writer.
    pub(crate) fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        match self.trees.read().by_id.get(&id) {
            Some(tree) => Ok(Arc::clone(tree)),
            None => Err(unknown(id)),
        }
    }

    /// The tree for a reader at snapshot `seq`.
    pub(crate) fn tree_at(&self, id: TreeId, seq: Seq) -> Result<Arc<Tree>> {
        let trees = self.trees.read();
        if let Some(tree) = trees.by_id.get(&id) {
            return Ok(Arc::clone(tree));
        }
        match trees.dropped.get(&id) {
            Some((tree, dropped)) if seq < *dropped => Ok(Arc::clone(tree)),
            _ => Err(unknown(id)),
        }
    }

    /// The tree with this name.
    pub(crate) fn by_name(&self, name: &str) -> Result<Arc<Tree>> {
        let trees = self.trees.read();
        let tree = trees.by_name.get(name).and_then(|id| trees.by_id.get(id));
        tree.cloned().ok_or_else(|| missing(name))
    }

    /// Whether a tree has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.trees.read().by_name.contains_key(name)
    }

    /// All names in byte order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.trees.read().by_name.keys().cloned().collect()
    }

    /// All trees that are not dropped.
    pub(crate) fn all(&self) -> Vec<Arc<Tree>> {
        self.trees.read().by_id.values().cloned().collect()
    }

    /// All trees that are not dropped, and the next number, at one moment.
    pub(crate) fn all_and_next(&self) -> (Vec<Arc<Tree>>, u32) {
        let trees = self.trees.read();
        (trees.by_id.values().cloned().collect(), trees.next)
    }

    /// Whether dropped trees are still in the catalog.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.trees.read().dropped.is_empty()
    }

    /// Number of trees.
    pub(crate) fn len(&self) -> usize {
        self.trees.read().by_id.len()
    }

    /// The next number.
    pub(crate) fn next_id(&self) -> u32 {
        if planted(Plant::TreeNumberReused) {
            let trees = self.trees.read();
            return trees.by_id.keys().next_back().map_or(1, |id| id.0 + 1);
        }
        self.trees.read().next
    }

    /// Add a tree, under the commit lock.
    pub(crate) fn insert(&self, tree: Arc<Tree>) {
        let mut trees = self.trees.write();
        trees.next = trees.next.max(tree.id.0 + 1);
        let before = trees.by_name.insert(tree.name.clone(), tree.id);
        assert!(before.is_none(), "the name was free");
        let before = trees.by_id.insert(tree.id, tree);
        assert!(before.is_none(), "I1: a number is never given twice");
    }

    /// Mark a tree as dropped by the commit `seq`, under the commit lock.
    pub(crate) fn drop_tree(&self, id: TreeId, seq: Seq) {
        let mut trees = self.trees.write();
        if let Some(tree) = trees.by_id.remove(&id) {
            let named = trees.by_name.remove(&tree.name);
            assert_eq!(named, Some(id), "a tree has its name alone");
            let before = trees.dropped.insert(id, (tree, seq));
            assert!(before.is_none(), "I1: a number is dropped once");
        }
    }

    /// Remove and return the dropped trees that no snapshot at or after `oldest` sees (I2), under
    /// the commit lock.
    pub(crate) fn forgotten(&self, oldest: Option<Seq>) -> Vec<Arc<Tree>> {
        let mut trees = self.trees.write();
        let gone = |dropped: Seq| oldest.is_none_or(|oldest| dropped <= oldest);
        let ids: Vec<TreeId> = trees
            .dropped
            .iter()
            .filter(|(_, (_, dropped))| gone(*dropped))
            .map(|(id, _)| *id)
            .collect();
        let taken = ids.into_iter().filter_map(|id| trees.dropped.remove(&id));
        taken.map(|(tree, _)| tree).collect()
    }

    /// Dropped trees that snapshots may still read, with the commits that dropped them.
    pub(crate) fn lingering(&self) -> Vec<(Arc<Tree>, Seq)> {
        self.trees.read().dropped.values().cloned().collect()
    }
}

fn unknown(id: TreeId) -> Error {
    let message = format!(
        "there is no tree {}: it was dropped, or is of another store",
        id.0
    );
    Error::new(ErrorKind::Invalid, message)
}

fn missing(name: &str) -> Error {
    let message = format!("there is no tree {name:?}; create it first");
    Error::new(ErrorKind::NotFound, message)
}

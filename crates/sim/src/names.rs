//! Directories: visible names, durable names, and the pending changes between them.
//!
//! Directories themselves are durable as soon as they exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A change of a name that is not durable yet.
#[derive(Clone)]
pub(crate) enum NameOp {
    Link { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
}

/// A [`NameOp`], its file, and its number in the order of all ops.
#[derive(Clone)]
pub(crate) struct PendingName {
    pub(crate) seq: u64,
    pub(crate) inode: u64,
    pub(crate) op: NameOp,
}

/// All names of the disk.
#[derive(Clone, Default)]
pub(crate) struct Names {
    pub(crate) directories: BTreeSet<PathBuf>,
    pub(crate) durable: BTreeMap<PathBuf, u64>,
    pub(crate) visible: BTreeMap<PathBuf, u64>,
    pub(crate) pending: Vec<PendingName>,
}

impl PendingName {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match &self.op {
            NameOp::Link { path } => {
                names.insert(path.clone(), self.inode);
            }
            NameOp::Rename { from, to } => {
                if names.get(from) == Some(&self.inode) {
                    names.remove(from);
                }
                names.insert(to.clone(), self.inode);
            }
            NameOp::Remove { path } => {
                if names.get(path) == Some(&self.inode) {
                    names.remove(path);
                }
            }
        }
    }

    fn paths(&self) -> Vec<&Path> {
        match &self.op {
            NameOp::Link { path } | NameOp::Remove { path } => vec![path],
            NameOp::Rename { from, to } => vec![from, to],
        }
    }
}

impl Names {
    /// Make `op` visible and pending.
    pub(crate) fn push(&mut self, seq: u64, inode: u64, op: NameOp) {
        let pending = PendingName { seq, inode, op };
        pending.apply(&mut self.visible);
        self.pending.push(pending);
    }

    /// Make the changes of names in `directory` durable.
    pub(crate) fn sync(&mut self, directory: &Path) {
        let inside = |path: &Path| path.parent() == Some(directory);
        let pending = std::mem::take(&mut self.pending);
        for op in pending {
            if op.paths().into_iter().any(inside) {
                op.apply(&mut self.durable);
            } else {
                self.pending.push(op);
            }
        }
    }

    /// The names after a crash that keeps the pending ops for which `keep` is true. Ops after a
    /// lost op of the same name or file are lost too, because a file system orders them.
    pub(crate) fn survivors(&self, keep: impl Fn(u64) -> bool) -> BTreeMap<PathBuf, u64> {
        let mut names = self.durable.clone();
        let mut lost_paths: BTreeSet<&Path> = BTreeSet::new();
        let mut lost_inodes: BTreeSet<u64> = BTreeSet::new();
        for op in &self.pending {
            let paths = op.paths();
            let follows = lost_inodes.contains(&op.inode)
                || paths.iter().any(|path| lost_paths.contains(path));
            if !follows && keep(op.seq) {
                op.apply(&mut names);
            } else {
                lost_paths.extend(paths);
                lost_inodes.insert(op.inode);
            }
        }
        names
    }

    /// Whether a name refers to `inode`, or may refer to it after a crash.
    pub(crate) fn mentions(&self, inode: u64) -> bool {
        let of = |names: &BTreeMap<PathBuf, u64>| names.values().any(|&i| i == inode);
        of(&self.visible) || of(&self.durable) || self.pending.iter().any(|p| p.inode == inode)
    }
}

//! Everything that the state's lock guards: the catalog, the trees, the last commit and the
//! garbage.

use std::collections::btree_map::BTreeMap;
use std::collections::vec_deque::VecDeque;

use kv_types::{Batch, Change, Error, ErrorKind, Result, TreeId, TreeOptions};

use super::chain::{Tally, put_cost};
use super::live::Live;
use super::store::Commit;
use super::tree::{Garbage, Moment, Tree};
use super::{KEY_MAX, NAME, VALUE_MAX};
use crate::tree::check_name;

/// Maximum number of names of dropped trees that are kept, so that errors about their handles can
/// name them.
const FORGOTTEN_MAX: usize = 64;

/// The content of a store.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The sequence number of the last commit.
    pub(super) last: u64,
    /// Bytes held by all trees: the sum of their tallies.
    pub(super) held: u64,
    pub(super) garbage: Garbage,
    pub(super) trees: BTreeMap<TreeId, Tree>,
    names: BTreeMap<String, TreeId>,
    created: u32,
    /// Dropped trees that an older snapshot may still read, oldest drop first.
    dropped: VecDeque<(u64, TreeId)>,
    forgotten: VecDeque<(TreeId, String)>,
}

impl State {
    pub(super) fn create_tree(&mut self, name: &str, _hints: &TreeOptions) -> Result<TreeId> {
        check_name(name).map_err(Error::invalid)?;
        if self.names.contains_key(name) {
            let message = format!("a tree named {name} exists; open it or drop it first");
            return Err(Error::new(ErrorKind::Exists, message).with_tree(name));
        }
        let Some(created) = self.created.checked_add(1) else {
            let message = "no handles are left; close the store and open it again";
            return Err(Error::new(ErrorKind::Full, message).with_tree(name));
        };
        self.created = created;
        let id = TreeId(created);
        self.names.insert(name.to_owned(), id);
        self.trees.insert(id, Tree::new(id, name));
        Ok(id)
    }

    /// The handle of the tree named `name`.
    pub(super) fn open_tree(&self, name: &str) -> Result<TreeId> {
        self.names.get(name).copied().ok_or_else(|| {
            let message = format!("no tree is named {name}; create it first");
            Error::new(ErrorKind::NotFound, message).with_tree(name)
        })
    }

    /// Drop the tree named `name`. The drop is a commit of its own, so that older snapshots
    /// continue to read the tree.
    pub(super) fn drop_tree(&mut self, name: &str) -> Result<()> {
        let id = self.open_tree(name)?;
        self.names.remove(name);
        self.last += 1;
        self.dropped.push_back((self.last, id));
        if let Some(tree) = self.trees.get_mut(&id) {
            tree.dropped = Some(self.last);
        }
        Ok(())
    }

    /// The names of the trees, in byte order.
    pub(super) fn tree_names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    /// The number of trees.
    pub(super) fn tree_count(&self) -> usize {
        self.names.len()
    }

    /// The tree of `id` as a snapshot at `seq` may read it.
    pub(super) fn tree_at(&self, id: TreeId, seq: u64) -> Result<&Tree> {
        match self.trees.get(&id) {
            Some(tree) if tree.dropped.is_none_or(|dropped| seq < dropped) => Ok(tree),
            _ => Err(self.stale(id)),
        }
    }

    /// The tree of `id` as it is now.
    pub(super) fn tree(&self, id: TreeId) -> Result<&Tree> {
        self.tree_at(id, u64::MAX)
    }

    /// The tree of `id` as a transaction at `seq` may write it.
    pub(super) fn tree_for_write(&self, id: TreeId, seq: u64) -> Result<&Tree> {
        let tree = self.tree_at(id, seq)?;
        if tree.dropped.is_some() {
            let message = "the tree was dropped after the transaction began; retry the transaction";
            return Err(Error::new(ErrorKind::Conflict, message).with_tree(&tree.name));
        }
        Ok(tree)
    }

    fn stale(&self, id: TreeId) -> Error {
        let known = self.trees.get(&id).map(|tree| &tree.name);
        let mut forgotten = self.forgotten.iter();
        let forgotten = forgotten.find(|(of, _)| *of == id).map(|(_, name)| name);
        let error = Error::invalid("the handle is of no tree, or of one that was dropped");
        match known.or(forgotten) {
            Some(name) => error.with_tree(name),
            None => error.with_tree(format!("#{}", id.0)),
        }
    }

    /// Make one change as part of the commit after `last`.
    #[inline]
    pub(super) fn change(
        &mut self,
        tree: TreeId,
        live: &Live,
        how: impl FnOnce(&mut Tree, &mut Moment<'_>),
    ) {
        let tree = self.trees.get_mut(&tree);
        let tree = tree.expect("the handle was checked under the same lock");
        let before = tree.tally.held_bytes;
        let mut moment = Moment {
            seq: self.last + 1,
            live,
            garbage: &mut self.garbage,
        };
        how(tree, &mut moment);
        self.held = self.held - before + tree.tally.held_bytes;
    }

    /// Drop the dead versions of at most `budget` keys. Returns the dropped trees that no snapshot
    /// can read any more, so that the caller frees them after releasing the lock.
    pub(super) fn sweep(&mut self, live: &Live, budget: usize) -> Vec<Tree> {
        let mut freed = Vec::new();
        while let Some(&(seq, id)) = self.dropped.front() {
            if live.any_below(seq) {
                break;
            }
            self.dropped.pop_front();
            freed.extend(self.forget(id));
        }
        for _ in 0..budget {
            let ready = self.garbage.front();
            if ready.is_none_or(|dead| live.any_below(dead.seq)) {
                break;
            }
            let Some(mut dead) = self.garbage.pop_front() else {
                break;
            };
            let Some(tree) = self.trees.get_mut(&dead.tree) else {
                continue;
            };
            let before = tree.tally.held_bytes;
            if tree.prune(&dead.key, live) {
                // The key was written again meanwhile, and may be pruned only after a later commit.
                dead.seq = self.last;
                self.garbage.push_back(dead);
            }
            self.held = self.held - before + tree.tally.held_bytes;
        }
        freed
    }

    fn forget(&mut self, id: TreeId) -> Option<Tree> {
        let tree = self.trees.remove(&id)?;
        self.held -= tree.tally.held_bytes;
        if self.forgotten.len() == FORGOTTEN_MAX {
            self.forgotten.pop_front();
        }
        self.forgotten.push_back((id, tree.name.clone()));
        Some(tree)
    }

    /// Check M1 and M3; returns what is wrong, if anything.
    pub(super) fn verify(&self) -> std::result::Result<(), String> {
        let mut held = 0;
        for tree in self.trees.values() {
            let mut sum = Tally::default();
            for (key, chain) in &tree.map {
                sum.add(chain.cost(key.len()));
                if !chain.is_ordered(self.last) {
                    let key = key.escape_ascii();
                    return Err(format!("M1: versions out of order: {}, {key}", tree.name));
                }
            }
            if sum != tree.tally {
                let (name, tally) = (&tree.name, &tree.tally);
                return Err(format!("M3: {name} has {sum:?} but its tally is {tally:?}"));
            }
            held += sum.held_bytes;
        }
        if held != self.held {
            return Err(format!("M3: {held} bytes are held, {} counted", self.held));
        }
        Ok(())
    }

    /// Whether [`State::sweep`] may have work to do, now or later.
    pub(super) fn has_garbage(&self) -> bool {
        !self.garbage.is_empty() || !self.dropped.is_empty()
    }

    /// Whether [`State::sweep`] has work to do now.
    pub(super) fn is_ready(&self, live: &Live) -> bool {
        let key = self.garbage.front().map(|dead| dead.seq);
        let tree = self.dropped.front().map(|&(seq, _)| seq);
        key.into_iter().chain(tree).any(|seq| !live.any_below(seq))
    }
}

impl Commit for &Batch {
    fn check(&self, state: &State) -> Result<u64> {
        let mut incoming = 0;
        for change in self.ops() {
            match change {
                Change::Put { tree, key, value } => {
                    let tree = state.tree(tree)?;
                    check_key(key).map_err(|e| e.with_tree(&tree.name))?;
                    check_value(key, value).map_err(|e| e.with_tree(&tree.name))?;
                    incoming += put_cost(key.len(), value.len());
                }
                Change::Delete { tree, key } => {
                    let tree = state.tree(tree)?;
                    check_key(key).map_err(|e| e.with_tree(&tree.name))?;
                }
                Change::DeleteRange { tree, .. } => {
                    state.tree(tree)?;
                }
            }
        }
        Ok(incoming)
    }

    fn apply(self, state: &mut State, live: &mut Live) {
        for change in self.ops() {
            match change {
                Change::Put { tree, key, value } => {
                    let value = Some(Box::from(value));
                    state.change(tree, live, |t, moment| t.set(key.into(), value, moment));
                }
                Change::Delete { tree, key } => {
                    state.change(tree, live, |t, moment| t.set(key.into(), None, moment));
                }
                Change::DeleteRange { tree, range } => {
                    state.change(tree, live, |t, moment| t.remove_range(range, moment));
                }
            }
        }
        state.last += 1;
    }
}

/// Refuse a key beyond the limit.
pub(super) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() <= KEY_MAX {
        return Ok(());
    }
    let message = format!(
        "a key has at most {KEY_MAX} bytes, this one {}; shorten it",
        key.len()
    );
    Err(Error::invalid(message).with_engine(NAME).with_key(key))
}

/// Refuse a value beyond the limit.
pub(super) fn check_value(key: &[u8], value: &[u8]) -> Result<()> {
    if value.len() <= VALUE_MAX {
        return Ok(());
    }
    let message = format!(
        "a value has at most {VALUE_MAX} bytes, this one {}; split it",
        value.len()
    );
    Err(Error::invalid(message).with_engine(NAME).with_key(key))
}

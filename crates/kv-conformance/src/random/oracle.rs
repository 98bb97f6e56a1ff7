//! The model: the results that the contract requires of an engine, and the choices it leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kv::{KeyRange, TreeId};

use super::step::{Change, Range};

/// The content of one tree.
pub(super) type Map = BTreeMap<Rc<[u8]>, Rc<[u8]>>;

/// The content of a snapshot: all trees at one moment. Maps are shared until they change.
#[derive(Clone, Debug, Default)]
pub(super) struct View(pub(super) BTreeMap<TreeId, Rc<Map>>);

/// The times of the last commits that changed a key.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    /// The time of the last commit whose write takes part in conflict detection.
    checked: u64,
    /// The time of the last commit with any write.
    any: u64,
}

/// Whether a transaction conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// The transaction must not conflict.
    Never,
    /// The transaction may conflict; the contract leaves this to the engine.
    May,
    /// The transaction must conflict: another one wrote the same key and committed first.
    Must,
}

/// A write of a transaction, as it is applied at commit.
#[derive(Clone, Debug)]
enum Write {
    Set(TreeId, Rc<[u8]>, Option<Rc<[u8]>>, bool),
    /// A range delete: the range, and the keys in it that the transaction saw.
    Clear(TreeId, Range, Vec<Rc<[u8]>>),
}

/// The model of an open transaction.
#[derive(Clone, Debug)]
pub(super) struct Txn {
    /// What the transaction reads now, including its own writes.
    pub(super) view: View,
    /// What the transaction read when it began.
    base: View,
    began: u64,
    log: Vec<Write>,
    /// The keys that the transaction wrote; true if the write takes part in conflict detection for
    /// certain.
    keys: BTreeMap<(TreeId, Rc<[u8]>), bool>,
    /// The ranges that the transaction deleted.
    ranges: Vec<(TreeId, Range)>,
}

/// The required result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The change succeeds.
    Done,
    /// The change fails with `Exists`.
    Exists,
    /// The change succeeds and returns whether the key existed.
    Was(bool),
}

/// The committed state, and when each key was last changed.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) now: View,
    clock: u64,
    stamps: BTreeMap<(TreeId, Rc<[u8]>), Stamps>,
    /// For each tree, the time of the last range delete.
    cleared: BTreeMap<TreeId, u64>,
    blind_conflicts: bool,
}

impl View {
    pub(super) fn trees(&self) -> Vec<TreeId> {
        self.0.keys().copied().collect()
    }

    pub(super) fn map(&self, tree: TreeId) -> &Map {
        self.0.get(&tree).expect("a tree of the view")
    }

    fn map_mut(&mut self, tree: TreeId) -> &mut Map {
        Rc::make_mut(self.0.get_mut(&tree).expect("a tree of the view"))
    }

    pub(super) fn get(&self, tree: TreeId, key: &[u8]) -> Option<&[u8]> {
        self.map(tree).get(key).map(|value| &**value)
    }

    fn set(&mut self, tree: TreeId, key: &Rc<[u8]>, value: Option<&Rc<[u8]>>) {
        match value {
            Some(value) => self.map_mut(tree).insert(key.clone(), value.clone()),
            None => self.map_mut(tree).remove(key),
        };
    }

    pub(super) fn keys_in(&self, tree: TreeId, range: KeyRange<'_>) -> Vec<Rc<[u8]>> {
        let keys = self.map(tree).keys();
        keys.filter(|key| range.contains(key)).cloned().collect()
    }

    /// Apply one change of a batch; returns the changed keys.
    pub(super) fn apply(&mut self, tree: TreeId, change: &Change) -> Vec<Rc<[u8]>> {
        match change {
            Change::Put(key, value) | Change::Insert(key, value) | Change::PutBlind(key, value) => {
                let key: Rc<[u8]> = key.0.as_slice().into();
                self.set(tree, &key, Some(&value.bytes().into()));
                vec![key]
            }
            Change::Delete(key) | Change::DeleteBlind(key) => {
                let key: Rc<[u8]> = key.0.as_slice().into();
                self.set(tree, &key, None);
                vec![key]
            }
            Change::DeleteRange(range) => {
                let keys = self.keys_in(tree, range.borrow());
                for key in &keys {
                    self.set(tree, key, None);
                }
                keys
            }
        }
    }
}

impl Txn {
    fn set(&mut self, tree: TreeId, key: &[u8], value: Option<Vec<u8>>, checked: bool) {
        let key: Rc<[u8]> = key.into();
        let value: Option<Rc<[u8]>> = value.map(Into::into);
        self.view.set(tree, &key, value.as_ref());
        self.log.push(Write::Set(tree, key.clone(), value, checked));
        self.touch(tree, key, checked);
    }

    fn touch(&mut self, tree: TreeId, key: Rc<[u8]>, checked: bool) {
        *self.keys.entry((tree, key)).or_default() |= checked;
    }

    /// Apply `change` to the model; returns the result that the engine must return, unless it
    /// reports a conflict.
    pub(super) fn apply(&mut self, tree: TreeId, change: &Change, blind_conflicts: bool) -> Answer {
        match change {
            Change::Put(key, value) => self.set(tree, &key.0, Some(value.bytes()), true),
            Change::Insert(key, value) => {
                if self.view.get(tree, &key.0).is_some() {
                    self.touch(tree, key.0.as_slice().into(), false);
                    return Answer::Exists;
                }
                self.set(tree, &key.0, Some(value.bytes()), true);
            }
            Change::Delete(key) => {
                let was = self.view.get(tree, &key.0).is_some();
                if was {
                    self.set(tree, &key.0, None, true);
                } else {
                    self.touch(tree, key.0.as_slice().into(), false);
                }
                return Answer::Was(was);
            }
            Change::PutBlind(key, value) => {
                self.blind(tree, &key.0, Some(value.bytes()), blind_conflicts);
            }
            Change::DeleteBlind(key) => self.blind(tree, &key.0, None, blind_conflicts),
            Change::DeleteRange(range) => {
                let keys = self.view.keys_in(tree, range.borrow());
                for key in &keys {
                    self.view.set(tree, key, None);
                }
                self.log.push(Write::Clear(tree, range.clone(), keys));
                self.ranges.push((tree, range.clone()));
            }
        }
        Answer::Done
    }

    fn blind(&mut self, tree: TreeId, key: &[u8], value: Option<Vec<u8>>, conflicts: bool) {
        let key: Rc<[u8]> = key.into();
        let value: Option<Rc<[u8]>> = value.map(Into::into);
        self.view.set(tree, &key, value.as_ref());
        self.log.push(Write::Set(tree, key.clone(), value, false));
        if conflicts {
            self.touch(tree, key, false);
        }
    }

    /// Whether the key is absent both before and after the transaction: an engine may ignore its
    /// writes of this key.
    fn came_to_nothing(&self, tree: TreeId, key: &[u8]) -> bool {
        self.base.get(tree, key).is_none() && self.view.get(tree, key).is_none()
    }

    /// Whether the two transactions write a common key.
    fn meets(&self, other: &Txn) -> bool {
        let in_ranges = |ranges: &[(TreeId, Range)], tree: TreeId, key: &[u8]| {
            let mut of_tree = ranges.iter().filter(|(of, _)| *of == tree);
            of_tree.any(|(_, range)| range.borrow().contains(key))
        };
        let common = |a: &Txn, b: &Txn| {
            let mut keys = a.keys.keys();
            keys.any(|(tree, key)| {
                b.keys.contains_key(&(*tree, key.clone())) || in_ranges(&b.ranges, *tree, key)
            })
        };
        let mut ranges = self.ranges.iter();
        let both_clear = ranges.any(|(tree, _)| other.ranges.iter().any(|(of, _)| of == tree));
        common(self, other) || common(other, self) || both_clear
    }
}

impl Oracle {
    pub(super) fn new(blind_conflicts: bool) -> Oracle {
        Oracle {
            blind_conflicts,
            ..Oracle::default()
        }
    }

    pub(super) fn begin(&self) -> Txn {
        Txn {
            view: self.now.clone(),
            base: self.now.clone(),
            began: self.clock,
            log: Vec::new(),
            keys: BTreeMap::new(),
            ranges: Vec::new(),
        }
    }

    pub(super) fn blind_conflicts(&self) -> bool {
        self.blind_conflicts
    }

    /// Whether `txn` conflicts with commits since it began, or may conflict with the `open`
    /// transactions.
    pub(super) fn verdict(&self, txn: &Txn, open: &[&Txn]) -> Verdict {
        let mut verdict = Verdict::Never;
        for ((tree, key), checked) in &txn.keys {
            let stamps = self.stamps.get(&(*tree, key.clone()));
            let stamps = stamps.copied().unwrap_or_default();
            let certain = *checked && !txn.came_to_nothing(*tree, key);
            if certain && txn.began < stamps.checked {
                return Verdict::Must;
            }
            let cleared = self.cleared.get(tree).copied().unwrap_or_default();
            if txn.began < stamps.any || txn.began < cleared {
                verdict = Verdict::May;
            }
        }
        for (tree, range) in &txn.ranges {
            let changed = self.stamps.iter().any(|((of, key), stamps)| {
                of == tree && txn.began < stamps.any && range.borrow().contains(key)
            });
            let cleared = self.cleared.get(tree).copied().unwrap_or_default();
            if changed || txn.began < cleared {
                verdict = Verdict::May;
            }
        }
        if open.iter().any(|other| txn.meets(other)) {
            verdict = verdict.max(Verdict::May);
        }
        verdict
    }

    fn stamp(&mut self, tree: TreeId, key: Rc<[u8]>, checked: bool) {
        let stamps = self.stamps.entry((tree, key)).or_default();
        stamps.any = self.clock;
        if checked {
            stamps.checked = self.clock;
        }
    }

    /// Commit `txn`. Returns the keys that other transactions put into a range that `txn` deleted:
    /// the engine may keep or remove them.
    pub(super) fn commit(&mut self, mut txn: Txn) -> BTreeSet<(TreeId, Rc<[u8]>)> {
        self.clock += 1;
        let mut open_choice = BTreeSet::new();
        // An engine may count the delete of an absent key as a write of the key.
        for (tree, key) in txn.keys.keys() {
            self.stamp(*tree, key.clone(), false);
        }
        for write in std::mem::take(&mut txn.log) {
            match write {
                Write::Set(tree, key, value, checked) => {
                    self.now.set(tree, &key, value.as_ref());
                    open_choice.remove(&(tree, key.clone()));
                    let checked = checked && !txn.came_to_nothing(tree, &key);
                    self.stamp(tree, key, checked);
                }
                Write::Clear(tree, range, seen) => {
                    for key in seen {
                        self.now.set(tree, &key, None);
                        self.stamp(tree, key, false);
                    }
                    for key in self.now.keys_in(tree, range.borrow()) {
                        open_choice.insert((tree, key));
                    }
                    self.cleared.insert(tree, self.clock);
                }
            }
        }
        open_choice
    }

    /// Record that the engine chose to remove `key`.
    pub(super) fn forget(&mut self, tree: TreeId, key: &Rc<[u8]>) {
        self.now.set(tree, key, None);
        self.stamp(tree, key.clone(), false);
    }

    /// Apply a batch.
    pub(super) fn write(&mut self, changes: &[(TreeId, &Change)]) {
        self.clock += 1;
        for &(tree, change) in changes {
            for key in self.now.apply(tree, change) {
                self.stamp(tree, key, false);
            }
            if matches!(change, Change::DeleteRange(_)) {
                self.cleared.insert(tree, self.clock);
            }
        }
    }

    pub(super) fn create(&mut self, tree: TreeId) {
        self.now.0.insert(tree, Rc::default());
    }

    pub(super) fn drop(&mut self, tree: TreeId) {
        self.now.0.remove(&tree);
    }

    /// Replace the handles after the store was reopened: `renamed` maps old handles to new ones.
    pub(super) fn reopen(&mut self, renamed: &BTreeMap<TreeId, TreeId>) {
        let old = std::mem::take(&mut self.now.0);
        let new = old.into_iter().map(|(tree, map)| (renamed[&tree], map));
        self.now.0 = new.collect();
        // No transaction is open, so the times of earlier changes are not needed.
        self.stamps.clear();
        self.cleared.clear();
    }
}

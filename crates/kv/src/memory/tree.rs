//! One tree: a map from keys to chains.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::vec_deque::VecDeque;
use std::ops::Bound;

use kv_types::{KeyRange, TreeId};

use super::chain::{Chain, Tally, Value};
use super::live::Live;

/// An owned key.
pub(super) type Key = Box<[u8]>;

/// Keys with versions that will become dead, in the order in which they will.
pub(super) type Garbage = VecDeque<Dead>;

/// A key with versions that are dead as soon as no snapshot is older than `seq`.
#[derive(Debug)]
pub(super) struct Dead {
    pub(super) seq: u64,
    pub(super) tree: TreeId,
    pub(super) key: Key,
}

/// The commit that is being applied.
pub(super) struct Moment<'a> {
    pub(super) seq: u64,
    pub(super) live: &'a Live,
    pub(super) garbage: &'a mut Garbage,
}

/// A tree. `dropped` is the commit that dropped it; older snapshots continue to read it.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) id: TreeId,
    pub(super) name: String,
    pub(super) dropped: Option<u64>,
    pub(super) map: BTreeMap<Key, Chain>,
    pub(super) tally: Tally,
}

impl Tree {
    /// An empty tree.
    pub(super) fn new(id: TreeId, name: &str) -> Tree {
        Tree {
            id,
            name: name.to_owned(),
            dropped: None,
            map: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    /// The value of `key` that a snapshot at `seq` sees.
    pub(super) fn get(&self, key: &[u8], seq: u64) -> Option<&[u8]> {
        self.map.get(key)?.at(seq)
    }

    /// Whether `key` was written by a commit above `seq`.
    pub(super) fn is_newer(&self, key: &[u8], seq: u64) -> bool {
        self.map.get(key).is_some_and(|chain| seq < chain.seq())
    }

    /// Set `key` to `value` (or remove it) in the commit `moment`.
    pub(super) fn set(&mut self, key: Key, value: Value, moment: &mut Moment<'_>) {
        match self.map.entry(key) {
            Entry::Occupied(mut entry) => {
                let len = entry.key().len();
                let chain = entry.get_mut();
                self.tally.sub(chain.cost(len));
                if chain.supersede(moment.seq, value, moment.live) {
                    entry.remove();
                    return;
                }
                self.tally.add(chain.cost(len));
                if chain.has_garbage() && !chain.queued {
                    chain.queued = true;
                    let key = entry.key().clone();
                    moment.queue(self.id, key);
                }
            }
            Entry::Vacant(entry) => {
                if value.is_none() && !moment.live.any_below(moment.seq) {
                    return;
                }
                let mut chain = Chain::new(moment.seq, value);
                if chain.has_garbage() {
                    chain.queued = true;
                    moment.queue(self.id, entry.key().clone());
                }
                self.tally.add(chain.cost(entry.key().len()));
                entry.insert(chain);
            }
        }
    }

    /// Remove every key of `range` in the commit `moment`.
    pub(super) fn remove_range(&mut self, range: KeyRange<'_>, moment: &mut Moment<'_>) {
        if range.is_empty() {
            return;
        }
        let bounds = (range.start.map(Box::from), range.end.map(Box::from));
        let (tally, id) = (&mut self.tally, self.id);
        let dead = self.map.extract_if(bounds, |key: &Key, chain| {
            if !chain.is_present() {
                return false;
            }
            tally.sub(chain.cost(key.len()));
            if chain.supersede(moment.seq, None, moment.live) {
                return true;
            }
            tally.add(chain.cost(key.len()));
            if !chain.queued {
                chain.queued = true;
                moment.queue(id, key.clone());
            }
            false
        });
        dead.for_each(drop);
    }

    /// Drop the dead versions of `key`, which was removed from the queue. Returns true when the key
    /// must be queued again.
    pub(super) fn prune(&mut self, key: &[u8], live: &Live) -> bool {
        let Some(chain) = self.map.get_mut(key) else {
            return false;
        };
        self.tally.sub(chain.cost(key.len()));
        if chain.prune(live) {
            self.map.remove(key);
            return false;
        }
        self.tally.add(chain.cost(key.len()));
        chain.queued = chain.has_garbage();
        chain.queued
    }

    /// Drop the dead versions of the first `count` keys of `range`. Returns the bytes visited, and
    /// the last key when there may be more.
    pub(super) fn prune_range(
        &mut self,
        range: KeyRange<'_>,
        count: usize,
        live: &Live,
    ) -> (u64, Option<Key>) {
        if range.is_empty() {
            return (0, None);
        }
        let (mut bytes, mut seen, mut last) = (0, 0, None);
        let mut dead: Vec<Key> = Vec::new();
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.start, range.end);
        for (key, chain) in self.map.range_mut::<[u8], _>(bounds).take(count) {
            let before = chain.cost(key.len());
            bytes += before.held_bytes;
            seen += 1;
            last = Some(key);
            self.tally.sub(before);
            if chain.prune(live) {
                dead.push(key.clone());
            } else {
                self.tally.add(chain.cost(key.len()));
            }
        }
        let last = last.filter(|_| seen == count).cloned();
        for key in dead {
            self.map.remove(&key);
        }
        (bytes, last)
    }
}

impl Moment<'_> {
    fn queue(&mut self, tree: TreeId, key: Key) {
        let seq = self.seq;
        self.garbage.push_back(Dead { seq, tree, key });
    }
}

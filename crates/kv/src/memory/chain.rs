//! The versions of one key.

use std::iter;
use std::mem;

use super::live::Live;

/// The value of a key; `None` is a tombstone.
pub(super) type Value = Option<Box<[u8]>>;

/// Overhead of an entry in bytes: 16 for the key, 64 for the chain, and the free space of B-tree
/// nodes (nodes are about 5/6 full).
const ENTRY_COST: usize = 96;

/// Overhead of an older version in bytes: 24, in a vector that may be half full.
const OLDER_COST: usize = 48;

/// The versions of one key, newest first.
#[derive(Debug)]
pub(super) struct Chain {
    newest: Version,
    /// Newest first. Empty unless a snapshot is older than `newest`.
    older: Vec<Version>,
    /// Whether the key is in the queue of garbage, so that it is not queued twice.
    pub(super) queued: bool,
}

#[derive(Debug)]
struct Version {
    seq: u64,
    value: Value,
}

/// Totals of chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Keys whose newest version is a value.
    pub(super) entries: u64,
    /// Bytes of those keys and values.
    pub(super) live_bytes: u64,
    /// Versions, including tombstones.
    pub(super) versions: u64,
    /// Bytes of all keys and versions, with their estimated overhead.
    pub(super) held_bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.entries += other.entries;
        self.live_bytes += other.live_bytes;
        self.versions += other.versions;
        self.held_bytes += other.held_bytes;
    }

    /// Subtract `other`, which was added before.
    pub(super) fn sub(&mut self, other: Tally) {
        self.entries -= other.entries;
        self.live_bytes -= other.live_bytes;
        self.versions -= other.versions;
        self.held_bytes -= other.held_bytes;
    }
}

impl Chain {
    /// A chain of one version.
    pub(super) fn new(seq: u64, value: Value) -> Chain {
        Chain {
            newest: Version { seq, value },
            older: Vec::new(),
            queued: false,
        }
    }

    /// The sequence number of the newest version.
    pub(super) fn seq(&self) -> u64 {
        self.newest.seq
    }

    /// The value that a snapshot at `seq` sees.
    pub(super) fn at(&self, seq: u64) -> Option<&[u8]> {
        if self.newest.seq <= seq {
            return self.newest.value.as_deref();
        }
        let version = self.older.iter().find(|v| v.seq <= seq)?;
        version.value.as_deref()
    }

    /// Whether the newest version is a value.
    pub(super) fn is_present(&self) -> bool {
        self.newest.value.is_some()
    }

    /// Add a version as the newest and drop the versions that no snapshot sees. Returns true when
    /// the chain has become redundant: removing it changes no result.
    pub(super) fn supersede(&mut self, seq: u64, value: Value, live: &Live) -> bool {
        assert!(self.newest.seq <= seq, "M1: commits come in order");
        if self.newest.seq == seq {
            // The same commit wrote the key before; no reader has seen that version.
            self.newest.value = value;
        } else {
            let old = mem::replace(&mut self.newest, Version { seq, value });
            if live.any_within(old.seq, seq) {
                self.older.insert(0, old);
            }
        }
        self.prune(live)
    }

    /// Drop the versions that no snapshot sees (M2). Returns true when the chain has become
    /// redundant.
    pub(super) fn prune(&mut self, live: &Live) -> bool {
        if !self.older.is_empty() {
            let mut above = self.newest.seq;
            self.older.retain(|version| {
                let seen = live.any_within(version.seq, above);
                above = version.seq;
                seen
            });
            // An oldest version that is a tombstone is redundant: before it, the key is absent
            // anyway.
            while self.older.last().is_some_and(|v| v.value.is_none()) {
                self.older.pop();
            }
            if self.older.is_empty() {
                self.older = Vec::new();
            }
        }
        self.newest.value.is_none() && !live.any_below(self.newest.seq)
    }

    /// Whether some versions of the chain will become dead without a further write.
    pub(super) fn has_garbage(&self) -> bool {
        self.newest.value.is_none() || !self.older.is_empty()
    }

    /// The totals of this chain under a key of `key_len` bytes.
    pub(super) fn cost(&self, key_len: usize) -> Tally {
        let newest = self.newest.value.as_ref().map_or(0, |v| v.len());
        let older = self.older.iter();
        let older: usize = older
            .map(|v| OLDER_COST + v.value.as_ref().map_or(0, |v| v.len()))
            .sum();
        let live = if self.is_present() {
            key_len + newest
        } else {
            0
        };
        Tally {
            entries: u64::from(self.is_present()),
            live_bytes: live as u64,
            versions: 1 + self.older.len() as u64,
            held_bytes: (ENTRY_COST + key_len + newest + older) as u64,
        }
    }

    /// Whether the sequence numbers are in order (M1) and none is above `last`.
    pub(super) fn is_ordered(&self, last: u64) -> bool {
        let mut above = last + 1;
        let mut all = iter::once(&self.newest).chain(&self.older);
        all.all(|v| mem::replace(&mut above, v.seq) > v.seq)
    }
}

/// Upper bound of the bytes that a put with these lengths adds to the bytes held.
pub(super) fn put_cost(key_len: usize, value_len: usize) -> u64 {
    (ENTRY_COST + OLDER_COST + key_len + value_len) as u64
}

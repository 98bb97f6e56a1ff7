//! A tree of buckets in memory that does what the engine does to buckets: commits, freezes,
//! flushes, merges and splits; and a model that knows what every snapshot sees.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use stdx::sync::Mutex;

use super::super::testing::Version;
use super::super::{At, Buckets, View, bounds};
use super::fixture::Runs;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::run::Run;
use crate::types::{Op, Seq};

/// What a snapshot sees.
pub(super) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change of one key.
pub(super) type Change = (Op, Vec<u8>, Vec<u8>);

/// The tree and its model.
pub(super) struct Town {
    state: Mutex<State>,
    runs: Runs,
}

struct State {
    buckets: Vec<Bucket>,
    seq: u64,
    history: Vec<Version>,
}

struct Bucket {
    view: View,
    /// The versions of the frozen buffers, the deltas and the base, as in the view.
    frozen: Vec<Vec<Version>>,
    deltas: Vec<Vec<Version>>,
    base: Vec<Version>,
    active: Vec<Version>,
}

/// Versions in the order of a run; for each key and sequence number the last one.
fn sorted(versions: impl IntoIterator<Item = Version>) -> Vec<Version> {
    let mut map = BTreeMap::new();
    for version in versions {
        map.insert((version.key.clone(), u64::MAX - version.seq.0), version);
    }
    map.into_values().collect()
}

impl Town {
    pub(super) fn new() -> Arc<Town> {
        let view = View {
            buffers: vec![Arc::new(Buffer::new(0))],
            deltas: Vec::new(),
            base: Arc::from([]),
            lo: Arc::from([]),
            hi: None,
        };
        let bucket = Bucket {
            view,
            frozen: Vec::new(),
            deltas: Vec::new(),
            base: Vec::new(),
            active: Vec::new(),
        };
        let state = State {
            buckets: vec![bucket],
            seq: 0,
            history: Vec::new(),
        };
        Arc::new(Town {
            state: Mutex::new(state),
            runs: Runs::new(64 << 10),
        })
    }

    /// Commit changes of distinct keys.
    pub(super) fn commit(&self, changes: &[Change]) -> Seq {
        let mut state = self.state.lock();
        state.seq += 1;
        let seq = state.seq;
        for (op, key, value) in changes {
            let version = Version::new(key, seq, *op, value);
            let index = state.holder(key);
            let bucket = &mut state.buckets[index];
            bucket.view.buffers[0].push(Seq(seq), *op, key, value);
            bucket.active.push(version.clone());
            state.history.push(version);
        }
        Seq(seq)
    }

    /// The content that `snapshot` sees, with `own` changes on top.
    pub(super) fn contents(&self, snapshot: Seq, own: &[Change]) -> Contents {
        let mut contents = Contents::new();
        let state = self.state.lock();
        let visible = state
            .history
            .iter()
            .filter(|version| version.seq <= snapshot);
        let changes = visible.map(|version| (&version.op, &version.key, &version.value));
        for (op, key, value) in changes.chain(own.iter().map(|(op, key, value)| (op, key, value))) {
            match op {
                Op::Put => contents.insert(key.clone(), value.clone()),
                Op::Delete => contents.remove(key),
            };
        }
        contents
    }

    pub(super) fn buckets(&self) -> usize {
        self.state.lock().buckets.len()
    }

    /// Freeze the active buffer of a bucket.
    pub(super) fn freeze(&self, index: usize) {
        self.state.lock().buckets[index].freeze();
    }

    /// Flush the oldest frozen buffer of a bucket, if there is one.
    pub(super) fn flush(&self, index: usize, oldest: Seq) {
        let mut state = self.state.lock();
        let bucket = &mut state.buckets[index];
        let Some(versions) = bucket.frozen.pop() else {
            return;
        };
        bucket.view.buffers.pop();
        let kept = forget(sorted(versions), oldest, false);
        if !kept.is_empty() {
            bucket.view.deltas.insert(0, self.runs.make_small(&kept));
            bucket.deltas.insert(0, kept);
        }
    }

    /// Merge deltas and base of a bucket into a base of `pieces` runs.
    pub(super) fn merge(&self, index: usize, oldest: Seq, pieces: usize) {
        let mut state = self.state.lock();
        let bucket = &mut state.buckets[index];
        let mut all: Vec<Version> = bucket.deltas.drain(..).flatten().collect();
        all.append(&mut bucket.base);
        all.retain(|version| bucket.view.holds(&version.key));
        // Stable: for one key the newest sequence comes first, whatever the seqs, which may be 0.
        all.sort_by(|a, b| a.key.cmp(&b.key));
        bucket.base = forget(all, oldest, true);
        let keys: BTreeSet<&[u8]> = bucket.base.iter().map(|version| &*version.key).collect();
        let keys: Vec<&[u8]> = keys.into_iter().collect();
        let mut runs = Vec::new();
        for chunk in keys.chunks(keys.len().div_ceil(pieces).max(1)) {
            let held = |version: &&Version| chunk.binary_search(&&*version.key).is_ok();
            let piece: Vec<Version> = bucket.base.iter().filter(held).cloned().collect();
            runs.push(self.runs.make_small(&piece));
        }
        let deltas = bucket.view.deltas.drain(..);
        let old: Vec<Arc<Run>> = deltas.chain(bucket.view.base.iter().cloned()).collect();
        bucket.view.base = Arc::from(runs);
        for run in old.iter().filter(|run| !state.names(run)) {
            run.retire();
        }
        drop(old);
        self.runs.reuse();
    }

    /// Divide a bucket at `key`: its runs and frozen buffers go to both halves.
    pub(super) fn split(&self, index: usize, key: &[u8]) {
        let mut state = self.state.lock();
        let bucket = &mut state.buckets[index];
        if *key <= *bucket.view.lo || !bucket.view.holds(key) {
            return;
        }
        bucket.freeze();
        let mut upper = Bucket {
            view: bucket.view.clone(),
            frozen: bucket.frozen.clone(),
            deltas: bucket.deltas.clone(),
            base: bucket.base.clone(),
            active: Vec::new(),
        };
        upper.view.buffers[0] = Arc::new(Buffer::new(0));
        upper.view.lo = Arc::from(key);
        bucket.view.hi = Some(Arc::from(key));
        state.buckets.insert(index + 1, upper);
    }

    /// The newest commit.
    pub(super) fn now(&self) -> Seq {
        Seq(self.state.lock().seq)
    }
}

impl State {
    fn names(&self, run: &Arc<Run>) -> bool {
        self.buckets.iter().any(|bucket| {
            let mut runs = bucket.view.deltas.iter().chain(&*bucket.view.base);
            runs.any(|named| Arc::ptr_eq(named, run))
        })
    }

    fn holder(&self, key: &[u8]) -> usize {
        self.buckets
            .partition_point(|bucket| *bucket.view.lo <= *key)
            - 1
    }
}

impl Bucket {
    fn freeze(&mut self) {
        self.view.buffers[0].freeze();
        self.view.buffers.insert(0, Arc::new(Buffer::new(0)));
        self.frozen.insert(0, std::mem::take(&mut self.active));
    }
}

/// What flushes and merges do: sequence numbers at or below every snapshot become 0, versions and
/// tombstones that no reader sees are dropped. `oldest` is the oldest open snapshot, or now.
fn forget(versions: Vec<Version>, oldest: Seq, bottom: bool) -> Vec<Version> {
    let mut kept: Vec<Version> = Vec::new();
    for mut version in versions {
        let hidden = kept
            .last()
            .is_some_and(|newer| newer.key == version.key && newer.seq.0 == 0);
        if version.seq <= oldest {
            version.seq = Seq::ANCIENT;
        }
        if !hidden {
            kept.push(version);
        }
    }
    kept.retain(|version| !bottom || version.seq.0 != 0 || version.op == Op::Put);
    kept
}

impl Buckets for Town {
    fn view(&self, at: At<'_>) -> Result<Option<View>> {
        let state = self.state.lock();
        let index = match at {
            At::First => 0,
            At::Last => state.buckets.len() - 1,
            At::Key(key) => state.holder(key),
            At::Before([]) => return Ok(None),
            At::Before(key) => {
                let less = |bucket: &Bucket| *bucket.view.lo < *key;
                state.buckets.partition_point(less) - 1
            }
        };
        Ok(Some(state.buckets[index].view.clone()))
    }
}

/// The part of `contents` within bounds.
pub(super) fn within(
    contents: &Contents,
    start: Bound<&[u8]>,
    end: Bound<&[u8]>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let inside = |key: &[u8]| bounds::after(key, start) && bounds::before(key, end);
    let held = contents.iter().filter(|(key, _)| inside(key));
    held.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

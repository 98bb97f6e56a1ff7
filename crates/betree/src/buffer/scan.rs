//! Reading sorted references: one key, or the next keys in either direction, over several lanes.
//!
//! A *lane* is a sorted sequence of references. Of several lanes of one store, the earlier in the
//! list hold the newer slots, so the version of a key that a snapshot sees is in the first lane
//! that has one it sees.

use std::cmp::Ordering;
use std::ops::Bound;

use super::index::RUNS;
use super::order::Ref;
use super::store::{Probe, Store};
use super::window::Window;
use crate::types::{Direction, Entry, Seq};

/// Groups up to this length are searched for their end step by step.
const STEPS: usize = 8;
/// Number of references ahead of the scan whose payloads are prefetched.
const AHEAD: usize = 8;

/// The sorted parts of a store, newest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lanes<'r> {
    lanes: [&'r [Ref]; RUNS + 1],
    len: usize,
}

impl<'r> Lanes<'r> {
    /// Add a lane that is older than all earlier ones.
    pub(super) fn push(&mut self, lane: &'r [Ref]) {
        let place = self.lanes.get_mut(self.len);
        *place.expect("no more lanes than the runs and the tail") = lane;
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &'r [Ref]> {
        self.lanes.iter().take(self.len).copied()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut &'r [Ref]> {
        self.lanes.iter_mut().take(self.len)
    }
}

/// The range of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range<'k> {
    pub(super) direction: Direction,
    /// The start of the scan: the lower bound of a forward scan, the upper bound of a backward
    /// scan.
    pub(super) from: Bound<&'k [u8]>,
    pub(super) to: Bound<&'k [u8]>,
    pub(super) snapshot: Seq,
    /// Maximum number of entries.
    pub(super) limit: usize,
}

/// The newest version of the probe's key in one lane that `snapshot` sees.
pub(super) fn version<'s>(
    store: &'s Store,
    lane: &[Ref],
    probe: &Probe<'_>,
    snapshot: Seq,
) -> Option<Entry<'s>> {
    let at = lane.partition_point(|&r| match probe.compare(store, r) {
        Ordering::Less => true,
        Ordering::Equal => snapshot < store.stamp(r.address()),
        Ordering::Greater => false,
    });
    let entry = store.entry(lane.get(at)?.address());
    (entry.key == probe.key).then_some(entry)
}

/// The index of the first reference whose key is at or above the lower end of a range that begins
/// at `bound`.
pub(super) fn lower(store: &Store, lane: &[Ref], bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => 0,
        Bound::Included(key) => below(store, lane, key, Ordering::Less),
        Bound::Excluded(key) => below(store, lane, key, Ordering::Equal),
    }
}

/// The index after the last reference whose key is in a range that ends at `bound`.
pub(super) fn upper(store: &Store, lane: &[Ref], bound: Bound<&[u8]>) -> usize {
    match bound {
        Bound::Unbounded => lane.len(),
        Bound::Included(key) => below(store, lane, key, Ordering::Equal),
        Bound::Excluded(key) => below(store, lane, key, Ordering::Less),
    }
}

/// Number of references that compare with `key` as `most` or less.
fn below(store: &Store, lane: &[Ref], key: &[u8], most: Ordering) -> usize {
    let probe = store.probe(key);
    lane.partition_point(|&r| probe.compare(store, r) <= most)
}

/// Copy the next entries of `range` to `out`: one version of each key, tombstones too.
pub(super) fn window(store: &Store, mut lanes: Lanes<'_>, range: Range<'_>, out: &mut Window) {
    out.clear();
    let forward = range.direction == Direction::Forward;
    let (low, high) = match range.direction {
        Direction::Forward => (range.from, range.to),
        Direction::Backward => (range.to, range.from),
    };
    for lane in lanes.iter_mut() {
        let (start, end) = (lower(store, lane, low), upper(store, lane, high));
        // An empty lane if the bounds cross.
        *lane = lane.get(start..end).unwrap_or_default();
    }
    while let Some(next) = nearest(store, &lanes, forward) {
        if range.limit <= out.len() || out.is_full() {
            return;
        }
        let key = store.key(next.address());
        let mut found = None;
        for lane in lanes.iter_mut() {
            let group = take_group(store, lane, next.head(), key, forward);
            if !group.is_empty() {
                prefetch(store, lane, forward);
            }
            if found.is_none() {
                let hidden = |r: &Ref| range.snapshot < store.stamp(r.address());
                found = group.get(group.partition_point(hidden));
            }
        }
        if let Some(r) = found {
            debug_assert!(
                store.stamp(r.address()) <= range.snapshot,
                "a version it sees"
            );
            out.push(store.entry(r.address()));
        }
    }
    out.set_exhausted();
}

/// The reference to the first key of all lanes in the direction of the scan.
fn nearest(store: &Store, lanes: &Lanes<'_>, forward: bool) -> Option<Ref> {
    let ends = lanes.iter().filter_map(|lane| match forward {
        true => lane.first(),
        false => lane.last(),
    });
    ends.copied().reduce(|a, b| {
        let heads = a.head().cmp(&b.head());
        let order = heads.then_with(|| store.key(a.address()).cmp(store.key(b.address())));
        let first = if forward { order } else { order.reverse() };
        if first == Ordering::Greater { b } else { a }
    })
}

/// Prefetch a payload that the scan of `lane` will reach soon.
fn prefetch(store: &Store, lane: &[Ref], forward: bool) {
    let index = match forward {
        true => Some(AHEAD),
        false => lane.len().checked_sub(1 + AHEAD),
    };
    if let Some(r) = index.and_then(|index| lane.get(index)) {
        store.prefetch(r.address());
    }
}

/// Remove the references of `key` from the lane, at the end where the scan is.
fn take_group<'r>(
    store: &Store,
    lane: &mut &'r [Ref],
    head: u64,
    key: &[u8],
    forward: bool,
) -> &'r [Ref] {
    let same = |r: &Ref| r.head() == head && store.key(r.address()) == key;
    if forward {
        let mut len = lane.iter().take(STEPS).take_while(|r| same(r)).count();
        if len == STEPS {
            len = lane.partition_point(same);
        }
        debug_assert!(!lane.get(len).is_some_and(same), "a group is whole");
        let (group, rest) = lane.split_at(len);
        *lane = rest;
        group
    } else {
        let steps = lane.iter().rev().take(STEPS);
        let mut len = steps.take_while(|r| same(r)).count();
        if len == STEPS {
            len = lane.len() - lane.partition_point(|r| !same(r));
        }
        let (rest, group) = lane.split_at(lane.len() - len);
        *lane = rest;
        group
    }
}

//! References to entries, and sorting them: ascending keys, of one key the newest first.
//!
//! A reference is 16 bytes, compared as one number: the head of the key, then the slot number
//! turned round (so that the newest comes first), then the address, which never decides. Sorting by
//! that number is right wherever heads differ, without a look at any payload. What is left are
//! groups of equal heads; a small group is sorted by whole keys, a large one by the 8 bytes that
//! follow, again and again.
//!
//! Invariant:
//! - I1: in a sorted sequence, the references of one key are next to each other, slot numbers
//!   falling.

use std::cmp::Ordering;

use super::store::{Store, head};
use crate::arena::Address;

/// Groups of equal heads up to this size are sorted by comparing whole keys.
const SMALL: usize = 16;
/// Groups of keys with a common prefix longer than this are also sorted by comparing whole keys,
/// which bounds the recursion.
const DEEP: usize = 256;

/// Refers to one entry of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ref(u128);

impl Ref {
    #[inline]
    pub(super) fn new(head: u64, index: u32, address: Address) -> Ref {
        let low = u64::from(!index) << 32 | u64::from(address.0);
        Ref(u128::from(head) << 64 | u128::from(low))
    }

    /// The head of the key.
    #[inline]
    pub(super) fn head(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The slot number; a larger number is newer.
    #[inline]
    pub(super) fn index(self) -> u32 {
        !((self.0 >> 32 & 0xFFFF_FFFF) as u32)
    }

    #[inline]
    pub(super) fn address(self) -> Address {
        Address((self.0 & 0xFFFF_FFFF) as u32)
    }

    fn with_head(self, head: u64) -> Ref {
        Ref(u128::from(head) << 64 | self.0 & u128::from(u64::MAX))
    }
}

/// Compare two references of one store.
#[inline]
pub(super) fn compare(store: &Store, a: Ref, b: Ref) -> Ordering {
    let heads = a.head().cmp(&b.head());
    heads
        .then_with(|| store.key(a.address()).cmp(store.key(b.address())))
        .then_with(|| b.index().cmp(&a.index()))
}

/// All slots from number `from` on, sorted.
pub(super) fn sorted(store: &Store, from: usize) -> Vec<Ref> {
    let mut refs = Vec::with_capacity(store.len() - from);
    refs.extend(store.refs(from));
    refs.sort_unstable();
    settle_groups(store, &mut refs, store.skip());
    debug_assert!(
        refs.is_sorted_by(|&a, &b| compare(store, a, b) == Ordering::Less),
        "I1: sorted, and no slot twice"
    );
    refs
}

/// Merge two sorted sequences.
pub(super) fn merged(store: &Store, a: &[Ref], b: &[Ref]) -> Vec<Ref> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a, b);
    while let ([first, a_rest @ ..], [second, b_rest @ ..]) = (a, b) {
        if compare(store, *first, *second) == Ordering::Less {
            out.push(*first);
            a = a_rest;
        } else {
            out.push(*second);
            b = b_rest;
        }
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
    debug_assert!(
        out.is_sorted_by(|&a, &b| compare(store, a, b) == Ordering::Less),
        "I1: sorted, and no slot twice"
    );
    out
}

/// Sort within groups of equal heads, where heads start after `skip` bytes.
fn settle_groups(store: &Store, refs: &mut [Ref], skip: usize) {
    for group in refs.chunk_by_mut(|a, b| a.head() == b.head()) {
        match group.len() {
            1 => {}
            2..=SMALL => group.sort_unstable_by(|&a, &b| compare(store, a, b)),
            _ if DEEP < skip => group.sort_unstable_by(|&a, &b| compare(store, a, b)),
            _ => settle_large(store, group, skip),
        }
    }
}

/// Sort a group whose keys are equal up to the 8 bytes after `skip`.
fn settle_large(store: &Store, group: &mut [Ref], skip: usize) {
    let shared = skip + 8;
    let original = group.first().map_or(0, |r| r.head());
    // Keys that end within the head are prefixes of all others: they come first, by length.
    for r in group.iter_mut() {
        let len = store.key(r.address()).len();
        *r = r.with_head(len.min(shared) as u64);
    }
    group.sort_unstable();
    let ended = group.partition_point(|r| r.head() < shared as u64);
    let (ended, longer) = group.split_at_mut(ended);
    for r in longer.iter_mut() {
        *r = r.with_head(head(store.key(r.address()), shared));
    }
    longer.sort_unstable();
    // Keys that end exactly at `shared` have the head 0 here, as zeros have: the next level
    // distinguishes them.
    settle_groups(store, longer, shared);
    for r in ended.iter_mut().chain(longer) {
        *r = r.with_head(original);
    }
}

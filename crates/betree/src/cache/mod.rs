//! The cache: decoded pages, fences and filters of runs, within a number of bytes.
//!
//! Replacement is that of `quick_cache` (a CLOCK with a small queue for what was seen once, so that
//! a scan does not push out what is used often), in shards with a lock each. Locks are held for a
//! look or an insertion, never across I/O; what is evicted is freed outside of them.
//!
//! Invariants:
//! - I1: what is in the cache never changes: runs are immutable and their numbers are not reused.
//! - I2: the bytes held, with [`ITEM_COST`] for each item, do not exceed the capacity, but for
//!   rounding it up to whole shards. What is larger than a shard is not admitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache as Inner, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::block::{Fence, Filter};
use crate::page::Page;
use crate::types::RunId;

/// Overhead of an item in addition to its bytes: the slot, its share of the map, the counters of an
/// `Arc`, and the allocator's overhead for several vectors.
const ITEM_COST: u64 = 160;

/// A shard smaller than this would refuse large pages for no gain.
const SHARD_MIN: u64 = 4 << 20;
const SHARDS_MAX: u64 = 16;

/// Expected size of a cached page, which determines how many evicted keys the cache remembers.
const PAGE_EXPECTED: u64 = 8 << 10;

/// Minimum capacity: a cache without any could not be enlarged later.
const CAPACITY_MIN: u64 = 64 << 10;

/// The page numbers that stand for a run's fences and filter (see `run::meta::MAX_PAGES`).
const FENCE: u32 = u32::MAX;
const FILTER: u32 = u32::MAX - 1;

/// Maximum number of pages that are looked up to remove them when a run is dropped; others are
/// evicted in time.
const FORGET_MAX: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    run: RunId,
    index: u32,
}

#[derive(Clone)]
enum Item {
    Page(Arc<Page>),
    Fence(Arc<Fence>),
    Filter(Arc<Filter>),
}

#[derive(Clone, Copy)]
struct Bytes;

impl Weighter<Key, Item> for Bytes {
    fn weight(&self, _: &Key, item: &Item) -> u64 {
        let bytes = match item {
            Item::Page(page) => page.memory(),
            Item::Fence(fence) => fence.memory(),
            Item::Filter(filter) => filter.memory(),
        };
        bytes as u64 + ITEM_COST
    }
}

/// Hits and misses, separated from each other and from those of other threads, which mostly look up
/// other pages.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Looks {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The cache, shared by all runs.
pub(crate) struct Cache {
    inner: Inner<Key, Item, Bytes>,
    looks: [Looks; 8],
}

impl Cache {
    /// A cache of `capacity` bytes.
    pub(crate) fn new(capacity: u64) -> Cache {
        let capacity = capacity.max(CAPACITY_MIN);
        let shards = (capacity / SHARD_MIN).clamp(1, SHARDS_MAX);
        // A power of two: the library rounds up, which would make shards smaller.
        let shards = 1 << shards.ilog2();
        assert!(
            (1..=SHARDS_MAX).contains(&shards),
            "a cache has a few shards"
        );
        let expected = (capacity / PAGE_EXPECTED).max(64 * shards);
        let options = OptionsBuilder::new()
            .shards(usize::try_from(shards).expect("at most 16"))
            .estimated_items_capacity(usize::try_from(expected).unwrap_or(usize::MAX))
            .weight_capacity(capacity)
            .build()
            .expect("both capacities are set");
        let hasher = DefaultHashBuilder::default();
        let lifecycle = DefaultLifecycle::default();
        Cache {
            inner: Inner::with_options(options, Bytes, hasher, lifecycle),
            looks: Default::default(),
        }
    }

    /// Page `index` of a run.
    #[inline]
    pub(crate) fn page(&self, run: RunId, index: u32) -> Option<Arc<Page>> {
        match self.look(run, index) {
            Some(Item::Page(page)) => Some(page),
            _ => None,
        }
    }

    /// Whether page `index` of a run is cached, without counting that as a use.
    pub(crate) fn holds_page(&self, run: RunId, index: u32) -> bool {
        self.inner.contains_key(&Key { run, index })
    }

    pub(crate) fn insert_page(&self, run: RunId, index: u32, page: Arc<Page>) {
        assert!(index < FILTER, "page numbers end before those of blocks");
        self.inner.insert(Key { run, index }, Item::Page(page));
    }

    /// The fences of a run.
    #[inline]
    pub(crate) fn fence(&self, run: RunId) -> Option<Arc<Fence>> {
        match self.look(run, FENCE) {
            Some(Item::Fence(fence)) => Some(fence),
            _ => None,
        }
    }

    pub(crate) fn insert_fence(&self, run: RunId, fence: Arc<Fence>) {
        self.inner
            .insert(Key { run, index: FENCE }, Item::Fence(fence));
    }

    /// The filter of a run.
    #[inline]
    pub(crate) fn filter(&self, run: RunId) -> Option<Arc<Filter>> {
        match self.look(run, FILTER) {
            Some(Item::Filter(filter)) => Some(filter),
            _ => None,
        }
    }

    pub(crate) fn insert_filter(&self, run: RunId, filter: Arc<Filter>) {
        self.inner
            .insert(Key { run, index: FILTER }, Item::Filter(filter));
    }

    /// Remove the `pages` pages of a run that will not be read again, as far as that is cheap.
    pub(crate) fn forget_run(&self, run: RunId, pages: u32) {
        for index in (0..pages.min(FORGET_MAX)).chain([FENCE, FILTER]) {
            let key = Key { run, index };
            // Check first: that shares the lock with readers, and most pages are not cached.
            if self.inner.contains_key(&key) {
                self.inner.remove(&key);
            }
        }
    }

    /// Number of lookups that found their item.
    pub(crate) fn hits(&self) -> u64 {
        self.looks
            .iter()
            .map(|it| it.hits.load(Ordering::Relaxed))
            .sum()
    }

    /// Number of lookups that did not find their item.
    pub(crate) fn misses(&self) -> u64 {
        self.looks
            .iter()
            .map(|it| it.misses.load(Ordering::Relaxed))
            .sum()
    }

    /// Bytes held.
    pub(crate) fn used(&self) -> u64 {
        self.inner.weight()
    }

    /// Bytes that may be held.
    pub(crate) fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    #[cfg(test)]
    /// Change the capacity. When it shrinks, items are evicted before this returns.
    pub(crate) fn set_capacity(&self, capacity: u64) {
        self.inner.set_capacity(capacity.max(CAPACITY_MIN));
    }

    #[inline]
    fn look(&self, run: RunId, index: u32) -> Option<Item> {
        let found = self.inner.get(&Key { run, index });
        let stripe = usize::try_from((run.0 ^ u64::from(index)) & 7).unwrap_or(0);
        if let Some(looks) = self.looks.get(stripe) {
            let count = if found.is_some() {
                &looks.hits
            } else {
                &looks.misses
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        found
    }
}

#[cfg(test)]
mod tests;

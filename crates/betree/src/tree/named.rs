//! One tree: its name and its routing.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::bucket::Bucket;
use super::routing::Routing;
use crate::counter::Counter;
use crate::cursor::{At, Buckets, View};
use crate::error::Result;
use crate::types::{Seq, TreeId, TreeOptions};

/// A tree.
pub(crate) struct Tree {
    pub(crate) id: TreeId,
    pub(crate) name: String,
    pub(crate) options: TreeOptions,
    /// The commit that created the tree: older snapshots do not see it.
    pub(crate) created: Seq,
    /// Buckets that were split since the store was opened.
    pub(crate) splits: Counter,
    /// Merges of its buckets since the store was opened.
    pub(crate) merges: Counter,
    routing: ArcSwap<Routing>,
}

impl Tree {
    /// An empty tree.
    pub(crate) fn new(id: TreeId, name: String, options: TreeOptions, created: Seq) -> Tree {
        let bucket = Bucket::new(Arc::from([]), None, created);
        Tree::with_buckets(id, name, options, created, vec![Arc::new(bucket)])
    }

    /// A tree with these buckets.
    pub(crate) fn with_buckets(
        id: TreeId,
        name: String,
        options: TreeOptions,
        created: Seq,
        buckets: Vec<Arc<Bucket>>,
    ) -> Tree {
        Tree {
            id,
            name,
            options,
            created,
            splits: Counter::default(),
            merges: Counter::default(),
            routing: ArcSwap::from_pointee(Routing::new(buckets)),
        }
    }

    /// The current routing.
    pub(crate) fn routing(&self) -> Arc<Routing> {
        self.routing.load_full()
    }

    /// Replace the adjacent buckets `old` by `new`, under the commit lock. The caller holds the
    /// states of `old` and retires them before it releases them, so that later callers find them
    /// retired and the new routing in place.
    pub(crate) fn replace(&self, old: &[Arc<Bucket>], new: Vec<Arc<Bucket>>) {
        let routing = self.routing.load_full();
        let first = old.first().expect("there is something to replace");
        let at = routing.find(&first.lo);
        let mut buckets = routing.buckets().to_vec();
        for (index, bucket) in old.iter().enumerate() {
            let there = buckets.get(at + index);
            assert!(
                there.is_some_and(|b| Arc::ptr_eq(b, bucket)),
                "the buckets are in the routing"
            );
        }
        let ends = |list: &[Arc<Bucket>]| list.last().map(|bucket| bucket.hi.clone());
        assert!(
            ends(old) == ends(&new),
            "the new ones end where the old ones do"
        );
        buckets.splice(at..at + old.len(), new);
        self.routing.store(Arc::new(Routing::new(buckets)));
    }
}

impl Buckets for Tree {
    fn view(&self, at: At<'_>) -> Result<Option<View>> {
        loop {
            let routing = self.routing.load();
            let buckets = routing.buckets();
            let bucket = match at {
                At::First => buckets.first(),
                At::Last => buckets.last(),
                At::Key(key) => buckets.get(routing.find(key)),
                At::Before(key) => {
                    // The greatest key below `key` is in a bucket that starts below `key`.
                    let index = routing.find(key);
                    match buckets.get(index) {
                        Some(bucket) if *bucket.lo < *key => Some(bucket),
                        _ => index.checked_sub(1).and_then(|i| buckets.get(i)),
                    }
                }
            };
            let Some(bucket) = bucket else {
                return Ok(None);
            };
            // `None`: the bucket was replaced after the routing was loaded, and the new routing is
            // in place.
            if let Some(view) = bucket.view() {
                return Ok(Some(view));
            }
        }
    }
}

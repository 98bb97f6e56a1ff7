//! The routing of a tree: which bucket holds a key. Immutable; a split makes a new one.
//!
//! - I1. There is at least one bucket; the first begins at the empty key, the last has no end.
//! - I2. Each bucket ends where the next one begins, and begins before it ends.

use std::sync::Arc;

use super::bucket::Bucket;
use crate::types::head;

/// The buckets of a tree in key order.
pub(crate) struct Routing {
    /// The first eight bytes of each bucket's lower bound: most searches read nothing else.
    heads: Vec<u64>,
    buckets: Vec<Arc<Bucket>>,
}

impl Routing {
    /// The routing to these buckets.
    pub(crate) fn new(buckets: Vec<Arc<Bucket>>) -> Routing {
        let first = buckets.first().expect("I1: a tree has a bucket");
        assert!(
            first.lo.is_empty(),
            "I1: the first bucket begins at the empty key"
        );
        assert!(
            buckets.last().is_some_and(|b| b.hi.is_none()),
            "I1: the last bucket has no end"
        );
        for pair in buckets.windows(2) {
            if let [left, right] = pair {
                assert!(left.hi.as_ref() == Some(&right.lo), "I2: buckets adjoin");
                assert!(left.lo < right.lo, "I2: buckets ascend");
            }
        }
        let heads = buckets.iter().map(|b| head(&b.lo)).collect();
        Routing { heads, buckets }
    }

    /// The buckets in key order.
    pub(crate) fn buckets(&self) -> &[Arc<Bucket>] {
        &self.buckets
    }

    /// The index of the bucket for `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        let wanted = head(key);
        let below = self.heads.partition_point(|&h| h < wanted);
        let mut after = below;
        // If the bounds of several buckets start with the same eight bytes, the whole key decides.
        while self.heads.get(after) == Some(&wanted)
            && self.buckets.get(after).is_some_and(|b| *b.lo <= *key)
        {
            after += 1;
        }
        debug_assert!(0 < after, "I1: the empty key is at or below every key");
        after - 1
    }

    /// The bucket for `key`.
    pub(crate) fn bucket(&self, key: &[u8]) -> &Arc<Bucket> {
        self.buckets
            .get(self.find(key))
            .expect("I1: find gives an index of a bucket")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Seq;

    fn routing(starts: &[&[u8]]) -> Routing {
        let key = |k: &&[u8]| Arc::<[u8]>::from(*k);
        let ends = starts.iter().skip(1).map(key).map(Some).chain([None]);
        let bucket = |(lo, hi)| Arc::new(Bucket::new(key(lo), hi, Seq::ANCIENT));
        Routing::new(starts.iter().zip(ends).map(bucket).collect())
    }

    #[test]
    fn find_agrees_with_a_linear_search() {
        let starts: &[&[u8]] = &[
            b"",
            b"\0",
            b"a",
            b"aaaaaaaa",
            b"aaaaaaaab",
            b"aaaaaaaac",
            b"b",
        ];
        let routing = routing(starts);
        let keys: &[&[u8]] = &[
            b"",
            b"\0",
            b"\0\0",
            b"a",
            b"aaaaaaaa",
            b"aaaaaaaa\0",
            b"aaaaaaaab",
            b"aaaaaaaad",
            b"az",
            b"b",
            b"c",
        ];
        for key in keys {
            let expected = starts.iter().rposition(|lo| lo <= key).unwrap();
            assert_eq!(routing.find(key), expected, "{}", key.escape_ascii());
        }
    }

    #[test]
    #[should_panic(expected = "I1")]
    fn a_routing_covers_all_keys() {
        routing(&[b"a"]);
    }
}

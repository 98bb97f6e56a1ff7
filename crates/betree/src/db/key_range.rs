//! Ranges of keys, as callers write them.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use kv_types::KeyRange;

/// A range of keys: any range of the standard library over bytes (`"a".."f"`, `b"a"..=b"f"`,
/// `key..`, `..`), a pair of bounds, or a [`KeyRange`]. Keys are compared byte by byte. A range
/// whose end lies before its start holds no keys.
///
/// It is a trait of its own because with `RangeBounds` a caller would have to name the type of the
/// keys in `range(..)`.
pub trait AsKeyRange {
    /// Where the range begins and where it ends.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl<K: AsRef<[u8]>> AsKeyRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let (start, end) = self;
        (start.as_ref().map(K::as_ref), end.as_ref().map(K::as_ref))
    }
}

impl AsKeyRange for KeyRange<'_> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.start, self.end)
    }
}

impl<K: AsRef<[u8]>> AsKeyRange for Range<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let (start, end) = (self.start.as_ref(), self.end.as_ref());
        (Bound::Included(start), Bound::Excluded(end))
    }
}

impl<K: AsRef<[u8]>> AsKeyRange for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let (start, end) = (self.start().as_ref(), self.end().as_ref());
        (Bound::Included(start), Bound::Included(end))
    }
}

impl<K: AsRef<[u8]>> AsKeyRange for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> AsKeyRange for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> AsKeyRange for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl AsKeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

/// The least key above all keys that begin with `prefix`; none when there is no such key.
pub(crate) fn beyond(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != u8::MAX)? + 1;
    let mut end: Vec<u8> = prefix.iter().copied().take(kept).collect();
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(range: &impl AsKeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
        range.bounds()
    }

    #[test]
    fn every_kind_of_range_is_read() {
        let (a, f) = (&b"a"[..], &b"f"[..]);
        assert_eq!(of(&("a".."f")), (Bound::Included(a), Bound::Excluded(f)));
        assert_eq!(of(&(b"a"..=b"f")), (Bound::Included(a), Bound::Included(f)));
        assert_eq!(of(&(*b"a"..)), (Bound::Included(a), Bound::Unbounded));
        assert_eq!(of(&(..f.to_vec())), (Bound::Unbounded, Bound::Excluded(f)));
        assert_eq!(of(&(..=f)), (Bound::Unbounded, Bound::Included(f)));
        assert_eq!(of(&..), (Bound::Unbounded, Bound::Unbounded));
        let pair = (Bound::Excluded(a), Bound::Unbounded);
        assert_eq!(of(&pair), pair);
    }

    #[test]
    fn what_lies_beyond_a_prefix_is_the_next_one_of_its_length_or_less() {
        assert_eq!(beyond(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(beyond(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(beyond(b"\xff"), None);
        assert_eq!(beyond(b""), None);
    }
}

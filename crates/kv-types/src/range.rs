//! Which keys, in which order, and how long they may be.

use std::ops::Bound;

/// A range of keys in byte order, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// Where the range begins.
    pub start: Bound<&'a [u8]>,
    /// Where the range ends.
    pub end: Bound<&'a [u8]>,
}

/// The direction in which a cursor moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Ascending byte order.
    Forward,
    /// Descending byte order.
    Backward,
}

/// Maximum lengths of keys and values, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// The longest key. A longer one is refused with `Invalid`. The shortest key is empty (0 bytes)
    /// in engines that have empty keys, else 1 byte.
    pub key_max: usize,
    /// The longest value. A longer one is refused with `Invalid`.
    pub value_max: usize,
}

impl<'a> KeyRange<'a> {
    /// Every key.
    pub const ALL: KeyRange<'static> = KeyRange {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    };

    /// The keys from `start` (inclusive) to `end` (exclusive).
    #[must_use]
    pub fn half_open(start: &'a [u8], end: &'a [u8]) -> KeyRange<'a> {
        KeyRange {
            start: Bound::Included(start),
            end: Bound::Excluded(end),
        }
    }

    /// The keys at or above `start`.
    #[must_use]
    pub fn from(start: &'a [u8]) -> KeyRange<'a> {
        KeyRange {
            start: Bound::Included(start),
            end: Bound::Unbounded,
        }
    }

    /// Whether `key` lies in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.after_start(key) && self.before_end(key)
    }

    /// Whether `key` satisfies the start bound.
    #[must_use]
    pub fn after_start(&self, key: &[u8]) -> bool {
        match self.start {
            Bound::Unbounded => true,
            Bound::Included(start) => start <= key,
            Bound::Excluded(start) => start < key,
        }
    }

    /// Whether `key` satisfies the end bound.
    #[must_use]
    pub fn before_end(&self, key: &[u8]) -> bool {
        match self.end {
            Bound::Unbounded => true,
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
        }
    }

    /// Whether no key can lie in the range because its bounds cross (an empty range is legal and
    /// holds nothing; it is not an error).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match (self.start, self.end) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(s), Bound::Included(e)) => e < s,
            (Bound::Included(s), Bound::Excluded(e)) | (Bound::Excluded(s), Bound::Included(e)) => {
                e <= s
            }
            (Bound::Excluded(s), Bound::Excluded(e)) => e <= s,
        }
    }

    /// Owned copies of the two bounds.
    #[must_use]
    pub fn to_owned(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (self.start.map(<[u8]>::to_vec), self.end.map(<[u8]>::to_vec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_include_and_exclude() {
        let r = KeyRange {
            start: Bound::Excluded(b"b"),
            end: Bound::Included(b"d"),
        };
        let inside: Vec<&[u8]> = [&b"a"[..], b"b", b"c", b"d", b"e"]
            .into_iter()
            .filter(|k| r.contains(k))
            .collect();
        assert_eq!(inside, [b"c", b"d"]);
    }

    #[test]
    fn crossed_bounds_are_empty() {
        assert!(KeyRange::half_open(b"b", b"b").is_empty());
        assert!(KeyRange::half_open(b"c", b"b").is_empty());
        assert!(!KeyRange::half_open(b"b", b"c").is_empty());
        assert!(!KeyRange::ALL.is_empty());
    }
}

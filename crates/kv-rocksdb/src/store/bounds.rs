//! Key ranges in RocksDB's form: from an inclusive key to an exclusive key.
//!
//! The next key after `k` in byte order is `k` with a zero byte appended, so every bound can be
//! converted exactly to the required kind.

use std::ops::Bound;

use kv::KeyRange;

/// A half-open range; `None` means no bound on that side.
pub(super) struct Bounds {
    /// Inclusive lower bound.
    pub(super) lower: Option<Box<[u8]>>,
    /// Exclusive upper bound.
    pub(super) upper: Option<Box<[u8]>>,
}

impl Bounds {
    /// Convert `range`; `None` when no key lies in it.
    pub(super) fn of(range: KeyRange<'_>) -> Option<Bounds> {
        let lower = match range.start {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(key.into()),
            Bound::Excluded(key) => Some(after(key)),
        };
        let upper = match range.end {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(after(key)),
            Bound::Excluded(key) => Some(Box::from(key)),
        };
        let empty = match (&lower, &upper) {
            (_, None) => false,
            (None, Some(upper)) => upper.is_empty(),
            (Some(lower), Some(upper)) => upper <= lower,
        };
        (!empty).then_some(Bounds { lower, upper })
    }
}

/// The least key greater than `key`.
pub(super) fn after(key: &[u8]) -> Box<[u8]> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_open_bounds_hold_the_same_keys() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0", b"a\0\0", b"b"];
        let mut edges: Vec<Bound<&[u8]>> = vec![Bound::Unbounded];
        for key in keys {
            edges.extend([Bound::Included(key), Bound::Excluded(key)]);
        }
        for &start in &edges {
            for &end in &edges {
                let range = KeyRange { start, end };
                let bounds = Bounds::of(range);
                for key in keys {
                    let inside = bounds.as_ref().is_some_and(|b| {
                        b.lower.as_deref().is_none_or(|lower| lower <= key)
                            && b.upper.as_deref().is_none_or(|upper| key < upper)
                    });
                    assert_eq!(inside, range.contains(key), "{range:?} {key:?}");
                }
            }
        }
    }
}

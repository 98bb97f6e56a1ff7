//! Bounds of ranges: owned bounds, and comparisons with keys.

use std::ops::Bound;
use std::sync::Arc;

/// An owned bound, shared by the sources of one bucket.
pub(super) type Edge = Bound<Arc<[u8]>>;

/// Copy `bound` into an owned one.
pub(super) fn own(bound: Bound<&[u8]>) -> Edge {
    bound.map(Arc::from)
}

/// Borrow `edge`.
pub(super) fn lend(edge: &Edge) -> Bound<&[u8]> {
    edge.as_ref().map(|key| &**key)
}

/// Whether `key` is at or after the lower bound `lower`.
pub(super) fn after(key: &[u8], lower: Bound<&[u8]>) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(low) => low <= key,
        Bound::Excluded(low) => low < key,
    }
}

/// Whether `key` is at or before the upper bound `upper`.
pub(super) fn before(key: &[u8], upper: Bound<&[u8]>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
    }
}

/// Whether the bounds cross, so that no key lies between them.
pub(super) fn crossed(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (_, Bound::Excluded([])) => true,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => high < low,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => high <= low,
    }
}

/// The narrower of the lower bounds `start` and "at or after `lo`".
pub(super) fn later(start: &Edge, lo: &Arc<[u8]>) -> Edge {
    match start {
        Bound::Included(key) | Bound::Excluded(key) if lo <= key => start.clone(),
        _ => Bound::Included(Arc::clone(lo)),
    }
}

/// The narrower of the upper bounds `end` and "before `hi`", if there is a `hi`.
pub(super) fn sooner(end: &Edge, hi: Option<&Arc<[u8]>>) -> Edge {
    match (end, hi) {
        (_, None) => end.clone(),
        (Bound::Included(key), Some(hi)) if key < hi => end.clone(),
        (Bound::Excluded(key), Some(hi)) if key <= hi => end.clone(),
        (_, Some(hi)) => Bound::Excluded(Arc::clone(hi)),
    }
}

/// Length of the prefix that all keys between the bounds share. 0 if one bound is missing.
pub(super) fn shared(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> usize {
    let (
        Bound::Included(low) | Bound::Excluded(low),
        Bound::Included(high) | Bound::Excluded(high),
    ) = (lower, upper)
    else {
        return 0;
    };
    low.iter().zip(high).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&[u8]; 6] = [b"", b"a", b"ab", b"abc", b"b", b"\xff"];

    fn all_bounds() -> Vec<Bound<&'static [u8]>> {
        let some = KEYS
            .iter()
            .flat_map(|&key| [Bound::Included(key), Bound::Excluded(key)]);
        some.chain([Bound::Unbounded]).collect()
    }

    #[test]
    fn crossed_bounds_hold_no_key() {
        for &lower in &all_bounds() {
            for &upper in &all_bounds() {
                let held = KEYS
                    .iter()
                    .any(|key| after(key, lower) && before(key, upper));
                assert!(
                    !held || !crossed(lower, upper),
                    "{lower:?} {upper:?} holds a key"
                );
            }
        }
    }

    #[test]
    fn a_narrower_bound_passes_what_both_pass() {
        for &bound in &all_bounds() {
            for limit in KEYS {
                let shared: Arc<[u8]> = Arc::from(limit);
                let low = later(&own(bound), &shared);
                let high = sooner(&own(bound), Some(&shared));
                for key in KEYS {
                    let both = after(key, bound) && limit <= key;
                    assert_eq!(after(key, lend(&low)), both, "{bound:?} {limit:?} {key:?}");
                    let both = before(key, bound) && key < limit;
                    assert_eq!(
                        before(key, lend(&high)),
                        both,
                        "{bound:?} {limit:?} {key:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn keys_between_bounds_share_their_beginning() {
        for &lower in &all_bounds() {
            for &upper in &all_bounds() {
                let n = shared(lower, upper);
                for key in KEYS {
                    if !(after(key, lower) && before(key, upper)) {
                        continue;
                    }
                    let (Bound::Included(low) | Bound::Excluded(low)) = lower else {
                        assert_eq!(n, 0);
                        continue;
                    };
                    assert_eq!(key[..n], low[..n], "{lower:?} {upper:?}");
                }
            }
        }
    }
}

//! Checks the keys of a scan where ranges of full keys cannot express the bounds: for example an
//! index on `a` and `b` with a range of `a` and a range of `b`.
//!
//! The check compares the components of a key with the ranges of each field, and seeks past keys
//! that cannot match. A key longer than the engine's limit is truncated: its first `true_bytes`
//! bytes are those of the values, the rest is a hash, so that the order of keys that agree in the
//! first bytes has no meaning. Hence:
//!
//! V1. A seek is derived from the first `true_bytes` bytes of a key alone, and its target is no
//!     longer than that: it skips no key that may match, wherever its hash has placed it.
//! V2. A seek moves strictly past the key, so that a scan proceeds and visits no key twice.
//! V3. A key that is not truncated is judged by all its bytes. For a truncated key that may match,
//!     the document decides.

use std::cmp::Ordering;

use super::scan::{ByteRange, cut_end, cut_start};
use crate::key::{self, AFTER, BEFORE};

/// The verdict on a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The key matches; a truncated key may match.
    Inside,
    /// The key does not match; the next one may.
    Outside,
    /// The key does not match, nor does any key before these bytes (backward: at or after them).
    Seek(Vec<u8>),
    /// Neither this key nor any later key of the scan matches.
    Done,
}

impl Verdict {
    /// Seek to `target` from `key`, or step if the seek would not move past the key (V2).
    pub(crate) fn seek(key: &[u8], target: Vec<u8>, backward: bool) -> Verdict {
        if leads_on(key, &target, backward) {
            Verdict::Seek(target)
        } else {
            Verdict::Outside
        }
    }
}

/// Whether `target` lies strictly past `key` in the direction of the scan.
pub(crate) fn leads_on(key: &[u8], target: &[u8], backward: bool) -> bool {
    match target.cmp(key) {
        Ordering::Greater => !backward,
        Ordering::Less => backward,
        Ordering::Equal => false,
    }
}

/// The encoded sets of values of the leading fields.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    fields: Vec<FieldRanges>,
    /// The number of leading bytes in which a truncated key equals the key of its values; the rest
    /// is a hash.
    true_bytes: usize,
}

/// The set of values of one field, as ranges of the part of a key that starts at the field's
/// component.
#[derive(Debug, Clone)]
pub(crate) struct FieldRanges {
    pub(crate) descending: bool,
    /// Ascending and disjoint.
    pub(crate) ranges: Vec<ByteRange>,
}

impl Check {
    /// A check for an index whose truncated keys keep `true_bytes` bytes of their values.
    pub(crate) fn new(fields: Vec<FieldRanges>, true_bytes: usize) -> Check {
        Check { fields, true_bytes }
    }

    /// Estimated bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let ranges = self.fields.iter().flat_map(|field| &field.ranges);
        ranges.map(ByteRange::bytes).sum()
    }

    /// Judge a key of a scan. `cut` marks a truncated key, which ends in a hash.
    pub(crate) fn judge(&self, key: &[u8], cut: bool, backward: bool) -> Verdict {
        let walk = |key: &[u8], whole: bool| match backward {
            false => self.forward(key, whole),
            true => self.backward(key, whole),
        };
        let known = match key.get(..self.true_bytes) {
            // Such a short key is not truncated, and no truncated key has all its bytes.
            None => return self.checked(key, walk(key, true), backward),
            Some(known) => known,
        };
        match self.checked(key, walk(known, false), backward) {
            Verdict::Inside if !cut => match walk(key, true) {
                Verdict::Inside => Verdict::Inside,
                _ => Verdict::Outside,
            },
            verdict => verdict,
        }
    }

    fn checked(&self, key: &[u8], verdict: Verdict, backward: bool) -> Verdict {
        match verdict {
            Verdict::Seek(mut target) if backward => {
                cut_end(&mut target, self.true_bytes);
                Verdict::seek(key, target, backward)
            }
            Verdict::Seek(mut target) => {
                cut_start(&mut target, self.true_bytes);
                Verdict::seek(key, target, backward)
            }
            other => other,
        }
    }

    /// Judge a key in an ascending scan; unless `whole`, judge all keys that start with it.
    fn forward(&self, key: &[u8], whole: bool) -> Verdict {
        let mut at = 0;
        for field in &self.fields {
            let (prefix, rest) = key.split_at_checked(at).unwrap_or((key, &[]));
            if !whole && rest.is_empty() {
                return Verdict::Inside;
            }
            let next = field
                .ranges
                .partition_point(|range| range.end.as_slice() <= rest);
            let Some(range) = field.ranges.get(next) else {
                return beyond(prefix, AFTER);
            };
            if rest < range.start.as_slice() {
                if !whole && range.start.starts_with(rest) {
                    return Verdict::Inside;
                }
                return Verdict::Seek([prefix, &range.start].concat());
            }
            match key::component_length(rest, field.descending) {
                Some(length) => at += length,
                // The component continues behind the known bytes, or the key is invalid, which the
                // reader of the entry reports.
                None => return Verdict::Inside,
            }
        }
        Verdict::Inside
    }

    /// As `forward`, in a descending scan.
    fn backward(&self, key: &[u8], whole: bool) -> Verdict {
        let mut at = 0;
        for field in &self.fields {
            let (prefix, rest) = key.split_at_checked(at).unwrap_or((key, &[]));
            if !whole && rest.is_empty() {
                return Verdict::Inside;
            }
            let after = field
                .ranges
                .partition_point(|range| range.start.as_slice() <= rest);
            let next = field.ranges.get(after);
            if !whole && next.is_some_and(|range| range.start.starts_with(rest)) {
                return Verdict::Inside;
            }
            let Some(range) = after.checked_sub(1).and_then(|n| field.ranges.get(n)) else {
                return beyond(prefix, BEFORE);
            };
            if range.end.as_slice() <= rest {
                return Verdict::Seek([prefix, &range.end].concat());
            }
            match key::component_length(rest, field.descending) {
                Some(length) => at += length,
                None => return Verdict::Inside,
            }
        }
        Verdict::Inside
    }
}

/// Seek past all keys that start with `prefix`.
fn beyond(prefix: &[u8], edge: u8) -> Verdict {
    if prefix.is_empty() {
        return Verdict::Done;
    }
    Verdict::Seek([prefix, &[edge]].concat())
}

#[cfg(test)]
mod tests {
    use bson::Bson;

    use super::*;
    use crate::key::END;
    use crate::plan::effort::Effort;
    use crate::plan::interval::{Interval, Intervals};
    use crate::plan::scan::{Coding, compile};

    const TRUE_BYTES: usize = 12;

    const ASCENDING: Coding<'_> = Coding {
        descending: false,
        hashed: false,
        collation: None,
    };

    fn text(letter: &str, count: usize) -> Bson {
        Bson::String(letter.repeat(count))
    }

    /// The values from `low` to `high`, both included.
    fn between(low: Bson, high: Bson) -> Intervals {
        Intervals::one(Interval::new(low, true, high, true), None)
    }

    fn component(value: &Bson) -> Vec<u8> {
        crate::plan::scan::encode(value, ASCENDING).unwrap()
    }

    /// The check for the keys of two ascending fields.
    fn check_of(sets: &[Intervals; 2]) -> Check {
        let coding = [ASCENDING, ASCENDING];
        let ranges = compile(sets, &coding, TRUE_BYTES, &mut Effort::new()).unwrap();
        ranges.check.unwrap()
    }

    /// The full key of a number inside its range, followed by a text.
    fn whole(text: &Bson) -> Vec<u8> {
        [component(&Bson::Int32(5)), component(text), vec![END]].concat()
    }

    /// V3.
    #[test]
    fn a_key_whose_known_bytes_are_used_up_may_belong() {
        let sets = [
            between(Bson::Int32(0), Bson::Int32(9)),
            between(text("k", 20), text("k", 30)),
        ];
        let check = check_of(&sets);
        let begun = [component(&Bson::Int32(5)), component(&text("k", 20))].concat();
        let known = begun.get(..TRUE_BYTES).unwrap();
        for hash in [[0_u8; 4], [0xFF; 4]] {
            let cut = [known, &hash].concat();
            for backward in [false, true] {
                assert_eq!(check.judge(&cut, true, backward), Verdict::Inside);
            }
        }
        // A key that is not truncated is judged by all its bytes.
        for (count, belongs) in [(19, false), (20, true), (30, true), (31, false)] {
            let key = whole(&text("k", count));
            let wanted = if belongs {
                Verdict::Inside
            } else {
                Verdict::Outside
            };
            assert_eq!(check.judge(&key, false, false), wanted, "{count}");
            assert_eq!(check.judge(&key, false, true), wanted, "{count} backward");
        }
    }

    /// V1 and V2.
    #[test]
    fn seeks_lead_on() {
        let sets = [
            between(Bson::Int32(0), Bson::Int32(9)),
            between(text("k", 20), text("m", 30)),
        ];
        let check = check_of(&sets);
        let mut seeks = 0;
        for letter in ["a", "j", "k", "l", "m", "n"] {
            for count in [1, 5, 8, 9, 10, 20, 25, 40] {
                for backward in [false, true] {
                    let key = whole(&text(letter, count));
                    if let Verdict::Seek(target) = check.judge(&key, false, backward) {
                        assert!(leads_on(&key, &target, backward), "{letter} {count}");
                        assert!(target.len() <= TRUE_BYTES, "{letter} {count}");
                        seeks += 1;
                    }
                }
            }
        }
        assert!(20 < seeks, "{seeks} seeks");
    }
}

//! Compiles sets of values per field into ranges of an index's keys, and a check for the conditions
//! that ranges cannot express.
//!
//! S1: the ranges ascend in byte order and do not overlap.
//! S2: every entry whose components are in the sets lies in a range; without a check, every entry
//!     in a range has its components in the sets.

use std::mem;

use bson::{Bson, RawBson};
use query::{Code, Error, Result, meter};

use super::check::{Check, FieldRanges};
use super::effort::Effort;
use super::interval::{Interval, Intervals};
use crate::index::append_hash;
use crate::key::{AFTER, BEFORE, Collate, Encoder};

/// Maximum number of ranges of a scan; beyond that the check skips from key to key.
const RANGES_MAX: usize = 2000;

/// Bytes that the allocator adds to each key.
const BUFFER: usize = 16;

/// How one field of an index is encoded.
#[derive(Clone, Copy)]
pub(crate) struct Coding<'a> {
    /// Whether the order of the field is reversed.
    pub(crate) descending: bool,
    /// Whether the key holds a hash of the value.
    pub(crate) hashed: bool,
    /// The order of strings.
    pub(crate) collation: Option<&'a dyn Collate>,
}

/// Keys from `start` (inclusive) to `end` (exclusive).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ByteRange {
    /// The smallest key.
    pub(crate) start: Vec<u8>,
    /// The first key behind the range.
    pub(crate) end: Vec<u8>,
}

impl ByteRange {
    /// Whether a key lies in it.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && key < self.end.as_slice()
    }

    /// Estimated bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        bytes_of(self.start.len() + self.end.len())
    }
}

/// The keys of an index to read.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRanges {
    /// S1.
    pub(crate) ranges: Vec<ByteRange>,
    /// Decides which keys within the ranges match; `None` if all of them do.
    pub(crate) check: Option<Check>,
    /// Whether a bound was truncated like a long key, so that a scan may also visit adjacent keys.
    pub(crate) cut: bool,
    /// The range of full keys, to be checked when a truncated key does not show whether it lies
    /// within it.
    pub(crate) edges: Option<ByteRange>,
}

impl KeyRanges {
    /// Estimated bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        let ranges = self.ranges.iter().chain(&self.edges);
        let check = self.check.as_ref().map_or(0, Check::bytes);
        ranges.map(ByteRange::bytes).sum::<usize>() + check
    }
}

/// Estimated bytes of a range whose keys have `length` bytes together.
fn bytes_of(length: usize) -> usize {
    size_of::<ByteRange>() + 2 * BUFFER + length
}

/// The ranges of keys whose leading components are in `sets`. Truncated keys keep `true_bytes`
/// bytes of their values.
///
/// # Errors
/// A bound that cannot be written as BSON.
pub(crate) fn compile(
    sets: &[Intervals],
    coding: &[Coding<'_>],
    true_bytes: usize,
    effort: &mut Effort,
) -> Result<KeyRanges> {
    let mut ranges = exact_ranges(sets, coding, true_bytes, effort)?;
    for range in &mut ranges.ranges {
        let start = cut_start(&mut range.start, true_bytes);
        let end = cut_end(&mut range.end, true_bytes);
        ranges.cut |= start || end;
    }
    if ranges.cut {
        ranges.ranges = union(mem::take(&mut ranges.ranges), effort)?;
    }
    Ok(ranges)
}

/// Truncate the lower bound so that it sorts before all keys that agree with `bytes` up to
/// `true_bytes`. Returns whether it was truncated.
pub(super) fn cut_start(bytes: &mut Vec<u8>, true_bytes: usize) -> bool {
    let long = true_bytes < bytes.len();
    bytes.truncate(true_bytes);
    long
}

/// Truncate the upper bound so that it sorts after all keys that agree with `bytes` up to
/// `true_bytes`. Returns whether it was truncated.
pub(super) fn cut_end(bytes: &mut Vec<u8>, true_bytes: usize) -> bool {
    if bytes.len() <= true_bytes {
        return false;
    }
    bytes.truncate(true_bytes);
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return true;
        }
    }
    bytes.push(0xFF);
    true
}

fn exact_ranges(
    sets: &[Intervals],
    coding: &[Coding<'_>],
    true_bytes: usize,
    effort: &mut Effort,
) -> Result<KeyRanges> {
    let last = sets.iter().rposition(|set| !set.is_all());
    let used = last.map_or(0, |last| last + 1);
    let mut fields = Vec::with_capacity(used);
    for (set, coding) in sets.iter().zip(coding).take(used) {
        fields.push(encode_set(set, *coding, effort)?);
    }
    if fields.iter().any(|field| field.ranges.is_empty()) {
        return Ok(KeyRanges::default());
    }
    let mut prefixes = Prefixes {
        list: vec![Vec::new()],
        // Bytes behind this are cut off, and the length shows that.
        longest: true_bytes.saturating_add(1),
    };
    for (position, (field, set)) in fields.iter().zip(sets).enumerate() {
        if RANGES_MAX < prefixes.list.len().saturating_mul(field.ranges.len()) {
            return Ok(with_check(prefixes.continued(), fields, true_bytes));
        }
        if set.is_points() {
            prefixes = prefixes.points(field, effort)?;
        } else {
            let ranges = prefixes.spread(field, effort)?;
            return Ok(if position + 1 == used {
                without_check(ranges)
            } else {
                with_check(ranges, fields, true_bytes)
            });
        }
    }
    Ok(without_check(prefixes.continued()))
}

fn without_check(ranges: Vec<ByteRange>) -> KeyRanges {
    KeyRanges {
        ranges,
        check: None,
        cut: false,
        edges: None,
    }
}

fn with_check(ranges: Vec<ByteRange>, fields: Vec<FieldRanges>, true_bytes: usize) -> KeyRanges {
    KeyRanges {
        ranges,
        check: Some(Check::new(fields, true_bytes)),
        cut: false,
        edges: None,
    }
}

/// The leading components of keys, cut after the bytes that count.
struct Prefixes {
    list: Vec<Vec<u8>>,
    longest: usize,
}

impl Prefixes {
    /// The ranges of keys that start with the prefixes.
    fn continued(self) -> Vec<ByteRange> {
        let range = |prefix: Vec<u8>| {
            let (mut start, mut end) = (prefix.clone(), prefix);
            if start.is_empty() {
                end.push(0xFF);
            } else {
                start.push(BEFORE);
                end.push(AFTER);
            }
            ByteRange { start, end }
        };
        self.list.into_iter().map(range).collect()
    }

    /// The prefixes, each with each value of the next field.
    fn points(self, field: &FieldRanges, effort: &mut Effort) -> Result<Prefixes> {
        let mut list = Vec::with_capacity(self.list.len() * field.ranges.len());
        for prefix in &self.list {
            for range in &field.ranges {
                // The range of a point begins with `BEFORE` behind its component.
                let (_, component) = range.start.split_last().expect("a range has an edge");
                let longer = self.longer(prefix, component);
                // The range that it becomes has it twice.
                effort.hold(bytes_of(2 * longer.len()))?;
                list.push(longer);
            }
        }
        Ok(Prefixes { list, ..self })
    }

    /// The ranges of the next field behind each of the prefixes.
    fn spread(self, field: &FieldRanges, effort: &mut Effort) -> Result<Vec<ByteRange>> {
        let mut ranges = Vec::with_capacity(self.list.len() * field.ranges.len());
        for prefix in &self.list {
            for range in &field.ranges {
                let range = ByteRange {
                    start: self.longer(prefix, &range.start),
                    end: self.longer(prefix, &range.end),
                };
                effort.hold(range.bytes())?;
                ranges.push(range);
            }
        }
        Ok(ranges)
    }

    fn longer(&self, prefix: &[u8], part: &[u8]) -> Vec<u8> {
        let room = self.longest.saturating_sub(prefix.len());
        [prefix, part.get(..room).unwrap_or(part)].concat()
    }
}

/// The union of the ranges of several scans of one index, none of which may have a check or edges.
///
/// # Errors
/// The operation must end.
pub(crate) fn merge(scans: Vec<KeyRanges>, effort: &mut Effort) -> Result<KeyRanges> {
    let cut = scans.iter().any(|scan| scan.cut);
    let all = scans.into_iter().flat_map(|scan| scan.ranges).collect();
    let mut merged = without_check(union(all, effort)?);
    merged.cut = cut;
    Ok(merged)
}

fn union(all: Vec<ByteRange>, effort: &mut Effort) -> Result<Vec<ByteRange>> {
    let mut ranges: Vec<ByteRange> = Vec::with_capacity(all.len());
    for next in sorted(all, effort)? {
        meter::step()?;
        match ranges.last_mut() {
            Some(last) if next.start <= last.end => {
                if last.end < next.end {
                    last.end = next.end;
                }
            }
            _ => ranges.push(next),
        }
    }
    Ok(ranges)
}

fn sorted(ranges: Vec<ByteRange>, effort: &mut Effort) -> Result<Vec<ByteRange>> {
    // The sort moves the ranges to lists that grow.
    let moved = 2 * ranges.len() * size_of::<ByteRange>();
    effort.hold(moved)?;
    let ranges = meter::sort_by(ranges, Ord::cmp)?;
    effort.release(moved)?;
    Ok(ranges)
}

/// A set as ranges of the part of a key that starts at this component.
fn encode_set(set: &Intervals, coding: Coding<'_>, effort: &mut Effort) -> Result<FieldRanges> {
    if coding.hashed && set.is_all() {
        // Hashes do not keep the order of values: any key may match.
        let (start, end) = (vec![BEFORE], vec![AFTER]);
        return Ok(FieldRanges {
            descending: false,
            ranges: vec![ByteRange { start, end }],
        });
    }
    let mut ranges = Vec::with_capacity(set.list().len());
    for interval in set.list() {
        let range = encode_interval(interval, coding)?;
        effort.hold(range.bytes())?;
        ranges.push(range);
    }
    if coding.hashed {
        ranges = sorted(ranges, effort)?;
        ranges.dedup();
    } else if coding.descending {
        ranges.reverse();
    }
    Ok(FieldRanges {
        descending: coding.descending,
        ranges,
    })
}

fn encode_interval(interval: &Interval, coding: Coding<'_>) -> Result<ByteRange> {
    let low = encode(&interval.low, coding)?;
    let high = encode(&interval.high, coding)?;
    let low = (low, interval.low_inclusive);
    let high = (high, interval.high_inclusive);
    let ((mut start, from), (mut end, to)) = if coding.descending {
        (high, low)
    } else {
        (low, high)
    };
    start.push(if from { BEFORE } else { AFTER });
    end.push(if to { AFTER } else { BEFORE });
    Ok(ByteRange { start, end })
}

/// One value as a component.
pub(crate) fn encode(value: &Bson, coding: Coding<'_>) -> Result<Vec<u8>> {
    let mut encoder = Encoder::new();
    if coding.hashed {
        let raw = RawBson::try_from(value.clone())?;
        append_hash(raw.as_raw_bson_ref(), &mut encoder)?;
        return Ok(encoder.into_bytes());
    }
    encoder
        .append_bson(value, coding.descending, coding.collation)
        .map_err(|error| match error.code {
            Code::INVALID_BSON => Error::new(Code::BAD_VALUE, error.message),
            // The operation must end.
            _ => error,
        })?;
    Ok(encoder.into_bytes())
}

#[cfg(test)]
mod tests {
    use stdx::Rng;

    use super::*;

    /// Numbers and texts, in ascending order. Some texts continue others with a NUL.
    fn value(number: i32) -> Bson {
        let texts = ["", "\0", "\0k", "k", "k\0", "k\0\0", "kk"];
        let text = number
            .checked_sub(3)
            .and_then(|at| usize::try_from(at).ok());
        match text.and_then(|at| texts.get(at)) {
            Some(text) => Bson::String((*text).to_owned()),
            None => Bson::Int32(number),
        }
    }

    fn set(rng: &mut Rng) -> Intervals {
        let mut list = Vec::new();
        for _ in 0..rng.index(4) {
            let low = i32::try_from(rng.below(10)).unwrap();
            let high = i32::try_from(rng.below(10)).unwrap();
            list.push(match rng.index(3) {
                0 => Interval::point(value(low)),
                _ => Interval::new(value(low), rng.chance(0.5), value(high), rng.chance(0.5)),
            });
        }
        if rng.chance(0.1) {
            list = vec![Interval::new(Bson::MinKey, true, Bson::MaxKey, true)];
        }
        Intervals::from_list(list, None, &mut Effort::new()).unwrap()
    }

    fn key(values: [i32; 2], descending: [bool; 2]) -> Vec<u8> {
        let mut encoder = Encoder::new();
        for (value, descending) in values.into_iter().zip(descending) {
            encoder
                .append_bson(&self::value(value), descending, None)
                .unwrap();
        }
        encoder.end();
        encoder.bytes().to_vec()
    }

    #[test]
    fn ranges_hold_the_keys_of_the_sets() {
        let mut rng = Rng::new(5);
        let mut without_check = 0;
        for round in 0..400 {
            let descending = [rng.chance(0.5), rng.chance(0.5)];
            let sets = [set(&mut rng), set(&mut rng)];
            let coding = descending.map(|descending| Coding {
                descending,
                hashed: false,
                collation: None,
            });
            let compiled = compile(&sets, &coding, usize::MAX, &mut Effort::new()).unwrap();
            for pair in compiled.ranges.windows(2) {
                let [one, next] = pair else {
                    unreachable!("a window of two")
                };
                assert!(one.end <= next.start, "S1: ranges ascend in round {round}");
            }
            without_check += usize::from(compiled.check.is_none());
            for first in 0..10 {
                for second in 0..10 {
                    let key = key([first, second], descending);
                    let is_read = compiled.ranges.iter().any(|range| range.holds(&key));
                    let [one, two] = &sets;
                    let belongs =
                        one.contains(&value(first), None) && two.contains(&value(second), None);
                    if belongs || compiled.check.is_none() {
                        assert_eq!(is_read, belongs, "S2: {first} {second} in round {round}");
                    }
                }
            }
        }
        assert!(100 < without_check, "{without_check}");
    }

    #[test]
    fn a_bound_that_may_not_be_made_tells_why() {
        let spec = bson::doc! { "locale": "en" };
        let collator = crate::collate::collator(&spec).unwrap().unwrap();
        let coding = Coding {
            descending: false,
            hashed: false,
            collation: Some(&*collator),
        };
        let _meter = query::meter::Meter::default().with_limit(100).enter();
        let error = encode(&Bson::String("x".repeat(1000)), coding).unwrap_err();
        assert_eq!(error.code, Code::EXCEEDED_MEMORY_LIMIT);
    }
}

//! Sets of BSON values as sorted, disjoint intervals: the values of one indexed field that a
//! predicate accepts.
//!
//! I1: the intervals of a set ascend in the order of `query::value` (strings by the collation the
//! set was made with), do not overlap and are not empty.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::{fmt, mem};

use bson::Bson;
use query::collation::Collator;
use query::value::compare_with;
use query::{Result, meter};

use super::effort::Effort;

/// An interval of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Interval {
    /// The lesser edge.
    pub(crate) low: Bson,
    /// Whether the interval contains `low`.
    pub(crate) low_inclusive: bool,
    /// The greater edge.
    pub(crate) high: Bson,
    /// Whether the interval contains `high`.
    pub(crate) high_inclusive: bool,
}

impl Interval {
    /// Exactly the values equal to `value`.
    pub(crate) fn point(value: Bson) -> Interval {
        Interval {
            low: value.clone(),
            low_inclusive: true,
            high: value,
            high_inclusive: true,
        }
    }

    /// `[low, high]`; an edge is excluded if its flag is false.
    pub(crate) fn new(
        low: Bson,
        low_inclusive: bool,
        high: Bson,
        high_inclusive: bool,
    ) -> Interval {
        Interval {
            low,
            low_inclusive,
            high,
            high_inclusive,
        }
    }

    /// Whether it contains exactly one value.
    pub(crate) fn is_point(&self) -> bool {
        self.low_inclusive && self.high_inclusive && self.low == self.high
    }

    /// Estimated bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        meter::size(&self.low) + meter::size(&self.high)
    }

    /// The interval with its edges swapped, as `explain` shows it for descending fields.
    pub(crate) fn reversed(&self) -> Interval {
        Interval {
            low: self.high.clone(),
            low_inclusive: self.high_inclusive,
            high: self.low.clone(),
            high_inclusive: self.low_inclusive,
        }
    }

    fn is_empty(&self, collator: Option<&Collator>) -> bool {
        match compare_with(&self.low, &self.high, collator) {
            Ordering::Less => false,
            Ordering::Equal => !(self.low_inclusive && self.high_inclusive),
            Ordering::Greater => true,
        }
    }
}

/// The form of bounds in `explain`: `[1, 5)`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = if self.low_inclusive { '[' } else { '(' };
        let close = if self.high_inclusive { ']' } else { ')' };
        write!(
            f,
            "{open}{}, {}{close}",
            shown(&self.low),
            shown(&self.high)
        )
    }
}

/// A value in the form that the shell shows in bounds.
pub(crate) fn shown(value: &Bson) -> String {
    match value {
        Bson::MinKey => "MinKey".to_owned(),
        Bson::MaxKey => "MaxKey".to_owned(),
        Bson::Undefined => "undefined".to_owned(),
        Bson::Null => "null".to_owned(),
        Bson::Double(double) if double.is_infinite() => {
            if 0.0 < *double { "inf.0" } else { "-inf.0" }.to_owned()
        }
        Bson::Double(double) if double.is_nan() => "nan.0".to_owned(),
        Bson::Double(double) => format!("{double:?}"),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        Bson::ObjectId(id) => format!("ObjectId('{}')", id.to_hex()),
        Bson::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        Bson::RegularExpression(regex) => format!("/{}/{}", regex.pattern, regex.options),
        other => other.to_string(),
    }
}

/// A set of values.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Intervals {
    list: Vec<Interval>,
}

impl Intervals {
    /// The empty set.
    pub(crate) fn none() -> Intervals {
        Intervals::default()
    }

    /// Every value.
    pub(crate) fn all() -> Intervals {
        Intervals {
            list: vec![Interval::new(Bson::MinKey, true, Bson::MaxKey, true)],
        }
    }

    /// A set of one interval; empty if the lower edge is above the upper one.
    pub(crate) fn one(interval: Interval, collator: Option<&Collator>) -> Intervals {
        if interval.is_empty(collator) {
            return Intervals::none();
        }
        Intervals {
            list: vec![interval],
        }
    }

    /// The values equal to `value`.
    pub(crate) fn point(value: Bson) -> Intervals {
        Intervals {
            list: vec![Interval::point(value)],
        }
    }

    /// The union of intervals, which may overlap and be in any order.
    ///
    /// # Errors
    /// The operation must end.
    pub(crate) fn from_list(
        mut list: Vec<Interval>,
        collator: Option<&Collator>,
        effort: &mut Effort,
    ) -> Result<Intervals> {
        let mut outcome = Ok(());
        list.retain(|interval| may_continue(&mut outcome) && !interval.is_empty(collator));
        outcome?;
        if !is_sorted(&list, collator)? {
            // The sort moves the intervals to lists that grow.
            let moved = 2 * list.len() * size_of::<Interval>();
            effort.hold(moved)?;
            list = meter::sort_by(list, |a, b| low_order(a, b, collator))?;
            effort.release(moved)?;
        }
        let mut outcome = Ok(());
        list.dedup_by(|next, last| {
            let joins = may_continue(&mut outcome) && touches(last, next, collator);
            if joins && high_order(last, next, collator) == Ordering::Less {
                mem::swap(&mut last.high, &mut next.high);
                last.high_inclusive = next.high_inclusive;
            }
            joins
        });
        outcome?;
        Ok(Intervals { list })
    }

    /// The intervals, ascending.
    pub(crate) fn list(&self) -> &[Interval] {
        &self.list
    }

    /// The intervals, ascending, without the set.
    pub(crate) fn into_list(self) -> Vec<Interval> {
        self.list
    }

    /// Whether the set is empty.
    pub(crate) fn is_none(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether it contains every value.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self.list.as_slice(), [one] if one.low == Bson::MinKey
            && one.low_inclusive && one.high == Bson::MaxKey && one.high_inclusive)
    }

    /// Whether it consists of single values, at least one.
    pub(crate) fn is_points(&self) -> bool {
        !self.list.is_empty() && self.list.iter().all(Interval::is_point)
    }

    /// The value, if the set contains exactly one.
    pub(crate) fn only_point(&self) -> Option<&Bson> {
        match self.list.as_slice() {
            [one] if one.is_point() => Some(&one.low),
            _ => None,
        }
    }

    /// The intersection of two sets.
    ///
    /// # Errors
    /// As [`Intervals::from_list`].
    pub(crate) fn intersect(
        &self,
        other: &Intervals,
        collator: Option<&Collator>,
        effort: &mut Effort,
    ) -> Result<Intervals> {
        let mut list = Vec::new();
        let mut left = self.list.iter().peekable();
        let mut right = other.list.iter().peekable();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            meter::step()?;
            let low = if low_order(a, b, collator) == Ordering::Less {
                b
            } else {
                a
            };
            let a_ends_first = high_order(a, b, collator) == Ordering::Less;
            let high = if a_ends_first { a } else { b };
            let both = Interval::new(
                low.low.clone(),
                low.low_inclusive,
                high.high.clone(),
                high.high_inclusive,
            );
            if !both.is_empty(collator) {
                effort.hold(both.bytes())?;
                list.push(both);
            }
            if a_ends_first {
                left.next();
            } else {
                right.next();
            }
        }
        Ok(Intervals { list })
    }

    /// The intersection of several sets; of none, all values. The two smallest sets are intersected
    /// first, so that an interval is looked at in proportion to the logarithm of their number.
    ///
    /// # Errors
    /// As [`Intervals::from_list`].
    pub(crate) fn common(
        sets: Vec<Intervals>,
        collator: Option<&Collator>,
        effort: &mut Effort,
    ) -> Result<Intervals> {
        let mut parts: BTreeMap<(usize, usize), (Intervals, usize)> = BTreeMap::new();
        for (at, set) in sets.into_iter().enumerate() {
            meter::step()?;
            parts.insert((set.list.len(), at), (set, 0));
        }
        while let Some(((_, at), (one, one_held))) = parts.pop_first() {
            let Some((_, (other, other_held))) = parts.pop_first() else {
                return Ok(one);
            };
            let before = effort.bytes();
            let both = one.intersect(&other, collator, effort)?;
            let held = effort.bytes() - before;
            effort.release(one_held + other_held)?;
            parts.insert((both.list.len(), at), (both, held));
        }
        Ok(Intervals::all())
    }

    /// The values that are not in the set.
    ///
    /// # Errors
    /// As [`Intervals::from_list`].
    pub(crate) fn complement(
        &self,
        collator: Option<&Collator>,
        effort: &mut Effort,
    ) -> Result<Intervals> {
        let mut list = Vec::with_capacity(self.list.len() + 1);
        let (mut low, mut inclusive) = (Bson::MinKey, true);
        for interval in &self.list {
            let gap = Interval::new(
                low,
                inclusive,
                interval.low.clone(),
                !interval.low_inclusive,
            );
            if !gap.is_empty(collator) {
                effort.hold(gap.bytes())?;
                list.push(gap);
            }
            low = interval.high.clone();
            inclusive = !interval.high_inclusive;
        }
        let rest = Interval::new(low, inclusive, Bson::MaxKey, true);
        if !rest.is_empty(collator) {
            list.push(rest);
        }
        Ok(Intervals { list })
    }

    /// Estimated bytes that the set takes.
    pub(crate) fn bytes(&self) -> usize {
        self.list.iter().map(Interval::bytes).sum()
    }

    /// Whether the set contains `value`.
    #[cfg(test)]
    pub(crate) fn contains(&self, value: &Bson, collator: Option<&Collator>) -> bool {
        self.list.iter().any(|interval| {
            let low = compare_with(&interval.low, value, collator);
            let high = compare_with(value, &interval.high, collator);
            (low == Ordering::Less || (low == Ordering::Equal && interval.low_inclusive))
                && (high == Ordering::Less || (high == Ordering::Equal && interval.high_inclusive))
        })
    }
}

/// Counts a step of a walk that cannot fail; false once the operation must end.
fn may_continue(outcome: &mut Result<()>) -> bool {
    if outcome.is_ok() {
        *outcome = meter::step();
    }
    outcome.is_ok()
}

/// Whether the intervals ascend by their lower edges.
fn is_sorted(list: &[Interval], collator: Option<&Collator>) -> Result<bool> {
    for (before, next) in list.iter().zip(list.iter().skip(1)) {
        meter::step()?;
        if low_order(before, next, collator) == Ordering::Greater {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compare two intervals by their lower edges.
fn low_order(a: &Interval, b: &Interval, collator: Option<&Collator>) -> Ordering {
    compare_with(&a.low, &b.low, collator).then(b.low_inclusive.cmp(&a.low_inclusive))
}

/// Compare two intervals by their upper edges.
fn high_order(a: &Interval, b: &Interval, collator: Option<&Collator>) -> Ordering {
    compare_with(&a.high, &b.high, collator).then(a.high_inclusive.cmp(&b.high_inclusive))
}

/// Whether `next`, whose lower edge is not below that of `last`, overlaps `last` or follows it
/// without a gap.
fn touches(last: &Interval, next: &Interval, collator: Option<&Collator>) -> bool {
    match compare_with(&next.low, &last.high, collator) {
        Ordering::Less => true,
        Ordering::Equal => last.high_inclusive || next.low_inclusive,
        Ordering::Greater => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(edges: &[(i32, bool, i32, bool)]) -> Intervals {
        let list = edges
            .iter()
            .map(|&(low, li, high, hi)| Interval::new(low.into(), li, high.into(), hi))
            .collect();
        Intervals::from_list(list, None, &mut Effort::new()).unwrap()
    }

    #[test]
    fn unions_merge_what_touches() {
        let set = numbers(&[
            (5, true, 7, false),
            (1, true, 5, false),
            (7, false, 9, true),
        ]);
        let shown: Vec<String> = set.list().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["[1, 7)", "(7, 9]"]);
    }

    #[test]
    fn set_algebra_agrees_with_membership() {
        let mut rng = stdx::Rng::new(17);
        for round in 0..500 {
            let draw = |rng: &mut stdx::Rng| {
                let list = (0..rng.index(4))
                    .map(|_| {
                        let low = i32::try_from(rng.below(10)).unwrap();
                        let high = i32::try_from(rng.below(10)).unwrap();
                        (low, rng.chance(0.5), high, rng.chance(0.5))
                    })
                    .collect::<Vec<_>>();
                numbers(&list)
            };
            let (a, b) = (draw(&mut rng), draw(&mut rng));
            let both = a.intersect(&b, None, &mut Effort::new()).unwrap();
            let list = a.list.iter().chain(&b.list).cloned().collect();
            let either = Intervals::from_list(list, None, &mut Effort::new()).unwrap();
            let outside = a.complement(None, &mut Effort::new()).unwrap();
            for set in [&both, &either, &outside] {
                for pair in set.list().windows(2) {
                    let [one, next] = pair else {
                        unreachable!("a window of two")
                    };
                    let order = compare_with(&one.high, &next.low, None);
                    let apart = order.is_lt()
                        || order.is_eq() && !(one.high_inclusive && next.low_inclusive);
                    assert!(apart, "I1: {one} {next} in round {round}");
                }
                assert!(
                    !set.list().iter().any(|i| i.is_empty(None)),
                    "I1: none is empty"
                );
            }
            for half in -2..22 {
                let value = Bson::Double(f64::from(half) / 2.0);
                let (in_a, in_b) = (a.contains(&value, None), b.contains(&value, None));
                assert_eq!(
                    both.contains(&value, None),
                    in_a && in_b,
                    "round {round}: {value}"
                );
                assert_eq!(
                    either.contains(&value, None),
                    in_a || in_b,
                    "round {round}: {value}"
                );
                assert_eq!(
                    outside.contains(&value, None),
                    !in_a,
                    "round {round}: {value}"
                );
            }
        }
    }
}

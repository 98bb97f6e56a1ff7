//! The part of the oplog that a filter can match, by its tests of `ts`: the keys of the entries are
//! their times, so a bound of the time is a place to begin or to end.

use std::sync::Arc;

use bson::{Bson, Timestamp};
use query::filter::Test;

use super::access::Access;
use super::predicate::Conjunction;
use super::scan::{ByteRange, KeyRanges};

/// The access to the entries that the tests allow; the filter is still to be evaluated.
pub(crate) fn access(all: &Conjunction<'_>, backward: bool) -> Access {
    // Half-open, as numbers that have the order of the times.
    let (mut start, mut end, mut bounded) = (0_u128, u128::from(u64::MAX) + 1, false);
    let tests = all.predicates.iter();
    for predicate in tests.filter(|p| p.scope.is_none() && p.path.is("ts")) {
        let (from, to) = match predicate.test {
            Test::Eq(Bson::Timestamp(time)) => (number(*time), number(*time) + 1),
            Test::Gt(Bson::Timestamp(time)) => (number(*time) + 1, end),
            Test::Gte(Bson::Timestamp(time)) => (number(*time), end),
            Test::Lt(Bson::Timestamp(time)) => (start, number(*time)),
            Test::Lte(Bson::Timestamp(time)) => (start, number(*time) + 1),
            _ => continue,
        };
        (start, end, bounded) = (start.max(from), end.min(to), true);
    }
    if end <= start {
        return Access::Nothing;
    }
    let range = ByteRange {
        start: key(start),
        end: key(end),
    };
    let ranges = KeyRanges {
        ranges: vec![range],
        check: None,
        cut: false,
        edges: None,
    };
    Access::Collection {
        backward,
        ranges: bounded.then(|| Arc::new(ranges)),
    }
}

fn number(time: Timestamp) -> u128 {
    u128::from(time.time) << 32 | u128::from(time.increment)
}

/// A key, or one after all keys.
fn key(number: u128) -> Vec<u8> {
    match u64::try_from(number) {
        Ok(number) => number.to_be_bytes().to_vec(),
        Err(_) => vec![0xFF; 9],
    }
}

//! Counts as replies and the log show them.

/// A count as a `long` of BSON. A larger one is shown as the largest.
pub(crate) fn long(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

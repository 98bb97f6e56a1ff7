//! The names of stages, and the error for one that is none.

use crate::Error;

/// Every stage by name, those that are refused included.
const KNOWN: &[&str] = &[
    "$addFields",
    "$bucket",
    "$bucketAuto",
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$collStats",
    "$count",
    "$currentOp",
    "$densify",
    "$documents",
    "$facet",
    "$fill",
    "$geoNear",
    "$graphLookup",
    "$group",
    "$indexStats",
    "$limit",
    "$listLocalSessions",
    "$listSessions",
    "$lookup",
    "$match",
    "$merge",
    "$out",
    "$planCacheStats",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$sample",
    "$search",
    "$searchMeta",
    "$set",
    "$setWindowFields",
    "$skip",
    "$sort",
    "$sortByCount",
    "$unionWith",
    "$unset",
    "$unwind",
    "$vectorSearch",
];

/// Stages that are known only to be refused.
const REFUSED: &[&str] = &[
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$geoNear",
    "$search",
    "$searchMeta",
    "$vectorSearch",
];

/// The stages that do something.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let known = KNOWN.iter().copied();
    known.filter(|name| !REFUSED.contains(name))
}

/// Whether there is a stage of this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// The error for an unknown stage.
#[must_use]
pub fn unknown(name: &str) -> Error {
    Error::location(
        40_324,
        format!("Unrecognized pipeline stage name: '{name}'"),
    )
}

//! The memory of a stage, and what happens when it runs out.

use bson::{Bson, Document};

use super::Host;
use crate::{Code, Error, Result, Row};

/// About how many bytes a document takes.
pub(super) fn document(document: &Document) -> usize {
    document
        .iter()
        .map(|(name, value)| name.len() + 32 + self::value(value))
        .sum()
}

/// About how many bytes a value takes.
pub(super) fn value(value: &Bson) -> usize {
    let inner = match value {
        Bson::String(text) => text.len(),
        Bson::Binary(binary) => binary.bytes.len(),
        Bson::Array(values) => values.iter().map(self::value).sum(),
        Bson::Document(inner) => document(inner),
        _ => 0,
    };
    size_of::<Bson>() + inner
}

/// About how many bytes a row takes.
pub(super) fn row(row: &Row) -> Result<usize> {
    Ok(row.raw()?.as_bytes().len() + size_of::<Row>())
}

/// Whether a stage that holds `bytes` must spill.
///
/// # Errors
/// `QueryExceededMemoryLimitNoDiskUseAllowed` when it must and may not.
pub(super) fn must_spill(stage: &str, bytes: usize, host: &dyn Host) -> Result<bool> {
    if bytes <= host.memory_limit() {
        return Ok(false);
    }
    if host.allow_disk_use() {
        return Ok(true);
    }
    Err(Error::new(
        Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
        format!(
            "Exceeded memory limit for {stage}, but didn't allow external {}. Pass \
             allowDiskUse:true to opt in.",
            if stage == "$sort" { "sort" } else { "spilling" }
        ),
    ))
}

/// The error of a stage that holds too much and cannot spill it.
pub(super) fn exceeded(stage: &str) -> Error {
    Error::new(
        Code::EXCEEDED_MEMORY_LIMIT,
        format!("{stage} used too much memory and cannot spill to disk"),
    )
}

//! The memory of a stage, and what happens when it runs out.

use super::Host;
use crate::meter::Held;
pub(super) use crate::meter::{document_size as document, size as value};
use crate::{Code, Error, Result, Row};

/// Estimated bytes of a row.
pub(super) fn row(row: &Row) -> Result<usize> {
    Ok(row.raw()?.as_bytes().len() + size_of::<Row>())
}

/// Bytes below which a stage does not spill to make room for others: it would make too many files.
const SPILL_LEAST: usize = 4 << 20;

/// Whether a stage that holds `bytes` must spill: when they are more than a stage may hold, or more
/// than the budget of all operations has left.
///
/// # Errors
/// `QueryExceededMemoryLimitNoDiskUseAllowed` when it holds too much and may not spill;
/// `ExceededMemoryLimit` when the budget is spent and spilling would help little.
pub(super) fn must_spill(
    stage: &str,
    held: &mut Held,
    bytes: usize,
    host: &dyn Host,
) -> Result<bool> {
    let granted = held.require(stage, bytes);
    if bytes <= host.memory_limit() {
        if granted.is_ok() {
            return Ok(false);
        }
        if !host.allow_disk_use() || bytes < SPILL_LEAST {
            return granted.map(|()| false);
        }
        return Ok(true);
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

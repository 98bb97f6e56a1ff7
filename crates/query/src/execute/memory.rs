//! The memory of a stage: estimates, and the decision to spill.

use super::Host;
use crate::meter::Held;
pub(super) use crate::meter::{document_size as document, size as value};
use crate::{Code, Error, Result, Row};

/// Estimated bytes of a row.
pub(super) fn row(row: &Row) -> Result<usize> {
    Ok(row.raw()?.as_bytes().len() + size_of::<Row>())
}

/// A stage with fewer bytes does not spill to make room for other operations: the files would be
/// too many and too small.
const SPILL_LEAST: usize = 4 << 20;

/// Whether a stage that holds `bytes` must spill: when this is above the limit of a stage, or when
/// the budget of all operations has too little left.
///
/// # Errors
/// `QueryExceededMemoryLimitNoDiskUseAllowed` when the stage must spill and is not allowed to;
/// `ExceededMemoryLimit` when the budget is exhausted and the stage is not allowed to spill or
/// holds too little.
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

/// The error of a stage that holds too much and is not allowed to spill.
pub(super) fn exceeded(stage: &str) -> Error {
    Error::new(
        Code::EXCEEDED_MEMORY_LIMIT,
        format!("{stage} used too much memory and cannot spill to disk"),
    )
}

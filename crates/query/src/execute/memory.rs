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

/// What must be done about the bytes that a stage holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Excess {
    /// Nothing: they are within the limits.
    None,
    /// They must be written to disk.
    Spill,
    /// They exceed the limit of the stage, which is not allowed to spill.
    Refused,
}

/// Whether `bytes` exceed `limit`, the limit of a stage, or what the budget of all operations has
/// left. `disk`: whether the stage is allowed to spill.
///
/// # Errors
/// `ExceededMemoryLimit` when the budget is exhausted and the stage is not allowed to spill or
/// holds too little.
pub(super) fn excess(
    stage: &str,
    held: &mut Held,
    bytes: usize,
    (limit, disk): (usize, bool),
) -> Result<Excess> {
    let granted = held.require(stage, bytes);
    if limit < bytes {
        return Ok(if disk { Excess::Spill } else { Excess::Refused });
    }
    match granted {
        Ok(()) => Ok(Excess::None),
        Err(_) if disk && SPILL_LEAST <= bytes => Ok(Excess::Spill),
        Err(error) => Err(error),
    }
}

/// Whether a stage that holds `bytes` must spill.
///
/// # Errors
/// As [`excess`] and [`allowed`].
pub(super) fn must_spill(
    stage: &str,
    held: &mut Held,
    bytes: usize,
    host: &dyn Host,
) -> Result<bool> {
    let limits = (host.memory_limit(), host.allow_disk_use());
    allowed(stage, excess(stage, held, bytes, limits)?)
}

/// Whether a stage must spill.
///
/// # Errors
/// `QueryExceededMemoryLimitNoDiskUseAllowed` when it must and is not allowed to.
pub(super) fn allowed(stage: &str, excess: Excess) -> Result<bool> {
    if excess != Excess::Refused {
        return Ok(excess == Excess::Spill);
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

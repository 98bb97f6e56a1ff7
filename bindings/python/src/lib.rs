//! The module `betree._betree`: classes of Python over the engine.
//!
//! Every call that may wait or read releases the interpreter's lock. No lock of this module is held
//! while the interpreter's lock is waited for.

mod batch;
mod database;
mod error;
mod items;
mod snapshot;
mod transaction;
mod tree;

use std::ops::Bound;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The part of betree that is written in Rust.
#[pymodule]
mod _betree {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::database::{Database, open};
    #[pymodule_export]
    use crate::error::{
        ClosedError, ConflictError, CorruptError, Error, ExistsError, FullError, InvalidError,
        NotFoundError, StorageError, TooOldError,
    };
    #[pymodule_export]
    use crate::items::Items;
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::transaction::Transaction;
    #[pymodule_export]
    use crate::tree::Tree;
}

/// A range as Python gives it: the start is included, the end is not.
fn bounds<'a>(
    start: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (
        start.map_or(Bound::Unbounded, Bound::Included),
        end.map_or(Bound::Unbounded, Bound::Excluded),
    )
}

/// A value as Python gets it.
fn bytes<'py>(py: Python<'py>, value: Option<Vec<u8>>) -> Option<pyo3::Bound<'py, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}

/// Values as Python gets them.
fn list<'py>(
    py: Python<'py>,
    values: Vec<Option<Vec<u8>>>,
) -> Vec<Option<pyo3::Bound<'py, PyBytes>>> {
    values.into_iter().map(|value| bytes(py, value)).collect()
}

//! Errors of the engine as exceptions, one for each kind.

use engine::ErrorKind;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(betree, Error, PyException, "Any error of the engine.");
create_exception!(betree, NotFoundError, Error, "No such tree.");
create_exception!(betree, ExistsError, Error, "The key or the tree exists.");
create_exception!(betree, ConflictError, Error, "Retry the transaction.");
create_exception!(betree, InvalidError, Error, "A mistake of the caller.");
create_exception!(betree, TooOldError, Error, "Take a new snapshot.");
create_exception!(betree, FullError, Error, "No room on disk or in memory.");
create_exception!(betree, ClosedError, Error, "Open the store again.");
create_exception!(betree, CorruptError, Error, "Stored bytes are wrong.");
create_exception!(betree, StorageError, Error, "The operating system failed.");

/// The exception for an error of the engine.
pub(crate) fn raise(error: engine::Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::NotFound => NotFoundError::new_err(text),
        ErrorKind::Exists => ExistsError::new_err(text),
        ErrorKind::Conflict => ConflictError::new_err(text),
        ErrorKind::Invalid => InvalidError::new_err(text),
        ErrorKind::TooOld => TooOldError::new_err(text),
        ErrorKind::Full => FullError::new_err(text),
        ErrorKind::Closed => ClosedError::new_err(text),
        ErrorKind::Corrupt => CorruptError::new_err(text),
        ErrorKind::Io => StorageError::new_err(text),
        _ => Error::new_err(text),
    }
}

/// A mistake of the caller that this module finds.
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    InvalidError::new_err(message.into())
}

/// A call of an object that was closed.
pub(crate) fn closed(what: &str) -> engine::Error {
    engine::Error::new(ErrorKind::Closed, format!("the {what} is closed"))
}

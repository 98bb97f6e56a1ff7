//! Conversion of engine errors into errors of the wire protocol.

use kv::ErrorKind;
use query::{Code, Error};

/// The client error for an engine's error.
pub(crate) fn engine(error: kv::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::Conflict => {
            return conflict();
        }
        ErrorKind::Full => Code::OUT_OF_DISK_SPACE,
        ErrorKind::Closed => Code::INTERRUPTED_AT_SHUTDOWN,
        ErrorKind::Unsupported => Code::COMMAND_NOT_SUPPORTED,
        _ => Code::INTERNAL_ERROR,
    };
    Error::new(code, error.to_string())
}

/// A write conflict: the operation must be retried.
pub(crate) fn conflict() -> Error {
    Error::new(
        Code::WRITE_CONFLICT,
        "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please \
         retry your operation or multi-document transaction.",
    )
}

/// The error of a build whose indexes or collection are gone.
pub(crate) fn index_build_aborted(why: &str) -> Error {
    Error::new(Code::INDEX_BUILD_ABORTED, why)
}

/// The error for corrupt stored data; `what` describes it.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> Error {
    Error::new(
        Code::INTERNAL_ERROR,
        format!("the store is damaged: {what}"),
    )
}

/// Whether an error is no fault of the operation that gets it: it can be done again, or its caller
/// has ended it.
pub(crate) fn is_passing(error: &Error) -> bool {
    matches!(
        error.code,
        Code::WRITE_CONFLICT
            | Code::INTERRUPTED
            | Code::MAX_TIME_MS_EXPIRED
            | Code::INTERRUPTED_AT_SHUTDOWN
            | Code::LOCK_TIMEOUT
    )
}

/// Whether an error fails the whole command, and not only one of its statements.
pub(crate) fn is_fatal(error: &Error) -> bool {
    matches!(
        error.code,
        Code::WRITE_CONFLICT
            | Code::INTERRUPTED
            | Code::MAX_TIME_MS_EXPIRED
            | Code::INTERNAL_ERROR
            | Code::OUT_OF_DISK_SPACE
            | Code::INTERRUPTED_AT_SHUTDOWN
            | Code::LOCK_TIMEOUT
    )
}

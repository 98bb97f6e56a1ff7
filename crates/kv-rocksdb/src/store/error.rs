//! Converts RocksDB's statuses to our errors.
//!
//! The C interface returns a text that begins with the status code and its subcode: `IO error: No
//! space left on device: While appending to file: ...`.

use kv::{Error, ErrorKind};

use super::raw::Status;
use crate::support::NAME;

pub(super) fn kind(status: &Status) -> ErrorKind {
    let text = status.0.as_str();
    let code = text.split(':').next().unwrap_or_default();
    match code {
        "NotFound" => ErrorKind::NotFound,
        "Corruption" | "Compaction too large" => ErrorKind::Corrupt,
        "Not implemented" => ErrorKind::Unsupported,
        "Invalid argument" | "Column family dropped" => ErrorKind::Invalid,
        "IO error" if is_full(text) => ErrorKind::Full,
        "Shutdown in progress" => ErrorKind::Closed,
        "Resource busy"
        | "Operation failed. Try again."
        | "Operation timed out"
        | "Operation expired"
        | "Operation aborted" => ErrorKind::Conflict,
        _ => ErrorKind::Io,
    }
}

pub(super) fn error(status: Status, operation: &'static str) -> Error {
    let kind = kind(&status);
    let message = match kind {
        ErrorKind::Conflict => {
            format!("{}; another transaction was first; retry", status.0)
        }
        ErrorKind::Full => format!("{}; free space; reads continue meanwhile", status.0),
        _ => status.0,
    };
    Error::new(kind, message)
        .with_engine(NAME)
        .with_operation(operation)
}

/// The error that `operation` returns when the store accepts no more writes.
pub(super) fn closed(why: &str, operation: &'static str) -> Error {
    let message = format!("the store takes no more writes after: {why}; open it again");
    Error::new(ErrorKind::Closed, message)
        .with_engine(NAME)
        .with_operation(operation)
}

fn is_full(text: &str) -> bool {
    [
        "No space left on device",
        "Disk quota exceeded",
        "Max allowed space was reached",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_say_what_to_do() {
        let check = |text: &str, expected| {
            assert_eq!(kind(&Status(text.to_owned())), expected, "{text}");
        };
        check("Resource busy: ", ErrorKind::Conflict);
        check(
            "Operation failed. Try again.: Transaction could not",
            ErrorKind::Conflict,
        );
        check("Corruption: block checksum mismatch", ErrorKind::Corrupt);
        check(
            "IO error: No space left on device: While appending",
            ErrorKind::Full,
        );
        check("IO error: While fsync: Input/output error", ErrorKind::Io);
        check("Shutdown in progress: ", ErrorKind::Closed);
        check("Invalid argument: x", ErrorKind::Invalid);
        check("", ErrorKind::Io);
    }
}

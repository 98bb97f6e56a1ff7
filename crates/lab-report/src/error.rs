//! Errors of the laboratory: a sentence that says what happened, to what, and what to do next, and
//! the exit code of the program.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The exit code where the command line does not parse: `EX_USAGE` of BSD's `sysexits.h`. 2, as
/// parsers have it, would say that a run is invalid.
pub const USAGE: u8 = 64;

/// What the caller can do about an error. Each kind has one exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name or a setting that makes no sense: change the command. Exit code 3.
    Usage,
    /// An engine or a server failed: see its message and its log. Exit code 3.
    Target,
    /// The machine refuses: no space, no rights, a missing program, a damaged file. Exit code 3.
    Environment,
    /// `lab check`: a regression. Exit code 1.
    Regression,
    /// The run is invalid or incomplete. Exit code 2.
    Invalid,
    /// `lab check`: the repeats show neither a regression nor that there is none. Exit code 4.
    Inconclusive,
    /// Stopped by a signal or by `lab stop`. Exit code 130.
    Interrupted,
}

impl ErrorKind {
    /// The exit code of the program.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Regression => 1,
            ErrorKind::Invalid => 2,
            ErrorKind::Usage | ErrorKind::Target | ErrorKind::Environment => 3,
            ErrorKind::Inconclusive => 4,
            ErrorKind::Interrupted => 130,
        }
    }
}

/// An error of the laboratory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The message.
    pub message: String,
    kind: ErrorKind,
}

/// A result of the laboratory.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a kind, with a sentence.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            kind,
        }
    }

    /// A name or a setting that makes no sense.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    /// A failure of an engine or a server.
    #[must_use]
    pub fn target(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Target, message)
    }

    /// A failure of the machine, or of its files.
    #[must_use]
    pub fn environment(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Environment, message)
    }

    /// The run was stopped by a signal.
    #[must_use]
    pub fn interrupted(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Interrupted, message)
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error for a failed `what` ("write", "read") at `path`, with the next step if there is
    /// one.
    #[must_use]
    pub fn io(what: &str, path: &Path, source: &io::Error) -> Error {
        let next = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free some space there or name another place with --out or --data-dir"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; name a place you may write with --out or --data-dir"
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists if what == "create" => {
                "; a part of that path is a file: name another place"
            }
            io::ErrorKind::NotFound if what == "create" => "; name another place",
            _ => "",
        };
        Error::environment(format!("cannot {what} {}: {source}{next}", path.display()))
    }

    /// The same error of another kind.
    #[must_use]
    pub fn with_kind(self, kind: ErrorKind) -> Error {
        Error { kind, ..self }
    }

    /// An error of the same kind with another sentence.
    #[must_use]
    pub fn with_message(&self, message: String) -> Error {
        Error::new(self.kind, message)
    }
}

/// The sentence, for callers whose errors have no kinds.
impl From<Error> for String {
    fn from(error: Error) -> String {
        error.message
    }
}

/// The message for an unknown name: suggests a similar known name, and lists all of them.
#[must_use]
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(name, k), *k))
        .filter(|(distance, k)| *distance <= 1 + k.len() / 3)
        .min();
    let hint = nearest.map_or(String::new(), |(_, k)| format!("; did you mean {k:?}?"));
    format!(
        "unknown {what} {name:?}{hint} (known: {})",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_error_survives_a_new_sentence_and_decides_the_exit_code() {
        let full = Error::io("write", Path::new("x"), &io::ErrorKind::StorageFull.into());
        assert_eq!(full.kind(), ErrorKind::Environment);
        let named = full.with_message(format!("lmdb: {full}"));
        assert_eq!((named.kind(), named.kind().exit_code()), (full.kind(), 3));
        let failed = named.with_kind(ErrorKind::Invalid);
        assert_eq!(failed.kind().exit_code(), 2);
        assert!(failed.message.starts_with("lmdb: cannot write x: "));
    }

    #[test]
    fn the_nearest_name_is_offered_if_it_is_near() {
        let known = ["lmdb", "rocksdb", "wiredtiger"];
        assert!(unknown("engine", "rocksbd", &known).contains("did you mean \"rocksdb\"?"));
        let far = unknown("engine", "oracle", &known);
        assert!(
            !far.contains("did you mean") && far.contains("wiredtiger"),
            "{far}"
        );
    }
}

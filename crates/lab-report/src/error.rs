//! Errors of the laboratory: a sentence that says what happened, to what, and what to do next, and
//! the exit code of the program.

use std::io;
use std::path::Path;

/// The exit code where the command line does not parse: `EX_USAGE` of BSD's `sysexits.h`. 2, as
/// parsers have it, would say that a run is invalid.
pub const USAGE: u8 = 64;

/// What an error means for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// `lab check`: a regression. Exit code 1.
    Regression,
    /// The run is invalid or incomplete. Exit code 2.
    Invalid,
    /// Anything else: a name or a setting that makes no sense, no room, no rights. Exit code 3.
    Tool,
    /// Stopped by a signal or by `lab stop`. Exit code 130.
    Interrupted,
}

impl Failure {
    /// The exit code of the program.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Failure::Regression => 1,
            Failure::Invalid => 2,
            Failure::Tool => 3,
            Failure::Interrupted => 130,
        }
    }
}

/// An error of the laboratory.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The sentence.
    pub message: String,
    /// What it means.
    pub failure: Failure,
}

/// A result of the laboratory.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A plain failure with a sentence.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            failure: Failure::Tool,
        }
    }

    /// A failure of `what` ("write", "read") at `path`, with the next step where there is one.
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
        Error::new(format!("cannot {what} {}: {source}{next}", path.display()))
    }

    /// With another meaning.
    #[must_use]
    pub fn meaning(mut self, failure: Failure) -> Error {
        self.failure = failure;
        self
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::new(message)
    }
}

/// The sentence for an unknown name: the nearest known one if it is near, and all of them.
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

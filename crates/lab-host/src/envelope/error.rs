//! Errors of envelopes.

use std::io;
use std::path::{Path, PathBuf};

use lab_report::ErrorKind;
use thiserror::Error;

/// The result of an operation of an envelope.
pub type Result<T> = std::result::Result<T, EnvelopeError>;

/// Why an envelope could not be created or entered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// A limit that no run can work with.
    #[error("{0}")]
    Limit(String),
    /// The kernel refused to read, write or create something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed operation, such as `write 4096 to`.
        action: String,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A limit was written and a different value was read back.
    #[error(
        "{} was set to {wanted} but {found} is in force; {hint}", path.display()
    )]
    NotInForce {
        /// The file that holds the limit.
        path: PathBuf,
        /// The requested limit.
        wanted: u64,
        /// The value that the kernel returned.
        found: String,
        /// What to do next.
        hint: String,
    },
    /// The process to admit does not exist, or no longer exists.
    #[error("process {pid} is gone; it cannot enter {}", group.display())]
    Gone {
        /// The process.
        pid: u32,
        /// The group that the process was to enter.
        group: PathBuf,
    },
    /// The process was written to the group, but the kernel does not list it there.
    #[error("process {pid} is not in {} after it was moved there", group.display())]
    NotAdmitted {
        /// The process.
        pid: u32,
        /// The group that the process should be in.
        group: PathBuf,
    },
}

impl EnvelopeError {
    /// The error of doing `action` on `path`.
    pub(crate) fn io(action: impl Into<String>, path: &Path, source: io::Error) -> EnvelopeError {
        EnvelopeError::Io {
            action: action.into(),
            path: path.to_owned(),
            source,
        }
    }
}

impl From<EnvelopeError> for lab_report::Error {
    fn from(error: EnvelopeError) -> lab_report::Error {
        let kind = match error {
            EnvelopeError::Limit(_) => ErrorKind::Usage,
            _ => ErrorKind::Environment,
        };
        lab_report::Error::new(kind, error.to_string())
    }
}

//! One error: a kind that says what to do, and context as data.

use std::error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as coarse as what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such tree.
    NotFound,
    /// The key (insert) or the tree (create) exists already.
    Exists,
    /// Another transaction wrote a key this one wrote, and was first: retry the transaction.
    Conflict,
    /// The caller's mistake: a key too long, a bad option, a dropped tree.
    Invalid,
    /// The snapshot is older than the age limit: take a new one.
    TooOld,
    /// No room, on disk or in the memory given. Reads continue; free space and try again.
    Full,
    /// Closed, or closed for writes after a failed sync: open again.
    Closed,
    /// Stored bytes are wrong.
    Corrupt,
    /// The operating system failed an input or output.
    Io,
}

#[derive(Debug, Default)]
struct Context {
    operation: Option<&'static str>,
    tree: Option<String>,
    key: Option<Vec<u8>>,
    path: Option<PathBuf>,
    source: Option<io::Error>,
}

/// Why the data file refuses to be changed; inside of an [`io::Error`].
#[derive(Debug)]
pub(crate) struct StoreClosed;

impl fmt::Display for StoreClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store is closed; open it again")
    }
}

impl error::Error for StoreClosed {}

/// An error: its kind, a sentence, and what it concerns, as far as known.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    context: Box<Context>,
}

impl Error {
    /// An error of `kind`; `message` says what happened and, where it can, what to do next.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
            context: Box::default(),
        }
    }

    /// Stored bytes are wrong: `message` says which, and where.
    #[must_use]
    pub(crate) fn corrupt(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corrupt, message)
    }

    /// The caller's mistake.
    #[must_use]
    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// An error of the operating system at `path` (`Full` when the disk is, `Closed` when the store
    /// is).
    #[must_use]
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Error {
        let closed = source
            .get_ref()
            .is_some_and(|inner| inner.is::<StoreClosed>());
        let kind = match source.kind() {
            _ if closed => ErrorKind::Closed,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            _ => ErrorKind::Io,
        };
        let mut error = Error::new(kind, source.to_string());
        error.context.operation = Some(operation);
        error.context.path = Some(path.to_owned());
        error.context.source = Some(source);
        error
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence, without context.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The operation that failed.
    #[must_use]
    pub fn operation(&self) -> Option<&'static str> {
        self.context.operation
    }

    /// The name of the tree concerned.
    #[must_use]
    pub fn tree(&self) -> Option<&str> {
        self.context.tree.as_deref()
    }

    /// The key concerned (at most its first 64 bytes).
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.context.key.as_deref()
    }

    /// The file concerned.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.context.path.as_deref()
    }

    /// Add the operation.
    #[must_use]
    pub(crate) fn with_operation(mut self, operation: &'static str) -> Error {
        self.context.operation = Some(operation);
        self
    }

    /// Add the tree's name.
    #[must_use]
    pub(crate) fn with_tree(mut self, tree: impl Into<String>) -> Error {
        self.context.tree = Some(tree.into());
        self
    }

    /// Add the key.
    #[must_use]
    pub(crate) fn with_key(mut self, key: &[u8]) -> Error {
        self.context.key = Some(key.iter().copied().take(64).collect());
        self
    }

    /// Add the file.
    #[must_use]
    pub(crate) fn with_path(mut self, path: &Path) -> Error {
        self.context.path = Some(path.to_owned());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.context.operation {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(tree) = &self.context.tree {
            write!(f, ", tree {tree}")?;
        }
        if let Some(key) = &self.context.key {
            write!(f, ", key {}", key.escape_ascii())?;
        }
        if let Some(path) = &self.context.path {
            write!(f, ", file {}", path.display())?;
        }
        Ok(())
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        let source = self.context.source.as_ref()?;
        Some(source)
    }
}

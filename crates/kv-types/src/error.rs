//! One error: a kind that says what to do, and context as data.

use std::error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A result with this [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: one kind for each reaction of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named tree, file or directory does not exist.
    NotFound,
    /// The key (insert-if-absent) or the tree (create) already exists.
    Exists,
    /// Another transaction wrote a key of this one and committed first, or the engine gave up the
    /// snapshot because of its age: retry with a new one.
    Conflict,
    /// The caller's mistake: a key that is too long, a bad name or option, a dropped tree's handle.
    Invalid,
    /// The engine does not support the call with the options with which it was opened.
    Unsupported,
    /// No space: disk, memory limit or map size. Reads continue; free space and retry.
    Full,
    /// The engine is closed, or closed for writes after a failed sync: open it again.
    Closed,
    /// The stored bytes are wrong.
    Corrupt,
    /// A call of the operating system failed.
    Io,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [ErrorKind; 9] = [
        ErrorKind::NotFound,
        ErrorKind::Exists,
        ErrorKind::Conflict,
        ErrorKind::Invalid,
        ErrorKind::Unsupported,
        ErrorKind::Full,
        ErrorKind::Closed,
        ErrorKind::Corrupt,
        ErrorKind::Io,
    ];
}

#[derive(Debug, Default)]
struct Context {
    engine: Option<&'static str>,
    operation: Option<&'static str>,
    tree: Option<String>,
    key: Option<Vec<u8>>,
    path: Option<PathBuf>,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

/// An error: its kind, a message, and the engine, operation, tree, key and path it concerns, as far
/// as they are known.
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

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message, without context.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The engine that reported it.
    #[must_use]
    pub fn engine(&self) -> Option<&'static str> {
        self.context.engine
    }

    /// The operation that failed, such as `commit`.
    #[must_use]
    pub fn operation(&self) -> Option<&'static str> {
        self.context.operation
    }

    /// The name of the tree concerned.
    #[must_use]
    pub fn tree(&self) -> Option<&str> {
        self.context.tree.as_deref()
    }

    /// The key concerned (at most the first 64 bytes).
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.context.key.as_deref()
    }

    /// The file or directory concerned.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.context.path.as_deref()
    }

    /// Add the engine's name.
    #[must_use]
    pub fn with_engine(mut self, engine: &'static str) -> Error {
        self.context.engine = Some(engine);
        self
    }

    /// Add the operation.
    #[must_use]
    pub fn with_operation(mut self, operation: &'static str) -> Error {
        self.context.operation = Some(operation);
        self
    }

    /// Add the tree's name.
    #[must_use]
    pub fn with_tree(mut self, tree: impl Into<String>) -> Error {
        self.context.tree = Some(tree.into());
        self
    }

    /// Add the key (its first 64 bytes are kept).
    #[must_use]
    pub fn with_key(mut self, key: &[u8]) -> Error {
        self.context.key = Some(key.iter().take(64).copied().collect());
        self
    }

    /// Add the path.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Error {
        self.context.path = Some(path.into());
        self
    }

    /// Add the cause of this error.
    #[must_use]
    pub fn with_source(mut self, source: impl error::Error + Send + Sync + 'static) -> Error {
        self.context.source = Some(Box::new(source));
        self
    }

    /// An error of the operating system in `operation` at `path`: `Full` for a full disk or quota,
    /// `NotFound` for a missing file, else `Io`. If `source` carries an [`Error`] of this crate,
    /// the kind is that of the carried one.
    #[must_use]
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Error {
        let carried = source.get_ref().and_then(|e| e.downcast_ref::<Error>());
        let kind = match (carried, source.kind()) {
            (Some(carried), _) => carried.kind,
            (None, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => ErrorKind::Full,
            (None, io::ErrorKind::NotFound) => ErrorKind::NotFound,
            (None, _) => ErrorKind::Io,
        };
        Error::new(kind, source.to_string())
            .with_operation(operation)
            .with_path(path)
            .with_source(source)
    }

    /// `Corrupt`: `message` says which stored bytes are wrong, and where.
    #[must_use]
    pub fn corrupt(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corrupt, message)
    }

    /// An error of kind `Invalid` with `message`.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// An error of kind `Unsupported`; `what` names what the engine lacks.
    #[must_use]
    pub fn unsupported(engine: &'static str, what: &str) -> Error {
        Error::new(ErrorKind::Unsupported, format!("{engine} has no {what}")).with_engine(engine)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(engine) = self.context.engine {
            write!(f, "{engine}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(operation) = self.context.operation {
            write!(f, " (in {operation})")?;
        }
        if let Some(tree) = &self.context.tree {
            write!(f, " [tree {tree}]")?;
        }
        if let Some(key) = &self.context.key {
            write!(f, " [key \"{}\"]", key.escape_ascii())?;
        }
        if let Some(path) = &self.context.path {
            write!(f, " [{}]", path.display())?;
        }
        Ok(())
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.context
            .source
            .as_deref()
            .map(|e| e as &(dyn error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_is_data_and_text() {
        let e = Error::new(ErrorKind::Exists, "the key exists")
            .with_engine("memory")
            .with_operation("insert")
            .with_tree("t")
            .with_key(b"k\x00");
        assert_eq!(e.kind(), ErrorKind::Exists);
        assert_eq!((e.tree(), e.key()), (Some("t"), Some(&b"k\x00"[..])));
        assert_eq!(
            e.to_string(),
            r#"memory: the key exists (in insert) [tree t] [key "k\x00"]"#
        );
    }

    #[test]
    fn errors_of_the_system_have_the_kind_of_the_reaction() {
        let carried = Error::new(ErrorKind::Closed, "the store is closed");
        for (source, kind) in [
            (io::ErrorKind::StorageFull.into(), ErrorKind::Full),
            (io::ErrorKind::QuotaExceeded.into(), ErrorKind::Full),
            (io::ErrorKind::NotFound.into(), ErrorKind::NotFound),
            (io::ErrorKind::PermissionDenied.into(), ErrorKind::Io),
            (io::Error::other("a cable"), ErrorKind::Io),
            (io::Error::other(carried), ErrorKind::Closed),
        ] {
            let error = Error::io("open", Path::new("/x"), source);
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(error.operation(), Some("open"));
            assert_eq!(error.path(), Some(Path::new("/x")));
            assert!(error::Error::source(&error).is_some(), "the cause is kept");
        }
    }
}

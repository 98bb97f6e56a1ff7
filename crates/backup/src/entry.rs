//! An entry of a backup, as a directory or an archive lists it.

/// An entry of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file; its offset in an archive, or 0.
    File {
        size: u64,
        offset: u64,
    },
    Directory,
    /// A symbolic link, a pipe and so on.
    Other,
}

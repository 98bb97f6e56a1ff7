//! Where a backup is written.

use std::path::{Path, PathBuf};

use kv::Result;

use crate::archive::ArchiveTarget;
use crate::directory::DirectoryTarget;
use crate::target::Target;

/// The end of the name of an archive.
pub const ARCHIVE_SUFFIX: &str = ".tar";

/// Where a backup is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A directory that is missing or empty; its parent exists.
    Directory(PathBuf),
    /// A file that does not exist, whose name ends with [`ARCHIVE_SUFFIX`]; its parent exists and
    /// is no symbolic link.
    Archive(PathBuf),
}

impl Place {
    /// The directory or the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Place::Directory(path) | Place::Archive(path) => path,
        }
    }

    /// Create what the backup is written to.
    pub(crate) fn open(&self) -> Result<Box<dyn Target>> {
        Ok(match self {
            Place::Directory(path) => Box::new(DirectoryTarget::create(path)?),
            Place::Archive(path) => Box::new(ArchiveTarget::create(path)?),
        })
    }
}

//! The data file as a checkpoint sees it.

use std::path::Path;

use vfs::File;

use crate::keys::Keys;

/// The data file of a store.
#[derive(Clone, Copy)]
pub(crate) struct DataFile<'a> {
    pub(crate) file: &'a dyn File,
    /// Used in errors.
    pub(crate) path: &'a Path,
    /// The keys of an encrypted store.
    pub(crate) keys: Option<&'a Keys>,
}

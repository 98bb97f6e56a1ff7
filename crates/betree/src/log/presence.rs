//! Whether a directory contains a log, and removal of a log.

use std::path::Path;

use vfs::Vfs;

use super::recover::clear;
use super::segment::{Name, Place, segment_path};
use super::survey::names;
use super::{Log, sites};
use crate::error::{Error, Result};

impl Log {
    /// Whether `directory` contains segments of a log.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn exists(vfs: &dyn Vfs, directory: &Path) -> Result<bool> {
        let names = names(vfs, directory)?;
        Ok(names.iter().any(|name| matches!(name, Name::Segment(_))))
    }

    /// Durably remove the segments of a store whose creation did not finish, before a store without
    /// a log is created in the same directory.
    ///
    /// # Errors
    /// `Exists` when there is a log with records; `Io`.
    pub(crate) fn clear(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        if names(vfs, directory)?.is_empty() {
            return Ok(());
        }
        let place = Place {
            vfs,
            directory,
            store: 0,
            direct: false,
            keys: None,
        };
        clear(&place)?;
        place.sync_names()
    }

    /// Remove all segments, the oldest first, so that an interruption leaves the end of the log. No
    /// reader may need them any more.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn remove(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
        let mut numbers: Vec<u64> = names(vfs, directory)?
            .into_iter()
            .filter_map(|name| match name {
                Name::Segment(number) => Some(number),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let path = segment_path(directory, number);
            vfs.remove(sites::REMOVE, &path)
                .map_err(|e| Error::io("removing a log segment", &path, e))?;
        }
        vfs.sync_dir(sites::DIRECTORY, directory)
            .map_err(|e| Error::io("syncing the directory of the log", directory, e))
    }
}

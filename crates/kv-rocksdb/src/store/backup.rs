//! Hot backups.
//!
//! RocksDB's checkpoint links or copies the live files and the log; our identity file is written
//! last, so that an incomplete copy cannot be opened as a store.

use std::fs;
use std::path::Path;

use kv::{Compaction, Error, ErrorKind, Flow, Progress, Result, identity};

use super::SUBDIRECTORY;
use super::engine::Store;
use crate::support::NAME;

/// Copy `store` into `directory`. RocksDB makes the copy in one call, mostly of hard links; `watch`
/// can cancel only before that call.
pub(super) fn backup(
    store: &Store,
    directory: &Path,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    let io = |path: &Path, e| Error::io("backup", path, e).with_engine(NAME);
    if !vfs::is_empty(directory).map_err(|e| io(directory, e))? {
        let message = "the directory holds something; name an empty one";
        return Err(Error::new(ErrorKind::Exists, message)
            .with_engine(NAME)
            .with_operation("backup")
            .with_path(directory));
    }
    let sizes = store.db.live_files();
    let total = sizes.iter().map(|file| file.size as u64).sum();
    let mut progress = Progress {
        done_bytes: 0,
        total_bytes: total,
    };
    if watch(progress) == Flow::Cancel {
        return Ok(Compaction::Cancelled);
    }
    vfs::ensure_private_dir(directory).map_err(|e| io(directory, e))?;
    let copied = store.db.copy_to(&directory.join(SUBDIRECTORY));
    copied.map_err(|s| store.write_error(s, "backup").with_path(directory))?;
    let own = store.directory.join(identity::FILE);
    let bytes = fs::read(&own).map_err(|e| io(&own, e))?;
    let path = directory.join(identity::FILE);
    vfs::write_atomic(&path, &bytes).map_err(|e| io(&path, e))?;
    progress.done_bytes = total;
    watch(progress);
    Ok(Compaction::Complete)
}

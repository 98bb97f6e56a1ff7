//! Backups: LMDB's own hot copy, and the identity file.
//!
//! I1. The identity file is written last. An incomplete copy has none, and cannot be opened.

use std::fs;
use std::path::Path;

use heed::CompactionOption;
use kv::{Compaction, Error, ErrorKind, Flow, Progress, Result, identity};

use super::durability::Store;
use crate::support::NAME;

/// The name of LMDB's data file.
pub(super) const DATA: &str = "data.mdb";

pub(super) fn backup(
    store: &Store,
    directory: &Path,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    let fail = |e| Error::io("backup", directory, e).with_engine(NAME);
    if !vfs::is_empty(directory).map_err(fail)? {
        let message = "the directory of the backup holds files; name an empty one";
        let error = Error::new(ErrorKind::Exists, message);
        return Err(error.with_engine(NAME).with_path(directory));
    }
    let total_bytes = store.env.real_disk_size();
    let total_bytes = total_bytes.map_err(|e| store.error(e, "backup"))?;
    let begin = Progress {
        done_bytes: 0,
        total_bytes,
    };
    // LMDB copies in one call, so the caller can cancel only here.
    if watch(begin) == Flow::Cancel {
        return Ok(Compaction::Cancelled);
    }
    vfs::ensure_private_dir(directory).map_err(fail)?;
    let option = if store.settings.backup_compact {
        CompactionOption::Enabled
    } else {
        CompactionOption::Disabled
    };
    let file = store.env.copy_to_path(directory.join(DATA), option);
    let file = file.map_err(|e| match e {
        heed::Error::Io(e) => fail(e),
        e => store.error(e, "backup"),
    })?;
    file.sync_all().map_err(fail)?;
    let done_bytes = file.metadata().map_err(fail)?.len();
    let text = fs::read(store.directory.join(identity::FILE));
    let text = text.map_err(|e| Error::io("backup", &store.directory, e).with_engine(NAME))?;
    vfs::write_atomic(&directory.join(identity::FILE), &text).map_err(fail)?;
    let end = Progress {
        done_bytes,
        total_bytes: done_bytes,
    };
    // The copy is complete: there is nothing left to cancel.
    let _ = watch(end);
    Ok(Compaction::Complete)
}

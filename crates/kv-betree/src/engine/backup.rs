//! Backups: the store copies itself, the adapter adds the identity file.
//!
//! I1. The identity file is written last. An incomplete copy has none, and cannot be opened.

use std::fs;
use std::path::Path;

use kv::{Compaction, Error, ErrorKind, Flow, Progress, Result, identity};

use super::{Betree, ended, named, watching};
use crate::settings::NAME;

pub(super) fn backup(
    engine: &Betree,
    directory: &Path,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    let fail = |path: &Path, e| Error::io("backup", path, e).with_engine(NAME);
    if !vfs::is_empty(directory).map_err(|e| fail(directory, e))? {
        let message = "the directory of the backup holds files; name an empty one";
        let error = Error::new(ErrorKind::Exists, message).with_engine(NAME);
        return Err(error.with_operation("backup").with_path(directory));
    }
    vfs::ensure_private_dir(directory).map_err(|e| fail(directory, e))?;
    let copied = engine.db.backup(directory, &mut watching(watch));
    let copied = copied.map(ended).map_err(named)?;
    if copied == Compaction::Complete {
        let own = engine.directory.join(identity::FILE);
        let text = fs::read(&own).map_err(|e| fail(&own, e))?;
        let path = directory.join(identity::FILE);
        vfs::write_atomic(&path, &text).map_err(|e| fail(&path, e))?;
    }
    Ok(copied)
}

//! Hot backups.
//!
//! While a `backup:` cursor is open, the library does not change the files that the cursor lists,
//! except for growth to which the copied metadata does not refer. These files include the log up to
//! the beginning of the backup, so the copy recovers like a store that crashed at that time.
//!
//! The identity file is written last: an incomplete copy cannot be opened.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use kv::{Compaction, Error, ErrorKind, Flow, Progress, Result, identity};

use super::shared::{HOME, Shared};
use crate::support::NAME;

/// Bytes copied between two reports of progress.
const CHUNK: usize = 1 << 20;

/// Copy the store in `source` into `target`.
pub(super) fn run(
    shared: &Shared,
    source: &Path,
    target: &Path,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    if !vfs::is_empty(target).map_err(|e| failed(target, e))? {
        let message = "the directory for the copy is not empty; name a new one";
        return Err(Error::new(ErrorKind::Exists, message)
            .with_engine(NAME)
            .with_path(target));
    }
    let home = target.join(HOME);
    vfs::ensure_private_dir(&home).map_err(|e| failed(&home, e))?;
    let result = copy_all(shared, &home, watch).and_then(|ended| {
        if ended == Compaction::Complete {
            adopt(source, target)?;
        }
        Ok(ended)
    });
    if !matches!(result, Ok(Compaction::Complete)) {
        // The first error is the one to return; leftover files have no identity file and cannot be
        // opened.
        let _ = fs::remove_dir_all(&home);
    }
    result
}

/// Write the identity file of the copy.
fn adopt(source: &Path, target: &Path) -> Result<()> {
    let identity = source.join(identity::FILE);
    let bytes = fs::read(&identity).map_err(|e| failed(&identity, e))?;
    let copy = target.join(identity::FILE);
    vfs::write_atomic(&copy, &bytes).map_err(|e| failed(&copy, e))
}

fn copy_all(
    shared: &Shared,
    home: &Path,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    // One backup at a time: the library allows only one `backup:` cursor.
    let _backing = shared.backing.lock();
    // All commits must be in the files: in the log or, without a log, in a checkpoint.
    shared.sync()?;
    let lease = shared.own()?;
    let copied = lease.session().with_cursor(c"backup:", c"", |cursor| {
        let mut names = Vec::new();
        while cursor.next()? {
            names.push(cursor.text_key()?);
        }
        // The cursor stays open while the files are copied.
        Ok(copy_files(&shared.home, home, &names, watch))
    });
    copied.map_err(|fault| fault.into_error("backup"))?
}

fn copy_files(
    from: &Path,
    to: &Path,
    names: &[String],
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    let mut progress = Progress::default();
    for name in names {
        let path = from.join(name);
        progress.total_bytes += fs::metadata(&path).map_err(|e| failed(&path, e))?.len();
    }
    if watch(progress) == Flow::Cancel {
        return Ok(Compaction::Cancelled);
    }
    for name in names {
        let path = from.join(name);
        let copied = copy_file(&path, &to.join(name), &mut progress, watch);
        if copied.map_err(|e| failed(&path, e))? == Flow::Cancel {
            return Ok(Compaction::Cancelled);
        }
    }
    vfs::sync_dir(to).map_err(|e| failed(to, e))?;
    progress.total_bytes = progress.done_bytes;
    // The copy is complete, so the callback's answer is ignored.
    watch(progress);
    Ok(Compaction::Complete)
}

fn copy_file(
    from: &Path,
    to: &Path,
    progress: &mut Progress,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> io::Result<Flow> {
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = source.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        target.write_all(bytes)?;
        progress.done_bytes += read as u64;
        // The files may grow while they are copied.
        progress.total_bytes = progress.total_bytes.max(progress.done_bytes);
        if watch(*progress) == Flow::Cancel {
            return Ok(Flow::Cancel);
        }
    }
    target.sync_all()?;
    Ok(Flow::Continue)
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::io("backup", path, source).with_engine(NAME)
}

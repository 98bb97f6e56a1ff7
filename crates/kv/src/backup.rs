//! Receiving a backup as a stream of files.
//!
//! An engine that knows its files passes them on as it reads them. Any other engine copies itself
//! to a directory first, and the copy is passed on from there: that takes the space of a second
//! copy while it lasts, and the engine may copy in one step, which nothing slows down or ends
//! early.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use kv_types::{Error, ErrorKind, Result};

use crate::compact::{Compaction, Flow, Progress};

/// Receives the progress of a copy.
type Watch<'a> = &'a mut dyn FnMut(Progress) -> Flow;

/// Bytes passed on at once.
const PIECE: usize = 1 << 20;

/// Identifies a piece of a file: equal ids of one store stand for equal bytes.
pub type PieceId = [u8; 16];

/// What a sink answers to a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Its bytes are to be written.
    Send,
    /// The sink has them: they are left out, and count as written.
    Skip,
    /// See [`Flow::Cancel`].
    Cancel,
}

/// Receives the files of a backup, one after another. Each answer says whether to continue; a sink
/// that fails keeps its error and answers [`Flow::Cancel`].
pub trait BackupSink {
    /// The engine copies itself to a directory before it passes files on.
    fn preparing(&mut self, progress: Progress) -> Flow;

    /// The total number of bytes that will follow.
    fn total(&mut self, bytes: u64);

    /// A file begins: its path below the directory of the store, with `/` between the parts, and
    /// its length in bytes.
    fn begin(&mut self, path: &str, length: u64) -> Flow;

    /// The next `bytes` of the file are a piece that a backup of this store may have already. Only
    /// engines with the capability `increments` announce pieces.
    fn piece(&mut self, id: PieceId, bytes: u64) -> Piece {
        let _ = (id, bytes);
        Piece::Send
    }

    /// The next bytes of the file.
    fn write(&mut self, bytes: &[u8]) -> Flow;

    /// The file is complete.
    fn finish(&mut self) -> Flow;

    /// A whole file, whose content is at hand.
    fn file(&mut self, path: &str, bytes: &[u8]) -> Flow {
        let flows = self.begin(path, bytes.len() as u64) == Flow::Continue
            && self.write(bytes) == Flow::Continue
            && self.finish() == Flow::Continue;
        if flows { Flow::Continue } else { Flow::Cancel }
    }
}

/// Let an engine copy itself to the directory `staging`, pass the files of the copy on, each
/// removed after it, and remove the directory.
pub(crate) fn staged(
    copy: &mut dyn FnMut(Watch<'_>) -> Result<Compaction>,
    staging: &Path,
    sink: &mut dyn BackupSink,
) -> Result<Compaction> {
    let mut flow = Flow::Continue;
    let copied = copy(&mut |progress| {
        flow = sink.preparing(progress);
        flow
    });
    if copied
        .as_ref()
        .is_err_and(|e| e.kind() == ErrorKind::Exists)
    {
        // The directory is of another writer.
        return copied;
    }
    let passed = match copied {
        // An engine ignores an answer that comes after its last step.
        Ok(Compaction::Complete) if flow == Flow::Cancel => Ok(Compaction::Cancelled),
        Ok(Compaction::Complete) => pass_on(staging, sink),
        other => other,
    };
    match fs::remove_dir_all(staging) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound && passed.is_ok() => {
            Err(Error::io("remove the copy", staging, e))
        }
        _ => passed,
    }
}

fn pass_on(staging: &Path, sink: &mut dyn BackupSink) -> Result<Compaction> {
    let mut files = Vec::new();
    list(staging, String::new(), &mut files)?;
    files.sort();
    sink.total(files.iter().map(|(_, length)| length).sum());
    for (name, length) in files {
        let path = staging.join(&name);
        if pass_file(&path, &name, length, sink)? == Flow::Cancel {
            return Ok(Compaction::Cancelled);
        }
        fs::remove_file(&path).map_err(|e| Error::io("remove the copy", &path, e))?;
    }
    Ok(Compaction::Complete)
}

/// The regular files below `directory` with their lengths, named below the staging directory.
fn list(directory: &Path, prefix: String, files: &mut Vec<(String, u64)>) -> Result<()> {
    let fail = |e| Error::io("list the copy", directory, e);
    for entry in fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let Ok(name) = entry.file_name().into_string() else {
            let message = "a file of the copy has a name that is not UTF-8";
            return Err(Error::invalid(message).with_path(entry.path()));
        };
        let metadata = entry.metadata().map_err(fail)?;
        let name = format!("{prefix}{name}");
        if metadata.is_dir() {
            list(&entry.path(), format!("{name}/"), files)?;
        } else {
            files.push((name, metadata.len()));
        }
    }
    Ok(())
}

fn pass_file(path: &PathBuf, name: &str, length: u64, sink: &mut dyn BackupSink) -> Result<Flow> {
    let fail = |e| Error::io("read the copy", path, e);
    let mut file = File::open(path).map_err(fail)?;
    if sink.begin(name, length) == Flow::Cancel {
        return Ok(Flow::Cancel);
    }
    let mut buffer = vec![0; PIECE];
    loop {
        let read = file.read(&mut buffer).map_err(fail)?;
        match buffer.get(..read) {
            None | Some([]) => return Ok(sink.finish()),
            Some(bytes) if sink.write(bytes) == Flow::Cancel => return Ok(Flow::Cancel),
            Some(_) => {}
        }
    }
}

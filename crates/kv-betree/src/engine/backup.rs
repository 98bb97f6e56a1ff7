//! Backups: the store copies itself, the adapter adds the identity file.
//!
//! A stream has the key file of an encrypted store, the data file and then the identity file;
//! nothing is staged.
//!
//! I1. The identity file is written last. An incomplete copy has none, and cannot be opened.

use std::fs;
use std::path::Path;

use betree::{BackupNext, BackupPart, KEY_FILE};
use kv::{BackupSink, Compaction, Error, ErrorKind, Flow, Piece, Progress, Result, identity};

use super::stats::DATA;
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

/// Pass the files of a copy on as they are read.
pub(super) fn backup_to(engine: &Betree, sink: &mut dyn BackupSink) -> Result<Compaction> {
    let own = engine.directory.join(identity::FILE);
    let fail = |e| Error::io("backup", &own, e).with_engine(NAME);
    let text = fs::read(&own).map_err(fail)?;
    let next = |flow| match flow {
        Flow::Continue => BackupNext::Continue,
        Flow::Cancel => BackupNext::Stop,
    };
    let copied = engine.db.stream_backup(&mut |part| match part {
        BackupPart::Data(bytes) => next(sink.write(bytes)),
        BackupPart::Run { id, bytes } => match sink.piece(id, bytes) {
            Piece::Send => BackupNext::Continue,
            Piece::Skip => BackupNext::Skip,
            Piece::Cancel => BackupNext::Stop,
        },
        BackupPart::Begin {
            data_bytes,
            key_file,
        } => {
            let keys = key_file.map_or(0, |keys| keys.len() as u64);
            sink.total(data_bytes + keys + text.len() as u64);
            let flow = match key_file {
                Some(keys) => sink.file(KEY_FILE, keys),
                None => Flow::Continue,
            };
            next(match flow {
                Flow::Continue => sink.begin(DATA, data_bytes),
                Flow::Cancel => Flow::Cancel,
            })
        }
    });
    let complete = copied.map_err(named)?
        && sink.finish() == Flow::Continue
        && sink.file(identity::FILE, &text) == Flow::Continue;
    Ok(ended(complete))
}

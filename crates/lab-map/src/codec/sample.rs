//! Bytes that an engine wrote, for codecs to be tried on.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use lab_report::error::{Error, Result};

/// Bytes that are tried at most: enough for steady speeds, and small beside any limit of memory.
const BYTES: usize = 4 << 20;
/// Pieces in which they are taken, from all over the files.
const PIECE: usize = 128 << 10;
/// Directories below directories that are looked into.
const DEPTH: u32 = 3;

/// Pieces of the data files below `directory`, a little of each part of them.
pub(super) fn of(directory: &Path) -> Result<Vec<u8>> {
    let mut files = Vec::new();
    list(directory, DEPTH, &mut files)?;
    files.sort_by_key(|(path, length)| (std::cmp::Reverse(*length), path.clone()));
    let pieces: Vec<(&PathBuf, u64)> = files
        .iter()
        .flat_map(|(path, length)| {
            let whole = length / PIECE as u64;
            (0..whole).map(move |piece| (path, piece * PIECE as u64))
        })
        .collect();
    let mut bytes = Vec::new();
    let step = (pieces.len() * PIECE).div_ceil(BYTES).max(1);
    // Where one piece is zeros, the next may not be.
    for start in 0..step {
        for (path, offset) in pieces.iter().skip(start).step_by(step) {
            if BYTES <= bytes.len() {
                return Ok(bytes);
            }
            take(path, *offset, &mut bytes)?;
        }
    }
    if bytes.is_empty() {
        return Err(Error::new(format!(
            "{}: no file there has 128 KiB of data: nothing to compress",
            directory.display()
        )));
    }
    Ok(bytes)
}

/// Append a piece of a file, unless much of it is zeros: space that was never written.
fn take(path: &Path, offset: u64, bytes: &mut Vec<u8>) -> Result<()> {
    let fail = |e: &std::io::Error| Error::io("read", path, e);
    let file = match File::open(path) {
        // Or have been merged away.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| fail(&e))?,
    };
    let mut piece = vec![0; PIECE];
    match file.read_exact_at(&mut piece, offset) {
        // A file of a store that works may have become shorter.
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
        other => other.map_err(|e| fail(&e))?,
    }
    let empty = piece.chunks(4096).filter(|c| c.iter().all(|b| *b == 0));
    if empty.count() * 4096 * 4 < PIECE {
        bytes.append(&mut piece);
    }
    Ok(())
}

/// The files of data: no logs, no locks.
fn list(directory: &Path, depth: u32, files: &mut Vec<(PathBuf, u64)>) -> Result<()> {
    let fail = |e: &std::io::Error| Error::io("read", directory, e);
    for entry in fs::read_dir(directory).map_err(|e| fail(&e))? {
        let path = entry.map_err(|e| fail(&e))?.path();
        let Ok(data) = fs::symlink_metadata(&path) else {
            continue;
        };
        if data.is_dir() && 0 < depth {
            list(&path, depth - 1, files)?;
        } else if data.is_file() && !is_log(&path) {
            files.push((path, data.len()));
        }
    }
    Ok(())
}

fn is_log(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let logs = [
        "WiredTigerLog",
        "WiredTigerPreplog",
        "ib_logfile",
        "aria_log",
    ];
    matches!(ending, "log" | "wal") || logs.iter().any(|log| name.starts_with(log))
}

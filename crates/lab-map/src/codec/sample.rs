//! Samples of bytes that an engine wrote, as input for codecs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use lab_report::error::{Error, Result};

/// Maximum size of a sample, in bytes: enough for steady speeds, and small compared with any memory
/// limit.
const BYTES: usize = 4 << 20;
/// Size of one piece of a sample, in bytes. The pieces are spread over the files.
const PIECE: usize = 128 << 10;
/// Maximum depth of nested directories.
const DEPTH: u32 = 3;

/// A sample of the data files below `directory`: pieces spread evenly over them.
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
    // If one piece is zeros, the next may contain data.
    for start in 0..step {
        for (path, offset) in pieces.iter().skip(start).step_by(step) {
            if BYTES <= bytes.len() {
                return Ok(bytes);
            }
            take(path, *offset, &mut bytes)?;
        }
    }
    if bytes.is_empty() {
        return Err(Error::environment(format!(
            "{}: no file there has 128 KiB of data: nothing to compress",
            directory.display()
        )));
    }
    Ok(bytes)
}

/// Append a piece of a file, unless much of it is zeros, which means space that was never written.
fn take(path: &Path, offset: u64, bytes: &mut Vec<u8>) -> Result<()> {
    let fail = |e: &std::io::Error| Error::io("read", path, e);
    let file = match File::open(path) {
        // A merge may have removed the file.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| fail(&e))?,
    };
    let mut piece = vec![0; PIECE];
    match file.read_exact_at(&mut piece, offset) {
        // A file of a running store may have been truncated.
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
        other => other.map_err(|e| fail(&e))?,
    }
    let empty = piece.chunks(4096).filter(|c| c.iter().all(|b| *b == 0));
    if empty.count() * 4096 * 4 < PIECE {
        bytes.append(&mut piece);
    }
    Ok(())
}

/// The data files, without logs and locks.
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

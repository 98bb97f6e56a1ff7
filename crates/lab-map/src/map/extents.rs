//! Reads the extents of files on their device, as the file system reports them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use lab_report::record::map::{FileExtents, Piece};

use super::name;

/// Maximum number of extents stored per file.
const PIECES_MAX: usize = 256;
/// Maximum number of extents counted.
const COUNTED_MAX: usize = 100_000;
/// Maximum number of files of a RocksDB store that are examined, the largest first.
const FILES_MAX: usize = 32;

/// The extents of a file; `None` if the file system does not report them.
pub(super) fn of(path: &Path) -> Option<FileExtents> {
    let file = File::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let found = vfs::extents_of(&file, COUNTED_MAX).ok()?;
    let mut pieces: Vec<Piece> = Vec::new();
    for extent in &found {
        let next = Piece {
            logical: extent.logical,
            physical: extent.physical,
            length: extent.length,
        };
        match pieces.last_mut() {
            // The file system may report one contiguous range as several extents.
            Some(last)
                if last.logical + last.length == next.logical
                    && last.physical + last.length == next.physical =>
            {
                last.length += next.length;
            }
            _ => pieces.push(next),
        }
    }
    let count = pieces.len() as u64;
    pieces.truncate(PIECES_MAX);
    Some(FileExtents {
        file: name(path),
        bytes,
        pieces,
        count,
    })
}

/// The data files in a RocksDB directory.
pub(super) fn tables(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "sst"))
        .collect();
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
    files.sort_by_key(|path| (std::cmp::Reverse(size(path)), path.clone()));
    files.truncate(FILES_MAX);
    files
}

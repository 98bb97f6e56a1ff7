//! Pieces of a backup: each file is one, identified by its content.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use kv::{BackupSink, Compaction, Flow, Piece, PieceId};
use stdx::hash::hash64_seeded;

use super::plant::Plant;

/// The most bytes passed on at once.
const PART: usize = 4_096;

pub(super) fn identify(bytes: &[u8]) -> PieceId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&hash64_seeded(bytes, 1).to_le_bytes());
    id[8..].copy_from_slice(&hash64_seeded(bytes, 2).to_le_bytes());
    id
}

/// Pass the files in `directory` on.
pub(super) fn pass(
    directory: &Path,
    plant: Option<Plant>,
    sink: &mut dyn BackupSink,
) -> Compaction {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let read = |name: &String| fs::read(directory.join(name)).unwrap();
    sink.total(names.iter().map(|name| read(name).len() as u64).sum());
    for name in &names {
        if pass_file(name, &read(name), plant, sink) == Flow::Cancel {
            return Compaction::Cancelled;
        }
    }
    Compaction::Complete
}

fn pass_file(name: &str, bytes: &[u8], plant: Option<Plant>, sink: &mut dyn BackupSink) -> Flow {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let length = bytes.len() as u64;
    if sink.begin(name, length) == Flow::Cancel {
        return Flow::Cancel;
    }
    let id = match plant {
        Some(Plant::PieceByLength) => identify(&length.to_le_bytes()),
        Some(Plant::PieceAlwaysNew) => {
            identify(&CALLS.fetch_add(1, Ordering::Relaxed).to_le_bytes())
        }
        _ => identify(bytes),
    };
    // The last bytes belong to no piece.
    let (piece, rest) = bytes.split_at(bytes.len() - bytes.len().min(3));
    let parts = match sink.piece(id, piece.len() as u64) {
        Piece::Cancel => return Flow::Cancel,
        Piece::Skip if plant == Some(Plant::PieceEndsFile) => Vec::new(),
        Piece::Skip => rest.chunks(PART).collect(),
        Piece::Send => [piece.chunks(PART).collect(), vec![rest]].concat(),
    };
    for part in parts {
        if sink.write(part) == Flow::Cancel {
            return Flow::Cancel;
        }
    }
    sink.finish()
}

//! Opening a store whose files are damaged, and reading all of it: an answer or an error, never a
//! panic. The input: bytes for the data file, or for the log, in the place of those that differ.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::fuzzing::Target;
use betree::{Batch, Codec, Db, Direction, Durability, Error, Options, TreeOptions};
use sim::{SimOptions, SimVfs};
use stdx::tape::Tape;

pub(crate) const TARGET: Target = Target {
    name: "open",
    decode: run,
    repair: <[u8]>::to_vec,
    seeds,
};

const DIRECTORY: &str = "/store";

fn options() -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(4 << 10)
        .with_page(256)
        .with_codec(Codec::None)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_threads(0)
        .with_seed(1)
}

fn seeds() -> Vec<Vec<u8>> {
    (1..9)
        .map(|seed| Tape::from_seed(seed, 60).bytes().to_vec())
        .collect()
}

/// A store with a checkpoint, runs, and a log behind it.
fn store() -> SimVfs {
    let disk = SimVfs::new(SimOptions::default());
    let db = open(&disk).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    for round in 0..3_u32 {
        let mut batch = Batch::new();
        for number in 0..30_u32 {
            batch.put(tree, &(number * 7 + round).to_be_bytes(), &[9; 60]);
        }
        db.write(&batch, Durability::Sync).unwrap();
        if round < 2 {
            assert!(db.settle(Duration::from_secs(60)).unwrap());
        }
    }
    db.close().unwrap();
    disk
}

fn open(disk: &SimVfs) -> Result<Db, Error> {
    Db::open_with(Arc::new(disk.clone()), Path::new(DIRECTORY), options())
}

fn run(bytes: &[u8]) -> u64 {
    let mut tape = Tape::new(bytes.to_vec());
    let disk = store();
    let files: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|(_, length)| 0 < *length)
        .collect();
    for _ in 0..=tape.below(3) {
        let (path, length) = &files[tape.index(files.len())];
        // Most of a file is free space, so half of the damage goes to the first blocks.
        let most = if tape.chance(128) { 40 << 10 } else { 1 << 20 };
        let at = u64::from(tape.below(most)) % length;
        match tape.below(6) {
            0 => disk.truncate(path, at),
            1 => {
                let zeros = vec![0; 512];
                disk.poke(path, at / 512 * 512, &zeros);
            }
            2 => {
                let old = disk.peek(path).unwrap();
                let from = tape.index(old.len());
                let end = (from + 4096).min(old.len());
                disk.poke(path, at / 4096 * 4096, &old[from..end]);
            }
            _ => {
                let garbage: Vec<u8> = (0..=tape.below(12)).map(|_| tape.byte()).collect();
                disk.poke(path, at, &garbage);
            }
        }
    }
    let outcome = read_all(&disk).map_err(|error| {
        let text: String = error
            .to_string()
            .chars()
            .filter(|c| c.is_alphabetic())
            .collect();
        (error.kind(), text.chars().take(50).collect::<String>())
    });
    let mut hasher = DefaultHasher::new();
    outcome.hash(&mut hasher);
    hasher.finish()
}

fn read_all(disk: &SimVfs) -> Result<usize, Error> {
    let db = open(disk)?;
    let mut found = 0;
    for name in db.trees()? {
        let tree = db.open_tree(&name)?;
        let snapshot = db.begin_read()?;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut cursor = snapshot.cursor(tree, all.0, all.1, Direction::Forward)?;
        while cursor.advance()? {
            assert_eq!(cursor.value(), [9; 60], "wrong bytes are never answered");
            found += 1;
        }
    }
    db.verify()?;
    db.settle(Duration::from_secs(60))?;
    db.close()?;
    Ok(found)
}

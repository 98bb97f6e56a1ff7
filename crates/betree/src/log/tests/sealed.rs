//! Encrypted logs: what was written comes back, and nothing else.

use std::path::PathBuf;
use std::sync::Arc;

use stdx::rng::Rng;

use super::disk::Disk;
use super::{DIRECTORY, Records, STORE, check, compressed, fill, payload, small};
use crate::error::{ErrorKind, Result};
use crate::keys::Keys;
use crate::log::{Log, LogOptions};
use crate::types::Seq;

const SALT: u64 = 5;

fn keys() -> Arc<Keys> {
    Arc::new(Keys::of_tests(STORE))
}

fn with(keys: &Arc<Keys>, options: LogOptions) -> LogOptions {
    LogOptions {
        keys: Some(Arc::clone(keys)),
        ..options
    }
}

fn create(disk: &Disk, options: LogOptions) -> Log {
    let directory = std::path::Path::new(DIRECTORY);
    Log::create(Arc::new(disk.clone()), directory, STORE, Seq(1), options).unwrap()
}

fn recover(disk: &Disk, options: LogOptions) -> Result<(Log, Records)> {
    let mut records = Vec::new();
    let mut take = |seq: Seq, bytes: &[u8]| {
        records.push((seq.0, bytes.to_vec()));
        Ok(())
    };
    let directory = std::path::Path::new(DIRECTORY);
    let vfs = Arc::new(disk.clone());
    let log = Log::recover(vfs, directory, STORE, Seq(1), options, &mut take)?;
    Ok((log, records))
}

/// A log of `last` records, and its files.
fn store(keys: &Arc<Keys>, options: LogOptions, last: u64) -> (Disk, Vec<PathBuf>) {
    let disk = Disk::default();
    let log = create(&disk, with(keys, options));
    fill(&log, last, SALT, true);
    drop(log);
    let files = disk.files();
    (disk, files)
}

#[test]
fn encrypted_records_of_any_length_come_back_many_times() {
    let keys = keys();
    let direct = LogOptions {
        direct: true,
        ..small()
    };
    for options in [small(), compressed(), direct] {
        let disk = Disk::default();
        drop(create(&disk, with(&keys, options.clone())));
        for round in 1..12 {
            let (log, records) = recover(&disk, with(&keys, options.clone())).unwrap();
            assert_eq!(records.len() as u64, (round - 1) * 40);
            check(&records, 1, SALT);
            fill(&log, round * 40, SALT, round % 2 == 0);
        }
    }
}

#[test]
fn every_length_around_a_piece_comes_back() {
    let keys = keys();
    let disk = Disk::default();
    let log = create(&disk, with(&keys, small()));
    let piece = small().buffer;
    // Heads of 64, 16 and 16 bytes are around the ends of the first pieces.
    let lengths: Vec<usize> = (1..4)
        .flat_map(|pieces| (pieces * piece).saturating_sub(120)..pieces * piece + 40)
        .step_by(4)
        .collect();
    for (index, length) in lengths.iter().enumerate() {
        let bytes = vec![u8::try_from(index % 251).unwrap(); *length];
        log.append(Seq(index as u64 + 1), &[&bytes]).unwrap();
    }
    log.sync().unwrap();
    let (_, records) = recover(&disk, with(&keys, small())).unwrap();
    assert_eq!(records.len(), lengths.len());
    for ((seq, bytes), length) in records.iter().zip(&lengths) {
        let byte = u8::try_from((seq - 1) % 251).unwrap();
        assert!(bytes.len() == *length && bytes.iter().all(|b| *b == byte));
    }
}

#[test]
fn no_record_is_readable_in_any_file() {
    let keys = keys();
    let marker = payload(2, SALT);
    assert!(100 < marker.len(), "long enough to be no accident");
    let marker = &marker[..100];
    let holds = |disk: &Disk, files: &[PathBuf]| {
        let found = |path: &PathBuf| disk.read(path).windows(100).any(|at| at == marker);
        files.iter().any(found)
    };
    let (disk, files) = store(&keys, small(), 60);
    assert!(!holds(&disk, &files));
    let disk = Disk::default();
    fill(&create(&disk, small()), 60, SALT, true);
    assert!(holds(&disk, &disk.files()), "the check can fail");
}

#[test]
fn flipped_bits_of_an_encrypted_log_are_refused() {
    let keys = keys();
    let (disk, files) = store(&keys, small(), 60);
    let mut rng = Rng::new(5);
    let mut refused = 0;
    for path in &files {
        let good = disk.read(path);
        for offset in (0..good.len()).step_by(53) {
            let mut bytes = good.clone();
            bytes[offset] ^= 1 << rng.below(8);
            let copy = disk.copy();
            copy.put(path, bytes);
            match recover(&copy, with(&keys, small())) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    refused += 1;
                }
                Ok((log, records)) => {
                    check(&records, 1, SALT);
                    let got = log.appended().0;
                    assert!(59 <= got, "{path:?} at {offset}: {got} and no error");
                }
            }
        }
    }
    assert!(100 < refused, "{refused} refused");
}

#[test]
fn a_log_is_encrypted_as_its_store_is_or_refused() {
    let keys = keys();
    let (sealed, _) = store(&keys, small(), 30);
    let plain = Disk::default();
    fill(&create(&plain, small()), 30, SALT, true);
    let others = Arc::new(Keys::of_tests(STORE));
    for (disk, options) in [
        (&sealed, small()),
        (&plain, with(&keys, small())),
        (&sealed, with(&others, small())),
    ] {
        let before: Vec<_> = disk.files().iter().map(|path| disk.read(path)).collect();
        let error = recover(disk, options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let after: Vec<_> = disk.files().iter().map(|path| disk.read(path)).collect();
        assert!(before == after, "nothing is written");
    }
}

#[test]
fn a_recycled_segment_gets_another_salt() {
    let keys = keys();
    let disk = Disk::default();
    let log = create(&disk, with(&keys, small()));
    let salts = |disk: &Disk| -> Vec<Vec<u8>> {
        let files = disk.files().into_iter();
        files
            .map(|path| disk.read(&path)[48..64].to_vec())
            .collect()
    };
    let mut seen = std::collections::BTreeSet::new();
    for round in 1..12 {
        fill(&log, round * 100, SALT, true);
        log.release_before(Seq(round * 100 - 1)).unwrap();
        seen.extend(salts(&disk));
    }
    // More salts than files: the same files are used again.
    assert!(disk.files().len() * 2 < seen.len(), "{}", seen.len());
}

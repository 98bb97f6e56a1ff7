//! Damaged stored bytes: refused if they were durable, never accepted as valid.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stdx::rng::Rng;

use crate::ErrorKind;
use crate::types::Seq;

use super::disk::Disk;
use super::{DIRECTORY, check, create, fill, recover, small};
use crate::log::Log;

const SALT: u64 = 11;

/// Three segments of records, each synced on its own, and their paths.
fn store(records: u64) -> (Disk, Vec<PathBuf>) {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    fill(&log, records, SALT, true);
    drop(log);
    let files = disk.files();
    (disk, files)
}

/// Recover from a damaged store. The result must be `Corrupt` with the file, or all records except
/// at most the last one, which nothing written later proves durable.
fn judge(disk: &Disk, last: u64, what: &str) -> bool {
    match recover(disk, 1) {
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            assert!(error.path().is_some(), "{what}: {error}");
            let says = error.message();
            assert!(
                says.contains("offset") || says.contains("missing") || says.contains("store"),
                "{what}: {error}"
            );
            true
        }
        Ok((log, records)) => {
            check(&records, 1, SALT);
            let got = log.appended().0;
            assert!(last - 1 <= got, "{what}: {got} of {last} and no error");
            false
        }
    }
}

fn logs(files: &[PathBuf]) -> Vec<PathBuf> {
    let log = |path: &&PathBuf| path.to_str().unwrap().contains("log-");
    files.iter().filter(log).cloned().collect()
}

#[test]
fn flipped_bits_and_zeroed_sectors() {
    let (disk, files) = store(60);
    let mut rng = Rng::new(5);
    let mut refused = 0;
    for path in &files {
        let good = disk.read(path);
        let offsets = (0..good.len()).step_by(97);
        for offset in offsets {
            let mut bytes = good.clone();
            bytes[offset] ^= 1 << rng.below(8);
            let copy = disk.copy();
            copy.put(path, bytes);
            refused += usize::from(judge(&copy, 60, &format!("{path:?} bit at {offset}")));
        }
        for offset in (0..good.len()).step_by(512) {
            let mut bytes = good.clone();
            bytes[offset..offset + 512].fill(0);
            let copy = disk.copy();
            copy.put(path, bytes);
            refused += usize::from(judge(&copy, 60, &format!("{path:?} sector {offset}")));
        }
    }
    assert!(100 < refused, "{refused} refused");
    println!("{refused} damaged stores refused");
}

#[test]
fn the_error_names_file_and_offset() {
    let (disk, files) = store(60);
    let mut bytes = disk.read(&files[0]);
    bytes[4096 + 70] ^= 1;
    disk.put(&files[0], bytes);
    let error = recover(&disk, 1).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("offset 4160"), "{text}");
    assert!(text.contains("commit 1 "), "{text}");
    assert_eq!(error.path(), Some(files[0].as_path()));
}

#[test]
fn every_length() {
    let (disk, files) = store(40);
    for path in &files {
        let good = disk.read(path);
        for length in (0..good.len()).step_by(61) {
            let copy = disk.copy();
            copy.put(path, good[..length].to_vec());
            // A last segment truncated within its header looks like one that was being created.
            if 64 <= length || path != logs(&files).last().unwrap() {
                judge(&copy, 40, &format!("{path:?} cut to {length}"));
            }
        }
    }
}

#[test]
fn garbage_behind_the_header() {
    let disk = Disk::default();
    drop(create(&disk).unwrap());
    let path = disk.files()[0].clone();
    for seed in 0..200 {
        let mut bytes = disk.read(&path);
        Rng::new(seed).fill(&mut bytes[4096..]);
        let copy = disk.copy();
        copy.put(&path, bytes);
        let (log, records) = recover(&copy, 1).unwrap();
        assert!(records.is_empty());
        assert_eq!(log.appended(), Seq(0));
    }
}

#[test]
fn a_missing_segment_or_all_of_them() {
    let (disk, files) = store(400);
    let logs = logs(&files);
    assert!(5 < logs.len());
    for path in &logs[..logs.len() - 2] {
        let copy = disk.copy();
        copy.delete(path);
        let error = recover(&copy, 1).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains("offset"), "{error}");
    }
    for path in &files {
        disk.delete(path);
    }
    let error = recover(&disk, 1).err().unwrap();
    assert!(error.message().contains("the log is missing"), "{error}");
}

#[test]
fn the_log_of_another_store() {
    let (disk, _) = store(3);
    let outcome = Log::recover(
        Arc::new(disk),
        Path::new(DIRECTORY),
        77,
        Seq(1),
        small(),
        &mut |_, _| panic!("nothing of another store is replayed"),
    );
    let error = outcome.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("belongs to store"), "{error}");
}

#[test]
fn old_records_in_a_recycled_segment_stay_dead() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    // Fill, release and fill again, so that the active segment's file is full of old groups.
    for round in 1..12 {
        fill(&log, round * 100, SALT, true);
        log.release_before(Seq(round * 100 - 1)).unwrap();
    }
    assert!(disk.files().len() < 12);
    for step in 0..300 {
        fill(&log, 1100 + step, SALT, true);
        let (again, records) = recover(&disk.copy(), 1100).unwrap();
        check(&records, 1100, SALT);
        assert_eq!(again.appended(), log.appended());
    }
}

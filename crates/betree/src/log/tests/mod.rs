//! Tests of the log as a whole, on a disk in memory that crashes and fails.

mod crash;
mod damage;
mod disk;
mod fault;
mod group;
mod order;
mod place;
mod sealed;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stdx::rng::{Rng, mix64};

use crate::error::Result;
use crate::types::Seq;

use super::{Log, LogOptions, reserve};
use disk::Disk;

const STORE: u128 = 0x1234_5678_9ABC_DEF0_0FED_CBA9_8765_4321;
const DIRECTORY: &str = "/store";

fn small() -> LogOptions {
    LogOptions {
        segment: 64 << 10,
        first: 64 << 10,
        buffer: 8 << 10,
        buffers: 3,
        compress: false,
        group_delay: Duration::ZERO,
        direct: false,
        keys: None,
    }
}

/// The options for the first opening of a log; later openings do not compress.
fn compressed() -> LogOptions {
    LogOptions {
        compress: true,
        ..small()
    }
}

/// The payload of record `seq`: length and content follow from the number and a salt.
fn payload(seq: u64, salt: u64) -> Vec<u8> {
    let mut rng = Rng::new(mix64(seq ^ salt.rotate_left(32)));
    let length = match rng.below(40) {
        0 => rng.index(100_000),
        1..5 => rng.index(12_000),
        _ => rng.index(600),
    };
    let mut bytes = vec![0; length];
    // Some payloads can be compressed, some cannot.
    let filled = if rng.chance(0.5) { length } else { length / 4 };
    rng.fill(&mut bytes[..filled]);
    bytes
}

fn create(disk: &Disk) -> Result<Log> {
    Log::create(
        Arc::new(disk.clone()),
        Path::new(DIRECTORY),
        STORE,
        Seq(1),
        compressed(),
    )
}

type Records = Vec<(u64, Vec<u8>)>;

/// Recover a log; returns each replayed record with its number.
fn recover(disk: &Disk, from: u64) -> Result<(Log, Records)> {
    let mut records = Vec::new();
    let log = Log::recover(
        Arc::new(disk.clone()),
        Path::new(DIRECTORY),
        STORE,
        Seq(from),
        small(),
        &mut |seq, bytes| {
            records.push((seq.0, bytes.to_vec()));
            Ok(())
        },
    )?;
    Ok((log, records))
}

fn append(log: &Log, bytes: &[u8]) -> Result<u64> {
    let seq = Seq(log.appended().0 + 1);
    // In three parts, which the append must join.
    let (a, b) = bytes.split_at(bytes.len() / 3);
    log.append(seq, &[a, &[], b]).map(|position| position.0.0)
}

/// Append the records up to `last` with `salt`; with `each`, every record is a group of its own.
fn fill(log: &Log, last: u64, salt: u64, each: bool) {
    while log.appended().0 < last {
        let seq = append(log, &payload(log.appended().0 + 1, salt)).unwrap();
        if each || seq == last {
            log.sync().unwrap();
        }
    }
}

/// Check that the records are `from, from + 1, ...` with the right content.
fn check(records: &[(u64, Vec<u8>)], from: u64, salt: u64) {
    for (expected, (seq, bytes)) in (from..).zip(records) {
        assert_eq!(*seq, expected, "no holes");
        assert!(*bytes == payload(*seq, salt), "content of {seq}");
    }
}

#[test]
fn what_was_synced_is_replayed_from_where_it_is_asked_for() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    fill(&log, 500, 7, false);
    assert_eq!(log.durable(), Seq(500));
    drop(log);
    for from in [1, 2, 77, 250, 500, 501] {
        let (log, records) = recover(&disk.copy(), from).unwrap();
        assert_eq!(records.len() as u64, 501 - from);
        check(&records, from, 7);
        assert_eq!((log.durable(), log.appended()), (Seq(500), Seq(500)));
    }
}

#[test]
fn a_log_goes_on_after_recovery_many_times() {
    let disk = Disk::default();
    drop(create(&disk).unwrap());
    for round in 1..20 {
        let (log, records) = recover(&disk, 1).unwrap();
        assert_eq!(records.len(), (round - 1) * 30);
        check(&records, 1, 3);
        fill(&log, round as u64 * 30, 3, round % 2 == 0);
    }
}

#[test]
fn records_larger_than_buffer_and_segment() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    let sizes = [0, 1, 8 << 10, 63 << 10, 64 << 10, 1 << 20, 3, 5 << 20, 9000];
    let bytes = |i: usize| vec![u8::try_from(i).unwrap(); sizes[i % sizes.len()]];
    for i in 0..27 {
        append(&log, &bytes(i)).unwrap();
    }
    log.sync().unwrap();
    let (_, records) = recover(&disk, 1).unwrap();
    assert_eq!(records.len(), 27);
    for (i, (_, got)) in records.iter().enumerate() {
        assert!(*got == bytes(i), "record {i}");
    }
    let error = log.append(Seq(28), &[&vec![0; super::format::MAX_PAYLOAD + 1]]);
    assert_eq!(error.unwrap_err().kind(), crate::ErrorKind::Invalid);
}

#[test]
fn compressed_groups_close_up_and_read_back() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    let bytes = |seq: u64| vec![u8::try_from(seq % 251).unwrap(); 3000];
    for seq in 1..=400 {
        append(&log, &bytes(seq)).unwrap();
        match seq % 7 {
            0 => log.sync().unwrap(),
            3 => log.write_ready().unwrap(),
            _ => {}
        }
    }
    log.sync().unwrap();
    let stats = log.stats();
    // Groups take whole blocks, and there are many small ones.
    assert!(stats.bytes_written < stats.bytes_raw / 3 * 2, "{stats:?}");
    let segments = stats.bytes_raw / (64 << 10);
    assert!(stats.segments < segments * 4 / 5, "{stats:?}");
    let (_, records) = recover(&disk, 1).unwrap();
    assert_eq!(records.len(), 400);
    for (seq, got) in records {
        assert!(got == bytes(seq), "record {seq}");
    }
}

#[test]
fn released_segments_are_used_again_and_the_rest_is_kept() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    let mut most = 0;
    for round in 1..60 {
        fill(&log, round * 40, 5, false);
        let from = (round * 40).saturating_sub(25);
        log.release_before(Seq(from)).unwrap();
        most = most.max(disk.files().len());
        let (_, records) = recover(&disk.copy(), from).unwrap();
        assert_eq!(records.len() as u64, round * 40 + 1 - from);
        check(&records, from, 5);
    }
    assert!(most <= 14, "{most} files");
    let spares = |disk: &Disk| {
        let files = disk.files();
        let spare = |path: &&std::path::PathBuf| path.to_str().unwrap().contains("spare");
        files.iter().filter(spare).count()
    };
    log.release_before(Seq::MAX).unwrap();
    let reserve = crate::log::reserve::FILES;
    assert!((1..=reserve + crate::log::upkeep::SPARES).contains(&spares(&disk)));
    log.shrink().unwrap();
    assert_eq!(spares(&disk), reserve, "the reserve for opening stays");
    assert!(log.bytes_held() <= 2 * (64 << 10));
}

#[test]
fn a_creation_that_did_not_finish_is_cleared_and_a_log_with_records_is_not() {
    let disk = Disk::default();
    drop(create(&disk).unwrap());
    let log = create(&disk).unwrap();
    fill(&log, 1, 1, true);
    let error = create(&disk).err().unwrap();
    assert_eq!(error.kind(), crate::ErrorKind::Exists);
}

/// A log on a full disk that has written `filled` bytes, with what a checkpoint keeps in reserve.
fn on_a_full_disk() -> (Disk, Log) {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    log.keep_reserve();
    disk.space(Some(0));
    (disk, log)
}

/// Append records of `bytes` until there is no space for another.
fn append_until_full(log: &Log, bytes: usize) {
    for _ in 0..1000 {
        match append(log, &vec![1; bytes]) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), crate::ErrorKind::Full);
                return;
            }
        }
    }
    panic!("the disk is not full");
}

#[test]
fn a_log_on_a_full_disk_continues_with_what_it_releases() {
    let (_, log) = on_a_full_disk();
    let files = || log.state.lock().reserve.len();
    let mut reserves = Vec::new();
    for _ in 0..20 {
        append_until_full(&log, 3000);
        log.sync().unwrap();
        log.release_before(Seq(log.appended().0 + 1)).unwrap();
        reserves.push(files());
        let continues = append(&log, &[1; 3000]).is_ok();
        assert!(
            continues || log.draw_reserve(3000, false).unwrap(),
            "any commit: {reserves:?}"
        );
    }
    assert!(reserve::FILES - 2 <= files(), "{reserves:?}");
}

#[test]
fn a_file_drawn_from_the_reserve_comes_back_when_a_larger_record_needs_more() {
    let (_, log) = on_a_full_disk();
    append_until_full(&log, 3000);
    let files = log.state.lock().reserve.len();
    assert!(log.draw_reserve(3000, true).unwrap());
    assert!(log.draw_reserve(3000, true).unwrap(), "it is still there");
    assert_eq!(log.state.lock().reserve.len(), files - 1, "one is drawn");
    let error = append(&log, &[1; 80_000]).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Full);
    assert_eq!(log.state.lock().reserve.len(), files, "it came back");
    assert!(log.draw_reserve(3000, true).unwrap());
    append(&log, &[1; 3000]).unwrap();
}

#[test]
fn deletes_may_use_all_of_the_reserve_but_one_file() {
    let (_, log) = on_a_full_disk();
    for drawn in 0..reserve::FILES - 1 {
        append_until_full(&log, 3000);
        let all = drawn < 2;
        assert_eq!(log.draw_reserve(3000, false).unwrap(), all, "{drawn} drawn");
        assert!(all || log.draw_reserve(3000, true).unwrap());
    }
    append_until_full(&log, 3000);
    assert!(!log.draw_reserve(3000, true).unwrap(), "one opening");
}

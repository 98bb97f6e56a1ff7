//! Offsets of groups, and sizes of segments.

use std::path::Path;
use std::sync::Arc;

use crate::log::{Log, LogOptions};
use crate::types::Seq;

use super::disk::Disk;
use super::{DIRECTORY, STORE, append, check, fill, payload, recover, small};

const SALT: u64 = 61;

fn create(disk: &Disk, options: LogOptions) -> Log {
    let disk = Arc::new(disk.clone());
    Log::create(disk, Path::new(DIRECTORY), STORE, Seq(1), options).unwrap()
}

/// Append a record of `length` bytes and hand it to the operating system.
fn write(log: &Log, length: usize) {
    append(log, &vec![7; length]).unwrap();
    let mut state = log.state.lock();
    let target = state.appended;
    log.write_to(&mut state, target).unwrap();
}

#[test]
fn groups_share_a_block_until_it_may_be_synced() {
    let disk = Disk::default();
    let log = create(&disk, small());
    // With 64 bytes of group header and 16 of record header a group takes 400 bytes: ten fit in a
    // block.
    for _ in 0..10 {
        write(&log, 320);
    }
    assert_eq!(log.stats().bytes_written, 4096);
    assert_eq!(log.state.lock().tail, (1, 4096 + 4000));
    // The eleventh is in two blocks.
    write(&log, 320);
    assert_eq!(log.stats().bytes_written, 2 * 4096);
    log.sync().unwrap();
    let before = disk.read(&disk.files()[0]);
    write(&log, 320);
    assert_eq!(log.state.lock().tail, (1, 3 * 4096 + 400));
    let after = disk.read(&disk.files()[0]);
    assert!(before[..3 * 4096] == after[..3 * 4096], "I2");
    let (_, records) = recover(&disk.copy(), 1).unwrap();
    assert_eq!(records.len(), 12);
}

#[test]
fn a_group_behind_others_may_be_as_long_as_a_buffer() {
    let disk = Disk::default();
    let log = create(&disk, small());
    // 8 KiB of buffer without both headers: written behind a short group it ends in a third block.
    let long = (8 << 10) - 64 - 16;
    for _ in 0..4 {
        write(&log, 1);
        write(&log, long);
    }
    let (_, records) = recover(&disk.copy(), 1).unwrap();
    let lengths: Vec<usize> = records.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lengths, [1, long].repeat(4));
}

#[test]
fn around_the_page_cache_whole_blocks_are_written() {
    let disk = Disk::default();
    let direct = LogOptions {
        direct: true,
        ..small()
    };
    let log = create(&disk, direct);
    for count in 1..=5 {
        write(&log, 320);
        assert_eq!(log.stats().bytes_written, count * 4096);
    }
    let (_, records) = recover(&disk.copy(), 1).unwrap();
    assert_eq!(records.len(), 5);
}

#[test]
fn what_is_written_during_a_sync_begins_a_block_of_its_own() {
    let disk = Disk::default();
    let log = Arc::new(create(&disk, small()));
    write(&log, 100);
    let other = Arc::clone(&log);
    disk.during_sync(Arc::new(move || write(&other, 100)));
    log.sync().unwrap();
    assert_eq!((log.durable(), log.appended()), (Seq(1), Seq(2)));
    assert_eq!(log.state.lock().tail, (1, 2 * 4096 + 180));
    write(&log, 100);
    assert_eq!(log.state.lock().tail, (1, 2 * 4096 + 192 + 180));
    let (_, records) = recover(&disk.copy(), 1).unwrap();
    assert_eq!(records.len(), 3);
}

#[test]
fn segments_grow_while_they_are_full_soon_and_shrink_on_request() {
    let disk = Disk::default();
    let options = LogOptions {
        segment: 256 << 10,
        first: 16 << 10,
        ..small()
    };
    let log = create(&disk, options);
    let size = |log: &Log| log.state.lock().active.segment.size;
    let mut sizes = vec![size(&log)];
    while log.state.lock().active.segment.number < 6 {
        append(&log, &[1; 600]).unwrap();
        if sizes.last() != Some(&size(&log)) {
            sizes.push(size(&log));
        }
    }
    // With the clock of this disk all segments fill up at once.
    assert_eq!(sizes, [16 << 10, 64 << 10, 256 << 10]);
    log.sync().unwrap();
    let last = log.appended();
    log.prepare_ahead();
    log.shrink().unwrap();
    log.release_before(Seq(last.0 + 1)).unwrap();
    assert_eq!(size(&log), 16 << 10);
    // The first two are small enough to be reused.
    let lengths: Vec<usize> = disk.files().iter().map(|f| disk.read(f).len()).collect();
    assert_eq!(lengths, [16 << 10; 3], "{:?}", disk.files());

    append(&log, b"after").unwrap();
    log.sync().unwrap();
    // While a record is in memory no new segment is started, and nothing is lost.
    append(&log, b"more").unwrap();
    log.shrink().unwrap();
    log.sync().unwrap();
    let (log, records) = recover(&disk.copy(), last.0 + 1).unwrap();
    let records: Vec<&[u8]> = records.iter().map(|(_, bytes)| &bytes[..]).collect();
    assert_eq!(records, [&b"after"[..], b"more"]);
    assert_eq!(log.appended(), Seq(last.0 + 2));
}

#[test]
fn a_shrunk_log_loses_nothing_whatever_was_in_it() {
    for each in [false, true] {
        let disk = Disk::default();
        let options = LogOptions {
            first: 16 << 10,
            ..small()
        };
        let log = create(&disk, options);
        for round in 1..30 {
            fill(&log, round * 10, SALT, each);
            append(&log, &payload(round * 10 + 1, SALT)).unwrap();
            log.shrink().unwrap();
            let (_, records) = recover(&disk.copy(), 1).unwrap();
            check(&records, 1, SALT);
            assert!(
                round * 10 <= records.len() as u64,
                "what was synced is there"
            );
        }
    }
}

#[test]
fn segments_are_filled_ahead_where_commits_wait_for_short_syncs() {
    for waits in [true, false] {
        let disk = Disk::default();
        let log = create(&disk, small());
        disk.fail("log.zeros", 0, std::io::ErrorKind::Other);
        let mut outcome = Ok(());
        for _ in 0..100 {
            outcome = append(&log, &[1; 600]).and_then(|_| match waits {
                true => log.sync(),
                false => log.write_ready(),
            });
            log.prepare_ahead();
            if outcome.is_err() {
                break;
            }
        }
        assert_eq!(outcome.is_err(), waits, "{outcome:?}");
    }
}

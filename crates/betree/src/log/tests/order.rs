//! Writes that continue during a sync: in every order, with a power loss at every call.
//!
//! The disk calls back in the middle of a sync; there the same thread appends, writes and makes
//! segments, as other threads would. What is written then is not covered by that sync.

use std::io;
use std::path::Path;
use std::sync::Arc;

use stdx::rng::Rng;
use stdx::sync::Mutex;

use super::disk::Disk;
use super::{append, check, create, payload, recover};
use crate::ErrorKind;
use crate::log::Log;

const SALT: u64 = 47;

/// The last started and the last acknowledged record, shared with the callback.
#[derive(Clone, Default)]
struct Progress(Arc<Mutex<(u64, u64)>>);

impl Progress {
    fn begin(&self, seq: u64) {
        self.0.lock().0 = seq;
    }

    fn acknowledge(&self, seq: u64) {
        self.0.lock().1 = seq;
    }

    fn check(&self, last: u64, what: &str) {
        let (begun, acknowledged) = *self.0.lock();
        assert!(
            acknowledged <= last,
            "{what}: {acknowledged} is lost, {last}"
        );
        assert!(last <= begun, "{what}: {last} is invented, {begun}");
    }
}

fn push(log: &Log, progress: &Progress) -> Option<()> {
    let seq = log.appended().0 + 1;
    progress.begin(seq);
    append(log, &payload(seq, SALT)).ok().map(|_| ())
}

/// Append and write as much as is possible without waiting for the current sync.
fn meanwhile(log: &Log, progress: &Progress, rng: &mut Rng) -> Option<()> {
    for _ in 0..rng.below(5) {
        let few = log.state.lock().dirty.len() < 4;
        match rng.below(4) {
            0 | 1 if few => push(log, progress)?,
            2 => {
                let mut state = log.state.lock();
                let target = state.appended;
                log.write_to(&mut state, target).ok()?;
            }
            3 => log.prepare_ahead(),
            _ => log.write_ready().ok()?,
        }
    }
    Some(())
}

/// Write and sync at random until the disk fails or all steps are done; returns `None` if the disk
/// failed.
fn work(disk: &Disk, log: Log, progress: &Progress, seed: u64, steps: usize) -> Option<()> {
    let log = Arc::new(log);
    let inside = Mutex::new(Rng::new(seed ^ 0xABCD));
    let (weak, theirs) = (Arc::downgrade(&log), progress.clone());
    disk.during_every_sync(Some(Arc::new(move || {
        if let Some(log) = weak.upgrade() {
            // If the disk failed, the caller notices.
            let _ = meanwhile(&log, &theirs, &mut inside.lock());
        }
    })));
    let mut rng = Rng::new(seed);
    for _ in 0..steps {
        push(&log, progress)?;
        match rng.below(6) {
            0 => log.write_ready().ok()?,
            1 => {
                log.sync().ok()?;
                progress.acknowledge(log.durable().0);
            }
            2 => log.prepare_ahead(),
            _ => {}
        }
    }
    Some(())
}

#[test]
fn power_loss_at_every_call_while_writing_goes_on() {
    for seed in 0..4 {
        let whole = Disk::default();
        let log = create(&whole).unwrap();
        let begin = whole.calls();
        work(&whole, log, &Progress::default(), seed, 60).unwrap();
        let calls = whole.calls();
        for call in begin + 1..=calls {
            let disk = Disk::default();
            let progress = Progress::default();
            let log = create(&disk).unwrap();
            disk.die_at(call);
            work(&disk, log, &progress, seed, 60);
            for outcome in 0..3 {
                let what = format!("seed {seed} call {call} outcome {outcome}");
                let after = disk.crash(&mut Rng::new(call * 10 + outcome));
                let (log, records) = recover(&after, 1).unwrap_or_else(|e| panic!("{what}: {e}"));
                check(&records, 1, SALT);
                progress.check(log.appended().0, &what);
            }
        }
    }
}

#[test]
fn power_loss_again_and_again_while_writing_goes_on() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let mut disk = Disk::default();
        let progress = Progress::default();
        let mut log = create(&disk).unwrap();
        for round in 0..6 {
            disk.die_at(disk.calls() + 1 + rng.below(80));
            work(&disk, log, &progress, rng.below(1 << 30), 50);
            disk = disk.crash(&mut rng);
            let what = format!("seed {seed} round {round}");
            let recovered = recover(&disk, 1).unwrap_or_else(|e| panic!("{what}: {e}"));
            check(&recovered.1, 1, SALT);
            log = recovered.0;
            progress.check(log.appended().0, &what);
            progress.begin(log.appended().0);
            progress.acknowledge(log.appended().0);
        }
    }
}

#[test]
fn a_later_segment_without_the_end_of_the_one_before_is_cut_and_never_comes_back() {
    // I8.
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    while log.state.lock().dirty.len() < 4 {
        append(&log, &payload(log.appended().0 + 1, SALT)).unwrap();
        log.write_ready().unwrap();
    }
    let all = log.appended().0;
    let first = disk.files()[0].clone();
    // Some groups of the first segment did not reach the device, all the others did.
    let after = disk.crash_without(&|path: &Path, offset| {
        path == first && (12 << 10..32 << 10).contains(&offset)
    });
    let (log, records) = recover(&after, 1).unwrap();
    check(&records, 1, SALT);
    let cut = log.appended().0;
    assert!(0 < cut && cut < all / 2, "{cut} of {all}");
    let stale = |disk: &Disk| {
        let names = disk.files();
        let log = |path: &&std::path::PathBuf| path.to_str().unwrap().contains("log-");
        names.iter().filter(log).count()
    };
    assert_eq!(
        stale(&after),
        2,
        "the segments behind the gap are set aside"
    );
    for seq in cut + 1..=all + 50 {
        append(&log, &payload(seq, SALT + 1)).unwrap();
    }
    log.sync().unwrap();
    let (_, records) = recover(&after.crash_without(&|_, _| true), 1).unwrap();
    assert_eq!(records.len() as u64, all + 50);
    let (old, new) = records.split_at(usize::try_from(cut).unwrap());
    check(old, 1, SALT);
    check(new, cut + 1, SALT + 1);
}

#[test]
fn a_lost_group_that_a_later_segment_says_was_durable_is_damage() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    super::fill(&log, 20, SALT, false);
    while log.state.lock().active.segment.number < 3 {
        append(&log, &payload(log.appended().0 + 1, SALT)).unwrap();
    }
    // Groups of the third segment, written after the sync, are the evidence.
    append(&log, &payload(log.appended().0 + 1, SALT)).unwrap();
    let mut state = log.state.lock();
    let target = state.appended;
    log.write_to(&mut state, target).unwrap();
    drop(state);
    let first = disk.files()[0].clone();
    let mut bytes = disk.read(&first);
    bytes[4096..].fill(0);
    disk.put(&first, bytes);
    let error = recover(&disk, 1).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.path(), Some(first.as_path()));
    assert!(error.message().contains("up to 20 were durable"), "{error}");
}

#[test]
fn a_write_that_fails_during_a_sync_leaves_nothing_acknowledged() {
    let disk = Disk::default();
    let log = Arc::new(create(&disk).unwrap());
    super::fill(&log, 5, SALT, true);
    append(&log, b"six").unwrap();
    let (other, faulty) = (Arc::clone(&log), disk.clone());
    disk.during_sync(Arc::new(move || {
        append(&other, b"seven").unwrap();
        faulty.fail("log.write", 0, io::ErrorKind::Other);
        let mut state = other.state.lock();
        let target = state.appended;
        let error = other.write_to(&mut state, target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }));
    assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(log.durable().0, 5, "nothing more is acknowledged");
    let syncs = log.stats().syncs;
    assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(log.stats().syncs, syncs, "and nothing synced again");
}

#[test]
fn groups_written_during_a_sync_that_fails_are_not_acknowledged() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    super::fill(&log, 5, SALT, true);
    append(&log, b"six").unwrap();
    let log = Arc::new(log);
    let other = Arc::clone(&log);
    disk.during_every_sync(Some(Arc::new(move || {
        append(&other, b"seven").unwrap();
        let mut state = other.state.lock();
        let target = state.appended;
        other.write_to(&mut state, target).unwrap();
    })));
    disk.fail("log.sync", 0, io::ErrorKind::Other);
    assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Io);
    disk.during_every_sync(None);
    assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(log.durable().0, 5);
}

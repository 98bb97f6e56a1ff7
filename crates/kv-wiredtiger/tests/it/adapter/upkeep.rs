//! Compaction, backup, checks and statistics.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kv::{
    Compaction, Durability, EngineOptions, ErrorKind, Flow, IoReason, KeyRange, Progress,
    RegionKind, StatScope,
};
use stdx::ByteSize;

use super::{count, create, fill, get, open, open_with, own, put};

#[test]
fn compaction_gives_space_back_and_reports_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    let mut rng = stdx::rng::Rng::new(1);
    let mut value = [0; 512];
    for n in 0..20_000u64 {
        rng.fill(&mut value);
        put(&*db, t, &n.to_be_bytes(), &value, Durability::None);
    }
    db.checkpoint().unwrap();
    let mut txn = db.begin_write().unwrap();
    txn.delete_range(
        t,
        KeyRange::half_open(&0u64.to_be_bytes(), &18_000u64.to_be_bytes()),
    )
    .unwrap();
    txn.commit(Durability::None).unwrap();
    db.checkpoint().unwrap();
    let size = || {
        db.tree_stats(t, StatScope::Quick)
            .unwrap()
            .allocated_bytes
            .unwrap()
    };
    let before = size();
    let mut seen: Vec<Progress> = Vec::new();
    let mut watch = |progress| {
        seen.push(progress);
        Flow::Continue
    };
    let ended = db.compact(t, KeyRange::ALL, &mut watch).unwrap();
    assert_eq!(ended, Compaction::Complete);
    assert!(seen.len() >= 2 && seen[0].done_bytes == 0, "{seen:?}");
    let last = seen.last().unwrap();
    assert_eq!(last.done_bytes, last.total_bytes);
    assert!(size() < before, "{} is not below {before}", size());
    assert_eq!(count(&*db, t), 2000);
}

/// Check that compacting the tree `t` of the store, which is an LSM, is refused.
fn check_refused(directory: &Path, options: &EngineOptions) {
    let db = open_with(directory, options);
    let t = db.open_tree("t").unwrap();
    let _reader = db.begin_read().unwrap();
    let mut heard = 0;
    let mut watch = |_| {
        heard += 1;
        Flow::Continue
    };
    let error = db.compact(t, KeyRange::ALL, &mut watch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!((error.tree(), heard), (Some("t"), 0));
    assert_eq!(count(&*db, t), 100);
}

#[test]
fn compacting_an_lsm_is_refused_however_the_store_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let lsm = own(&[("type", "lsm")]);
    {
        let db = open_with(dir.path(), &lsm);
        assert!(!db.capabilities().compaction);
        let t = create(&*db, "t");
        fill(&*db, t, 100, 10);
        db.close().unwrap();
    }
    check_refused(dir.path(), &lsm);
    check_refused(dir.path(), &EngineOptions::default());
}

fn check_backup(options: &EngineOptions) {
    let dir = tempfile::tempdir().unwrap();
    let db = open_with(dir.path(), options);
    let t = create(&*db, "t");
    fill(&*db, t, 5000, 100);
    let copy = dir.path().join("copy");
    let mut reports = 0;
    let mut watch = |_| {
        reports += 1;
        Flow::Continue
    };
    assert_eq!(db.backup(&copy, &mut watch).unwrap(), Compaction::Complete);
    assert!(2 <= reports);
    put(&*db, t, b"later", b"v", Durability::None);
    let error = db.backup(&copy, &mut |_| Flow::Continue).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let copied = open_with(&copy, options);
    let t = copied.open_tree("t").unwrap();
    assert_eq!(count(&*copied, t), 5000);
    copied.verify().unwrap();
}

#[test]
fn a_backup_opens_with_everything_committed() {
    check_backup(&EngineOptions::default());
}

#[test]
fn a_backup_of_an_lsm_opens() {
    check_backup(&own(&[("type", "lsm")]));
}

#[test]
fn a_backup_without_a_log_opens() {
    check_backup(&EngineOptions {
        log: false,
        ..EngineOptions::default()
    });
}

#[test]
fn a_cancelled_backup_leaves_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    fill(&*db, t, 5000, 100);
    let copy = dir.path().join("copy");
    let mut reports = 0;
    let mut watch = |_| {
        reports += 1;
        if reports < 3 {
            Flow::Continue
        } else {
            Flow::Cancel
        }
    };
    assert_eq!(db.backup(&copy, &mut watch).unwrap(), Compaction::Cancelled);
    assert_eq!(copy.read_dir().unwrap().count(), 0);
    // The store still works afterwards.
    assert_eq!(
        db.backup(&copy, &mut |_| Flow::Continue).unwrap(),
        Compaction::Complete
    );
    db.drop_tree("t").unwrap();
}

#[test]
fn a_sound_store_verifies_with_and_without_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    fill(&*db, t, 5000, 100);
    db.verify().unwrap();
    let reader = db.begin_read().unwrap();
    assert!(reader.get(t, &1u64.to_be_bytes()).unwrap().is_some());
    db.verify().unwrap();
}

/// A closed store with one tree, most of whose file is damaged.
fn damaged() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    let mut rng = stdx::rng::Rng::new(1);
    let mut value = [0; 100];
    for n in 0..20_000u64 {
        rng.fill(&mut value);
        put(&*db, t, &n.to_be_bytes(), &value, Durability::None);
    }
    db.close().unwrap();
    let path = dir.path().join("db/t000001.wt");
    let mut bytes = fs::read(&path).unwrap();
    // The beginning of the file describes it; the end holds the root and the lists of free space.
    let end = bytes.len() * 9 / 10;
    let middle = bytes.get_mut(8192..end).unwrap();
    for byte in middle.iter_mut().step_by(97) {
        *byte ^= 0x55;
    }
    fs::write(&path, bytes).unwrap();
    dir
}

#[test]
fn a_check_finds_damage() {
    let dir = damaged();
    let db = open(dir.path());
    let error = db.verify().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(error.tree(), Some("t"));
}

#[test]
fn reading_damage_is_an_error() {
    let dir = damaged();
    let db = open(dir.path());
    let t = db.open_tree("t").unwrap();
    let now = db.begin_read().unwrap();
    let mut cursor = now
        .cursor(t, KeyRange::ALL, kv::Direction::Forward)
        .unwrap();
    let error = loop {
        match cursor.advance() {
            Ok(more) => assert!(more, "the damage was not met"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    drop(cursor);
    drop(now);
    // The library refuses all work after it found damage.
    let error = db.begin_read().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

#[test]
fn statistics_tell_of_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    fill(&*db, t, 20_000, 100);
    let stats = db.stats().unwrap();
    let cache = stats.cache.unwrap();
    assert_eq!(cache.capacity_bytes, ByteSize::mib(128).bytes());
    assert!(0 < cache.dirty_bytes && cache.dirty_bytes <= cache.used_bytes);
    assert_eq!(stats.debt_bytes, Some(cache.dirty_bytes));
    db.sync_log().unwrap();
    assert_eq!(
        db.settle(Duration::from_secs(60)).unwrap(),
        Compaction::Complete
    );
    let after = db.stats().unwrap();
    assert!(0 < after.written_bytes(IoReason::Log));
    assert!(0 < after.written_bytes(IoReason::Checkpoint));
    assert!(
        after.cache.unwrap().dirty_bytes < cache.dirty_bytes,
        "{after:?}"
    );
    assert!(after.counters["checkpoints"] >= 1);
}

#[test]
fn tree_statistics_are_exact_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    {
        let db = open(dir.path());
        let t = create(&*db, "t");
        fill(&*db, t, 20_000, 100);
        db.close().unwrap();
    }
    let db = open(dir.path());
    let t = db.open_tree("t").unwrap();
    let exact = db.tree_stats(t, StatScope::Exact).unwrap();
    assert_eq!((exact.entries.value, exact.entries.exact), (20_000, true));
    assert_eq!(exact.live_bytes, Some(20_000 * 108));
    assert!(
        exact.pages.unwrap() > 20 && exact.depth.unwrap() >= 2,
        "{exact:?}"
    );
    let quick = db.tree_stats(t, StatScope::Quick).unwrap();
    assert!(
        !quick.entries.exact && quick.entries.value >= 1000,
        "{quick:?}"
    );
}

#[test]
fn the_map_adds_up_to_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    fill(&*db, t, 20_000, 100);
    db.checkpoint().unwrap();
    let map = db.storage_map().unwrap();
    assert!(!map.offsets_are_real);
    let of = |kind| map.regions.iter().filter(move |r| r.kind == kind);
    assert!(of(RegionKind::Data).any(|r| r.tree == Some(t)));
    assert!(of(RegionKind::Log).count() >= 1 && of(RegionKind::Meta).count() >= 1);
    let table: u64 = map
        .regions
        .iter()
        .filter(|r| r.tree == Some(t))
        .map(|r| r.length)
        .sum();
    let file = fs::metadata(dir.path().join("db/t000001.wt"))
        .unwrap()
        .len();
    assert_eq!(table, file);
}

#[test]
fn settling_an_lsm_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = own(&[("type", "lsm")]);
    options.cache = ByteSize::mib(8);
    let db = open_with(dir.path(), &options);
    let t = create(&*db, "t");
    fill(&*db, t, 50_000, 100);
    assert_eq!(
        db.settle(Duration::from_secs(300)).unwrap(),
        Compaction::Complete
    );
    assert_eq!(get(&*db, t, &49_999u64.to_be_bytes()).unwrap().len(), 100);
    db.verify().unwrap();
}

//! The state after a crash of the process. A copy of the files taken while the store is open is
//! equal to the state after `kill -9`.

use std::fs;
use std::path::Path;
use std::thread;

use kv::{Batch, Durability, EngineOptions, ErrorKind};

use super::{count, create, get, open, open_with, own, put};

/// Copy a store, except for the empty log files that the library keeps in reserve: one of its
/// threads creates and renames them, so a listed file may be missing.
pub(super) fn copy_all(from: &Path, to: &Path) {
    const SPARE: [&str; 2] = ["WiredTigerTmplog.", "WiredTigerPreplog."];
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if SPARE
            .iter()
            .any(|spare| name.to_string_lossy().starts_with(spare))
        {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn check_crash(options: &EngineOptions) {
    let dir = tempfile::tempdir().unwrap();
    let db = open_with(dir.path(), options);
    let t = create(&*db, "t");
    let u = create(&*db, "u");
    for (n, level) in [Durability::Interval, Durability::Group, Durability::Sync]
        .into_iter()
        .cycle()
        .take(30)
        .enumerate()
    {
        let mut batch = Batch::new();
        batch.put(t, &n.to_be_bytes(), b"t");
        batch.put(u, &n.to_be_bytes(), b"u");
        db.write(&batch, level).unwrap();
        if n % 10 == 9 {
            let copy = tempfile::tempdir().unwrap();
            copy_all(dir.path(), copy.path());
            let after = open_with(copy.path(), options);
            let entries = |name| count(&*after, after.open_tree(name).unwrap());
            assert_eq!((entries("t"), entries("u")), (n as u64 + 1, n as u64 + 1));
            after.verify().unwrap();
        }
    }
}

#[test]
fn commits_above_none_survive_the_end_of_the_process() {
    check_crash(&EngineOptions::default());
}

#[test]
fn commits_above_none_survive_the_end_of_the_process_in_an_lsm() {
    check_crash(&own(&[("type", "lsm")]));
}

#[test]
fn sync_log_covers_commits_at_none() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"v", Durability::None);
    db.sync_log().unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_all(dir.path(), copy.path());
    let after = open(copy.path());
    let t = after.open_tree("t").unwrap();
    assert_eq!(get(&*after, t, b"k").as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_dropped_tree_stays_dropped_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "gone");
    put(&*db, t, b"k", b"v", Durability::Sync);
    db.drop_tree("gone").unwrap();
    let t = create(&*db, "kept");
    put(&*db, t, b"k", b"v", Durability::Sync);
    let copy = tempfile::tempdir().unwrap();
    copy_all(dir.path(), copy.path());
    assert_eq!(open(copy.path()).trees().unwrap(), ["kept"]);
}

#[test]
fn without_a_log_only_none_is_allowed_and_checkpoints_keep() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        log: false,
        ..EngineOptions::default()
    };
    let db = open_with(dir.path(), &options);
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"v", Durability::None);
    for level in [Durability::Interval, Durability::Group, Durability::Sync] {
        let mut txn = db.begin_write().unwrap();
        txn.put(t, b"x", b"v").unwrap();
        let error = txn.commit(level).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(get(&*db, t, b"x"), None);
    }
    db.sync_log().unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_all(dir.path(), copy.path());
    let after = open_with(copy.path(), &options);
    let t = after.open_tree("t").unwrap();
    assert_eq!(get(&*after, t, b"k").as_deref(), Some(&b"v"[..]));
    drop(after);
    let error = kv_wiredtiger::factory()
        .open(copy.path(), &EngineOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("log=false"), "{error}");
}

#[test]
fn concurrent_commits_at_group_are_synced_and_all_there() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 100;
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    thread::scope(|scope| {
        for me in 0..THREADS {
            let db = &*db;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let key = (me * ROUNDS + round).to_be_bytes();
                    put(db, t, &key, b"v", Durability::Group);
                }
            });
        }
    });
    let stats = db.stats().unwrap();
    let syncs = stats.counters["log_syncs"];
    // The number of commits that share a sync depends on the duration of the sync.
    assert!(0 < syncs);
    println!("{syncs} syncs for {} commits", THREADS * ROUNDS);
    let copy = tempfile::tempdir().unwrap();
    copy_all(dir.path(), copy.path());
    let after = open(copy.path());
    assert_eq!(
        count(&*after, after.open_tree("t").unwrap()),
        THREADS * ROUNDS
    );
}

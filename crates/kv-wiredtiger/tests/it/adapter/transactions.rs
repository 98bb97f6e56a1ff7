//! Snapshots, conflicts, batches and sessions.

use std::thread;

use kv::{Batch, Direction, Durability, ErrorKind, KeyRange};
use stdx::ByteSize;

use super::{create, fill, get, open, open_with, own, put};

#[test]
fn a_snapshot_is_taken_when_it_begins_not_when_it_first_reads() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    let before = db.begin_read().unwrap();
    put(&*db, t, b"k", b"v", Durability::None);
    assert_eq!(before.get(t, b"k").unwrap(), None);
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"v"[..]));
}

#[test]
fn after_a_conflict_every_call_conflicts() {
    // V1.
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    let mut loser = db.begin_write().unwrap();
    put(&*db, t, b"k", b"first", Durability::None);
    let kind = |e: kv::Error| e.kind();
    let conflict = Some(ErrorKind::Conflict);
    assert_eq!(loser.put(t, b"k", b"x").err().map(kind), conflict);
    assert_eq!(loser.get(t, b"other").err().map(kind), conflict);
    assert_eq!(loser.put(t, b"other", b"x").err().map(kind), conflict);
    assert_eq!(loser.insert(t, b"other", b"x").err().map(kind), conflict);
    assert_eq!(loser.delete(t, b"other").err().map(kind), conflict);
    assert_eq!(
        loser.delete_range(t, KeyRange::ALL).err().map(kind),
        conflict
    );
    let cursor = loser.cursor(t, KeyRange::ALL, Direction::Forward);
    assert_eq!(cursor.err().map(kind), conflict);
    assert_eq!(loser.commit(Durability::Sync).err().map(kind), conflict);
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"first"[..]));
}

#[test]
fn a_walk_stands_inside_its_range_and_ends_once() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    for key in [b"a", b"b", b"c", b"d", b"e"] {
        put(&*db, t, key, b"v", Durability::None);
    }
    let snapshot = db.begin_read().unwrap();
    let range = KeyRange::half_open(b"b", b"e");
    for direction in [Direction::Forward, Direction::Backward] {
        let mut walk = snapshot.cursor(t, range, direction).unwrap();
        for seek in [&b"a"[..], b"c", b"f"] {
            let mut found = walk.seek(seek).unwrap();
            while found {
                assert!(range.contains(walk.key()), "W1: {direction:?}");
                found = walk.advance().unwrap();
            }
            assert_eq!(walk.key(), b"", "W1: it stands nowhere");
            assert!(!walk.advance().unwrap(), "W2: {direction:?} {seek:?}");
            assert_eq!(walk.key(), b"", "W2: it stays at its end");
        }
        assert!(walk.seek(b"c").unwrap(), "W2: a seek leaves the end");
    }
}

#[test]
fn the_first_updater_wins_even_while_it_is_undecided() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    let mut first = db.begin_write().unwrap();
    let mut second = db.begin_write().unwrap();
    first.put(t, b"k", b"1").unwrap();
    let error = second.put(t, b"k", b"2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.key(), Some(&b"k"[..]));
    drop(second);
    first.commit(Durability::None).unwrap();
}

#[test]
fn batches_on_the_same_keys_all_get_through() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 200;
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    thread::scope(|scope| {
        for me in 0..THREADS {
            let db = &*db;
            scope.spawn(move || {
                let mut batch = Batch::new();
                for round in 0..ROUNDS {
                    batch.clear();
                    // The two batches write the keys in opposite orders, so that each holds a key
                    // that the other needs.
                    let keys: [&[u8]; 2] = if me % 2 == 0 {
                        [b"a", b"b"]
                    } else {
                        [b"b", b"a"]
                    };
                    for key in keys {
                        batch.put(t, key, &(me * ROUNDS + round).to_be_bytes());
                    }
                    batch.put(t, &(me * ROUNDS + round).to_be_bytes(), b"");
                    db.write(&batch, Durability::None).unwrap();
                }
            });
        }
    });
    assert_eq!(get(&*db, t, b"a"), get(&*db, t, b"b"), "whole batches");
    assert_eq!(super::count(&*db, t), THREADS * ROUNDS + 2);
}

#[test]
fn one_snapshot_too_many_is_full_and_batches_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = open_with(dir.path(), &own(&[("sessions", "4")]));
    let t = create(&*db, "t");
    let open: Vec<_> = (0..4).map(|_| db.begin_read().unwrap()).collect();
    let error = db.begin_write().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(error.to_string().contains("sessions"), "{error}");
    let mut batch = Batch::new();
    batch.put(t, b"k", b"v");
    db.write(&batch, Durability::Sync).unwrap();
    drop(open);
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"v"[..]));
}

#[test]
fn many_cursors_share_one_snapshot_and_the_transaction_sees_its_own_writes() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    fill(&*db, t, 500, 20);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, &7u64.to_be_bytes(), b"mine").unwrap();
    let mut walks: Vec<_> = (0..20)
        .map(|n| {
            let way = if n % 2 == 0 {
                Direction::Forward
            } else {
                Direction::Backward
            };
            txn.cursor(t, KeyRange::ALL, way).unwrap()
        })
        .collect();
    for _ in 0..500 {
        for walk in &mut walks {
            assert!(walk.advance().unwrap());
            let mine = walk.key() == 7u64.to_be_bytes();
            assert_eq!(walk.value() == b"mine", mine);
        }
    }
    assert!(walks.iter_mut().all(|walk| !walk.advance().unwrap()));
}

#[test]
fn a_transaction_larger_than_the_cache_commits_or_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = own(&[]);
    options.cache = ByteSize::mib(4);
    let db = open_with(dir.path(), &options);
    let t = create(&*db, "t");
    let mut txn = db.begin_write().unwrap();
    let mut refused = None;
    for n in 0..20_000u64 {
        if let Err(error) = txn.put(t, &n.to_be_bytes(), &[7; 1000]) {
            refused = Some(error.kind());
            break;
        }
    }
    match refused {
        None => txn.commit(Durability::None).unwrap(),
        Some(kind) => assert_eq!(kind, ErrorKind::Conflict),
    }
    put(&*db, t, b"after", b"v", Durability::Group);
    assert_eq!(get(&*db, t, b"after").as_deref(), Some(&b"v"[..]));
}

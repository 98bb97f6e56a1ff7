//! Checkpoints, log syncs, settling and verification do not change the content.

use std::time::Duration;

use crate::bench::Bench;
use crate::verbs::{
    Entry, all, all_keys, change, create, delete, fill_keys, fill_numbered, get, numbered, put,
    refused,
};
use kv::{Compaction, Engine, ErrorKind, KeyRange, TreeId};

/// A time limit in which every engine can settle a small store.
const AMPLE: Duration = Duration::from_secs(60);

/// A tree after puts, overwrites and deletes, with its entries.
pub(super) fn worn_tree(db: &dyn Engine) -> (TreeId, Vec<Entry>) {
    let t = create(db, "t");
    fill_numbered(db, t, 2000, b"old value");
    for n in (0..2000).step_by(40) {
        put(db, t, &numbered(n), b"new value");
        delete(db, t, &numbered(n + 1));
    }
    let gone = (numbered(500), numbered(700));
    change(db, |txn| {
        txn.delete_range(t, KeyRange::half_open(&gone.0, &gone.1))
    })
    .unwrap();
    let entries = all(db, t);
    assert_eq!(entries.len(), 2000 - 200 - 45);
    (t, entries)
}

pub(crate) fn checkpoint_changes_no_answer(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    for _ in 0..3 {
        db.checkpoint().unwrap();
        assert!(all(&*db, t) == expected);
    }
}

pub(crate) fn checkpoint_of_an_empty_store(lab: &mut Bench<'_>) {
    let db = lab.open();
    db.checkpoint().unwrap();
    let t = create(&*db, "t");
    db.checkpoint().unwrap();
    fill_keys(&*db, t, &["k"]);
    db.checkpoint().unwrap();
    assert_eq!(all_keys(&*db, t), ["k"]);
}

pub(crate) fn sync_log_changes_no_answer(lab: &mut Bench<'_>) {
    let db = lab.open();
    db.sync_log().unwrap();
    let (t, expected) = worn_tree(&*db);
    for _ in 0..3 {
        db.sync_log().unwrap();
        assert!(all(&*db, t) == expected);
    }
}

pub(crate) fn settle_completes_and_changes_no_answer(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    assert_eq!(db.settle(AMPLE).unwrap(), Compaction::Complete);
    assert!(all(&*db, t) == expected);
}

pub(crate) fn settle_without_time_changes_no_answer(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    // With no time, the settle may or may not complete.
    db.settle(Duration::ZERO).unwrap();
    assert!(all(&*db, t) == expected);
}

pub(crate) fn settle_under_an_open_snapshot(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    let before = db.begin_read().unwrap();
    change(&*db, |txn| txn.delete_range(t, KeyRange::ALL)).unwrap();
    // The snapshot may keep old versions, so that the settle cannot complete; the call must still
    // return.
    db.settle(Duration::from_millis(100)).unwrap();
    let seen = crate::verbs::scan(&*before, t, KeyRange::ALL, crate::verbs::Forward);
    assert!(seen == expected);
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn checkpoint_under_an_open_transaction(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"b", b"own").unwrap();
    db.checkpoint().unwrap();
    db.sync_log().unwrap();
    assert_eq!(all_keys(&*db, t), ["a"]);
    assert_eq!(txn.get(t, b"b").unwrap().as_deref(), Some(&b"own"[..]));
    txn.put(t, b"c", b"own").unwrap();
    txn.commit(crate::verbs::QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b", "c"]);
}

pub(crate) fn verify_finds_nothing_wrong(lab: &mut Bench<'_>) {
    let db = lab.open();
    let verify = || match db.verify() {
        Ok(()) => {}
        Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}"),
    };
    verify();
    let (t, expected) = worn_tree(&*db);
    verify();
    db.checkpoint().unwrap();
    verify();
    let before = db.begin_read().unwrap();
    fill_numbered(&*db, t, 100, b"newer");
    if let Err(e) = db.verify() {
        // An engine that needs exclusive access to the trees may refuse the call while the snapshot
        // is open.
        let known = [ErrorKind::Unsupported, ErrorKind::Conflict];
        assert!(known.contains(&e.kind()), "{e}");
    }
    drop(before);
    verify();
    assert_eq!(all(&*db, t).len(), expected.len() + 3);
}

pub(crate) fn checkpointed_data_is_there_after_reopening(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let (_, expected) = worn_tree(&*db);
    db.checkpoint().unwrap();
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert!(all(&*db, t) == expected);
    put(&*db, t, b"k", b"after the checkpoint");
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    let value = get(&*db, t, b"k");
    assert_eq!(value.as_deref(), Some(&b"after the checkpoint"[..]));
}

pub(crate) fn dropped_trees_settle(lab: &mut Bench<'_>) {
    let db = lab.open();
    for round in 0..3 {
        let (_, expected) = worn_tree(&*db);
        db.drop_tree("t").unwrap();
        assert!(!expected.is_empty());
        db.settle(AMPLE).unwrap();
        db.checkpoint().unwrap();
        assert!(db.trees().unwrap().is_empty(), "round {round}");
    }
}

pub(crate) fn unknown_tree_has_no_statistics(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    let unknown = TreeId(u32::MAX - 7);
    let result = db.tree_stats(unknown, kv::StatScope::Quick);
    assert_eq!(refused(result), ErrorKind::Invalid);
}

//! Snapshots: the state of all trees at one moment, which never changes.

use std::thread;

use crate::bench::Bench;
use crate::verbs::{
    Backward, Entry, Forward, QUICK, all, all_keys, change, create, delete, fill_keys,
    fill_numbered, get, keys, numbered, put, scan,
};
use kv::{Batch, Engine, KeyRange, TreeId};

/// Overwrite, delete and add entries in `tree` until most of them have changed.
fn churn(db: &dyn Engine, tree: TreeId, rounds: u32) {
    for round in 0..rounds {
        let mut batch = Batch::new();
        for n in 0..500u32 {
            match (n + round) % 3 {
                0 => batch.put(tree, &numbered(n), &round.to_be_bytes()),
                1 => batch.delete(tree, &numbered(n)),
                _ => batch.put(tree, &numbered(10_000 + n), b"new"),
            }
        }
        db.write(&batch, QUICK).unwrap();
    }
}

pub(crate) fn later_put_is_not_seen(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"old");
    let before = db.begin_read().unwrap();
    put(&*db, t, b"a", b"new");
    put(&*db, t, b"b", b"new");
    assert_eq!(before.get(t, b"a").unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(before.get(t, b"b").unwrap(), None);
}

pub(crate) fn later_delete_is_not_seen(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"old");
    let before = db.begin_read().unwrap();
    assert!(delete(&*db, t, b"a"));
    assert_eq!(before.get(t, b"a").unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&*db, t, b"a"), None);
}

pub(crate) fn later_range_delete_is_not_seen(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    let before = db.begin_read().unwrap();
    change(&*db, |txn| txn.delete_range(t, KeyRange::ALL)).unwrap();
    assert_eq!(keys(&*before, t, KeyRange::ALL, Forward), ["a", "b", "c"]);
    assert_eq!(keys(&*before, t, KeyRange::ALL, Backward), ["c", "b", "a"]);
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn later_batch_is_not_seen(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    let before = db.begin_read().unwrap();
    let mut batch = Batch::new();
    batch.put(t, b"d", b"new");
    batch.delete(t, b"a");
    batch.delete_range(t, KeyRange::half_open(b"b", b"c"));
    db.write(&batch, QUICK).unwrap();
    assert_eq!(keys(&*before, t, KeyRange::ALL, Forward), ["a", "b", "c"]);
    assert_eq!(all_keys(&*db, t), ["c", "d"]);
}

pub(crate) fn earlier_commits_are_seen(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for n in 0..50u32 {
        put(&*db, t, &numbered(n), &n.to_be_bytes());
        let now = db.begin_read().unwrap();
        let value = now.get(t, &numbered(n)).unwrap();
        assert_eq!(value.as_deref(), Some(&n.to_be_bytes()[..]));
        assert_eq!(scan(&*now, t, KeyRange::ALL, Forward).len(), n as usize + 1);
    }
}

pub(crate) fn open_transaction_is_not_seen(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"c", b"uncommitted").unwrap();
    txn.put(t, b"a", b"uncommitted").unwrap();
    txn.delete(t, b"b").unwrap();
    let beside = db.begin_read().unwrap();
    assert_eq!(keys(&*beside, t, KeyRange::ALL, Forward), ["a", "b"]);
    assert_eq!(beside.get(t, b"a").unwrap().as_deref(), Some(&b"a"[..]));
    txn.commit(QUICK).unwrap();
    assert_eq!(keys(&*beside, t, KeyRange::ALL, Forward), ["a", "b"]);
    assert_eq!(beside.get(t, b"a").unwrap().as_deref(), Some(&b"a"[..]));
    drop(beside);
    assert_eq!(all_keys(&*db, t), ["a", "c"]);
}

pub(crate) fn snapshots_of_different_moments_differ(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let zero = db.begin_read().unwrap();
    put(&*db, t, b"k", b"1");
    let one = db.begin_read().unwrap();
    put(&*db, t, b"k", b"2");
    let two = db.begin_read().unwrap();
    delete(&*db, t, b"k");
    let three = db.begin_read().unwrap();
    let seen = [&zero, &one, &two, &three].map(|s| s.get(t, b"k").unwrap());
    assert_eq!(seen, [None, Some(b"1".to_vec()), Some(b"2".to_vec()), None]);
}

pub(crate) fn all_trees_are_seen_at_one_moment(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    put(&*db, t, b"k", b"1");
    put(&*db, u, b"k", b"1");
    let before = db.begin_read().unwrap();
    // The snapshot reads one tree before the change and the other tree after it.
    assert_eq!(before.get(t, b"k").unwrap().as_deref(), Some(&b"1"[..]));
    change(&*db, |txn| {
        txn.put(t, b"k", b"2")?;
        txn.put(u, b"k", b"2")
    })
    .unwrap();
    assert_eq!(before.get(u, b"k").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(before.get(t, b"k").unwrap().as_deref(), Some(&b"1"[..]));
}

pub(crate) fn snapshots_end_in_any_order(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut open = Vec::new();
    for n in 0..6u8 {
        put(&*db, t, b"k", &[n]);
        open.push((n, db.begin_read().unwrap()));
    }
    for index in [3, 0, 3, 1] {
        open.remove(index);
        put(&*db, t, b"k", b"newer");
        for (n, snapshot) in &open {
            assert_eq!(snapshot.get(t, b"k").unwrap(), Some(vec![*n]));
        }
    }
}

pub(crate) fn fifty_snapshots_at_once(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut open = Vec::new();
    for n in 0..50u32 {
        put(&*db, t, &numbered(n), b"v");
        open.push(db.begin_read().unwrap());
    }
    for (n, snapshot) in open.iter().enumerate() {
        let seen = scan(&**snapshot, t, KeyRange::ALL, Forward).len();
        assert_eq!(seen, n + 1, "snapshot {n}");
    }
}

pub(crate) fn snapshot_outlives_heavy_churn(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 500, b"original value");
    let before = db.begin_read().unwrap();
    let expected = scan(&*before, t, KeyRange::ALL, Forward);
    churn(&*db, t, 40);
    assert!(scan(&*before, t, KeyRange::ALL, Forward) == expected);
    let mut backward = scan(&*before, t, KeyRange::ALL, Backward);
    backward.reverse();
    assert!(backward == expected);
}

pub(crate) fn snapshot_outlives_checkpoint_and_settle(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 500, b"original value");
    let before = db.begin_read().unwrap();
    let expected = scan(&*before, t, KeyRange::ALL, Forward);
    for _ in 0..3 {
        churn(&*db, t, 5);
        db.checkpoint().unwrap();
        db.settle(std::time::Duration::from_millis(50)).unwrap();
        assert!(scan(&*before, t, KeyRange::ALL, Forward) == expected);
    }
    assert_eq!(before.get(t, &numbered(10_001)).unwrap(), None);
}

pub(crate) fn reading_twice_gives_the_same(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 300, b"v");
    let now = db.begin_read().unwrap();
    let first: Vec<Entry> = scan(&*now, t, KeyRange::ALL, Forward);
    for n in (0..300).step_by(50) {
        delete(&*db, t, &numbered(n));
        let again = now.get(t, &numbered(n)).unwrap();
        assert_eq!(again.as_deref(), Some(&b"v"[..]));
    }
    assert!(scan(&*now, t, KeyRange::ALL, Forward) == first);
}

pub(crate) fn snapshot_is_stable_while_threads_write(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 500, b"original value");
    let before = db.begin_read().unwrap();
    let expected = scan(&*before, t, KeyRange::ALL, Forward);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| churn(&*db, t, 30));
        }
        for _ in 0..20 {
            assert!(scan(&*before, t, KeyRange::ALL, Forward) == expected);
            assert_eq!(before.get(t, &numbered(10_001)).unwrap(), None);
        }
    });
    assert!(scan(&*before, t, KeyRange::ALL, Forward) == expected);
}

pub(crate) fn a_key_deleted_and_put_again_is_three_moments(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"first");
    let first = db.begin_read().unwrap();
    delete(&*db, t, b"k");
    let gone = db.begin_read().unwrap();
    put(&*db, t, b"k", b"second");
    let second = db.begin_read().unwrap();
    for (view, seen) in [(&first, "first"), (&gone, ""), (&second, "second")] {
        let found: Vec<Vec<u8>> = scan(&**view, t, KeyRange::ALL, Backward)
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        let expected: Vec<Vec<u8>> = (!seen.is_empty())
            .then(|| seen.as_bytes().to_vec())
            .into_iter()
            .collect();
        assert_eq!(found, expected);
    }
}

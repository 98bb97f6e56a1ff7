//! Blind writes: puts and deletes that do not read.

use crate::bench::Bench;
use crate::verbs::{Forward, QUICK, all_keys, change, create, finish, get, keys, put};
use kv::KeyRange;

pub(crate) fn blind_put_sets_a_key(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| txn.put_blind(t, b"a", b"one")).unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"one"[..]));
}

pub(crate) fn blind_put_replaces_a_key(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    change(&*db, |txn| txn.put_blind(t, b"a", b"two")).unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"two"[..]));
}

pub(crate) fn blind_delete_removes_a_key(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    put(&*db, t, b"b", b"two");
    change(&*db, |txn| txn.delete_blind(t, b"a")).unwrap();
    assert_eq!(all_keys(&*db, t), ["b"]);
}

pub(crate) fn blind_delete_of_an_absent_key_is_fine(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    change(&*db, |txn| txn.delete_blind(t, b"b")).unwrap();
    assert_eq!(all_keys(&*db, t), ["a"]);
}

pub(crate) fn own_blind_writes_are_visible(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"gone", b"one");
    change(&*db, |txn| {
        txn.put_blind(t, b"new", b"two")?;
        txn.delete_blind(t, b"gone")?;
        assert_eq!(txn.get(t, b"new")?.as_deref(), Some(&b"two"[..]));
        assert_eq!(txn.get(t, b"gone")?, None);
        assert_eq!(keys(txn, t, KeyRange::ALL, Forward), ["new"]);
        Ok(())
    })
    .unwrap();
    assert_eq!(all_keys(&*db, t), ["new"]);
}

pub(crate) fn the_last_of_blind_and_other_writes_wins(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| {
        txn.put(t, b"a", b"1")?;
        txn.put_blind(t, b"a", b"2")?;
        txn.put_blind(t, b"b", b"1")?;
        txn.put(t, b"b", b"2")?;
        txn.put(t, b"c", b"1")?;
        txn.delete_blind(t, b"c")?;
        txn.put_blind(t, b"d", b"1")?;
        assert!(txn.delete(t, b"d")?, "an own blind write is there");
        Ok(())
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"2"[..]));
    assert_eq!(get(&*db, t, b"b").as_deref(), Some(&b"2"[..]));
    assert_eq!(all_keys(&*db, t), ["a", "b"]);
}

pub(crate) fn blind_writes_roll_back(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    let mut txn = db.begin_write().unwrap();
    txn.put_blind(t, b"b", b"two").unwrap();
    txn.delete_blind(t, b"a").unwrap();
    txn.rollback();
    assert_eq!(all_keys(&*db, t), ["a"]);
}

pub(crate) fn blind_writes_of_one_key_do_not_conflict(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"old");
    let first = db.begin_write().unwrap();
    let second = db.begin_write().unwrap();
    finish(first, |txn| txn.put_blind(t, b"k", b"first")).unwrap();
    finish(second, |txn| txn.put_blind(t, b"k", b"second")).unwrap();
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"second"[..]));
}

pub(crate) fn blind_write_after_a_commit_does_not_conflict(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"old");
    let mut late = db.begin_write().unwrap();
    put(&*db, t, b"k", b"first");
    late.delete_blind(t, b"k").unwrap();
    late.commit(QUICK).unwrap();
    assert_eq!(get(&*db, t, b"k"), None, "the later commit stands");
}

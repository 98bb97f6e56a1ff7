//! Deletes of a range of keys in a transaction.

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, all, all_keys, at, change, create, fill_keys, fill_numbered, get, keys,
    open, past, put, range,
};
use kv::KeyRange;

const LETTERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The keys that remain of a to f after the range `gone` was deleted.
fn left(lab: &mut Bench<'_>, gone: KeyRange<'_>) -> Vec<String> {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    change(&*db, |txn| txn.delete_range(t, gone)).unwrap();
    all_keys(&*db, t)
}

pub(crate) fn included_bounds_are_removed(lab: &mut Bench<'_>) {
    assert_eq!(left(lab, range(at("b"), at("d"))), ["a", "e", "f"]);
}

pub(crate) fn excluded_bounds_stay(lab: &mut Bench<'_>) {
    assert_eq!(
        left(lab, range(past("b"), past("d"))),
        ["a", "b", "d", "e", "f"]
    );
}

pub(crate) fn half_open_range_keeps_its_end(lab: &mut Bench<'_>) {
    assert_eq!(
        left(lab, KeyRange::half_open(b"b", b"d")),
        ["a", "d", "e", "f"]
    );
}

pub(crate) fn excluded_start_included_end(lab: &mut Bench<'_>) {
    assert_eq!(left(lab, range(past("b"), at("d"))), ["a", "b", "e", "f"]);
}

pub(crate) fn unbounded_start_removes_the_head(lab: &mut Bench<'_>) {
    assert_eq!(left(lab, range(open(), past("d"))), ["d", "e", "f"]);
}

pub(crate) fn unbounded_end_removes_the_tail(lab: &mut Bench<'_>) {
    assert_eq!(left(lab, range(past("c"), open())), ["a", "b", "c"]);
}

pub(crate) fn whole_range_empties_the_tree(lab: &mut Bench<'_>) {
    assert!(left(lab, KeyRange::ALL).is_empty());
}

pub(crate) fn empty_and_crossed_ranges_remove_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    for nothing in [
        KeyRange::half_open(b"b", b"b"),
        KeyRange::half_open(b"d", b"b"),
        range(at("d"), at("b")),
        range(past("c"), past("c")),
        range(past("b"), past("c")),
        range(at("bb"), at("bz")),
    ] {
        change(&*db, |txn| txn.delete_range(t, nothing)).unwrap();
        assert_eq!(all_keys(&*db, t), LETTERS, "{nothing:?}");
    }
}

pub(crate) fn bounds_need_not_be_keys(lab: &mut Bench<'_>) {
    assert_eq!(left(lab, range(at("aa"), at("cc"))), ["a", "d", "e", "f"]);
}

pub(crate) fn other_trees_are_left_alone(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_keys(&*db, t, &LETTERS);
    fill_keys(&*db, u, &LETTERS);
    change(&*db, |txn| txn.delete_range(t, KeyRange::ALL)).unwrap();
    assert!(all(&*db, t).is_empty());
    assert_eq!(all_keys(&*db, u), LETTERS);
}

pub(crate) fn own_writes_in_the_range_are_removed(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "c"]);
    change(&*db, |txn| {
        txn.put(t, b"b", b"own")?;
        txn.put_blind(t, b"bb", b"own and blind")?;
        txn.delete_range(t, range(at("b"), at("c")))?;
        assert_eq!(txn.get(t, b"b")?, None);
        assert_eq!(keys(txn, t, KeyRange::ALL, Forward), ["a"]);
        Ok(())
    })
    .unwrap();
    assert_eq!(all_keys(&*db, t), ["a"]);
}

pub(crate) fn writes_after_the_removal_stand(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    change(&*db, |txn| {
        txn.delete_range(t, KeyRange::ALL)?;
        txn.put(t, b"c", b"again")?;
        txn.insert(t, b"d", b"again")?;
        assert_eq!(keys(txn, t, KeyRange::ALL, Forward), ["c", "d"]);
        assert_eq!(keys(txn, t, KeyRange::ALL, Backward), ["d", "c"]);
        assert!(!txn.delete(t, b"a")?, "a was removed with the range");
        Ok(())
    })
    .unwrap();
    assert_eq!(all_keys(&*db, t), ["c", "d"]);
    assert_eq!(get(&*db, t, b"c").as_deref(), Some(&b"again"[..]));
}

pub(crate) fn removal_rolls_back(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    let mut txn = db.begin_write().unwrap();
    txn.delete_range(t, KeyRange::ALL).unwrap();
    txn.rollback();
    assert_eq!(all_keys(&*db, t), LETTERS);
}

pub(crate) fn keys_put_later_are_not_removed(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &LETTERS);
    change(&*db, |txn| txn.delete_range(t, range(at("b"), at("e")))).unwrap();
    put(&*db, t, b"c", b"later");
    assert_eq!(all_keys(&*db, t), ["a", "c", "f"]);
    db.checkpoint().unwrap();
    assert_eq!(get(&*db, t, b"c").as_deref(), Some(&b"later"[..]));
}

pub(crate) fn thousands_of_keys_are_removed_at_once(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 5000, b"some value");
    let gone = range(at("00000010"), past("00004990"));
    change(&*db, |txn| txn.delete_range(t, gone)).unwrap();
    let left = all_keys(&*db, t);
    assert_eq!(left.len(), 20);
    assert_eq!(
        (left[9].as_str(), left[10].as_str()),
        ("00000009", "00004990")
    );
}

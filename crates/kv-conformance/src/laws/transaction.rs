//! Transactions: own writes on top of a snapshot, all or nothing.

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, QUICK, all, all_keys, at, change, create, fill_keys, fill_numbered, get,
    keys, numbered, past, put, range, refused, rest, scan, texts,
};
use kv::{ErrorKind, KeyRange, TreeId};

pub(crate) fn own_put_is_visible(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"old");
    change(&*db, |txn| {
        txn.put(t, b"a", b"mine")?;
        txn.put(t, b"b", b"mine too")?;
        assert_eq!(txn.get(t, b"a")?.as_deref(), Some(&b"mine"[..]));
        assert_eq!(txn.get(t, b"b")?.as_deref(), Some(&b"mine too"[..]));
        txn.put(t, b"a", b"mine again")?;
        assert_eq!(txn.get(t, b"a")?.as_deref(), Some(&b"mine again"[..]));
        Ok(())
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"mine again"[..]));
}

pub(crate) fn own_delete_is_visible(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    change(&*db, |txn| {
        assert!(txn.delete(t, b"a")?);
        assert_eq!(txn.get(t, b"a")?, None);
        assert!(!txn.delete(t, b"a")?, "it was removed a moment ago");
        Ok(())
    })
    .unwrap();
    assert_eq!(all_keys(&*db, t), ["b"]);
}

pub(crate) fn put_after_own_delete_stands(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"old");
    change(&*db, |txn| {
        txn.delete(t, b"a")?;
        txn.put(t, b"a", b"new")?;
        assert_eq!(txn.get(t, b"a")?.as_deref(), Some(&b"new"[..]));
        Ok(())
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"new"[..]));
}

pub(crate) fn new_key_put_and_deleted_leaves_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| {
        txn.put(t, b"a", b"new")?;
        assert!(txn.delete(t, b"a")?, "an own write is there");
        assert_eq!(txn.get(t, b"a")?, None);
        txn.insert(t, b"a", b"newer")?;
        assert!(txn.delete(t, b"a")?);
        Ok(())
    })
    .unwrap();
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn own_empty_value_is_visible(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"full");
    change(&*db, |txn| {
        txn.put(t, b"a", b"")?;
        assert_eq!(txn.get(t, b"a")?.as_deref(), Some(&b""[..]));
        assert_eq!(
            scan(txn, t, KeyRange::ALL, Forward),
            [(b"a".to_vec(), vec![])]
        );
        Ok(())
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b""[..]));
}

pub(crate) fn cursor_merges_own_writes_forward(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["b", "d", "f", "h"]);
    change(&*db, |txn| {
        for key in [&b"a"[..], b"c", b"d", b"i"] {
            txn.put(t, key, b"own")?;
        }
        txn.delete(t, b"f")?;
        let found = scan(txn, t, KeyRange::ALL, Forward);
        assert_eq!(texts(&found), ["a", "b", "c", "d", "h", "i"]);
        let own: Vec<bool> = found.iter().map(|(_, value)| value == b"own").collect();
        assert_eq!(own, [true, false, true, true, false, true]);
        Ok(())
    })
    .unwrap();
}

pub(crate) fn cursor_merges_own_writes_backward(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["b", "d", "f", "h"]);
    change(&*db, |txn| {
        for key in [&b"a"[..], b"c", b"d", b"i"] {
            txn.put(t, key, b"own")?;
        }
        txn.delete(t, b"f")?;
        let found = scan(txn, t, KeyRange::ALL, Backward);
        assert_eq!(texts(&found), ["i", "h", "d", "c", "b", "a"]);
        let own: Vec<bool> = found.iter().map(|(_, value)| value == b"own").collect();
        assert_eq!(own, [true, false, true, true, false, true]);
        Ok(())
    })
    .unwrap();
}

pub(crate) fn cursor_bounds_apply_to_own_writes(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["c"]);
    change(&*db, |txn| {
        for key in [&b"a"[..], b"b", b"d", b"e"] {
            txn.put(t, key, b"own")?;
        }
        for (wanted, expected) in [
            (range(at("b"), at("d")), "bcd"),
            (range(past("b"), at("d")), "cd"),
            (range(at("b"), past("d")), "bc"),
            (range(past("a"), past("e")), "bcd"),
            (range(at("d"), at("b")), ""),
        ] {
            let forward = keys(txn, t, wanted, Forward).concat();
            assert_eq!(forward, expected, "{wanted:?}");
            let backward: String = keys(txn, t, wanted, Backward).concat();
            let reversed: String = expected.chars().rev().collect();
            assert_eq!(backward, reversed, "{wanted:?}");
        }
        Ok(())
    })
    .unwrap();
}

pub(crate) fn seek_finds_own_writes(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["b", "d", "f"]);
    change(&*db, |txn| {
        txn.put(t, b"c", b"own")?;
        txn.delete(t, b"d")?;
        let mut forward = txn.cursor(t, KeyRange::ALL, Forward)?;
        assert!(forward.seek(b"c")?);
        assert_eq!((forward.key(), forward.value()), (&b"c"[..], &b"own"[..]));
        assert!(forward.seek(b"d")?);
        assert_eq!(forward.key(), b"f", "d is removed");
        assert!(forward.seek(b"bb")?);
        assert_eq!(texts(&rest(&mut *forward)), ["f"]);
        let mut backward = txn.cursor(t, KeyRange::ALL, Backward)?;
        assert!(backward.seek(b"e")?);
        assert_eq!(backward.key(), b"c");
        assert_eq!(texts(&rest(&mut *backward)), ["b"]);
        Ok(())
    })
    .unwrap();
}

pub(crate) fn tree_emptied_by_own_deletes_scans_as_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    change(&*db, |txn| {
        for key in [b"a", b"b", b"c"] {
            txn.delete(t, key)?;
        }
        assert!(scan(txn, t, KeyRange::ALL, Forward).is_empty());
        assert!(scan(txn, t, KeyRange::ALL, Backward).is_empty());
        assert!(!txn.cursor(t, KeyRange::ALL, Forward)?.seek(b"b")?);
        Ok(())
    })
    .unwrap();
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn rollback_leaves_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let before = all(&*db, t);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"a", b"changed").unwrap();
    txn.insert(t, b"c", b"new").unwrap();
    txn.delete(t, b"b").unwrap();
    txn.rollback();
    assert_eq!(all(&*db, t), before);
}

pub(crate) fn dropping_is_rolling_back(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let before = all(&*db, t);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"a", b"changed").unwrap();
    txn.insert(t, b"c", b"new").unwrap();
    txn.delete(t, b"b").unwrap();
    drop(txn);
    assert_eq!(all(&*db, t), before);
    put(&*db, t, b"d", b"the next transaction works");
    assert_eq!(all_keys(&*db, t), ["a", "b", "d"]);
}

pub(crate) fn rolled_back_writes_do_not_come_back(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"old");
    for _ in 0..5 {
        let mut txn = db.begin_write().unwrap();
        txn.put(t, b"a", b"lost").unwrap();
        txn.put(t, b"b", b"lost").unwrap();
        txn.rollback();
        change(&*db, |txn| txn.put(t, b"c", b"kept")).unwrap();
    }
    db.checkpoint().unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"old"[..]));
    assert_eq!(all_keys(&*db, t), ["a", "c"]);
}

pub(crate) fn empty_transaction_commits(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    db.begin_write().unwrap().commit(QUICK).unwrap();
    db.begin_write().unwrap().rollback();
    assert_eq!(all_keys(&*db, t), ["a"]);
}

pub(crate) fn transaction_that_only_reads_commits(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    change(&*db, |txn| {
        assert_eq!(txn.get(t, b"a")?.as_deref(), Some(&b"a"[..]));
        assert_eq!(keys(txn, t, KeyRange::ALL, Backward), ["b", "a"]);
        Ok(())
    })
    .unwrap();
}

pub(crate) fn several_trees_commit_together(lab: &mut Bench<'_>) {
    let db = lab.open();
    let trees = ["a", "b", "c"].map(|name| create(&*db, name));
    fill_keys(&*db, trees[2], &["gone"]);
    change(&*db, |txn| {
        txn.put(trees[0], b"k", b"0")?;
        txn.insert(trees[1], b"k", b"1")?;
        txn.delete(trees[2], b"gone").map(drop)
    })
    .unwrap();
    let counts = trees.map(|tree| all(&*db, tree).len());
    assert_eq!(counts, [1, 1, 0]);
}

pub(crate) fn several_trees_roll_back_together(lab: &mut Bench<'_>) {
    let db = lab.open();
    let trees = ["a", "b", "c"].map(|name| create(&*db, name));
    fill_keys(&*db, trees[2], &["kept"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(trees[0], b"k", b"0").unwrap();
    txn.insert(trees[1], b"k", b"1").unwrap();
    txn.delete_range(trees[2], KeyRange::ALL).unwrap();
    txn.rollback();
    let counts = trees.map(|tree| all(&*db, tree).len());
    assert_eq!(counts, [0, 0, 1]);
}

pub(crate) fn own_writes_stay_in_their_tree(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    change(&*db, |txn| {
        txn.put(t, b"k", b"in t")?;
        assert_eq!(txn.get(u, b"k")?, None);
        assert!(scan(txn, u, KeyRange::ALL, Forward).is_empty());
        txn.insert(u, b"k", b"in u")
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"in t"[..]));
    assert_eq!(get(&*db, u, b"k").as_deref(), Some(&b"in u"[..]));
}

pub(crate) fn transaction_reads_the_moment_it_began(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"old");
    let mut early = db.begin_write().unwrap();
    put(&*db, t, b"a", b"new");
    put(&*db, t, b"b", b"new");
    assert_eq!(early.get(t, b"a").unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(early.get(t, b"b").unwrap(), None);
    early.put(t, b"c", b"own").unwrap();
    assert_eq!(keys(&*early, t, KeyRange::ALL, Forward), ["a", "c"]);
    assert_eq!(keys(&*early, t, KeyRange::ALL, Backward), ["c", "a"]);
    early.commit(QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b", "c"]);
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"new"[..]));
}

pub(crate) fn ten_thousand_writes_in_one_transaction(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 5000, b"old");
    change(&*db, |txn| {
        for n in 0..10_000u32 {
            let key = numbered(n * 7919 % 10_000);
            if n % 4 == 0 {
                txn.delete(t, &key)?;
            } else {
                txn.put(t, &key, &n.to_be_bytes())?;
            }
        }
        assert_eq!(scan(txn, t, KeyRange::ALL, Forward).len(), 7500);
        Ok(())
    })
    .unwrap();
    let found = all(&*db, t);
    assert_eq!(found.len(), 7500);
    assert!(found.iter().all(|(_, value)| value.len() == 4));
    assert!(found.is_sorted());
}

pub(crate) fn transaction_ends_with_its_own_error(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"there", b"1");
    let result = change(&*db, |txn| {
        txn.put(t, b"a", b"2")?;
        txn.insert(t, b"there", b"3")
    });
    assert_eq!(refused(result), ErrorKind::Exists);
    assert_eq!(
        all_keys(&*db, t),
        ["there"],
        "it was dropped, so it left nothing"
    );
}

pub(crate) fn writing_an_unknown_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let unknown = TreeId(u32::MAX - 7);
    let refuse = |write: &dyn Fn(&mut dyn kv::Transaction) -> kv::Result<()>| {
        assert_eq!(refused(change(&*db, write)), ErrorKind::Invalid);
    };
    refuse(&|txn| txn.put(unknown, b"k", b"v"));
    refuse(&|txn| txn.insert(unknown, b"k", b"v"));
    refuse(&|txn| txn.put_blind(unknown, b"k", b"v"));
    refuse(&|txn| txn.delete(unknown, b"k").map(drop));
    refuse(&|txn| txn.delete_blind(unknown, b"k"));
    refuse(&|txn| txn.delete_range(unknown, KeyRange::ALL));
    put(&*db, t, b"k", b"v");
    assert_eq!(all_keys(&*db, t), ["k"]);
}

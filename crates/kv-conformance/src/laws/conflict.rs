//! Conflicts: the first committer wins, and only writes of the same key conflict.

use crate::bench::Bench;
use crate::verbs::{QUICK, all, all_keys, change, create, fill_keys, finish, get, put, refused};
use kv::{Engine, ErrorKind, KeyRange, Result, Transaction, TreeId};

type Body<'a> = &'a dyn Fn(&mut dyn Transaction) -> Result<()>;
type TreeBody<'a> = &'a dyn Fn(&mut dyn Transaction, TreeId) -> Result<()>;

fn letters(lab: &mut Bench<'_>) -> (Box<dyn Engine>, TreeId) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    (db, t)
}

/// Begin a transaction, let another one run `first` and commit, then run `second` in the earlier
/// transaction and commit it.
fn late(db: &dyn Engine, first: Body<'_>, second: Body<'_>) -> Result<()> {
    let slow = db.begin_write()?;
    change(db, first).unwrap();
    finish(slow, second)
}

/// Run two overlapping transactions; the one that commits second must fail with `Conflict`.
fn must_conflict(lab: &mut Bench<'_>, first: TreeBody<'_>, second: TreeBody<'_>) {
    let (db, t) = letters(lab);
    let slow = db.begin_write().unwrap();
    change(&*db, |txn| first(txn, t)).unwrap();
    let stands = all(&*db, t);
    let result = finish(slow, |txn| second(txn, t));
    assert_eq!(refused(result), ErrorKind::Conflict);
    assert_eq!(all(&*db, t), stands, "the loser leaves nothing");
}

pub(crate) fn put_after_a_committed_put(lab: &mut Bench<'_>) {
    must_conflict(lab, &|txn, t| txn.put(t, b"a", b"first"), &|txn, t| {
        txn.put(t, b"a", b"second")
    });
}

pub(crate) fn put_after_a_committed_delete(lab: &mut Bench<'_>) {
    must_conflict(lab, &|txn, t| txn.delete(t, b"a").map(drop), &|txn, t| {
        txn.put(t, b"a", b"second")
    });
}

pub(crate) fn delete_after_a_committed_put(lab: &mut Bench<'_>) {
    must_conflict(lab, &|txn, t| txn.put(t, b"a", b"first"), &|txn, t| {
        txn.delete(t, b"a").map(drop)
    });
}

pub(crate) fn delete_after_a_committed_delete(lab: &mut Bench<'_>) {
    must_conflict(lab, &|txn, t| txn.delete(t, b"a").map(drop), &|txn, t| {
        txn.delete(t, b"a").map(drop)
    });
}

pub(crate) fn insert_after_a_committed_insert(lab: &mut Bench<'_>) {
    must_conflict(lab, &|txn, t| txn.insert(t, b"new", b"first"), &|txn, t| {
        txn.insert(t, b"new", b"second")
    });
}

pub(crate) fn put_of_a_new_key_after_a_committed_put(lab: &mut Bench<'_>) {
    must_conflict(lab, &|txn, t| txn.put(t, b"new", b"first"), &|txn, t| {
        txn.put(t, b"new", b"second")
    });
}

pub(crate) fn the_same_value_conflicts_as_well(lab: &mut Bench<'_>) {
    must_conflict(lab, &|txn, t| txn.put(t, b"a", b"same"), &|txn, t| {
        txn.put(t, b"a", b"same")
    });
}

pub(crate) fn one_common_key_among_many(lab: &mut Bench<'_>) {
    must_conflict(
        lab,
        &|txn, t| {
            txn.put(t, b"a", b"first")?;
            txn.put(t, b"k", b"first")
        },
        &|txn, t| {
            txn.put(t, b"x", b"second")?;
            txn.put(t, b"y", b"second")?;
            txn.put(t, b"k", b"second")?;
            txn.put(t, b"z", b"second")
        },
    );
}

pub(crate) fn of_two_open_writers_exactly_one_commits(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let mut one = db.begin_write().unwrap();
    let mut two = db.begin_write().unwrap();
    // The engine may refuse the second write at the call or at the commit.
    let wrote_one = one.put(t, b"a", b"one");
    let wrote_two = two.put(t, b"a", b"two");
    let one = wrote_one.and_then(|()| one.commit(QUICK));
    let two = wrote_two.and_then(|()| two.commit(QUICK));
    let winner: &[u8] = match (&one, &two) {
        (Ok(()), Err(e)) if e.kind() == ErrorKind::Conflict => b"one",
        (Err(e), Ok(())) if e.kind() == ErrorKind::Conflict => b"two",
        other => panic!("exactly one must commit: {other:?}"),
    };
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(winner));
}

pub(crate) fn of_three_open_writers_exactly_one_commits(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let mut open: Vec<_> = (0..3u8).map(|n| (n, db.begin_write().unwrap())).collect();
    let wrote: Vec<Result<()>> = open
        .iter_mut()
        .map(|(n, txn)| txn.put(t, b"k", &[*n]))
        .collect();
    let mut winners = Vec::new();
    for ((n, txn), wrote) in open.into_iter().zip(wrote) {
        match wrote.and_then(|()| txn.commit(QUICK)) {
            Ok(()) => winners.push(n),
            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(get(&*db, t, b"k"), Some(winners));
}

pub(crate) fn read_modify_write_loses_no_update(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    put(&*db, t, b"n", &[5]);
    let add = |txn: &mut dyn Transaction| {
        let old = txn.get(t, b"n")?.unwrap()[0];
        txn.put(t, b"n", &[old + 1])
    };
    let result = late(&*db, &add, &add);
    assert_eq!(refused(result), ErrorKind::Conflict);
    change(&*db, add).unwrap();
    assert_eq!(get(&*db, t, b"n"), Some(vec![7]));
}

pub(crate) fn write_skew_is_allowed(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let mut one = db.begin_write().unwrap();
    let mut two = db.begin_write().unwrap();
    assert_eq!(one.get(t, b"a").unwrap().as_deref(), Some(&b"a"[..]));
    assert_eq!(two.get(t, b"b").unwrap().as_deref(), Some(&b"b"[..]));
    one.put(t, b"b", b"one").unwrap();
    two.put(t, b"a", b"two").unwrap();
    one.commit(QUICK).unwrap();
    two.commit(QUICK).unwrap();
    assert_eq!(get(&*db, t, b"b").as_deref(), Some(&b"one"[..]));
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"two"[..]));
}

pub(crate) fn neighbouring_keys_do_not_conflict(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let mut open: Vec<_> = (0..8u8).map(|n| (n, db.begin_write().unwrap())).collect();
    for (n, txn) in &mut open {
        txn.put(t, &[b'k', *n], b"v").unwrap();
        txn.insert(t, &[b'k', *n, 0], b"v").unwrap();
    }
    for (_, txn) in open {
        txn.commit(QUICK).unwrap();
    }
    assert_eq!(all(&*db, t).len(), 3 + 16);
}

pub(crate) fn the_same_key_in_two_trees_does_not_conflict(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let u = create(&*db, "u");
    late(&*db, &|txn| txn.put(t, b"k", b"in t"), &|txn| {
        txn.put(u, b"k", b"in u")
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"in t"[..]));
    assert_eq!(get(&*db, u, b"k").as_deref(), Some(&b"in u"[..]));
}

pub(crate) fn reading_does_not_conflict(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    late(&*db, &|txn| txn.put(t, b"a", b"first"), &|txn| {
        assert_eq!(txn.get(t, b"a")?.as_deref(), Some(&b"a"[..]));
        assert_eq!(
            crate::verbs::scan(txn, t, KeyRange::ALL, crate::verbs::Forward).len(),
            3
        );
        txn.put(t, b"z", b"second")
    })
    .unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b", "c", "z"]);
}

pub(crate) fn read_only_transaction_never_conflicts(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    late(&*db, &|txn| txn.delete_range(t, KeyRange::ALL), &|txn| {
        txn.get(t, b"a").map(|value| assert!(value.is_some()))
    })
    .unwrap();
}

pub(crate) fn transaction_begun_after_the_commit_does_not_conflict(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    for n in 0..20u8 {
        change(&*db, |txn| txn.put(t, b"a", &[n])).unwrap();
    }
    assert_eq!(get(&*db, t, b"a"), Some(vec![19]));
}

pub(crate) fn rolled_back_write_does_not_conflict(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let slow = db.begin_write().unwrap();
    let mut fickle = db.begin_write().unwrap();
    fickle.put(t, b"a", b"never").unwrap();
    fickle.rollback();
    finish(slow, |txn| txn.put(t, b"a", b"second")).unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"second"[..]));
}

pub(crate) fn loser_leaves_nothing_in_any_tree(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let u = create(&*db, "u");
    let result = late(&*db, &|txn| txn.put(t, b"a", b"first"), &|txn| {
        txn.put(u, b"x", b"second")?;
        txn.delete(t, b"b")?;
        txn.put_blind(u, b"y", b"second")?;
        txn.put(t, b"a", b"second")
    });
    assert_eq!(refused(result), ErrorKind::Conflict);
    assert!(all(&*db, u).is_empty());
    assert_eq!(all_keys(&*db, t), ["a", "b", "c"]);
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"first"[..]));
}

pub(crate) fn beginning_again_succeeds(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let second = |txn: &mut dyn Transaction| txn.put(t, b"a", b"second");
    let result = late(&*db, &|txn| txn.put(t, b"a", b"first"), &second);
    assert_eq!(refused(result), ErrorKind::Conflict);
    change(&*db, second).unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"second"[..]));
}

pub(crate) fn conflict_is_found_many_commits_later(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let slow = db.begin_write().unwrap();
    put(&*db, t, b"a", b"first");
    for n in 0..300u32 {
        put(&*db, t, &crate::verbs::numbered(n), b"others");
    }
    db.checkpoint().unwrap();
    let result = finish(slow, |txn| txn.put(t, b"a", b"second"));
    assert_eq!(refused(result), ErrorKind::Conflict);
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"first"[..]));
}

pub(crate) fn key_put_and_deleted_meanwhile_conflicts(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let slow = db.begin_write().unwrap();
    put(&*db, t, b"k", b"there for a moment");
    crate::verbs::delete(&*db, t, b"k");
    let result = finish(slow, |txn| txn.put(t, b"k", b"second"));
    assert_eq!(refused(result), ErrorKind::Conflict);
    assert_eq!(get(&*db, t, b"k"), None);
}

pub(crate) fn range_delete_over_a_changed_key(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let result = late(&*db, &|txn| txn.put(t, b"b", b"first"), &|txn| {
        txn.delete_range(t, KeyRange::ALL)
    });
    // The engine may refuse the transaction or remove the key; it must not ignore the range delete.
    match result {
        Ok(()) => assert!(all(&*db, t).is_empty()),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Conflict);
            assert_eq!(all_keys(&*db, t), ["a", "b", "c"]);
        }
    }
}

pub(crate) fn range_delete_over_a_key_inserted_meanwhile(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    let result = late(&*db, &|txn| txn.insert(t, b"bb", b"first"), &|txn| {
        txn.delete_range(t, KeyRange::ALL)
    });
    // The new key may stay, be removed, or cause a conflict. Without a conflict, the keys that the
    // transaction saw are removed.
    let left = all_keys(&*db, t);
    match result {
        Ok(()) => assert!(left.is_empty() || left == ["bb"], "{left:?}"),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Conflict);
            assert_eq!(left, ["a", "b", "bb", "c"]);
        }
    }
}

pub(crate) fn disjoint_range_deletes_do_not_conflict(lab: &mut Bench<'_>) {
    let (db, t) = letters(lab);
    late(
        &*db,
        &|txn| txn.delete_range(t, KeyRange::half_open(b"a", b"b")),
        &|txn| txn.delete_range(t, KeyRange::from(b"c")),
    )
    .unwrap();
    assert_eq!(all_keys(&*db, t), ["b"]);
}

//! Closing and reopening: committed changes exist, other changes do not.

use stdx::ByteSize;

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, QUICK, all, all_keys, change, create, delete, fill_keys, fill_numbered, get,
    numbered, put, refused, scan,
};
use kv::{Batch, Codec, ErrorKind, KeyRange};

pub(crate) fn values_are_there_again(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 3000, b"some value");
    put(&*db, t, b"empty", b"");
    put(&*db, t, b"\xff\0", b"\0\xff");
    let expected = all(&*db, t);
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert!(all(&*db, t) == expected);
    let now = db.begin_read().unwrap();
    let mut backward = scan(&*now, t, KeyRange::ALL, Backward);
    backward.reverse();
    assert!(backward == expected);
}

pub(crate) fn trees_are_there_again(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    for name in ["b", "a", "empty", "c"] {
        let tree = create(&*db, name);
        if name != "empty" {
            put(&*db, tree, b"name", name.as_bytes());
        }
    }
    db = lab.reopen(db);
    assert_eq!(db.trees().unwrap(), ["a", "b", "c", "empty"]);
    for name in ["a", "b", "c"] {
        let tree = db.open_tree(name).unwrap();
        assert_eq!(get(&*db, tree, b"name").as_deref(), Some(name.as_bytes()));
    }
    let empty = db.open_tree("empty").unwrap();
    assert!(all(&*db, empty).is_empty());
}

pub(crate) fn dropped_trees_stay_dropped(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    for name in ["a", "b", "c"] {
        let tree = create(&*db, name);
        fill_keys(&*db, tree, &["k"]);
    }
    db.drop_tree("b").unwrap();
    db = lab.reopen(db);
    assert_eq!(db.trees().unwrap(), ["a", "c"]);
    assert_eq!(refused(db.open_tree("b")), ErrorKind::NotFound);
    db.drop_tree("a").unwrap();
    db = lab.reopen(db);
    assert_eq!(db.trees().unwrap(), ["c"]);
    let c = db.open_tree("c").unwrap();
    assert_eq!(all_keys(&*db, c), ["k"]);
}

pub(crate) fn recreated_tree_does_not_get_the_old_content(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["old"]);
    db.drop_tree("t").unwrap();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["new"]);
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert_eq!(all_keys(&*db, t), ["new"]);
}

pub(crate) fn deletes_stay_deleted(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 100, b"v");
    db.checkpoint().unwrap();
    delete(&*db, t, &numbered(7));
    change(&*db, |txn| txn.delete_blind(t, &numbered(8))).unwrap();
    change(&*db, |txn| {
        txn.delete_range(t, KeyRange::from(&numbered(20)))
    })
    .unwrap();
    let mut batch = Batch::new();
    batch.delete(t, &numbered(9));
    batch.delete_range(t, KeyRange::half_open(b"", &numbered(5)));
    db.write(&batch, QUICK).unwrap();
    let expected: Vec<String> = [5, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
        .map(|n| format!("{n:08}"))
        .to_vec();
    for _ in 0..2 {
        db = lab.reopen(db);
        let t = db.open_tree("t").unwrap();
        assert_eq!(all_keys(&*db, t), expected);
    }
}

pub(crate) fn last_value_stands(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let t = create(&*db, "t");
    for n in 0..200u8 {
        put(&*db, t, b"k", &[n]);
        if n % 50 == 25 {
            db.checkpoint().unwrap();
        }
    }
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert_eq!(get(&*db, t, b"k"), Some(vec![199]));
}

pub(crate) fn open_transaction_is_gone(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"c", b"never committed").unwrap();
    txn.delete(t, b"a").unwrap();
    drop(txn);
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b"]);
}

pub(crate) fn five_generations_add_up(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let mut expected = Vec::new();
    create(&*db, "t");
    for generation in 0..5u8 {
        let t = db.open_tree("t").unwrap();
        put(&*db, t, &[generation], b"kept");
        change(&*db, |txn| txn.put(t, b"last", &[generation])).unwrap();
        expected.push(vec![generation]);
        db = lab.reopen(db);
        let t = db.open_tree("t").unwrap();
        assert_eq!(get(&*db, t, b"last"), Some(vec![generation]));
        let now = db.begin_read().unwrap();
        let kept = scan(&*now, t, KeyRange::half_open(b"", b"a"), Forward);
        let kept: Vec<Vec<u8>> = kept.into_iter().map(|(key, _)| key).collect();
        assert_eq!(kept, expected);
    }
}

pub(crate) fn handles_differ_after_reopening_with_new_trees(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    for name in ["a", "b", "c"] {
        create(&*db, name);
    }
    db.drop_tree("b").unwrap();
    db = lab.reopen(db);
    let d = create(&*db, "d");
    let (a, c) = (db.open_tree("a").unwrap(), db.open_tree("c").unwrap());
    assert!(a != c && a != d && c != d, "{a:?} {c:?} {d:?}");
    fill_keys(&*db, d, &["k"]);
    assert!(all(&*db, a).is_empty() && all(&*db, c).is_empty());
}

pub(crate) fn dropping_the_engine_is_closing_it(lab: &mut Bench<'_>) {
    for n in 0..3u32 {
        let db = lab.open();
        let t = match n {
            0 => create(&*db, "t"),
            _ => db.open_tree("t").unwrap(),
        };
        assert_eq!(all(&*db, t).len(), n as usize);
        put(&*db, t, &numbered(n), b"v");
        drop(db);
    }
}

pub(crate) fn missing_directories_are_created(lab: &mut Bench<'_>) {
    let deep = lab.path("one").join("two").join("three");
    let db = lab.try_open(&deep).unwrap();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["k"]);
    db.close().unwrap();
    let db = lab.try_open(&deep).unwrap();
    assert_eq!(all_keys(&*db, db.open_tree("t").unwrap()), ["k"]);
}

pub(crate) fn stores_in_different_directories_are_independent(lab: &mut Bench<'_>) {
    let one = lab.try_open(&lab.path("one")).unwrap();
    let two = lab.try_open(&lab.path("two")).unwrap();
    let in_one = create(&*one, "t");
    let in_two = create(&*two, "t");
    fill_keys(&*one, in_one, &["a"]);
    fill_keys(&*two, in_two, &["b"]);
    assert_eq!(all_keys(&*one, in_one), ["a"]);
    assert_eq!(all_keys(&*two, in_two), ["b"]);
    one.close().unwrap();
    assert_eq!(all_keys(&*two, in_two), ["b"]);
}

pub(crate) fn a_directory_opens_once(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let second = lab.try_open(&lab.directory());
    assert!(second.is_err(), "the directory is open already");
    put(&*db, t, b"k", b"the first store works");
    db.close().unwrap();
    lab.open().close().unwrap();
}

pub(crate) fn other_tuning_opens_the_same_store(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 500, b"v");
    let expected = all(&*db, t);
    db.close().unwrap();
    let mut options = lab.options();
    options.cache = ByteSize::mib(32);
    options.threads = 1;
    options.checkpoint = std::time::Duration::from_secs(60);
    options.interval = std::time::Duration::from_millis(10);
    let db = lab.factory().open(&lab.directory(), &options).unwrap();
    assert!(all(&*db, db.open_tree("t").unwrap()) == expected);
}

pub(crate) fn other_codec_is_refused_or_harmless(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 500, b"v");
    let expected = all(&*db, t);
    db.close().unwrap();
    let mut options = lab.options();
    options.codec = match options.codec {
        Codec::None => Codec::Fast,
        Codec::Fast => Codec::None,
    };
    match lab.factory().open(&lab.directory(), &options) {
        Ok(db) => assert!(all(&*db, db.open_tree("t").unwrap()) == expected),
        Err(e) => assert_eq!(e.kind(), ErrorKind::Invalid, "{e}"),
    }
    let db = lab.open();
    assert!(all(&*db, db.open_tree("t").unwrap()) == expected);
}

pub(crate) fn an_empty_store_opens_again(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    for _ in 0..3 {
        assert!(db.trees().unwrap().is_empty());
        db = lab.reopen(db);
    }
    create(&*db, "t");
    assert_eq!(db.trees().unwrap(), ["t"]);
}

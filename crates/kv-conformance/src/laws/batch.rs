//! Batches: changes without reading, applied in order and atomically.

use crate::bench::Bench;
use crate::verbs::{
    Forward, QUICK, all, all_keys, at, create, fill_keys, get, keys, numbered, open, past, put,
    range, refused,
};
use kv::{Batch, ErrorKind, KeyRange, TreeId};

pub(crate) fn puts_and_deletes_apply(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let mut batch = Batch::new();
    batch.put(t, b"c", b"new");
    batch.put(t, b"a", b"changed");
    batch.delete(t, b"b");
    batch.delete(t, b"never there");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "c"]);
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"changed"[..]));
}

pub(crate) fn empty_batch_changes_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    db.write(&Batch::new(), QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["a"]);
}

pub(crate) fn order_within_the_batch_matters(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut batch = Batch::new();
    batch.put(t, b"a", b"1");
    batch.put(t, b"a", b"2");
    batch.put(t, b"b", b"1");
    batch.delete(t, b"b");
    batch.delete(t, b"c");
    batch.put(t, b"c", b"1");
    batch.put(t, b"d", b"1");
    batch.delete(t, b"d");
    batch.put(t, b"d", b"2");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "c", "d"]);
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"2"[..]));
    assert_eq!(get(&*db, t, b"d").as_deref(), Some(&b"2"[..]));
}

pub(crate) fn several_trees_change_together(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    fill_keys(&*db, u, &["gone"]);
    let mut batch = Batch::new();
    batch.put(t, b"k", b"in t");
    batch.delete(u, b"gone");
    batch.put(u, b"k", b"in u");
    batch.put(t, b"l", b"in t");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["k", "l"]);
    assert_eq!(all_keys(&*db, u), ["k"]);
    assert_eq!(get(&*db, u, b"k").as_deref(), Some(&b"in u"[..]));
}

pub(crate) fn batch_can_be_written_twice(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut batch = Batch::new();
    batch.put(t, b"a", b"1");
    batch.delete(t, b"b");
    db.write(&batch, QUICK).unwrap();
    put(&*db, t, b"a", b"between");
    put(&*db, t, b"b", b"between");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(all(&*db, t), [(b"a".to_vec(), b"1".to_vec())]);
}

pub(crate) fn cleared_batch_forgets(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut batch = Batch::new();
    batch.put(t, b"a", b"1");
    batch.clear();
    batch.put(t, b"b", b"2");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["b"]);
}

pub(crate) fn range_delete_in_a_batch(lab: &mut Bench<'_>) {
    for (gone, left) in [
        (range(at("b"), at("c")), "ad"),
        (range(past("b"), at("c")), "abd"),
        (range(at("b"), past("c")), "acd"),
        (range(past("b"), past("c")), "abcd"),
        (range(open(), at("b")), "cd"),
        (range(past("b"), open()), "ab"),
        (range(at("c"), at("b")), "abcd"),
        (KeyRange::ALL, ""),
    ] {
        let db = lab
            .try_open(&lab.path(&format!("{gone:?}").replace('/', "_")))
            .unwrap();
        let t = create(&*db, "t");
        fill_keys(&*db, t, &["a", "b", "c", "d"]);
        let mut batch = Batch::new();
        batch.delete_range(t, gone);
        db.write(&batch, QUICK).unwrap();
        assert_eq!(all_keys(&*db, t).concat(), left, "{gone:?}");
    }
}

pub(crate) fn range_delete_removes_what_the_batch_put_before(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "c"]);
    let mut batch = Batch::new();
    batch.put(t, b"b", b"before");
    batch.delete_range(t, KeyRange::half_open(b"a", b"d"));
    db.write(&batch, QUICK).unwrap();
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn puts_after_a_range_delete_stand(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    let mut batch = Batch::new();
    batch.delete_range(t, KeyRange::ALL);
    batch.put(t, b"b", b"again");
    batch.put(t, b"d", b"new");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["b", "d"]);
    assert_eq!(get(&*db, t, b"b").as_deref(), Some(&b"again"[..]));
}

pub(crate) fn range_delete_leaves_other_trees_alone(lab: &mut Bench<'_>) {
    let db = lab.open();
    let trees = ["a", "b", "c"].map(|name| create(&*db, name));
    for tree in trees {
        fill_keys(&*db, tree, &["x", "y"]);
    }
    let mut batch = Batch::new();
    batch.delete_range(trees[1], KeyRange::ALL);
    db.write(&batch, QUICK).unwrap();
    assert_eq!(trees.map(|tree| all(&*db, tree).len()), [2, 0, 2]);
}

pub(crate) fn later_puts_survive_an_earlier_range_delete(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    let mut batch = Batch::new();
    batch.delete_range(t, KeyRange::ALL);
    db.write(&batch, QUICK).unwrap();
    batch.clear();
    batch.put(t, b"b", b"later");
    db.write(&batch, QUICK).unwrap();
    db.checkpoint().unwrap();
    assert_eq!(all_keys(&*db, t), ["b"]);
}

pub(crate) fn unknown_tree_spoils_the_whole_batch(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let unknown = TreeId(u32::MAX - 7);
    let spoil: [fn(&mut Batch, TreeId); 3] = [
        |batch, tree| batch.put(tree, b"k", b"v"),
        |batch, tree| batch.delete(tree, b"k"),
        |batch, tree| batch.delete_range(tree, KeyRange::ALL),
    ];
    for spoil in spoil {
        let mut batch = Batch::new();
        batch.put(t, b"c", b"before");
        batch.delete(t, b"a");
        spoil(&mut batch, unknown);
        batch.put(t, b"d", b"after");
        assert_eq!(refused(db.write(&batch, QUICK)), ErrorKind::Invalid);
        assert_eq!(all_keys(&*db, t), ["a", "b"], "nothing is applied");
    }
}

pub(crate) fn store_works_after_a_refused_batch(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut batch = Batch::new();
    batch.put(t, b"a", b"v");
    batch.put(TreeId(u32::MAX - 7), b"k", b"v");
    assert_eq!(refused(db.write(&batch, QUICK)), ErrorKind::Invalid);
    fill_keys(&*db, t, &["b"]);
    put(&*db, t, b"c", b"c");
    assert_eq!(all_keys(&*db, t), ["b", "c"]);
}

pub(crate) fn twenty_thousand_changes_in_one_batch(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut batch = Batch::new();
    for n in 0..20_000u32 {
        batch.put(t, &numbered(n * 7919 % 20_000), &n.to_be_bytes());
    }
    db.write(&batch, QUICK).unwrap();
    let found = all(&*db, t);
    assert_eq!(found.len(), 20_000);
    assert!(found.is_sorted());
    assert_eq!(
        get(&*db, t, &numbered(7919)),
        Some(1u32.to_be_bytes().to_vec())
    );
}

pub(crate) fn batch_passes_an_open_transaction(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"x", b"transaction").unwrap();
    let mut batch = Batch::new();
    batch.put(t, b"b", b"batch");
    batch.put(t, b"c", b"batch");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(keys(&*txn, t, KeyRange::ALL, Forward), ["a", "b", "x"]);
    assert_eq!(txn.get(t, b"b").unwrap().as_deref(), Some(&b"b"[..]));
    txn.commit(QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b", "c", "x"]);
}

pub(crate) fn batch_over_the_key_of_an_open_transaction(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["k"]);
    let mut txn = db.begin_write().unwrap();
    txn.put(t, b"k", b"transaction").unwrap();
    let mut batch = Batch::new();
    batch.put(t, b"k", b"batch");
    db.write(&batch, QUICK).unwrap();
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"batch"[..]));
    // The engine may count the batch as the first committer, or not.
    let expected: &[u8] = match txn.commit(QUICK) {
        Ok(()) => b"transaction",
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Conflict);
            b"batch"
        }
    };
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(expected));
}

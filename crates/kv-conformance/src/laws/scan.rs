//! Scans in both directions.

use crate::bench::Bench;
use crate::verbs::{
    Backward, Entry, Forward, QUICK, all, all_keys, create, fill, fill_keys, fill_numbered, keys,
    numbered, scan,
};
use kv::{Batch, ErrorKind, KeyRange, TreeId};

pub(crate) fn empty_tree_scans_as_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let now = db.begin_read().unwrap();
    assert!(scan(&*now, t, KeyRange::ALL, Forward).is_empty());
    assert!(scan(&*now, t, KeyRange::ALL, Backward).is_empty());
}

pub(crate) fn forward_is_ascending_byte_order(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["b", "aa", "a", "ab", "B", "ba"]);
    assert_eq!(all_keys(&*db, t), ["B", "a", "aa", "ab", "b", "ba"]);
}

pub(crate) fn backward_is_descending_byte_order(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["b", "aa", "a", "ab", "B", "ba"]);
    let now = db.begin_read().unwrap();
    let found = keys(&*now, t, KeyRange::ALL, Backward);
    assert_eq!(found, ["ba", "b", "ab", "aa", "a", "B"]);
}

pub(crate) fn bytes_compare_unsigned(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let shuffled: [&[u8]; 6] = [b"\xff", b"\x7f", b"\x80", b"\x00", b"\x7f\xff", b"\x80\x00"];
    fill(&*db, t, &shuffled.map(|k| (k, k)));
    let found: Vec<Vec<u8>> = all(&*db, t).into_iter().map(|(key, _)| key).collect();
    let expected: [&[u8]; 6] = [b"\x00", b"\x7f", b"\x7f\xff", b"\x80", b"\x80\x00", b"\xff"];
    assert_eq!(found, expected);
}

pub(crate) fn one_entry_scans_both_ways(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill(&*db, t, &[(b"k", b"v")]);
    let now = db.begin_read().unwrap();
    let expected = [(b"k".to_vec(), b"v".to_vec())];
    assert_eq!(scan(&*now, t, KeyRange::ALL, Forward), expected);
    assert_eq!(scan(&*now, t, KeyRange::ALL, Backward), expected);
}

pub(crate) fn backward_is_forward_reversed(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 700, b"v");
    let now = db.begin_read().unwrap();
    let mut found = scan(&*now, t, KeyRange::ALL, Backward);
    found.reverse();
    assert_eq!(found, scan(&*now, t, KeyRange::ALL, Forward));
    assert_eq!(found.len(), 700);
}

pub(crate) fn values_go_with_their_keys(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut expected: Vec<Entry> = Vec::new();
    let mut batch = Batch::new();
    for n in 0..300usize {
        let key = format!("key {n:03}").into_bytes();
        // Lengths from 0 to 1500, so that entries of very different sizes are adjacent.
        let value = vec![u8::try_from(n % 251).unwrap(); n * 37 % 1500];
        batch.put(t, &key, &value);
        expected.push((key, value));
    }
    db.write(&batch, QUICK).unwrap();
    assert!(all(&*db, t) == expected, "entries differ");
}

pub(crate) fn ten_thousand_entries_come_in_order(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    // 7919 is coprime to 10000: every number occurs once, in a scattered order.
    let numbers: Vec<u32> = (0..10_000).map(|n| n * 7919 % 10_000).collect();
    for chunk in numbers.chunks(1000) {
        let mut batch = Batch::new();
        for &n in chunk {
            batch.put(t, &numbered(n), &n.to_be_bytes());
        }
        db.write(&batch, QUICK).unwrap();
    }
    let found = all(&*db, t);
    assert_eq!(found.len(), 10_000);
    for (n, (key, value)) in (0u32..).zip(&found) {
        assert_eq!(
            (key, value.as_slice()),
            (&numbered(n), &n.to_be_bytes()[..])
        );
    }
}

pub(crate) fn deleted_keys_are_passed_over(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 100, b"v");
    let mut batch = Batch::new();
    for n in (0..100).filter(|n| n % 10 != 4) {
        batch.delete(t, &numbered(n));
    }
    db.write(&batch, QUICK).unwrap();
    let now = db.begin_read().unwrap();
    let expected: Vec<String> = (0..10).map(|n| format!("{:08}", n * 10 + 4)).collect();
    assert_eq!(keys(&*now, t, KeyRange::ALL, Forward), expected);
    let reversed: Vec<String> = expected.into_iter().rev().collect();
    assert_eq!(keys(&*now, t, KeyRange::ALL, Backward), reversed);
}

pub(crate) fn scanning_does_not_cross_into_other_trees(lab: &mut Bench<'_>) {
    let db = lab.open();
    let trees = ["a", "b", "c"].map(|name| create(&*db, name));
    fill_keys(&*db, trees[0], &["x", "y"]);
    fill_keys(&*db, trees[1], &["k"]);
    fill_keys(&*db, trees[2], &["a", "b"]);
    let now = db.begin_read().unwrap();
    assert_eq!(keys(&*now, trees[1], KeyRange::ALL, Forward), ["k"]);
    assert_eq!(keys(&*now, trees[1], KeyRange::ALL, Backward), ["k"]);
    assert_eq!(keys(&*now, trees[0], KeyRange::ALL, Backward), ["y", "x"]);
    assert_eq!(keys(&*now, trees[2], KeyRange::ALL, Forward), ["a", "b"]);
}

pub(crate) fn scanning_an_unknown_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    let now = db.begin_read().unwrap();
    match now.cursor(TreeId(u32::MAX - 7), KeyRange::ALL, Forward) {
        Ok(_) => panic!("a cursor over a tree that never was"),
        Err(e) => assert_eq!(e.kind(), ErrorKind::Invalid),
    };
}

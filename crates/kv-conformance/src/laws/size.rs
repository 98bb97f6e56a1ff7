//! Sizes: the empty key and the empty value, and the maximum sizes of both.

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, QUICK, all_keys, at, change, create, delete, fill_keys, get, keys, put,
    range, refused,
};
use kv::{Batch, Engine, ErrorKind, KeyRange, TreeId};

/// A key of `length` bytes that ends with `last`, so that keys differ only in their last byte.
fn long_key(length: usize, last: u8) -> Vec<u8> {
    let mut key = vec![b'k'; length];
    if let Some(end) = key.last_mut() {
        *end = last;
    }
    key
}

/// A value of `length` bytes, with different bytes at different positions.
fn long_value(length: usize) -> Vec<u8> {
    (0..length)
        .map(|n| u8::try_from(n * 31 % 251).expect("below 251"))
        .collect()
}

fn put_and_compare(db: &dyn Engine, tree: TreeId, key: &[u8], value: &[u8]) {
    put(db, tree, key, value);
    let found = get(db, tree, key);
    assert!(
        found.as_deref() == Some(value),
        "a key of {} bytes with a value of {} does not read back",
        key.len(),
        value.len()
    );
}

pub(crate) fn the_empty_key_is_a_key(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put_and_compare(&*db, t, b"", b"of the empty key");
    assert!(delete(&*db, t, b""));
    assert_eq!(get(&*db, t, b""), None);
    change(&*db, |txn| txn.insert(t, b"", b"again")).unwrap();
    assert_eq!(get(&*db, t, b"").as_deref(), Some(&b"again"[..]));
}

pub(crate) fn the_empty_key_is_the_first(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"\0", b"1");
    put(&*db, t, b"", b"0");
    put(&*db, t, b"a", b"2");
    let now = db.begin_read().unwrap();
    assert_eq!(keys(&*now, t, KeyRange::ALL, Forward), ["", r"\x00", "a"]);
    assert_eq!(keys(&*now, t, KeyRange::ALL, Backward), ["a", r"\x00", ""]);
    assert_eq!(keys(&*now, t, range(at(""), at("")), Forward), [""]);
    let mut cursor = now.cursor(t, KeyRange::ALL, Backward).unwrap();
    assert!(cursor.seek(b"").unwrap());
    assert_eq!(cursor.value(), b"0");
}

pub(crate) fn the_empty_key_is_refused(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| {
        assert_eq!(refused(txn.put(t, b"", b"v")), ErrorKind::Invalid);
        assert_eq!(refused(txn.insert(t, b"", b"v")), ErrorKind::Invalid);
        assert_eq!(refused(txn.put_blind(t, b"", b"v")), ErrorKind::Invalid);
        txn.put(t, b"a", b"fine")
    })
    .unwrap();
    let mut batch = Batch::new();
    batch.put(t, b"b", b"v");
    batch.put(t, b"", b"v");
    assert_eq!(refused(db.write(&batch, QUICK)), ErrorKind::Invalid);
    assert_eq!(get(&*db, t, b""), None, "reading it is no error");
    assert_eq!(all_keys(&*db, t), ["a"]);
}

pub(crate) fn one_byte_keys_are_keys(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put_and_compare(&*db, t, b"\0", b"zero");
    put_and_compare(&*db, t, b"\xff", b"");
    assert_eq!(all_keys(&*db, t), [r"\x00", r"\xff"]);
}

pub(crate) fn keys_up_to_the_limit_are_taken(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let limit = lab.limits().key_max;
    for length in [limit - 1, limit] {
        for last in [b'a', b'b'] {
            put_and_compare(&*db, t, &long_key(length, last), &[last]);
        }
    }
    let now = db.begin_read().unwrap();
    let mut found = Vec::new();
    let mut cursor = now.cursor(t, KeyRange::ALL, Backward).unwrap();
    while cursor.advance().unwrap() {
        found.push((cursor.key().len(), cursor.value()[0]));
    }
    found.sort_unstable();
    let expected = [
        (limit - 1, b'a'),
        (limit - 1, b'b'),
        (limit, b'a'),
        (limit, b'b'),
    ];
    assert_eq!(found, expected);
}

pub(crate) fn longest_key_can_be_sought_and_removed(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let key = long_key(lab.limits().key_max, b'z');
    fill_keys(&*db, t, &["a", "z"]);
    put(&*db, t, &key, b"v");
    let now = db.begin_read().unwrap();
    for direction in [Forward, Backward] {
        let mut cursor = now.cursor(t, KeyRange::ALL, direction).unwrap();
        assert!(cursor.seek(&key).unwrap());
        assert!(cursor.key() == key, "{direction:?} seek of the longest key");
    }
    drop(now);
    assert!(delete(&*db, t, &key));
    assert_eq!(all_keys(&*db, t), ["a", "z"]);
}

pub(crate) fn key_beyond_the_limit_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let key = long_key(lab.limits().key_max + 1, b'a');
    let result = change(&*db, |txn| txn.put(t, &key, b"v"));
    assert_eq!(refused(result), ErrorKind::Invalid);
    let result = change(&*db, |txn| txn.insert(t, &key, b"v"));
    assert_eq!(refused(result), ErrorKind::Invalid);
    let result = change(&*db, |txn| txn.put_blind(t, &key, b"v"));
    assert_eq!(refused(result), ErrorKind::Invalid);
    assert!(all_keys(&*db, t).is_empty());
}

pub(crate) fn key_beyond_the_limit_in_a_batch_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut batch = Batch::new();
    batch.put(t, b"before", b"v");
    batch.put(t, &long_key(lab.limits().key_max + 1, b'a'), b"v");
    batch.put(t, b"after", b"v");
    assert_eq!(refused(db.write(&batch, QUICK)), ErrorKind::Invalid);
    assert!(
        all_keys(&*db, t).is_empty(),
        "nothing of the batch is applied"
    );
}

pub(crate) fn reading_a_key_beyond_the_limit_finds_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let limit = lab.limits().key_max;
    // This key would be found if the engine truncated the longer key to its limit.
    put(&*db, t, &long_key(limit, b'k'), b"v");
    let key = long_key(limit + 1, b'k');
    assert_eq!(get(&*db, t, &key), None);
    let now = db.begin_read().unwrap();
    let mut visited = 0;
    now.get_many(t, &[&key, b"a"], &mut |_, value| {
        assert_eq!(value, None);
        visited += 1;
    })
    .unwrap();
    assert_eq!(visited, 2);
}

pub(crate) fn deleting_a_key_beyond_the_limit_changes_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let limit = lab.limits().key_max;
    put(&*db, t, &long_key(limit, b'k'), b"v");
    let key = long_key(limit + 1, b'k');
    change(&*db, |txn| {
        // The contract does not define the result: `false` and `Invalid` are both accepted.
        match txn.delete(t, &key) {
            Ok(was_there) => assert!(!was_there),
            Err(e) => assert_eq!(e.kind(), ErrorKind::Invalid),
        }
        txn.put(t, b"a", b"the transaction continues")
    })
    .unwrap();
    assert_eq!(all_keys(&*db, t).len(), 2);
}

pub(crate) fn values_up_to_the_limit_are_taken(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let limit = lab.limits().value_max;
    put_and_compare(&*db, t, b"almost", &long_value(limit - 1));
    put_and_compare(&*db, t, b"limit", &long_value(limit));
}

pub(crate) fn value_beyond_the_limit_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"old");
    let value = vec![7; lab.limits().value_max + 1];
    let result = change(&*db, |txn| txn.put(t, b"a", &value));
    assert_eq!(refused(result), ErrorKind::Invalid);
    let mut batch = Batch::new();
    batch.put(t, b"b", b"v");
    batch.put(t, b"a", &value);
    assert_eq!(refused(db.write(&batch, QUICK)), ErrorKind::Invalid);
    assert_eq!(all_keys(&*db, t), ["a"]);
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"old"[..]));
}

pub(crate) fn transaction_goes_on_after_a_refused_size(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let key = long_key(lab.limits().key_max + 1, b'a');
    change(&*db, |txn| {
        txn.put(t, b"before", b"1")?;
        assert_eq!(refused(txn.put(t, &key, b"v")), ErrorKind::Invalid);
        assert_eq!(txn.get(t, b"before")?.as_deref(), Some(&b"1"[..]));
        txn.put(t, b"after", b"2")
    })
    .unwrap();
    assert_eq!(all_keys(&*db, t), ["after", "before"]);
}

pub(crate) fn megabyte_values_read_back(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let most = lab.limits().value_max;
    for length in [4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20, 3 << 20] {
        let value = long_value(length.min(most));
        put_and_compare(&*db, t, format!("{length:08}").as_bytes(), &value);
    }
    let now = db.begin_read().unwrap();
    let mut cursor = now.cursor(t, KeyRange::ALL, Backward).unwrap();
    assert!(cursor.advance().unwrap());
    assert!(
        cursor.value() == long_value(most.min(3 << 20)),
        "the largest by a cursor"
    );
}

pub(crate) fn a_large_value_can_shrink_and_grow(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let most = lab.limits().value_max;
    for length in [10, 300_000, 0, 100_000, 3, 5000] {
        put_and_compare(&*db, t, b"k", &long_value(length.min(most)));
    }
    assert_eq!(all_keys(&*db, t), ["k"]);
}

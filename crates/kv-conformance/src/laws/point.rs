//! Point operations: put, get and delete of one key.

use crate::bench::Bench;
use crate::verbs::{change, create, delete, get, put, refused};
use kv::{ErrorKind, TreeId};

pub(crate) fn absent_key_reads_as_none(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    assert_eq!(get(&*db, t, b"a"), None);
}

pub(crate) fn put_key_reads_back(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"one"[..]));
}

pub(crate) fn put_replaces_the_value(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    put(&*db, t, b"a", b"a longer second value");
    assert_eq!(
        get(&*db, t, b"a").as_deref(),
        Some(&b"a longer second value"[..])
    );
    put(&*db, t, b"a", b"3");
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"3"[..]));
}

pub(crate) fn deleted_key_is_absent(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    delete(&*db, t, b"a");
    assert_eq!(get(&*db, t, b"a"), None);
}

pub(crate) fn delete_says_whether_the_key_was_there(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    assert!(!delete(&*db, t, b"b"), "b was never there");
    assert!(delete(&*db, t, b"a"), "a was there");
    assert!(!delete(&*db, t, b"a"), "a was removed before");
}

pub(crate) fn delete_leaves_the_neighbours(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for key in [&b"a"[..], b"aa", b"ab", b"b"] {
        put(&*db, t, key, key);
    }
    assert!(delete(&*db, t, b"aa"));
    assert_eq!(get(&*db, t, b"aa"), None);
    for key in [&b"a"[..], b"ab", b"b"] {
        assert_eq!(get(&*db, t, key).as_deref(), Some(key));
    }
}

pub(crate) fn key_can_return_after_delete(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    delete(&*db, t, b"a");
    put(&*db, t, b"a", b"two");
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"two"[..]));
}

pub(crate) fn empty_value_is_not_absence(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"");
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b""[..]));
    assert!(
        delete(&*db, t, b"a"),
        "the key with the empty value was there"
    );
    assert_eq!(get(&*db, t, b"a"), None);
}

pub(crate) fn value_can_become_empty(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"full");
    put(&*db, t, b"a", b"");
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b""[..]));
}

pub(crate) fn every_byte_is_a_key(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| {
        (0..=255u8).try_for_each(|byte| txn.put(t, &[byte], &[byte, !byte]))
    })
    .unwrap();
    let now = db.begin_read().unwrap();
    for byte in 0..=255u8 {
        let value = now.get(t, &[byte]).unwrap();
        assert_eq!(value, Some(vec![byte, !byte]), "key {byte:#04x}");
    }
}

pub(crate) fn zero_bytes_do_not_end_keys_or_values(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"k\0a", b"v\0a");
    put(&*db, t, b"k\0b", b"\0\0");
    put(&*db, t, b"k", b"bare");
    assert_eq!(get(&*db, t, b"k\0a").as_deref(), Some(&b"v\0a"[..]));
    assert_eq!(get(&*db, t, b"k\0b").as_deref(), Some(&b"\0\0"[..]));
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"bare"[..]));
    assert_eq!(get(&*db, t, b"k\0"), None);
}

pub(crate) fn prefixes_are_different_keys(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"1");
    put(&*db, t, b"aa", b"2");
    put(&*db, t, b"aaa", b"3");
    delete(&*db, t, b"aa");
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&*db, t, b"aa"), None);
    assert_eq!(get(&*db, t, b"aaa").as_deref(), Some(&b"3"[..]));
}

pub(crate) fn get_into_clears_the_buffer_first(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    let now = db.begin_read().unwrap();
    let mut value = b"left over from before".to_vec();
    assert!(now.get_into(t, b"a", &mut value).unwrap());
    assert_eq!(value, b"one");
}

pub(crate) fn get_into_of_absent_key_leaves_the_buffer_empty(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    let now = db.begin_read().unwrap();
    let mut value = b"left over from before".to_vec();
    assert!(!now.get_into(t, b"b", &mut value).unwrap());
    assert_eq!(value, b"", "the buffer is cleared first");
}

pub(crate) fn trees_do_not_share_keys(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    put(&*db, t, b"a", b"in t");
    assert_eq!(get(&*db, u, b"a"), None);
    put(&*db, u, b"a", b"in u");
    delete(&*db, t, b"a");
    assert_eq!(get(&*db, t, b"a"), None);
    assert_eq!(get(&*db, u, b"a").as_deref(), Some(&b"in u"[..]));
}

pub(crate) fn reading_an_unknown_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    let unknown = TreeId(u32::MAX - 7);
    let now = db.begin_read().unwrap();
    assert_eq!(refused(now.get(unknown, b"a")), ErrorKind::Invalid);
}

//! `insert`: sets a key only if it is absent.

use crate::bench::Bench;
use crate::verbs::{change, create, get, put, refused};
use kv::ErrorKind;

pub(crate) fn insert_sets_an_absent_key(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| txn.insert(t, b"a", b"one")).unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"one"[..]));
}

pub(crate) fn insert_of_a_present_key_is_exists(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    let result = change(&*db, |txn| txn.insert(t, b"a", b"two"));
    assert_eq!(refused(result), ErrorKind::Exists);
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"one"[..]));
}

pub(crate) fn insert_of_a_key_with_empty_value_is_exists(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"");
    let result = change(&*db, |txn| txn.insert(t, b"a", b"two"));
    assert_eq!(refused(result), ErrorKind::Exists);
}

pub(crate) fn transaction_goes_on_after_exists(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    change(&*db, |txn| {
        txn.put(t, b"before", b"1")?;
        assert_eq!(refused(txn.insert(t, b"a", b"two")), ErrorKind::Exists);
        assert_eq!(txn.get(t, b"a")?.as_deref(), Some(&b"one"[..]));
        assert_eq!(txn.get(t, b"before")?.as_deref(), Some(&b"1"[..]));
        txn.put(t, b"after", b"2")
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"before").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"one"[..]));
    assert_eq!(get(&*db, t, b"after").as_deref(), Some(&b"2"[..]));
}

pub(crate) fn insert_sees_own_put(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| {
        txn.put(t, b"a", b"one")?;
        assert_eq!(refused(txn.insert(t, b"a", b"two")), ErrorKind::Exists);
        Ok(())
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"one"[..]));
}

pub(crate) fn second_insert_in_one_transaction_is_exists(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    change(&*db, |txn| {
        txn.insert(t, b"a", b"one")?;
        assert_eq!(refused(txn.insert(t, b"a", b"two")), ErrorKind::Exists);
        Ok(())
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"one"[..]));
}

pub(crate) fn insert_after_own_delete_succeeds(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    change(&*db, |txn| {
        assert!(txn.delete(t, b"a")?);
        txn.insert(t, b"a", b"two")
    })
    .unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"two"[..]));
}

pub(crate) fn insert_after_committed_delete_succeeds(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"a", b"one");
    change(&*db, |txn| txn.delete(t, b"a").map(drop)).unwrap();
    change(&*db, |txn| txn.insert(t, b"a", b"two")).unwrap();
    assert_eq!(get(&*db, t, b"a").as_deref(), Some(&b"two"[..]));
}

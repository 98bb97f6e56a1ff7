//! Reading many keys at once.

use crate::bench::Bench;
use crate::verbs::{change, create, fill_keys, fill_numbered, numbered, put, refused};
use kv::{ErrorKind, Snapshot, TreeId};

/// The results of `get_many` in the order of the keys; checks that each key is visited exactly
/// once.
fn many<V: Snapshot + ?Sized>(view: &V, tree: TreeId, keys: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    let mut answers: Vec<Option<Option<Vec<u8>>>> = vec![None; keys.len()];
    view.get_many(tree, keys, &mut |index, value| {
        let slot = &mut answers[index];
        assert!(slot.is_none(), "index {index} is visited twice");
        *slot = Some(value.map(<[u8]>::to_vec));
    })
    .unwrap();
    let visited = |(index, slot): (usize, Option<Option<Vec<u8>>>)| {
        slot.unwrap_or_else(|| panic!("index {index} is not visited"))
    };
    answers.into_iter().enumerate().map(visited).collect()
}

pub(crate) fn each_index_gets_its_own_value(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c", "d"]);
    let now = db.begin_read().unwrap();
    let found = many(&*now, t, &[b"d", b"a", b"c", b"b"]);
    let expected = [b"d", b"a", b"c", b"b"].map(|k| Some(k.to_vec()));
    assert_eq!(found, expected);
}

pub(crate) fn absent_keys_are_visited_too(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["b", "d"]);
    put(&*db, t, b"e", b"");
    let now = db.begin_read().unwrap();
    let found = many(&*now, t, &[b"a", b"b", b"c", b"d", b"e", b"f"]);
    let b = Some(b"b".to_vec());
    let d = Some(b"d".to_vec());
    assert_eq!(found, [None, b, None, d, Some(Vec::new()), None]);
}

pub(crate) fn repeated_keys_are_answered_each(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b"]);
    let now = db.begin_read().unwrap();
    let found = many(&*now, t, &[b"b", b"b", b"a", b"b"]);
    let expected = [b"b", b"b", b"a", b"b"].map(|k| Some(k.to_vec()));
    assert_eq!(found, expected);
}

pub(crate) fn no_keys_no_visits(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    let now = db.begin_read().unwrap();
    assert!(many(&*now, t, &[]).is_empty());
}

pub(crate) fn a_thousand_keys_agree_with_get(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 1000, b"value");
    change(&*db, |txn| {
        (0..1000)
            .step_by(3)
            .try_for_each(|n| txn.delete(t, &numbered(n)).map(drop))
    })
    .unwrap();
    // 617 is coprime to 1000: every number occurs once, in a scattered order.
    let wanted: Vec<Vec<u8>> = (0..1000).map(|n| numbered(n * 617 % 1000)).collect();
    let wanted: Vec<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
    let now = db.begin_read().unwrap();
    for (key, found) in wanted.iter().zip(many(&*now, t, &wanted)) {
        assert_eq!(found, now.get(t, key).unwrap(), "{}", key.escape_ascii());
    }
}

pub(crate) fn a_transaction_reads_its_own_writes(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a", "b", "c"]);
    change(&*db, |txn| {
        txn.put(t, b"b", b"mine")?;
        txn.delete(t, b"c")?;
        txn.put(t, b"d", b"new")?;
        let found = many(txn, t, &[b"a", b"b", b"c", b"d"]);
        let [a, b, d] = [b"a".to_vec(), b"mine".to_vec(), b"new".to_vec()].map(Some);
        assert_eq!(found, [a, b, None, d]);
        Ok(())
    })
    .unwrap();
}

pub(crate) fn a_snapshot_does_not_see_later_commits(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    let before = db.begin_read().unwrap();
    put(&*db, t, b"a", b"later");
    put(&*db, t, b"b", b"later");
    assert_eq!(
        many(&*before, t, &[b"a", b"b"]),
        [Some(b"a".to_vec()), None]
    );
}

pub(crate) fn an_unknown_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    let now = db.begin_read().unwrap();
    let result = now.get_many(TreeId(u32::MAX - 7), &[b"a"], &mut |_, _| {});
    assert_eq!(refused(result), ErrorKind::Invalid);
}

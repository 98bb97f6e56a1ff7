//! Compaction on request.

use super::upkeep::worn_tree;
use crate::bench::Bench;
use crate::verbs::{Forward, all, all_keys, create, fill_keys, numbered, put, refused, scan};
use kv::{Compaction, Engine, ErrorKind, Flow, KeyRange, Progress, TreeId};

fn compact(db: &dyn Engine, tree: TreeId, range: KeyRange<'_>) -> Vec<Progress> {
    let mut reports = Vec::new();
    let ended = db.compact(tree, range, &mut |progress| {
        reports.push(progress);
        Flow::Continue
    });
    assert_eq!(ended.unwrap(), Compaction::Complete);
    reports
}

pub(crate) fn whole_tree_answers_the_same(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    compact(&*db, t, KeyRange::ALL);
    assert!(all(&*db, t) == expected);
    compact(&*db, t, KeyRange::ALL);
    assert!(all(&*db, t) == expected);
}

pub(crate) fn part_of_a_tree_answers_the_same(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    let (start, end) = (numbered(400), numbered(900));
    compact(&*db, t, KeyRange::half_open(&start, &end));
    compact(&*db, t, KeyRange::from(&end));
    compact(&*db, t, KeyRange::half_open(&end, &start));
    assert!(all(&*db, t) == expected);
}

pub(crate) fn watch_is_called_at_both_ends(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, _) = worn_tree(&*db);
    let reports = compact(&*db, t, KeyRange::ALL);
    assert!(
        2 <= reports.len(),
        "at the beginning and at the end: {reports:?}"
    );
    let done: Vec<u64> = reports.iter().map(|progress| progress.done_bytes).collect();
    assert!(done.is_sorted(), "work is not undone: {done:?}");
}

pub(crate) fn cancel_ends_it(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    let ended = db.compact(t, KeyRange::ALL, &mut |_| Flow::Cancel);
    assert_eq!(ended.unwrap(), Compaction::Cancelled);
    assert!(all(&*db, t) == expected);
    put(&*db, t, b"k", b"the store works");
    compact(&*db, t, KeyRange::ALL);
    assert_eq!(all(&*db, t).len(), expected.len() + 1);
}

pub(crate) fn empty_tree_compacts(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    compact(&*db, t, KeyRange::ALL);
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn open_snapshot_reads_on(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, expected) = worn_tree(&*db);
    let before = db.begin_read().unwrap();
    let mut cursor = before.cursor(t, KeyRange::ALL, Forward).unwrap();
    assert!(cursor.advance().unwrap());
    for n in 0..2000 {
        crate::verbs::delete(&*db, t, &numbered(n));
    }
    compact(&*db, t, KeyRange::ALL);
    assert_eq!(crate::verbs::rest(&mut *cursor).len() + 1, expected.len());
    assert!(scan(&*before, t, KeyRange::ALL, Forward) == expected);
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn other_trees_are_left_alone(lab: &mut Bench<'_>) {
    let db = lab.open();
    let u = create(&*db, "u");
    fill_keys(&*db, u, &["a", "b"]);
    let (t, _) = worn_tree(&*db);
    compact(&*db, t, KeyRange::ALL);
    assert_eq!(all_keys(&*db, u), ["a", "b"]);
}

pub(crate) fn unknown_tree_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    let unknown = TreeId(u32::MAX - 7);
    let result = db.compact(unknown, KeyRange::ALL, &mut |_| Flow::Continue);
    assert_eq!(refused(result), ErrorKind::Invalid);
}

pub(crate) fn compacted_tree_is_there_after_reopening(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let (t, expected) = worn_tree(&*db);
    compact(&*db, t, KeyRange::ALL);
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert!(all(&*db, t) == expected);
}

pub(crate) fn is_unsupported_without_the_capability(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["a"]);
    let result = db.compact(t, KeyRange::ALL, &mut |_| Flow::Continue);
    assert_eq!(refused(result), ErrorKind::Unsupported);
    assert_eq!(all_keys(&*db, t), ["a"]);
}

//! Trees: names, handles, creating and dropping.

use crate::bench::Bench;
use crate::verbs::{
    Forward, QUICK, all, all_keys, change, create, fill_keys, fill_numbered, get, put, refused,
    scan,
};
use kv::{Batch, Engine, ErrorKind, Flow, KeyRange, NAME_MAX, StatScope, TreeId, TreeOptions};

fn create_error(db: &dyn Engine, name: &str) -> ErrorKind {
    refused(db.create_tree(name, &TreeOptions::default()))
}

/// The handle of a dropped tree; a tree `other` exists.
fn stale(db: &dyn Engine) -> TreeId {
    let stale = create(db, "t");
    fill_keys(db, stale, &["k"]);
    create(db, "other");
    db.drop_tree("t").unwrap();
    stale
}

pub(crate) fn fresh_store_has_no_trees(lab: &mut Bench<'_>) {
    let db = lab.open();
    assert!(db.trees().unwrap().is_empty());
}

pub(crate) fn created_tree_is_listed_and_empty(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    assert_eq!(db.trees().unwrap(), ["t"]);
    assert!(all(&*db, t).is_empty());
}

pub(crate) fn names_are_listed_in_byte_order(lab: &mut Bench<'_>) {
    let db = lab.open();
    for name in ["b", "a.b", "a", "B", "ab", "_", "a-b", "10", "9"] {
        create(&*db, name);
    }
    let expected = ["10", "9", "B", "_", "a", "a-b", "a.b", "ab", "b"];
    assert_eq!(db.trees().unwrap(), expected);
}

pub(crate) fn creating_twice_is_exists(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["k"]);
    assert_eq!(create_error(&*db, "t"), ErrorKind::Exists);
    assert_eq!(all_keys(&*db, t), ["k"], "the tree is as it was");
    assert_eq!(db.trees().unwrap(), ["t"]);
}

pub(crate) fn opening_gives_the_same_handle(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let u = create(&*db, "u");
    assert_ne!(t, u);
    for _ in 0..3 {
        assert_eq!(db.open_tree("t").unwrap(), t);
        assert_eq!(db.open_tree("u").unwrap(), u);
    }
}

pub(crate) fn opening_a_missing_tree_is_not_found(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    for name in ["u", "T", "tt", "t.t", ""] {
        assert_eq!(refused(db.open_tree(name)), ErrorKind::NotFound, "{name:?}");
    }
}

pub(crate) fn dropping_a_missing_tree_is_not_found(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "t");
    assert_eq!(refused(db.drop_tree("u")), ErrorKind::NotFound);
    db.drop_tree("t").unwrap();
    assert_eq!(refused(db.drop_tree("t")), ErrorKind::NotFound);
}

pub(crate) fn dropped_tree_is_gone(lab: &mut Bench<'_>) {
    let db = lab.open();
    stale(&*db);
    assert_eq!(db.trees().unwrap(), ["other"]);
    assert_eq!(refused(db.open_tree("t")), ErrorKind::NotFound);
}

pub(crate) fn dropping_leaves_other_trees(lab: &mut Bench<'_>) {
    let db = lab.open();
    let trees = ["a", "b", "c"].map(|name| create(&*db, name));
    for tree in trees {
        fill_keys(&*db, tree, &["k", "l"]);
    }
    db.drop_tree("b").unwrap();
    for tree in [trees[0], trees[2]] {
        assert_eq!(all_keys(&*db, tree), ["k", "l"]);
        put(&*db, tree, b"m", b"still writable");
    }
    assert_eq!(db.trees().unwrap(), ["a", "c"]);
}

pub(crate) fn recreated_tree_is_empty(lab: &mut Bench<'_>) {
    let db = lab.open();
    for round in 0..4 {
        let t = create(&*db, "t");
        assert!(all(&*db, t).is_empty(), "round {round}");
        fill_numbered(&*db, t, 300, b"v");
        if round % 2 == 0 {
            db.checkpoint().unwrap();
        }
        db.drop_tree("t").unwrap();
    }
}

pub(crate) fn handle_is_never_given_again(lab: &mut Bench<'_>) {
    let db = lab.open();
    let mut given = Vec::new();
    for round in 0..10 {
        let t = create(&*db, "t");
        let u = create(&*db, &format!("u{round}"));
        for handle in [t, u] {
            assert!(!given.contains(&handle), "{handle:?} is given again");
            given.push(handle);
        }
        db.drop_tree("t").unwrap();
    }
}

pub(crate) fn stale_handle_does_not_reach_the_new_tree(lab: &mut Bench<'_>) {
    let db = lab.open();
    let old = create(&*db, "t");
    fill_keys(&*db, old, &["old"]);
    db.drop_tree("t").unwrap();
    let new = create(&*db, "t");
    fill_keys(&*db, new, &["new"]);
    let now = db.begin_read().unwrap();
    assert_eq!(refused(now.get(old, b"new")), ErrorKind::Invalid);
    drop(now);
    let result = change(&*db, |txn| txn.put(old, b"new", b"through the old handle"));
    assert_eq!(refused(result), ErrorKind::Invalid);
    assert_eq!(get(&*db, new, b"new").as_deref(), Some(&b"new"[..]));
}

pub(crate) fn reading_by_a_stale_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let stale = stale(&*db);
    let now = db.begin_read().unwrap();
    assert_eq!(refused(now.get(stale, b"k")), ErrorKind::Invalid);
    let mut value = Vec::new();
    assert_eq!(
        refused(now.get_into(stale, b"k", &mut value)),
        ErrorKind::Invalid
    );
    let many = now.get_many(stale, &[b"k"], &mut |_, _| {});
    assert_eq!(refused(many), ErrorKind::Invalid);
    let cursor = now.cursor(stale, KeyRange::ALL, Forward).map(drop);
    assert_eq!(refused(cursor), ErrorKind::Invalid);
}

pub(crate) fn writing_by_a_stale_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let stale = stale(&*db);
    let refuse = |write: &dyn Fn(&mut dyn kv::Transaction) -> kv::Result<()>| {
        assert_eq!(refused(change(&*db, write)), ErrorKind::Invalid);
    };
    refuse(&|txn| txn.put(stale, b"k", b"v"));
    refuse(&|txn| txn.insert(stale, b"l", b"v"));
    refuse(&|txn| txn.put_blind(stale, b"k", b"v"));
    refuse(&|txn| txn.delete(stale, b"k").map(drop));
    refuse(&|txn| txn.delete_blind(stale, b"k"));
    refuse(&|txn| txn.delete_range(stale, KeyRange::ALL));
    refuse(&|txn| txn.get(stale, b"k").map(drop));
}

pub(crate) fn batch_with_a_stale_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let stale = stale(&*db);
    let other = db.open_tree("other").unwrap();
    let mut batch = Batch::new();
    batch.put(other, b"k", b"v");
    batch.put(stale, b"k", b"v");
    assert_eq!(refused(db.write(&batch, QUICK)), ErrorKind::Invalid);
    batch.clear();
    batch.put(other, b"k", b"v");
    batch.delete_range(stale, KeyRange::ALL);
    assert_eq!(refused(db.write(&batch, QUICK)), ErrorKind::Invalid);
    assert!(all(&*db, other).is_empty(), "nothing is applied");
}

pub(crate) fn statistics_of_a_stale_handle_are_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let stale = stale(&*db);
    for scope in [StatScope::Quick, StatScope::Exact] {
        assert_eq!(refused(db.tree_stats(stale, scope)), ErrorKind::Invalid);
    }
}

pub(crate) fn compacting_a_stale_handle_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let stale = stale(&*db);
    let result = db.compact(stale, KeyRange::ALL, &mut |_| Flow::Continue);
    assert_eq!(refused(result), ErrorKind::Invalid);
}

pub(crate) fn bad_names_are_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let long = "n".repeat(NAME_MAX + 1);
    for name in [
        "", " ", "a b", "a\0b", "a\n", "\u{e9}", "a*", "a\\b", "a\"b", &long,
    ] {
        assert_eq!(create_error(&*db, name), ErrorKind::Invalid, "{name:?}");
    }
    assert!(db.trees().unwrap().is_empty());
}

pub(crate) fn every_allowed_character_is_taken(lab: &mut Bench<'_>) {
    let db = lab.open();
    let mut names: Vec<String> = (0..128u8)
        .map(|byte| char::from(byte).to_string())
        .filter(|name| kv::check_name(name).is_ok())
        .collect();
    // Names with a special meaning in file systems or engines.
    for name in [
        "..",
        "../up",
        "a/b",
        "/a",
        "a//b",
        "a/",
        "default",
        "WiredTiger",
        "LOCK",
        "$$",
    ] {
        names.push(name.to_owned());
    }
    for name in &names {
        let tree = create(&*db, name);
        put(&*db, tree, b"name", name.as_bytes());
    }
    names.sort();
    assert_eq!(db.trees().unwrap(), names);
    for name in &names {
        let tree = db.open_tree(name).unwrap();
        assert_eq!(get(&*db, tree, b"name").as_deref(), Some(name.as_bytes()));
    }
}

pub(crate) fn longest_name_is_taken(lab: &mut Bench<'_>) {
    let db = lab.open();
    let mut names = ["a", "b"].map(|last| format!("{}{last}", "n".repeat(NAME_MAX - 1)));
    let trees = [&names[1], &names[0]].map(|name| create(&*db, name));
    fill_keys(&*db, trees[0], &["in b"]);
    fill_keys(&*db, trees[1], &["in a"]);
    names.sort();
    assert_eq!(db.trees().unwrap(), names);
    assert_eq!(all_keys(&*db, trees[0]), ["in b"]);
}

pub(crate) fn names_differ_by_case(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (lower, upper) = (create(&*db, "tree"), create(&*db, "Tree"));
    put(&*db, lower, b"k", b"lower");
    put(&*db, upper, b"k", b"upper");
    assert_eq!(get(&*db, lower, b"k").as_deref(), Some(&b"lower"[..]));
    db.drop_tree("tree").unwrap();
    assert_eq!(get(&*db, upper, b"k").as_deref(), Some(&b"upper"[..]));
}

pub(crate) fn sixty_trees_at_once(lab: &mut Bench<'_>) {
    let db = lab.open();
    let names: Vec<String> = (0..60).map(|n| format!("tree.{n:03}")).collect();
    let trees: Vec<TreeId> = names.iter().map(|name| create(&*db, name)).collect();
    let mut batch = Batch::new();
    for (&tree, name) in trees.iter().zip(&names) {
        batch.put(tree, b"name", name.as_bytes());
    }
    db.write(&batch, QUICK).unwrap();
    assert_eq!(db.trees().unwrap(), names);
    let now = db.begin_read().unwrap();
    for (&tree, name) in trees.iter().zip(&names) {
        let value = now.get(tree, b"name").unwrap();
        assert_eq!(value.as_deref(), Some(name.as_bytes()));
    }
}

pub(crate) fn hints_change_no_answer(lab: &mut Bench<'_>) {
    let db = lab.open();
    for (name, ascending, point_lookups) in [
        ("a", false, false),
        ("b", true, false),
        ("c", false, true),
        ("d", true, true),
    ] {
        let options = TreeOptions {
            ascending,
            point_lookups,
        };
        let tree = db.create_tree(name, &options).unwrap();
        // The keys do not ascend, although the hint promises it.
        fill_keys(&*db, tree, &["m", "a", "z", "b"]);
        assert_eq!(all_keys(&*db, tree), ["a", "b", "m", "z"]);
        assert_eq!(get(&*db, tree, b"c"), None);
        assert_eq!(get(&*db, tree, b"z").as_deref(), Some(&b"z"[..]));
    }
}

pub(crate) fn open_snapshot_goes_on_reading_a_dropped_tree(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 300, b"v");
    let before = db.begin_read().unwrap();
    db.drop_tree("t").unwrap();
    let again = create(&*db, "t");
    fill_keys(&*db, again, &["new"]);
    db.checkpoint().unwrap();
    assert_eq!(
        before.get(t, b"00000007").unwrap().as_deref(),
        Some(&b"v"[..])
    );
    assert_eq!(scan(&*before, t, KeyRange::ALL, Forward).len(), 300);
    let now = db.begin_read().unwrap();
    assert_eq!(refused(now.get(t, b"00000007")), ErrorKind::Invalid);
}

pub(crate) fn drop_under_a_snapshot_is_conflict_or_done(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["k"]);
    let before = db.begin_read().unwrap();
    assert_eq!(before.get(t, b"k").unwrap().as_deref(), Some(&b"k"[..]));
    if let Err(e) = db.drop_tree("t") {
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert_eq!(before.get(t, b"k").unwrap().as_deref(), Some(&b"k"[..]));
        drop(before);
        assert_eq!(all_keys(&*db, t), ["k"], "the tree is as it was");
        db.drop_tree("t").unwrap();
    }
    assert!(db.trees().unwrap().is_empty());
}

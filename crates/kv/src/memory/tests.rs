//! Tests of the in-memory engine. The randomised tests are in `random`, those with threads in
//! `threads`.

use std::collections::BTreeMap;
use std::ops::Bound;

use stdx::ByteSize;
use tempfile::TempDir;

use super::factory;
use crate::{
    Batch, Compaction, Direction, Durability, Engine, EngineOptions, ErrorKind, Flow, KeyRange,
    Result, Snapshot, StatScope, Transaction, TreeId, TreeOptions, identity,
};

mod random;
mod threads;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// An engine with one tree.
struct Fixture {
    engine: Box<dyn Engine>,
    tree: TreeId,
    directory: TempDir,
}

fn fixture() -> Fixture {
    fixture_with(&EngineOptions::default())
}

fn fixture_with(options: &EngineOptions) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let engine = factory().open(directory.path(), options).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    Fixture {
        engine,
        tree,
        directory,
    }
}

fn own(name: &str, value: &str) -> EngineOptions {
    let mut options = EngineOptions::default();
    options.own.insert(name.to_owned(), value.to_owned());
    options
}

impl Fixture {
    fn write(&self, changes: &[(&str, Option<&str>)]) {
        let mut batch = Batch::new();
        for (key, value) in changes {
            match value {
                Some(value) => batch.put(self.tree, key.as_bytes(), value.as_bytes()),
                None => batch.delete(self.tree, key.as_bytes()),
            }
        }
        self.engine.write(&batch, Durability::Sync).unwrap();
    }

    fn now(&self) -> String {
        dump(&*self.engine.begin_read().unwrap(), self.tree)
    }

    fn counter(&self, name: &str) -> u64 {
        self.engine.stats().unwrap().counters[name]
    }
}

/// `a=1 b=2`: all entries, after checking that both directions and `get` agree.
fn dump(view: &(impl Snapshot + ?Sized), tree: TreeId) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut walks = [Direction::Forward, Direction::Backward].map(|direction| {
        let mut found = Vec::new();
        let mut cursor = view.cursor(tree, KeyRange::ALL, direction).unwrap();
        while cursor.advance().unwrap() {
            let got = view.get(tree, cursor.key()).unwrap();
            assert_eq!(got.as_deref(), Some(cursor.value()));
            found.push(format!("{}={}", text(cursor.key()), text(cursor.value())));
        }
        found
    });
    walks[1].reverse();
    assert_eq!(walks[0], walks[1]);
    walks[0].join(" ")
}

#[track_caller]
fn refused<T>(result: Result<T>, kind: ErrorKind, text: &str) {
    let error = result.err().expect("must be refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "{error}");
    assert_eq!(error.engine(), Some("memory"), "{error}");
}

fn commit(txn: Box<dyn Transaction + '_>) -> Result<()> {
    txn.commit(Durability::None)
}

#[test]
fn a_snapshot_never_changes() {
    // I2.
    let f = fixture();
    f.write(&[("a", Some("1")), ("b", Some("1"))]);
    let before = f.engine.begin_read().unwrap();
    f.write(&[("a", Some("2")), ("b", None), ("c", Some("2"))]);
    let between = f.engine.begin_read().unwrap();
    f.write(&[("a", None), ("b", Some("3")), ("", Some("3"))]);
    assert_eq!(dump(&*before, f.tree), "a=1 b=1");
    assert_eq!(dump(&*between, f.tree), "a=2 c=2");
    assert_eq!(f.now(), "=3 b=3 c=2");
    f.engine.verify().unwrap();
}

#[test]
fn a_transaction_sees_its_snapshot_and_its_own_writes() {
    let f = fixture();
    f.write(&[("a", Some("1")), ("b", Some("1")), ("d", Some("1"))]);
    let mut txn = f.engine.begin_write().unwrap();
    txn.put(f.tree, b"b", b"own").unwrap();
    txn.insert(f.tree, b"c", b"own").unwrap();
    assert!(txn.delete(f.tree, b"d").unwrap());
    assert!(!txn.delete(f.tree, b"d").unwrap());
    f.write(&[("a", Some("other")), ("e", Some("other"))]);
    assert_eq!(dump(&*txn, f.tree), "a=1 b=own c=own");
    assert_eq!(f.now(), "a=other b=1 d=1 e=other");
    commit(txn).unwrap();
    assert_eq!(f.now(), "a=other b=own c=own e=other");
    f.engine.begin_write().unwrap().rollback();
}

#[test]
fn the_first_committer_wins() {
    // I3, M4.
    let put: fn(&mut dyn Transaction, TreeId) -> Result<()> = |t, tree| t.put(tree, b"k", b"v");
    let delete: fn(&mut dyn Transaction, TreeId) -> Result<()> =
        |t, tree| t.delete(tree, b"k").map(drop);
    let insert: fn(&mut dyn Transaction, TreeId) -> Result<()> =
        |t, tree| t.insert(tree, b"k", b"v");
    for first in [put, delete, insert] {
        for second in [put, delete, insert] {
            // The second transaction writes before the first commits, and after it.
            for early in [true, false] {
                let f = fixture();
                let (mut a, mut b) = (
                    f.engine.begin_write().unwrap(),
                    f.engine.begin_write().unwrap(),
                );
                first(&mut *a, f.tree).unwrap();
                if early {
                    second(&mut *b, f.tree).unwrap();
                }
                commit(a).unwrap();
                let late = if early {
                    Ok(())
                } else {
                    second(&mut *b, f.tree)
                };
                assert_eq!(late.is_err(), !early);
                refused(commit(b), ErrorKind::Conflict, "retry");
                assert_eq!(f.counter("conflicts"), 1);
                let mut again = f.engine.begin_write().unwrap();
                again.put(f.tree, b"k", b"new").unwrap();
                commit(again).unwrap();
                assert_eq!(f.now(), "k=new");
            }
        }
    }
}

#[test]
fn blind_writes_never_conflict_unless_the_key_was_also_written_with_care() {
    let f = fixture();
    f.write(&[("k", Some("0")), ("l", Some("0"))]);
    let mut blind = f.engine.begin_write().unwrap();
    blind.put_blind(f.tree, b"k", b"blind").unwrap();
    let mut mixed = f.engine.begin_write().unwrap();
    mixed.put(f.tree, b"k", b"mixed").unwrap();
    f.write(&[("k", Some("1")), ("l", Some("1"))]);
    blind.delete_blind(f.tree, b"l").unwrap();
    mixed.put_blind(f.tree, b"k", b"mixed").unwrap();
    commit(blind).unwrap();
    assert_eq!(f.now(), "k=blind");
    refused(commit(mixed), ErrorKind::Conflict, "[tree t] [key \"k\"]");
    assert_eq!(f.now(), "k=blind");
}

#[test]
fn an_existing_key_leaves_the_transaction_usable() {
    let f = fixture();
    f.write(&[("a", Some("1"))]);
    let mut txn = f.engine.begin_write().unwrap();
    refused(
        txn.insert(f.tree, b"a", b"x"),
        ErrorKind::Exists,
        "[tree t]",
    );
    txn.insert(f.tree, b"b", b"2").unwrap();
    refused(txn.insert(f.tree, b"b", b"x"), ErrorKind::Exists, "insert");
    txn.delete(f.tree, b"a").unwrap();
    txn.insert(f.tree, b"a", b"3").unwrap();
    commit(txn).unwrap();
    assert_eq!(f.now(), "a=3 b=2");
}

#[test]
fn delete_range_removes_what_the_transaction_sees() {
    let f = fixture();
    f.write(&[("a", Some("1")), ("b", Some("1")), ("d", Some("1"))]);
    let mut txn = f.engine.begin_write().unwrap();
    txn.put(f.tree, b"c", b"own").unwrap();
    txn.delete_range(f.tree, KeyRange::from(b"b")).unwrap();
    txn.delete_range(f.tree, KeyRange::half_open(b"z", b"a"))
        .unwrap();
    assert_eq!(dump(&*txn, f.tree), "a=1");
    f.write(&[("bb", Some("inserted meanwhile"))]);
    commit(txn).unwrap();
    assert_eq!(f.now(), "a=1 bb=inserted meanwhile");

    let mut txn = f.engine.begin_write().unwrap();
    txn.delete_range(f.tree, KeyRange::ALL).unwrap();
    f.write(&[("a", Some("changed meanwhile"))]);
    refused(commit(txn), ErrorKind::Conflict, "commit");
}

#[test]
fn a_batch_is_applied_in_order_or_not_at_all() {
    // I1, for readers.
    let f = fixture();
    f.write(&[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]);
    let reader = f.engine.begin_read().unwrap();
    let mut batch = Batch::new();
    batch.put(f.tree, b"ab", b"2");
    batch.delete_range(f.tree, KeyRange::half_open(b"ab", b"c"));
    batch.put(f.tree, b"b", b"2");
    batch.put(f.tree, b"b", b"3");
    batch.delete(f.tree, b"b");
    batch.put(f.tree, b"b", b"4");
    batch.delete_range(f.tree, KeyRange::half_open(b"z", b"a"));
    f.engine.write(&batch, Durability::Group).unwrap();
    assert_eq!(f.now(), "a=1 b=4 c=1");
    assert_eq!(dump(&*reader, f.tree), "a=1 b=1 c=1");
    f.engine.verify().unwrap();

    let limits = f.engine.capabilities().limits;
    let long = vec![0; limits.key_max + 1];
    for bad in [0, 1, 2] {
        batch.clear();
        batch.put(f.tree, b"a", b"never");
        match bad {
            0 => batch.put(f.tree, &long, b""),
            1 => batch.delete(f.tree, &long),
            _ => batch.put(TreeId(99), b"k", b""),
        }
        let named = if bad == 2 { "[tree #99]" } else { "[tree t]" };
        let result = f.engine.write(&batch, Durability::None);
        refused(result, ErrorKind::Invalid, named);
    }
    assert_eq!(f.now(), "a=1 b=4 c=1");
}

#[test]
fn keys_up_to_the_limit_are_kept_and_longer_ones_are_absent() {
    let f = fixture();
    let key_max = f.engine.capabilities().limits.key_max;
    let (longest, longer) = (vec![7; key_max], vec![7; key_max + 1]);
    let mut txn = f.engine.begin_write().unwrap();
    txn.put(f.tree, &longest, b"v").unwrap();
    let long = txn.put(f.tree, &longer, b"v");
    refused(long, ErrorKind::Invalid, "65535");
    refused(txn.delete(f.tree, &longer), ErrorKind::Invalid, "65536");
    commit(txn).unwrap();
    let reader = f.engine.begin_read().unwrap();
    assert_eq!(reader.get(f.tree, &longest).unwrap().unwrap(), b"v");
    assert_eq!(reader.get(f.tree, &longer).unwrap(), None);
}

#[test]
fn a_dropped_tree_is_read_by_old_snapshots_only() {
    let f = fixture();
    f.write(&[("a", Some("1"))]);
    let reader = f.engine.begin_read().unwrap();
    let mut wrote = f.engine.begin_write().unwrap();
    wrote.put_blind(f.tree, b"b", b"2").unwrap();
    let mut writes = f.engine.begin_write().unwrap();
    f.engine.drop_tree("t").unwrap();
    refused(commit(wrote), ErrorKind::Conflict, "dropped");
    let late = writes.put(f.tree, b"b", b"2");
    refused(late, ErrorKind::Conflict, "dropped");
    drop(writes);
    assert_eq!(dump(&*reader, f.tree), "a=1");

    let again = f.engine.create_tree("t", &TreeOptions::default()).unwrap();
    assert_ne!(again, f.tree);
    assert_eq!(dump(&*reader, again), "");
    let new = f.engine.begin_read().unwrap();
    refused(new.get(f.tree, b"a"), ErrorKind::Invalid, "[tree t]");
    let cursor = new.cursor(f.tree, KeyRange::ALL, Direction::Forward);
    refused(cursor.map(drop), ErrorKind::Invalid, "[tree t]");
    let stats = f.engine.tree_stats(f.tree, StatScope::Exact);
    refused(stats, ErrorKind::Invalid, "[tree t]");
    drop((reader, new));
    let mut batch = Batch::new();
    batch.delete_range(f.tree, KeyRange::ALL);
    let stale = f.engine.write(&batch, Durability::None);
    refused(stale, ErrorKind::Invalid, "[tree t]");
    assert_eq!(f.counter("held_bytes"), 0, "the dropped tree is freed");
    f.engine.verify().unwrap();
}

#[test]
fn trees_are_created_opened_listed_and_dropped_by_name() {
    let f = fixture();
    let options = TreeOptions::default();
    let other = f.engine.create_tree("s", &options).unwrap();
    assert_eq!(f.engine.open_tree("s").unwrap(), other);
    assert_eq!(f.engine.trees().unwrap(), ["s", "t"]);
    refused(f.engine.create_tree("s", &options), ErrorKind::Exists, "s");
    refused(
        f.engine.create_tree("a b", &options),
        ErrorKind::Invalid,
        "' '",
    );
    f.engine.drop_tree("s").unwrap();
    refused(f.engine.open_tree("s"), ErrorKind::NotFound, "named s");
    refused(f.engine.drop_tree("s"), ErrorKind::NotFound, "named s");
    assert_eq!(f.engine.trees().unwrap(), ["t"]);
}

#[test]
fn versions_nobody_sees_are_dropped() {
    // M2: which versions are dropped, and which are kept.
    let f = fixture();
    f.write(&[("a", Some("1")), ("b", Some("1"))]);
    f.write(&[("a", Some("2"))]);
    assert_eq!(f.counter("versions"), 2, "overwritten without readers");
    let reader = f.engine.begin_read().unwrap();
    f.write(&[("a", Some("3")), ("b", None)]);
    assert_eq!(f.counter("versions"), 4);
    for i in 0..100 {
        let _unused = f.engine.begin_read().unwrap();
        f.write(&[("a", Some(&i.to_string()))]);
    }
    assert!(
        f.counter("versions") <= 5,
        "what ended snapshots saw is gone"
    );
    assert_eq!(f.counter("queued_keys"), 2, "a key is queued once");
    assert_eq!(dump(&*reader, f.tree), "a=2 b=1");
    drop(reader);
    assert_eq!((f.counter("versions"), f.counter("queued_keys")), (1, 0));
    assert_eq!(f.now(), "a=99");
    f.engine.verify().unwrap();
}

#[test]
fn a_long_run_of_deletes_leaves_nothing() {
    let f = fixture();
    let mut batch = Batch::new();
    for round in 0..50_u32 {
        // Readers overlap, so that every delete leaves a tombstone for a while.
        let reader = f.engine.begin_read().unwrap();
        batch.clear();
        for key in 0..200_u32 {
            batch.put(f.tree, &(round * 200 + key).to_be_bytes(), b"value");
            batch.delete(f.tree, &(round * 200 + key).to_be_bytes());
        }
        f.engine.write(&batch, Durability::None).unwrap();
        assert!(f.counter("versions") <= 600);
        drop(reader);
    }
    let settled = f.engine.settle(std::time::Duration::from_secs(60));
    assert_eq!(settled.unwrap(), Compaction::Complete);
    assert_eq!((f.counter("versions"), f.counter("held_bytes")), (0, 0));
}

#[test]
fn compaction_drops_what_the_queue_does_not_know_yet() {
    let f = fixture();
    let mut batch = Batch::new();
    for round in 0..3 {
        batch.clear();
        for key in 0..3000_u32 {
            batch.put(f.tree, &key.to_be_bytes(), &[round]);
        }
        f.engine.write(&batch, Durability::None).unwrap();
    }
    let oldest = f.engine.begin_read().unwrap();
    for round in 3..5 {
        let between = f.engine.begin_read().unwrap();
        batch.clear();
        for key in 0..3000_u32 {
            batch.put(f.tree, &key.to_be_bytes(), &[round]);
        }
        f.engine.write(&batch, Durability::None).unwrap();
        drop(between);
    }
    // The versions of rounds 2, 3 and 4: a reader of round 3 has ended, the reader of round 2 has
    // not.
    assert_eq!(f.counter("versions"), 9000);
    let mut calls = Vec::new();
    let mut compact = |range, flow: Flow| {
        calls.clear();
        let mut watch = |progress| {
            calls.push(progress);
            flow
        };
        let result = f.engine.compact(f.tree, range, &mut watch).unwrap();
        let (first, last) = (calls[0], calls[calls.len() - 1]);
        assert_eq!(first.done_bytes, 0);
        assert!(flow == Flow::Cancel || last.done_bytes == last.total_bytes);
        (result, calls.len())
    };
    let cancelled = compact(KeyRange::ALL, Flow::Cancel);
    assert_eq!(cancelled, (Compaction::Cancelled, 1));
    assert_eq!(f.counter("versions"), 9000);
    let crossed = KeyRange::half_open(b"b", b"a");
    assert_eq!(compact(crossed, Flow::Continue).0, Compaction::Complete);
    let all = compact(KeyRange::ALL, Flow::Continue);
    assert_eq!(all, (Compaction::Complete, 4));
    assert_eq!(f.counter("versions"), 6000);
    assert_eq!(oldest.get(f.tree, &[0; 4]).unwrap().unwrap(), [2]);
    f.engine.verify().unwrap();
}

#[test]
fn beyond_the_limit_puts_are_full_and_reads_and_deletes_go_on() {
    let f = fixture_with(&own("limit", "64K"));
    let mut batch = Batch::new();
    let mut written = 0_u32;
    let full = loop {
        batch.clear();
        batch.put(f.tree, &written.to_be_bytes(), &[0; 1000]);
        match f.engine.write(&batch, Durability::None) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    refused::<()>(Err(full), ErrorKind::Full, "raise the option limit");
    assert!((40..64).contains(&written), "{written}");
    assert!(f.counter("held_bytes") <= ByteSize::kib(64).bytes());
    let mut txn = f.engine.begin_write().unwrap();
    let put = txn.put(f.tree, b"k", &[0; 1000]);
    refused(put, ErrorKind::Full, "limit");
    assert!(txn.get(f.tree, &[0; 4]).unwrap().is_some());
    assert!(txn.delete(f.tree, &[0; 4]).unwrap());
    commit(txn).unwrap();
    batch.clear();
    batch.delete_range(f.tree, KeyRange::from(&1_u32.to_be_bytes()));
    f.engine.write(&batch, Durability::None).unwrap();
    f.write(&[("room", Some("again"))]);
    assert_eq!(f.now(), "room=again");
    f.engine.verify().unwrap();
}

#[test]
fn a_directory_is_open_once_and_belongs_to_one_engine() {
    let f = fixture();
    let path = f.directory.path();
    let second = factory().open(path, &EngineOptions::default());
    refused(
        second.map(drop),
        ErrorKind::Invalid,
        "open in another process",
    );
    f.write(&[("a", Some("1"))]);
    f.engine.close().unwrap();
    let again = factory().open(path, &EngineOptions::default()).unwrap();
    assert!(!again.capabilities().persistent, "I4: no promise");
    assert!(again.trees().unwrap().is_empty(), "nothing survives");

    let foreign = tempfile::tempdir().unwrap();
    identity::claim(foreign.path(), "lmdb", 1, "").unwrap();
    let opened = factory().open(foreign.path(), &EngineOptions::default());
    refused(opened.map(drop), ErrorKind::Invalid, "lmdb");
}

#[test]
fn options_are_checked() {
    for (name, value, text) in [("limit", "much", "much"), ("size", "1", "limit")] {
        let directory = tempfile::tempdir().unwrap();
        let opened = factory().open(directory.path(), &own(name, value));
        refused(opened.map(drop), ErrorKind::Invalid, text);
    }
    let f = fixture_with(&EngineOptions {
        log: false,
        ..own("limit", "none")
    });
    let mut batch = Batch::new();
    batch.put(f.tree, b"a", b"1");
    // I4: without a log, only commits that promise nothing are acknowledged.
    let written = f.engine.write(&batch, Durability::Interval);
    refused(written, ErrorKind::Unsupported, "interval");
    let txn = f.engine.begin_write().unwrap();
    let synced = txn.commit(Durability::Sync);
    refused(synced, ErrorKind::Unsupported, "sync");
    f.engine.write(&batch, Durability::None).unwrap();
    assert_eq!(f.now(), "a=1");
}

#[test]
fn what_it_cannot_do_is_unsupported() {
    // I5.
    let f = fixture();
    let mut watch = |_| Flow::Continue;
    let backup = f.engine.backup(f.directory.path(), &mut watch);
    refused(backup, ErrorKind::Unsupported, "backup");
    let map = f.engine.storage_map();
    refused(map, ErrorKind::Unsupported, "storage map");
    f.engine.checkpoint().unwrap();
    f.engine.sync_log().unwrap();
    assert_eq!(*f.engine.capabilities(), factory().capabilities());
}

#[test]
fn statistics_of_a_tree_are_exact() {
    let f = fixture();
    let reader = f.engine.begin_read().unwrap();
    f.write(&[("a", Some("12")), ("b", Some("345")), ("c", Some("6"))]);
    f.write(&[("b", Some("3")), ("c", None)]);
    let stats = f.engine.tree_stats(f.tree, StatScope::Quick).unwrap();
    assert_eq!((stats.entries.value, stats.entries.exact), (2, true));
    assert_eq!(stats.live_bytes, Some(5));
    assert_eq!(f.counter("snapshots"), 1);
    assert_eq!(f.counter("commits"), 2);
    drop(reader);
}

#[test]
fn get_many_calls_back_without_holding_a_lock() {
    let f = fixture();
    let keys: Vec<[u8; 1]> = (0..200).map(|k| [k]).collect();
    let mut batch = Batch::new();
    for key in keys.iter().step_by(2) {
        batch.put(f.tree, key, key);
    }
    f.engine.write(&batch, Durability::None).unwrap();
    let reader = f.engine.begin_read().unwrap();
    let some: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
    let mut seen = 0;
    let mut visit = |index: usize, value: Option<&[u8]>| {
        assert_eq!(value, index.is_multiple_of(2).then_some(some[index]));
        f.write(&[("written in the callback", Some("1"))]);
        seen += 1;
    };
    reader.get_many(f.tree, &some, &mut visit).unwrap();
    assert_eq!(seen, 200);
}

#[test]
fn seek_goes_back_and_stays_in_the_range() {
    let f = fixture();
    f.write(&["a", "b", "c", "d", "e"].map(|k| (k, Some(k))));
    let reader = f.engine.begin_read().unwrap();
    let range = KeyRange {
        start: Bound::Excluded(b"a"),
        end: Bound::Included(b"d"),
    };
    for (direction, script) in [
        (Direction::Forward, "c:c a:b .c e:- .- b:b .c .d .- .- bb:c"),
        (
            Direction::Backward,
            "c:c e:d .c a:- .- d:d .c .b .- .- bb:b",
        ),
    ] {
        let mut cursor = reader.cursor(f.tree, range, direction).unwrap();
        for step in script.split(' ') {
            let (found, expected) = match step.split_once(':') {
                Some((key, expected)) => (cursor.seek(key.as_bytes()).unwrap(), expected),
                None => (cursor.advance().unwrap(), &step[1..]),
            };
            assert_eq!(found, expected != "-", "{step}");
            let expected = if found { expected } else { "" };
            assert_eq!(cursor.key(), expected.as_bytes(), "{step}");
            assert_eq!(cursor.value(), expected.as_bytes(), "{step}");
        }
    }
}

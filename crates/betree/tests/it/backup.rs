//! Copies of a store during writes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use betree::{
    BackupNext, BackupPart, Batch, Db, Direction, Durability, ErrorKind, MasterKey, Options,
    TreeId, TreeOptions,
};

use crate::inspect::tiny;

type Model = BTreeMap<u64, u64>;

/// The changes of commit `number` in both trees: it sets some keys to its number and removes
/// others.
fn changes(number: u64) -> impl Iterator<Item = (u64, bool)> {
    (0..40).map(move |i| ((number * 7919 + i * 104_729) % 3000, i % 6 != 5))
}

fn apply(model: &mut Model, number: u64) {
    for (key, put) in changes(number) {
        if put {
            model.insert(key, number);
        } else {
            model.remove(&key);
        }
    }
}

fn commit(db: &Db, trees: &[TreeId], number: u64) {
    let mut batch = Batch::new();
    for &tree in trees {
        for (key, put) in changes(number) {
            if put {
                batch.put(tree, &key.to_be_bytes(), &number.to_be_bytes());
            } else {
                batch.delete(tree, &key.to_be_bytes());
            }
        }
        batch.put(tree, b"last", &number.to_be_bytes());
    }
    db.write(&batch, Durability::None).unwrap();
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

/// The newest commit in the copy; checks that the copy contains exactly the commits up to it.
fn newest(directory: &Path, options: Options) -> u64 {
    let db = Db::open(directory, options).unwrap();
    db.verify().unwrap();
    let mut last = None;
    for name in ["a", "b"] {
        let tree = db.open_tree(name).unwrap();
        let snapshot = db.begin_read().unwrap();
        let of_tree = snapshot
            .get(tree, b"last")
            .unwrap()
            .map_or(0, |v| number(&v));
        assert_eq!(*last.get_or_insert(of_tree), of_tree, "commits are whole");
        let mut model = Model::new();
        (1..=of_tree).for_each(|number| apply(&mut model, number));
        let mut cursor = snapshot
            .cursor(
                tree,
                Bound::Unbounded,
                Bound::Excluded(b"last"),
                Direction::Forward,
            )
            .unwrap();
        let mut found = Model::new();
        while cursor.advance().unwrap() {
            found.insert(number(cursor.key()), number(cursor.value()));
        }
        assert!(found == model, "the copy is a prefix of the history");
    }
    // The copy is an ordinary store.
    let tree = db.open_tree("a").unwrap();
    commit(&db, &[tree], 1);
    db.settle(Duration::from_secs(60)).unwrap();
    db.verify().unwrap();
    db.close().unwrap();
    last.unwrap()
}

fn copies_are_prefixes(options: &Options, copy_options: &Options) {
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(home.path().join("store"), options.clone()).unwrap();
    let make = |name| db.create_tree(name, TreeOptions::default()).unwrap();
    let trees = [make("a"), make("b")];
    let (committed, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut copies = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                commit(&db, &trees, number);
                committed.store(number, Ordering::Release);
                if number % 50 == 0 {
                    // Dropped, perhaps while it is copied, and created again.
                    let _ = db.drop_tree("c");
                    let tree = db.create_tree("c", TreeOptions::default()).unwrap();
                    commit(&db, &[tree], number);
                }
            }
        });
        for index in 0..6 {
            while committed.load(Ordering::Acquire) < index * 150 {
                std::thread::yield_now();
            }
            let before = committed.load(Ordering::Acquire);
            let directory = home.path().join(format!("copy {index}"));
            let mut last = 0;
            let mut watch = |done: u64, total: u64| {
                assert!(last <= done, "it goes forward");
                assert!(done <= total, "and ends");
                last = done;
                true
            };
            assert!(db.backup(&directory, &mut watch).unwrap());
            copies.push((directory, before));
        }
        stop.store(true, Ordering::Release);
    });
    for (directory, before) in copies {
        assert!(before <= newest(&directory, copy_options.clone()));
    }
    db.verify().unwrap();
}

#[test]
fn a_copy_of_a_store_with_a_log_is_a_prefix_of_its_history() {
    copies_are_prefixes(&tiny(2), &tiny(0));
}

#[test]
fn a_copy_of_a_store_without_a_log_is_a_prefix_of_its_history() {
    copies_are_prefixes(&tiny(2).with_log(false), &tiny(0));
}

#[test]
fn a_copy_of_an_encrypted_store_is_a_prefix_of_its_history() {
    let encrypted = |options: Options| options.with_encryption(Some(MasterKey::new([7; 32])));
    copies_are_prefixes(&encrypted(tiny(2)), &encrypted(tiny(0)));
}

#[test]
fn a_copy_is_made_without_threads_beside_a_writer() {
    copies_are_prefixes(&tiny(0), &tiny(0).with_log(false));
}

#[test]
fn a_copy_that_is_stopped_leaves_no_file() {
    // I2.
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(home.path().join("store"), tiny(0)).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    (1..50).for_each(|number| commit(&db, &[tree], number));
    for stop_at in 0..3 {
        let copy = home.path().join("copy");
        let mut asked = 0;
        let mut watch = |_, _| {
            asked += 1;
            asked <= stop_at
        };
        assert!(!db.backup(&copy, &mut watch).unwrap());
        assert_eq!(std::fs::read_dir(&copy).unwrap().count(), 0);
    }
    let copy = home.path().join("copy");
    assert!(db.backup(&copy, &mut |_, _| true).unwrap());
    let error = db.backup(&copy, &mut |_, _| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
}

/// Stream a copy into a directory without the runs in `has`, which gets the others; the number of
/// runs that were left out.
fn increment(db: &Db, has: &mut BTreeMap<[u8; 16], Vec<u8>>, directory: &Path) -> usize {
    let (mut data, mut run, mut kept) = (Vec::new(), None, 0);
    let complete = db.stream_backup(&mut |part| {
        match part {
            BackupPart::Begin { key_file, .. } => assert!(key_file.is_none()),
            BackupPart::Run { id, bytes } => {
                let length = usize::try_from(bytes).unwrap();
                if let Some(known) = has.get(&id) {
                    assert_eq!(known.len(), length, "I4: a run has one length");
                    data.extend_from_slice(known);
                    kept += 1;
                    return BackupNext::Skip;
                }
                run = Some((id, data.len(), data.len() + length));
            }
            BackupPart::Data(bytes) => {
                data.extend_from_slice(bytes);
                if let Some((id, start, end)) = run.take_if(|(_, _, end)| *end <= data.len()) {
                    has.insert(id, data[start..end].to_vec());
                }
            }
        }
        BackupNext::Continue
    });
    assert!(complete.unwrap());
    std::fs::create_dir(directory).unwrap();
    std::fs::write(directory.join("data.betree"), data).unwrap();
    kept
}

#[test]
fn runs_that_an_earlier_copy_has_are_left_out() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let mut has = BTreeMap::new();
    let mut left_out = 0;
    for round in 0..6 {
        let db = Db::open(&store, tiny(0)).unwrap();
        let open = |name| match db.open_tree(name) {
            Ok(tree) => tree,
            Err(_) => db.create_tree(name, TreeOptions::default()).unwrap(),
        };
        let trees = [open("a"), open("b")];
        let found = db.begin_read().unwrap().get(trees[0], b"last").unwrap();
        let first = found.map_or(0, |bytes| number(&bytes)) + 1;
        let last = first + 19;
        (first..=last).for_each(|number| commit(&db, &trees, number));
        let copy = home.path().join(format!("copy {round}"));
        increment(&db, &mut has, &copy);
        // Nothing has changed.
        let again = home.path().join(format!("again {round}"));
        left_out += increment(&db, &mut has, &again);
        for copy in [copy, again] {
            assert_eq!(newest(&copy, tiny(0)), last, "I4");
        }
        // Every other time what no checkpoint has is lost, and other runs are made.
        if round % 2 == 0 {
            db.close().unwrap();
        }
    }
    assert_ne!(left_out, 0);
}

#[test]
fn an_empty_store_can_be_copied() {
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(home.path().join("store"), tiny(0)).unwrap();
    let copy = home.path().join("copy");
    assert!(db.backup(&copy, &mut |_, _| true).unwrap());
    let copy = Db::open(&copy, tiny(0)).unwrap();
    assert!(copy.trees().unwrap().is_empty());
    copy.verify().unwrap();
}

#[test]
fn a_copy_beside_bulk_commits_holds_all_of_each_or_nothing() {
    let home = tempfile::tempdir().unwrap();
    let db = Db::open(home.path().join("store"), tiny(2)).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..40_u64 {
                // Several times what memory holds.
                let mut batch = Batch::new();
                for key in 0..20_000_u64 {
                    batch.put(
                        tree,
                        &key.to_be_bytes(),
                        &[round.to_be_bytes(); 10].concat(),
                    );
                }
                db.write(&batch, Durability::None).unwrap();
            }
            stop.store(true, Ordering::Release);
        });
        for index in 0.. {
            if stop.load(Ordering::Acquire) {
                break;
            }
            let directory = home.path().join(format!("copy {index}"));
            assert!(db.backup(&directory, &mut |_, _| true).unwrap());
            let copy = Db::open(&directory, tiny(0)).unwrap();
            let tree = copy.open_tree("t").unwrap();
            let snapshot = copy.begin_read().unwrap();
            let all = (Bound::Unbounded, Bound::Unbounded);
            let mut cursor = snapshot
                .cursor(tree, all.0, all.1, Direction::Forward)
                .unwrap();
            let (mut count, mut first) = (0, None);
            while cursor.advance().unwrap() {
                let round = cursor.value().to_vec();
                assert_eq!(*first.get_or_insert_with(|| round.clone()), round);
                count += 1;
            }
            assert!(count == 0 || count == 20_000, "{count}");
        }
    });
}

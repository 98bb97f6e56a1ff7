//! Handles of trees, iterators from both ends and reads of several keys, against a model.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Barrier};

use betree::{AsKeyRange, Batch, Db, Durability, ErrorKind, Iter, Options, Tree, TreeOptions};
use sim::{SimOptions, SimVfs};
use stdx::rng::Rng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const KEYS: u64 = 400;

/// A store whose trees have many buckets and runs.
fn open() -> Db {
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(4 << 10)
        .with_page(256)
        .with_threads(0);
    let disk = SimVfs::new(SimOptions::default());
    Db::open_with(Arc::new(disk), Path::new("/store"), options).unwrap()
}

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("k{:04}", rng.below(KEYS)).into_bytes()
}

/// Put and delete about as many keys as there are, in several flushes; some stay in memory.
fn fill(db: &Db, tree: &Tree, rng: &mut Rng) -> Model {
    let mut model = Model::new();
    for round in 0..6_u8 {
        let mut batch = Batch::new();
        for _ in 0..KEYS / 3 {
            let key = key(rng);
            if rng.chance(0.3) {
                batch.delete(tree.id(), &key);
                model.remove(&key);
            } else {
                let value = vec![round; 60];
                batch.put(tree.id(), &key, &value);
                model.insert(key, value);
            }
        }
        db.write(&batch, Durability::None).unwrap();
        if round < 5 {
            db.flush().unwrap();
        }
    }
    model
}

fn bounds(rng: &mut Rng) -> Bounds {
    let mut bound = || match rng.below(4) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key(rng)),
        _ => Bound::Excluded(key(rng)),
    };
    (bound(), bound())
}

/// What the model has within bounds that may cross.
fn within(model: &Model, range: &Bounds) -> Vec<(Vec<u8>, Vec<u8>)> {
    let inside = |key: &&Vec<u8>| {
        let (start, end) = range;
        let after = match start {
            Bound::Unbounded => true,
            Bound::Included(low) => low <= *key,
            Bound::Excluded(low) => low < *key,
        };
        let before = match end {
            Bound::Unbounded => true,
            Bound::Included(high) => *key <= high,
            Bound::Excluded(high) => *key < high,
        };
        after && before
    };
    let entries = model.iter().filter(|(key, _)| inside(key));
    entries.map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Walk from both ends, in turns that are drawn, and put together what is given.
fn from_both_ends(mut entries: Iter<'_>, rng: &mut Rng) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    let share = rng.unit();
    loop {
        let given = if rng.chance(share) {
            entries.next().map(|entry| front.push(entry.unwrap()))
        } else {
            entries.next_back().map(|entry| back.push(entry.unwrap()))
        };
        if given.is_none() {
            break;
        }
    }
    assert!(entries.next().is_none() && entries.next_back().is_none());
    back.reverse();
    front.append(&mut back);
    front
}

#[test]
fn an_iterator_gives_each_entry_once_from_whichever_end() {
    // db::iter: I1.
    for seed in 0..8 {
        let mut rng = Rng::new(seed);
        let db = open();
        let tree = db.tree("t").unwrap();
        let model = fill(&db, &tree, &mut rng);
        if seed % 2 == 1 {
            while db.step().unwrap() {}
        }
        for _ in 0..60 {
            let range = bounds(&mut rng);
            let expected = within(&model, &range);
            let entries = tree.range(range.clone()).unwrap();
            assert_eq!(
                from_both_ends(entries, &mut rng),
                expected,
                "seed {seed}, {range:?}"
            );
            let forward: Result<Vec<_>, _> = tree.range(range.clone()).unwrap().collect();
            assert_eq!(forward.unwrap(), expected);
            let backward: Result<Vec<_>, _> = tree.range(range).unwrap().rev().collect();
            assert!(backward.unwrap().iter().eq(expected.iter().rev()));
        }
    }
}

#[test]
fn transactions_iterate_over_their_own_writes_too() {
    let mut rng = Rng::new(11);
    let db = open();
    let tree = db.tree("t").unwrap();
    let mut model = fill(&db, &tree, &mut rng);
    let mut transaction = db.begin().unwrap();
    for number in 0..200 {
        let key = key(&mut rng);
        if rng.chance(0.5) {
            transaction.delete(tree.id(), &key).unwrap();
            model.remove(&key);
        } else {
            transaction.put(tree.id(), &key, b"own").unwrap();
            model.insert(key, b"own".to_vec());
        }
        if number % 10 == 0 {
            let range = bounds(&mut rng);
            let expected = within(&model, &range);
            let entries = transaction.range(tree.id(), range).unwrap();
            assert_eq!(from_both_ends(entries, &mut rng), expected);
        }
    }
    let expected = within(
        &model,
        &(
            Bound::Included(b"k01".to_vec()),
            Bound::Excluded(b"k02".to_vec()),
        ),
    );
    let entries = transaction.prefix(tree.id(), "k01").unwrap();
    assert_eq!(from_both_ends(entries, &mut rng), expected);
}

#[test]
fn a_prefix_is_the_range_of_the_keys_that_begin_with_it() {
    let db = open();
    let tree = db.tree("t").unwrap();
    let keys: [&[u8]; 7] = [b"", b"a", b"a\0", b"a\xff", b"a\xff\xff", b"b", b"\xff\xff"];
    for key in keys {
        tree.put(key, key, Durability::None).unwrap();
    }
    let prefixes: [&[u8]; 6] = [b"", b"a", b"a\xff", b"\xff", b"b", b"c"];
    for prefix in prefixes {
        let expected: Vec<&[u8]> = {
            let mut keys = keys.to_vec();
            keys.retain(|key| key.starts_with(prefix));
            keys.sort_unstable();
            keys
        };
        let snapshot = db.begin_read().unwrap();
        for entries in [tree.prefix(prefix), snapshot.prefix(tree.id(), prefix)] {
            let found: Vec<Vec<u8>> = entries.unwrap().map(|entry| entry.unwrap().0).collect();
            assert_eq!(found, expected, "prefix {}", prefix.escape_ascii());
        }
    }
}

#[test]
fn several_keys_are_read_in_the_order_given() {
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let db = open();
        let tree = db.tree("t").unwrap();
        let mut model = fill(&db, &tree, &mut rng);
        let keys: Vec<Vec<u8>> = (0..500).map(|_| key(&mut rng)).collect();
        let expected = |model: &Model| -> Vec<Option<Vec<u8>>> {
            keys.iter().map(|key| model.get(key).cloned()).collect()
        };
        let snapshot = db.begin_read().unwrap();
        assert_eq!(tree.get_many(&keys).unwrap(), expected(&model));
        let mut transaction = db.begin().unwrap();
        let before = expected(&model);
        for key in keys.iter().step_by(7) {
            transaction.put(tree.id(), key, b"own").unwrap();
            model.insert(key.clone(), b"own".to_vec());
        }
        for key in keys.iter().step_by(11) {
            transaction.delete(tree.id(), key).unwrap();
            model.remove(key);
        }
        assert_eq!(
            transaction.get_many(tree.id(), &keys).unwrap(),
            expected(&model)
        );
        transaction.commit(Durability::None).unwrap();
        assert_eq!(tree.get_many(&keys).unwrap(), expected(&model));
        assert_eq!(snapshot.get_many(tree.id(), &keys).unwrap(), before);
    }
    let none: [&[u8]; 0] = [];
    let db = open();
    assert!(db.tree("t").unwrap().get_many(&none).unwrap().is_empty());
}

#[test]
fn an_iterator_sees_what_its_snapshot_sees() {
    let db = open();
    let tree = db.tree("t").unwrap();
    tree.put("a", "1", Durability::None).unwrap();
    let entries = tree.iter().unwrap();
    tree.put("b", "2", Durability::None).unwrap();
    tree.delete("a", Durability::None).unwrap();
    db.drop_tree("t").unwrap();
    let seen: Result<Vec<_>, _> = entries.collect();
    assert_eq!(seen.unwrap(), [(b"a".to_vec(), b"1".to_vec())]);
}

#[test]
fn a_tree_is_made_once_and_keeps_its_options() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path().join("store"), Options::default()).unwrap();
    let start = Barrier::new(4);
    let ids: Vec<u32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    db.tree("t").unwrap().id().0
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
    let tree = db
        .tree_with(
            "t",
            TreeOptions {
                ascending: true,
                point_lookups: true,
            },
        )
        .unwrap();
    assert_eq!((tree.id().0, tree.name()), (ids[0], "t"));
    assert_eq!(db.trees().unwrap(), ["t"]);
    let error = db.tree("").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn a_handle_outlives_its_tree_and_its_store_with_an_error() {
    let db = open();
    let (tree, other) = (db.tree("t").unwrap(), db.tree("u").unwrap());
    db.drop_tree("t").unwrap();
    let invalid = [
        tree.get("a").unwrap_err(),
        tree.get_many(&["a"]).unwrap_err(),
        tree.range("a"..).unwrap_err(),
        tree.put("a", "", Durability::None).unwrap_err(),
    ];
    assert!(
        invalid.iter().all(|e| e.kind() == ErrorKind::Invalid),
        "{invalid:?}"
    );
    // A tree of the same name is another one.
    assert_ne!(db.tree("t").unwrap().id(), tree.id());
    let mut entries = other.clone().iter().unwrap();
    db.close().unwrap();
    let closed = [
        other.get("a").unwrap_err(),
        other.iter().unwrap_err(),
        other.delete("a", Durability::None).unwrap_err(),
        entries.next().unwrap().unwrap_err(),
    ];
    assert!(
        closed.iter().all(|e| e.kind() == ErrorKind::Closed),
        "{closed:?}"
    );
    assert!(entries.next().is_none() && entries.next_back().is_none());
}

#[test]
fn ranges_of_many_types_mean_the_same() {
    fn count(tree: &Tree, range: impl AsKeyRange) -> usize {
        tree.range(range).unwrap().count()
    }
    let db = open();
    let tree = db.tree("t").unwrap();
    for number in 0..10_u8 {
        tree.put([number], "", Durability::None).unwrap();
    }
    assert_eq!(count(&tree, ..), 10);
    assert_eq!(count(&tree, [2_u8]..[5]), 3);
    assert_eq!(count(&tree, vec![2_u8]..=vec![5]), 4);
    assert_eq!(count(&tree, b"\x02"..), 8);
    assert_eq!(count(&tree, .."\x02"), 2);
    assert_eq!(count(&tree, ..="\x02".to_owned()), 3);
    assert_eq!(
        count(&tree, (Bound::Excluded(&[2_u8][..]), Bound::Unbounded)),
        7
    );
    assert_eq!(count(&tree, [5_u8]..[2]), 0);
}

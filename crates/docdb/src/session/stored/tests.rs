//! Writing and reading the stored state of sessions.

use kv::{Durability, EngineOptions, TreeOptions};

use super::*;

const ID: SessionId = SessionId {
    id: [7; 16],
    uid: [9; 32],
};

fn now() -> bson::DateTime {
    bson::DateTime::from_millis(1)
}

fn one() -> Done {
    Done {
        n: 1,
        modified: 1,
        ..Done::default()
    }
}

fn upsert(id: i32) -> Done {
    Done {
        n: 1,
        upserted: Some(id.into()),
        ..Done::default()
    }
}

/// A session and its stored records.
struct Lab {
    engine: Box<dyn kv::Engine>,
    tree: TreeId,
    executed: Executed,
    written: usize,
}

impl Lab {
    fn new() -> Lab {
        let directory = tempfile::tempdir().unwrap();
        let factory = kv::memory::factory();
        let engine = factory
            .open(directory.path(), &EngineOptions::default())
            .unwrap();
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        Lab {
            engine,
            tree,
            executed: Executed::new(),
            written: 0,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.written += key.len() + value.len();
        let mut txn = self.engine.begin_write().unwrap();
        txn.put(self.tree, key, value).unwrap();
        txn.commit(Durability::Interval).unwrap();
    }

    /// Commit the results of statements together.
    fn note(&mut self, runs: &[(i32, i32)], done: &Done) {
        let mut fresh = Executed::new();
        for (first, count) in runs {
            add(&self.executed, &mut fresh, *first, *count, done);
        }
        for (key, value) in records(&ID, 7, now(), &self.executed, &fresh).unwrap() {
            self.put(&key, &value);
        }
        self.executed.extend(fresh);
    }

    fn check(&self) {
        let snapshot = self.engine.begin_read().unwrap();
        let stored = load(snapshot.as_ref(), self.tree, &ID).unwrap().unwrap();
        assert_eq!(stored.number, 7);
        assert_eq!(stored.executed, self.executed);
        assert_eq!(stored.has_runs, 1 < self.executed.len());
    }

    fn runs(&self) -> Vec<(i32, i32)> {
        let runs = self.executed.iter();
        runs.map(|(first, (count, _))| (*first, *count)).collect()
    }
}

#[test]
fn statements_that_did_the_same_are_one_run() {
    let mut lab = Lab::new();
    for statement in 0..1000 {
        lab.note(&[(statement, 1)], &one());
    }
    lab.check();
    lab.note(&[(1000, 1)], &upsert(1));
    lab.note(&[(1001, 1)], &upsert(1));
    lab.note(&[(1003, 2), (2000, 1), (1005, 3)], &one());
    lab.note(&[(1008, 1)], &Done::default());
    lab.check();
    let wanted = [
        (0, 1000),
        (1000, 1),
        (1001, 1),
        (1003, 5),
        (1008, 1),
        (2000, 1),
    ];
    assert_eq!(lab.runs(), wanted);
}

#[test]
fn a_run_grows_wherever_it_is_stored() {
    let mut lab = Lab::new();
    lab.note(&[(-5, 2), (10, 1)], &one());
    lab.note(&[(-3, 1)], &one());
    lab.note(&[(11, 4)], &one());
    lab.check();
    assert_eq!(lab.runs(), [(-5, 3), (10, 5)]);
}

#[test]
fn what_n_upserts_write_grows_as_n() {
    let bytes = |n: i32| {
        let mut lab = Lab::new();
        for statement in 0..n {
            lab.note(&[(statement, 1)], &upsert(statement));
        }
        lab.check();
        lab.written
    };
    let (some, more) = (bytes(100), bytes(1000));
    assert!(more < 11 * some, "{some} and {more} bytes");
}

#[test]
fn runs_of_other_numbers_do_not_count() {
    let mut lab = Lab::new();
    let other = doc! { "n": 6_i64, "c": 1, "r": result(&one()) };
    let other = RawDocumentBuf::try_from(&other).unwrap();
    lab.put(&run_key(&ID, 3), other.as_bytes());
    lab.note(&[(0, 1)], &one());
    let snapshot = lab.engine.begin_read().unwrap();
    let stored = load(snapshot.as_ref(), lab.tree, &ID).unwrap().unwrap();
    assert_eq!(stored.executed, lab.executed);
    assert!(stored.has_runs);
}

#[test]
fn a_head_of_many_runs_is_read_and_goes_on() {
    let mut lab = Lab::new();
    let run = |i: i32, done: &Done| doc! { "i": i, "c": 1, "r": result(done) };
    let head = doc! { "n": 7_i64, "t": now(), "s": [run(0, &one()), run(1, &upsert(1))] };
    let head = RawDocumentBuf::try_from(&head).unwrap();
    lab.put(&key(&ID), head.as_bytes());
    lab.executed = [(0, (1, one())), (1, (1, upsert(1)))].into();
    lab.note(&[(2, 1)], &one());
    lab.note(&[(3, 1)], &one());
    lab.check();
    assert_eq!(lab.runs(), [(0, 1), (1, 1), (2, 2)]);
}

#[test]
fn keys_tell_heads_from_runs() {
    assert_eq!(of_key(&key(&ID)), Some((ID, true)));
    assert_eq!(of_key(&run_key(&ID, 0)), Some((ID, false)));
    assert_eq!(of_key(b"short"), None);
    let (start, end) = runs(&ID);
    for first in [i32::MIN, -1, 0, 1, i32::MAX] {
        let key = run_key(&ID, first);
        assert!(start <= key, "{first}");
        assert!(key < end, "{first}");
    }
}

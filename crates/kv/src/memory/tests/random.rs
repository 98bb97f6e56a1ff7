//! The engine against a naive model, driven by a tape: snapshots and transactions that overlap,
//! batches, compactions, and cursors that are walked while others commit.

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};

use stdx::Tape;

use super::*;

/// The committed entries, and for each key the commit that last wrote it.
#[derive(Clone, Default)]
struct Model {
    map: Map,
    written: BTreeMap<Vec<u8>, u64>,
    commits: u64,
}

struct Open<'e> {
    txn: Box<dyn Transaction + 'e>,
    /// The content that the transaction sees; then its own writes.
    map: Map,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    checked: BTreeSet<Vec<u8>>,
    begin: u64,
    lost: bool,
}

struct World<'e> {
    f: &'e Fixture,
    model: Model,
    readers: Vec<(Box<dyn Snapshot + 'e>, Map)>,
    open: Vec<Open<'e>>,
}

/// Keys of 0 to 2 bytes: about 600 different keys, so that a cursor over the tree needs many
/// chunks.
fn key(tape: &mut Tape) -> Vec<u8> {
    let length = [2, 2, 2, 2, 2, 2, 1, 0][tape.index(8)];
    (0..length).map(|_| b'a' + tape.byte() % 24).collect()
}

fn value(tape: &mut Tape) -> Vec<u8> {
    vec![tape.byte(); tape.index(5)]
}

fn bound(tape: &mut Tape) -> Bound<Vec<u8>> {
    match tape.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key(tape)),
        _ => Bound::Included(key(tape)),
    }
}

fn range(bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> KeyRange<'_> {
    KeyRange {
        start: bounds.0.as_ref().map(Vec::as_slice),
        end: bounds.1.as_ref().map(Vec::as_slice),
    }
}

fn keys_in(map: &Map, range: KeyRange<'_>) -> Vec<Vec<u8>> {
    let keys = map.keys().filter(|k| range.contains(k));
    keys.cloned().collect()
}

impl Model {
    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.written.insert(key.clone(), self.commits);
        match value {
            Some(value) => self.map.insert(key, value),
            None => self.map.remove(&key),
        };
    }

    fn is_newer(&self, key: &[u8], begin: u64) -> bool {
        self.written.get(key).is_some_and(|&commit| begin < commit)
    }
}

/// Write a batch of up to `count` changes to engine and model.
fn write(f: &Fixture, model: &mut Model, tape: &mut Tape, count: u32) {
    let mut batch = Batch::new();
    model.commits += 1;
    for _ in 0..=tape.below(count) {
        match tape.below(8) {
            0 => {
                let bounds = (bound(tape), bound(tape));
                // Mostly narrow ranges: wide ones would leave the tree empty.
                let range = range(&bounds);
                if keys_in(&model.map, range).len() < 100 {
                    batch.delete_range(f.tree, range);
                    for key in keys_in(&model.map, range) {
                        model.set(key, None);
                    }
                }
            }
            1 | 2 => {
                let key = key(tape);
                batch.delete(f.tree, &key);
                model.set(key, None);
            }
            _ => {
                let (key, value) = (key(tape), value(tape));
                batch.put(f.tree, &key, &value);
                model.set(key, Some(value));
            }
        }
    }
    f.engine.write(&batch, Durability::None).unwrap();
}

/// Walk a cursor over `view`, with writes of others in between, and compare it with `map`.
fn walk(
    f: &Fixture,
    model: &mut Model,
    tape: &mut Tape,
    view: &(impl Snapshot + ?Sized),
    map: &Map,
) {
    let bounds = (bound(tape), bound(tape));
    let range = range(&bounds);
    let forward = tape.chance(128);
    let direction = if forward {
        Direction::Forward
    } else {
        Direction::Backward
    };
    let inside = map.iter().filter(|(k, _)| range.contains(k));
    let mut entries: Vec<_> = inside.collect();
    if !forward {
        entries.reverse();
    }
    let mut cursor = view.cursor(f.tree, range, direction).unwrap();
    // Index of the entry to which the naive cursor moves next.
    let mut next = 0;
    for _ in 0..4 {
        if tape.chance(160) {
            let target = key(tape);
            let beyond = |k: &[u8]| {
                if forward {
                    *target <= *k
                } else {
                    *k <= *target
                }
            };
            next = entries
                .iter()
                .position(|(k, _)| beyond(k))
                .unwrap_or(entries.len());
            let found = cursor.seek(&target).unwrap();
            assert_at(&*cursor, found, entries.get(next));
            next += 1;
        }
        for _ in 0..tape.below(700) {
            let found = cursor.advance().unwrap();
            assert_at(&*cursor, found, entries.get(next));
            next += 1;
            if !found && tape.chance(200) {
                break;
            }
        }
        write(f, model, tape, 30);
    }
}

fn assert_at(cursor: &dyn crate::Cursor, found: bool, expected: Option<&(&Vec<u8>, &Vec<u8>)>) {
    assert_eq!(found, expected.is_some());
    let (key, value) = expected.map_or((&[][..], &[][..]), |(k, v)| (k, v));
    assert_eq!((cursor.key(), cursor.value()), (key, value));
}

impl World<'_> {
    fn step(&mut self, tape: &mut Tape) {
        match tape.below(12) {
            0 | 1 => write(self.f, &mut self.model, tape, 40),
            2 if self.readers.len() < 4 => {
                let reader = self.f.engine.begin_read().unwrap();
                self.readers.push((reader, self.model.map.clone()));
            }
            3 if !self.readers.is_empty() => {
                let index = tape.index(self.readers.len());
                self.readers.swap_remove(index);
            }
            4 if self.open.len() < 4 => self.open.push(Open {
                txn: self.f.engine.begin_write().unwrap(),
                map: self.model.map.clone(),
                writes: BTreeMap::new(),
                checked: BTreeSet::new(),
                begin: self.model.commits,
                lost: false,
            }),
            5 if !self.open.is_empty() => {
                let index = tape.index(self.open.len());
                let open = self.open.swap_remove(index);
                self.end(open, tape);
            }
            6 if !self.readers.is_empty() => {
                let index = tape.index(self.readers.len());
                let (reader, map) = &self.readers[index];
                walk(self.f, &mut self.model, tape, &**reader, map);
            }
            7 if !self.open.is_empty() => {
                let index = tape.index(self.open.len());
                let open = &self.open[index];
                walk(self.f, &mut self.model, tape, &*open.txn, &open.map);
            }
            8 => self.compact(tape),
            _ if !self.open.is_empty() => {
                let index = tape.index(self.open.len());
                for _ in 0..tape.below(20) {
                    self.open[index].change(self.f.tree, &self.model, tape);
                }
            }
            _ => {}
        }
    }

    fn compact(&self, tape: &mut Tape) {
        let bounds = (bound(tape), bound(tape));
        let mut watch = |_| Flow::Continue;
        let result = self
            .f
            .engine
            .compact(self.f.tree, range(&bounds), &mut watch);
        assert_eq!(result.unwrap(), Compaction::Complete);
        self.f.engine.verify().unwrap();
    }

    fn end(&mut self, open: Open<'_>, tape: &mut Tape) {
        let begin = open.begin;
        let mut checked = open.checked.iter();
        let lost = open.lost || checked.any(|key| self.model.is_newer(key, begin));
        if tape.chance(40) {
            open.txn.rollback();
        } else if lost {
            refused(commit(open.txn), ErrorKind::Conflict, "retry");
        } else {
            commit(open.txn).unwrap();
            self.model.commits += 1;
            for (key, value) in open.writes {
                self.model.set(key, value);
            }
        }
    }

    /// End all transactions and readers; then the engine must hold exactly what the model holds.
    fn finish(mut self, tape: &mut Tape) {
        while let Some(open) = self.open.pop() {
            self.end(open, tape);
        }
        self.readers.clear();
        let reader = self.f.engine.begin_read().unwrap();
        let mut cursor = reader
            .cursor(self.f.tree, KeyRange::ALL, Direction::Forward)
            .unwrap();
        for (key, value) in &self.model.map {
            assert!(cursor.advance().unwrap());
            assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        }
        assert!(!cursor.advance().unwrap());
        self.f.engine.verify().unwrap();
        let settled = self.f.engine.settle(std::time::Duration::from_secs(60));
        assert_eq!(settled.unwrap(), Compaction::Complete);
        assert_eq!(self.f.counter("queued_keys"), 0);
        assert_eq!(self.f.counter("versions"), self.model.map.len() as u64);
    }
}

impl Open<'_> {
    /// Apply one write, of any kind, to engine and model.
    fn change(&mut self, tree: TreeId, model: &Model, tape: &mut Tape) {
        let (key, value) = (key(tape), value(tape));
        let newer = model.is_newer(&key, self.begin);
        let present = self.map.contains_key(&key);
        let kind = tape.below(8);
        let blind = matches!(kind, 0 | 1);
        let result = match kind {
            0 => self.txn.put_blind(tree, &key, &value),
            1 => self.txn.delete_blind(tree, &key),
            2 => self
                .txn
                .delete(tree, &key)
                .map(|was| assert_eq!(was, present)),
            3 => self.txn.insert(tree, &key, &value),
            4 if tape.chance(60) => return self.delete_range(tree, tape),
            _ => self.txn.put(tree, &key, &value),
        };
        if newer && !blind {
            self.lost = true;
            return refused(result, ErrorKind::Conflict, "retry");
        }
        if kind == 3 && present {
            return refused(result, ErrorKind::Exists, "exists");
        }
        result.unwrap();
        if !blind {
            self.checked.insert(key.clone());
        }
        let value = (kind != 1 && kind != 2).then_some(value);
        self.set(key, value);
    }

    fn delete_range(&mut self, tree: TreeId, tape: &mut Tape) {
        let bounds = (bound(tape), bound(tape));
        self.txn.delete_range(tree, range(&bounds)).unwrap();
        for key in keys_in(&self.map, range(&bounds)) {
            self.checked.insert(key.clone());
            self.set(key, None);
        }
    }

    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        match value.clone() {
            Some(value) => self.map.insert(key.clone(), value),
            None => self.map.remove(&key),
        };
        self.writes.insert(key, value);
    }
}

fn run(mut tape: Tape) {
    let f = fixture();
    let mut world = World {
        f: &f,
        model: Model::default(),
        readers: Vec::new(),
        open: Vec::new(),
    };
    write(&f, &mut world.model, &mut tape, 700);
    while !tape.is_empty() {
        world.step(&mut tape);
    }
    world.finish(&mut tape);
}

#[test]
fn it_does_what_the_model_does() {
    for seed in 0..60 {
        let tape = Tape::from_seed(seed, 12_000);
        let failed = |tape: Tape| panic::catch_unwind(AssertUnwindSafe(|| run(tape))).is_err();
        if failed(tape.clone()) {
            let small = tape.shrink(300, failed);
            panic!(
                "seed {seed} fails; the smallest tape found: {}",
                small.to_hex()
            );
        }
    }
}

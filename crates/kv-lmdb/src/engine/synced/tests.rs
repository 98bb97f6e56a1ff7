//! Power losses, simulated on copies of the store's files: each page that was written since the
//! last round is there or not, independent of the others.

use std::collections::BTreeMap;
use std::time::Duration;

use kv::{Batch, Direction, Durability, Engine, EngineOptions, KeyRange, TreeId, TreeOptions};
use stdx::Rng;

use super::super::open::open;
use super::*;
use crate::settings::Settings;

const PAGE: usize = 4096;

/// Stores of the random test.
const SEEDS: u64 = 4;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Open the store in `directory` so that only calls sync it.
fn open_store(directory: &Path, mode: &str) -> Result<Box<dyn Engine>> {
    let mut options = EngineOptions {
        interval: Duration::from_secs(86_400),
        ..EngineOptions::default()
    };
    options.own.insert("interval".to_owned(), mode.to_owned());
    let settings = Settings::read(&options)?;
    open(directory, &options, settings)
}

fn content(engine: &dyn Engine, tree: TreeId) -> Model {
    let snapshot = engine.begin_read().unwrap();
    let mut cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Forward);
    let cursor = cursor.as_mut().unwrap();
    let mut found = Model::new();
    while cursor.advance().unwrap() {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    found
}

/// Commit some changes at `level`.
fn change(engine: &dyn Engine, tree: TreeId, model: &mut Model, rng: &mut Rng, level: Durability) {
    let mut batch = Batch::new();
    for _ in 0..=rng.below(4) {
        let key = rng.below(400).to_be_bytes().to_vec();
        if rng.below(4) == 0 {
            batch.delete(tree, &key);
            model.remove(&key);
        } else {
            // Every tenth value takes pages of its own.
            let length = if rng.below(10) == 0 { 9000 } else { 90 };
            let value = vec![u8::try_from(rng.below(256)).unwrap(); length];
            batch.put(tree, &key, &value);
            model.insert(key, value);
        }
    }
    engine.write(&batch, level).unwrap();
}

/// The files of a store.
#[derive(Clone)]
struct Image {
    data: Vec<u8>,
    synced: Vec<u8>,
    identity: Vec<u8>,
}

impl Image {
    fn of(directory: &Path) -> Image {
        let read = |name| fs::read(directory.join(name)).unwrap();
        Image {
            data: read(DATA),
            synced: read(FILE),
            identity: read(kv::identity::FILE),
        }
    }

    fn place(&self, directory: &Path) {
        fs::write(directory.join(DATA), &self.data).unwrap();
        fs::write(directory.join(FILE), &self.synced).unwrap();
        fs::write(directory.join(kv::identity::FILE), &self.identity).unwrap();
    }

    fn record(&self) -> Record {
        let places = [Some(&self.synced[..]), self.synced.get(PAGE..)];
        let records = places.into_iter().flatten().filter_map(Record::decode);
        records.max_by_key(|record| record.number).unwrap()
    }

    /// Say that the system was started again since, and damage the place of the next record.
    fn lose_power(&mut self, rng: &mut Rng) {
        let mut record = self.record();
        record.cache.boot ^= 1;
        self.synced = vec![0; PAGE + RECORD];
        let (first, second) = self.synced.split_at_mut(PAGE);
        let (this, other) = match record.offset() {
            0 => (first, second),
            _ => (second, first),
        };
        this[..RECORD].copy_from_slice(&record.encode());
        other[..RECORD].fill_with(|| u8::try_from(rng.below(256)).unwrap());
    }

    /// The files after a power loss that kept a part of the pages written since `older`.
    fn torn(&self, older: &Image, rng: &mut Rng) -> Image {
        let mut torn = self.clone();
        let keep_metas = rng.below(2) == 0;
        let kept_of_ten = rng.below(11);
        for (number, page) in torn.data.chunks_mut(PAGE).enumerate() {
            if (keep_metas && number < 2) || rng.below(10) < kept_of_ten {
                continue;
            }
            let from = number * PAGE;
            match older.data.get(from..from + page.len()) {
                Some(old) => page.copy_from_slice(old),
                None => page.fill(0),
            }
        }
        if rng.below(2) == 0 {
            torn.data.truncate(older.data.len());
        }
        torn.lose_power(rng);
        torn
    }
}

/// Open `image` elsewhere, as after a power loss; returns what it holds.
fn reopened(image: &Image, mode: &str) -> Model {
    let dir = tempfile::tempdir().unwrap();
    image.place(dir.path());
    let engine = open_store(dir.path(), mode).unwrap();
    let tree = engine.open_tree("t").unwrap();
    engine.verify().unwrap();
    let found = content(&*engine, tree);
    // It can be written, and LMDB's list of free pages is right.
    let mut rng = Rng::new(1);
    let mut model = found.clone();
    for _ in 0..10 {
        change(&*engine, tree, &mut model, &mut rng, Durability::None);
    }
    engine.verify().unwrap();
    assert_eq!(content(&*engine, tree), model);
    found
}

#[test]
fn a_power_loss_returns_the_store_to_the_last_round() {
    // I1, I2.
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let engine = open_store(dir.path(), "background").unwrap();
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        let mut model = Model::new();
        for round in 0..6 {
            for _ in 0..40 {
                change(&*engine, tree, &mut model, &mut rng, Durability::None);
            }
            if round % 2 == 0 {
                engine.sync_log().unwrap();
            } else {
                change(&*engine, tree, &mut model, &mut rng, Durability::Sync);
            }
            let (older, synced) = (Image::of(dir.path()), model.clone());
            for commit in 0..40 {
                change(&*engine, tree, &mut model, &mut rng, Durability::Interval);
                if commit % 10 == 9 {
                    let torn = Image::of(dir.path()).torn(&older, &mut rng);
                    let mode = ["background", "metasync"][usize::from(commit == 19)];
                    let message = "I1, I2: the pages of the recorded state are there";
                    assert!(reopened(&torn, mode) == synced, "{message}: seed {seed}");
                }
            }
        }
    }
}

#[test]
fn a_new_store_that_loses_power_at_once_is_empty() {
    let mut rng = Rng::new(5);
    let dir = tempfile::tempdir().unwrap();
    let engine = open_store(dir.path(), "background").unwrap();
    let older = Image::of(dir.path());
    assert_eq!(older.record().meta.transaction(), 0);
    engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut newer = Image::of(dir.path());
    // The record of the first state, which has the number of the other meta page, too.
    newer.synced = older.synced;
    newer.lose_power(&mut rng);
    let copy = tempfile::tempdir().unwrap();
    newer.place(copy.path());
    let engine = open_store(copy.path(), "background").unwrap();
    assert_eq!(engine.trees().unwrap(), Vec::<String>::new());
    engine.create_tree("t", &TreeOptions::default()).unwrap();
}

#[test]
fn the_record_exists_while_commits_may_be_unsynced() {
    // I3.
    let dir = tempfile::tempdir().unwrap();
    let engine = open_store(dir.path(), "background").unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    assert!(exists(dir.path()), "I3");
    let mut model = Model::new();
    let mut rng = Rng::new(2);
    change(&*engine, tree, &mut model, &mut rng, Durability::Interval);
    let image = Image::of(dir.path());
    engine.close().unwrap();
    assert!(!exists(dir.path()), "I3");
    // In the same page cache nothing is undone; a mode that does not need the record removes it.
    for mode in ["background", "nosync", "metasync"] {
        let dir = tempfile::tempdir().unwrap();
        image.place(dir.path());
        let engine = open_store(dir.path(), mode).unwrap();
        let tree = engine.open_tree("t").unwrap();
        assert_eq!(content(&*engine, tree), model, "{mode}");
        assert_eq!(exists(dir.path()), mode == "background", "I3: {mode}");
    }
}

#[test]
fn a_damaged_record_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(open_store(dir.path(), "background").unwrap());
    for bytes in [&b""[..], &[7; 300], &[0; PAGE + RECORD]] {
        fs::write(dir.path().join(FILE), bytes).unwrap();
        let error = open_store(dir.path(), "metasync").err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(FILE), "{error}");
    }
}

#[test]
fn a_record_with_any_byte_changed_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open_store(dir.path(), "background").unwrap();
    let record = Image::of(dir.path()).record();
    drop(engine);
    let bytes = record.encode();
    assert_eq!(Record::decode(&bytes), Some(record));
    for at in 0..RECORD {
        let mut damaged = bytes;
        damaged[at] ^= 0x10;
        assert_eq!(Record::decode(&damaged), None, "byte {at}");
        assert_eq!(Record::decode(&bytes[..at]), None, "length {at}");
    }
    assert!(!exists(dir.path()));
}

#[test]
fn a_map_full_of_pages_that_wait_for_a_round_is_emptied_at_the_next_try() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = EngineOptions {
        interval: Duration::from_secs(86_400),
        size_max: stdx::ByteSize::mib(2),
        ..EngineOptions::default()
    };
    let mode = ("interval".to_owned(), "background".to_owned());
    options.own.extend([mode]);
    let engine = open(dir.path(), &options, Settings::read(&options).unwrap()).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.put(tree, b"k", &[1; 2000]);
    let mut full = 0;
    for _ in 0..2000 {
        if let Err(error) = engine.write(&batch, Durability::Interval) {
            assert_eq!(error.kind(), ErrorKind::Full);
            full += 1;
            engine.write(&batch, Durability::Interval).unwrap();
        }
    }
    assert!(0 < full, "2000 commits copy more pages than 2 MiB hold");
}

//! Encrypted stores: nothing readable in any file, refusals by name, copies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use betree::{
    BackupNext, BackupPart, Batch, Codec, Db, Durability, Error, ErrorKind, MasterKey, Options,
    Transaction, TreeOptions,
};
use sim::{SimOptions, SimVfs};

const DIRECTORY: &str = "/store";
const COPY: &str = "/copy";

/// A part of every key and of every value; long enough to be no accident.
const KEY_MARK: &[u8] = b"planted-key-5a1f";
const VALUE_MARK: &[u8] = b"planted-value-77c0";
const TREE_MARK: &str = "planted-tree-91ab";

fn master(byte: u8) -> MasterKey {
    MasterKey::new([byte; 32])
}

/// Small limits, uncompressed, so that a mark that is written is found.
fn options(key: Option<MasterKey>, log: bool) -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_buffer_share(0.1)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log(log)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_threads(0)
        .with_encryption(key)
}

fn open(disk: &SimVfs, directory: &str, options: Options) -> Result<Db, Error> {
    Db::open_with(Arc::new(disk.clone()), Path::new(directory), options)
}

fn key(number: u64) -> Vec<u8> {
    [&number.to_be_bytes(), KEY_MARK].concat()
}

fn value(number: u64) -> Vec<u8> {
    [&number.to_le_bytes(), VALUE_MARK, &[b'.'; 80][..]].concat()
}

/// The files whose bytes have one of the marks.
fn marked(disk: &SimVfs) -> Vec<PathBuf> {
    let marks = [KEY_MARK, VALUE_MARK, TREE_MARK.as_bytes()];
    let has = |bytes: &[u8], mark: &[u8]| bytes.windows(mark.len()).any(|at| at == mark);
    let files = disk.files().into_iter().map(|(path, _)| path);
    files
        .filter(|path| {
            let bytes = disk.peek(path).unwrap();
            marks.iter().any(|mark| has(&bytes, mark))
        })
        .collect()
}

fn put(txn: &mut Transaction, tree: betree::TreeId, number: u64) {
    txn.put(tree, &key(number), &value(number)).unwrap();
}

/// Load, spill, kill, recover, merge, checkpoint and back up a store; after each step, return what
/// `look` sees of the disk.
fn lanes<T>(key: Option<&MasterKey>, log: bool, look: impl Fn(&SimVfs) -> T) -> Vec<T> {
    let disk = SimVfs::new(SimOptions::default());
    let options = || options(key.cloned(), log);
    let mut seen = Vec::new();
    let level = |level| if log { level } else { Durability::None };
    let db = open(&disk, DIRECTORY, options()).unwrap();
    let tree = db.create_tree(TREE_MARK, TreeOptions::default()).unwrap();
    for round in 0..20_u64 {
        let mut batch = Batch::new();
        for number in 0..200 {
            let number = round * 131 + number * 7;
            batch.put(tree, &self::key(number), &value(number));
        }
        db.write(&batch, level(Durability::Interval)).unwrap();
        while db.step().unwrap() {}
    }
    // Without a log, only a checkpoint survives the kill below.
    db.checkpoint().unwrap();
    seen.push(look(&disk));
    // Larger than the memory: it spills into runs of its own, and goes to the log in parts.
    let mut txn = db.begin().unwrap();
    (100_000..108_000).for_each(|number| put(&mut txn, tree, number));
    seen.push(look(&disk));
    txn.commit(level(Durability::Sync)).unwrap();
    seen.push(look(&disk));
    // A record longer than a buffer of the log.
    db.write(
        &{
            let mut batch = Batch::new();
            batch.put(tree, b"long", &VALUE_MARK.repeat(20_000));
            batch
        },
        level(Durability::Sync),
    )
    .unwrap();
    seen.push(look(&disk));
    // The process is killed.
    let killed = disk.fork();
    drop(db);
    let disk = killed;
    seen.push(look(&disk));
    let db = open(&disk, DIRECTORY, options()).unwrap();
    db.verify().unwrap();
    let tree = db.open_tree(TREE_MARK).unwrap();
    let snapshot = db.begin_read().unwrap();
    if log {
        let found = snapshot.get(tree, &self::key(107_999)).unwrap();
        assert_eq!(found, Some(value(107_999)));
    }
    drop(snapshot);
    seen.push(look(&disk));
    db.settle(Duration::from_secs(60)).unwrap();
    db.checkpoint().unwrap();
    seen.push(look(&disk));
    assert!(db.backup(Path::new(COPY), &mut |_, _| true).unwrap());
    seen.push(look(&disk));
    db.close().unwrap();
    seen.push(look(&disk));
    let copy = open(&disk, COPY, options()).unwrap();
    copy.verify().unwrap();
    copy.close().unwrap();
    seen.push(look(&disk));
    seen
}

#[test]
fn no_planted_key_or_value_is_in_any_byte_of_any_file() {
    for log in [true, false] {
        let found = lanes(Some(&master(1)), log, marked);
        assert!(found.iter().all(Vec::is_empty), "log {log}: {found:?}");
        let found = lanes(None, log, marked);
        let all = found.iter().all(|files| !files.is_empty());
        assert!(all, "the check can fail: {found:?}");
    }
}

/// A store with some commits in runs and some in the log, closed.
fn closed(key: Option<MasterKey>, log: bool) -> SimVfs {
    let disk = SimVfs::new(SimOptions::default());
    let db = open(&disk, DIRECTORY, options(key, log)).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let fill = |from: u64| {
        let mut batch = Batch::new();
        for number in from..from + 500 {
            batch.put(tree, &self::key(number), &value(number));
        }
        let level = if log {
            Durability::Sync
        } else {
            Durability::None
        };
        db.write(&batch, level).unwrap();
    };
    fill(0);
    db.checkpoint().unwrap();
    fill(500);
    db.close().unwrap();
    disk
}

fn contents(disk: &SimVfs) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = disk.files().into_iter();
    files
        .map(|(path, _)| (path.clone(), disk.peek(&path).unwrap()))
        .collect()
}

/// Open with `key`: refused, with these words, and nothing is written.
fn refused(disk: &SimVfs, options: Options, kind: ErrorKind, words: &[&str]) {
    let before = contents(disk);
    let error = open(disk, DIRECTORY, options).err().unwrap();
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(before == contents(disk), "nothing is written: {error}");
}

#[test]
fn a_wrong_key_is_refused_before_anything_is_written() {
    for log in [true, false] {
        let (sealed, plain) = (closed(Some(master(1)), log), closed(None, log));
        let with = |key| options(key, log);
        let wrong = ["the master key is not the one of this store", "keys.betree"];
        refused(&sealed, with(Some(master(2))), ErrorKind::Invalid, &wrong);
        let missing = ["the store is encrypted", "master key"];
        refused(&sealed, with(None), ErrorKind::Invalid, &missing);
        let not = ["the store is not encrypted", "without a master key"];
        refused(&plain, with(Some(master(1))), ErrorKind::Invalid, &not);

        // Another log than before changes nothing.
        refused(&sealed, options(None, !log), ErrorKind::Invalid, &missing);

        let lost = sealed.fork();
        let keys = Path::new(DIRECTORY).join("keys.betree");
        vfs::Vfs::remove(&lost, vfs::Site("test.remove"), &keys).unwrap();
        let gone = ["the key file of the encrypted store is missing"];
        refused(&lost, with(Some(master(1))), ErrorKind::Corrupt, &gone);

        let other = closed(Some(master(1)), log).peek(&keys).unwrap();
        let swapped = sealed.fork();
        let mut owner = other.clone();
        // The same master key, and the keys of another store.
        owner[16] ^= 1;
        swapped.poke(&keys, 0, &owner);
        refused(
            &swapped,
            with(Some(master(1))),
            ErrorKind::Corrupt,
            &["key file"],
        );

        let db = open(&sealed, DIRECTORY, with(Some(master(1)))).unwrap();
        db.verify().unwrap();
    }
}

#[test]
fn a_key_file_of_another_store_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let path = home.path().join(name);
        let db = Db::open(&path, options(Some(master(1)), true)).unwrap();
        db.create_tree("t", TreeOptions::default()).unwrap();
        db.close().unwrap();
        path
    };
    let (one, other) = (make("one"), make("other"));
    std::fs::copy(other.join("keys.betree"), one.join("keys.betree")).unwrap();
    let error = Db::open(&one, options(Some(master(1)), true))
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("belongs to another store"),
        "{error}"
    );
}

#[test]
fn a_data_file_that_comes_back_finds_its_keys() {
    // keys: I2. The data file is moved away, and the directory opened, which makes a new store.
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("store");
    let at = |name: &str| path.join(name);
    let with = |byte| options(Some(master(byte)), false);
    let make = |number| {
        let db = Db::open(&path, with(1)).unwrap();
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        let mut batch = Batch::new();
        batch.put(tree, b"store", &[number]);
        db.write(&batch, Durability::None).unwrap();
        db.close().unwrap();
    };
    let is = |number: u8| {
        let db = Db::open(&path, with(1)).unwrap();
        let tree = db.open_tree("t").unwrap();
        let found = db.begin_read().unwrap().get(tree, b"store").unwrap();
        assert_eq!(found, Some(vec![number]));
        db.close().unwrap();
    };
    make(1);
    let keys = std::fs::read(at("keys.betree")).unwrap();
    let owner = u128::from_le_bytes(*keys[16..].first_chunk().unwrap());
    let kept = at(&format!("keys-{owner:032x}.betree"));
    std::fs::rename(at("data.betree"), at("data.old")).unwrap();
    let error = Db::open(&path, with(2)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    for word in ["another one", "keys.betree", "move the key file"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(std::fs::read(at("keys.betree")).unwrap(), keys);
    std::fs::write(&kept, b"mine").unwrap();
    let error = Db::open(&path, with(1)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
    assert_eq!(std::fs::read(&kept).unwrap(), b"mine");
    assert_eq!(std::fs::read(at("keys.betree")).unwrap(), keys);
    std::fs::remove_file(&kept).unwrap();

    make(2);
    assert_eq!(std::fs::read(&kept).unwrap(), keys);
    is(2);
    // The old data come back with their keys.
    std::fs::rename(at("data.old"), at("data.betree")).unwrap();
    std::fs::rename(&kept, at("keys.betree")).unwrap();
    is(1);
}

#[test]
fn what_a_rotation_that_did_not_finish_left_is_removed() {
    let disk = closed(Some(master(1)), true);
    let new = Path::new(DIRECTORY).join("keys.betree.new");
    let how = vfs::Open {
        create: true,
        direct: false,
    };
    vfs::Vfs::open(&disk, vfs::Site("test.open"), &new, how).unwrap();
    disk.poke(&new, 0, b"half a key file");
    let refused = open(&disk, DIRECTORY, options(Some(master(2)), true));
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::Invalid);
    assert!(disk.peek(&new).is_some(), "a wrong key changes nothing");
    let db = open(&disk, DIRECTORY, options(Some(master(1)), true)).unwrap();
    check(&db, 0..1000);
    assert!(disk.peek(&new).is_none());
}

#[test]
fn a_copy_of_an_encrypted_store_is_one() {
    let home = tempfile::tempdir().unwrap();
    let (store, copy) = (home.path().join("store"), home.path().join("copy"));
    let with = |key| options(key, true);
    let db = Db::open(&store, with(Some(master(1)))).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    db.write(
        &{
            let mut batch = Batch::new();
            (0..3000).for_each(|number| batch.put(tree, &key(number), &value(number)));
            batch
        },
        Durability::Sync,
    )
    .unwrap();
    // A copy that is stopped leaves nothing, its keys neither.
    let mut calls = 0;
    let mut stop = |done, total| {
        calls += 1;
        done < total
    };
    assert!(!db.backup(&copy, &mut stop).unwrap());
    assert!(1 < calls, "stopped at its end");
    assert_eq!(std::fs::read_dir(&copy).unwrap().count(), 0);
    assert!(db.backup(&copy, &mut |_, _| true).unwrap());
    let streamed = home.path().join("streamed");
    stream(&db, &streamed);
    db.close().unwrap();
    for copy in [copy, streamed] {
        for wrong in [None, Some(master(2))] {
            let error = Db::open(&copy, with(wrong)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        }
        let copied = Db::open(&copy, with(Some(master(1)))).unwrap();
        copied.verify().unwrap();
        let tree = copied.open_tree("t").unwrap();
        let snapshot = copied.begin_read().unwrap();
        for number in 0..3000 {
            let found = snapshot.get(tree, &key(number)).unwrap();
            assert_eq!(found, Some(value(number)));
        }
    }
}

/// Write a copy that is passed part by part into a new directory.
fn stream(db: &Db, directory: &Path) {
    let (mut keys, mut data, mut length) = (Vec::new(), Vec::new(), 0);
    let complete = db.stream_backup(&mut |part| {
        match part {
            BackupPart::Begin {
                data_bytes,
                key_file,
            } => {
                length = data_bytes;
                keys.extend_from_slice(key_file.expect("the store is encrypted"));
            }
            BackupPart::Data(bytes) => data.extend_from_slice(bytes),
            BackupPart::Run { .. } => {}
        }
        BackupNext::Continue
    });
    assert!(complete.unwrap());
    assert_eq!(data.len() as u64, length);
    for mark in [KEY_MARK, VALUE_MARK] {
        assert!(!data.windows(mark.len()).any(|bytes| bytes == mark));
    }
    std::fs::create_dir(directory).unwrap();
    std::fs::write(directory.join(betree::KEY_FILE), keys).unwrap();
    std::fs::write(directory.join("data.betree"), data).unwrap();
}

#[test]
fn the_map_of_an_encrypted_store_needs_its_key() {
    let disk = closed(Some(master(1)), true);
    let path = Path::new(DIRECTORY).join("data.betree");
    let keys = disk
        .peek(&Path::new(DIRECTORY).join("keys.betree"))
        .unwrap();
    let how = vfs::Open {
        create: false,
        direct: false,
    };
    let file = vfs::Vfs::open(&disk, vfs::Site("test.open"), &path, how).unwrap();
    let key = master(1);
    let (map, trees) = betree::map_at_rest(&*file, &path, Some((&key, &keys))).unwrap();
    assert!(!map.regions.is_empty());
    assert_eq!(trees.len(), 1);
    let wrong = master(2);
    for encryption in [None, Some((&wrong, &*keys))] {
        let error = betree::map_at_rest(&*file, &path, encryption).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

fn write(db: &Db, tree: betree::TreeId, numbers: std::ops::Range<u64>) {
    let mut batch = Batch::new();
    numbers.for_each(|number| batch.put(tree, &key(number), &value(number)));
    db.write(&batch, Durability::Sync).unwrap();
}

fn check(db: &Db, numbers: std::ops::Range<u64>) {
    db.verify().unwrap();
    let tree = db.open_tree("t").unwrap();
    let snapshot = db.begin_read().unwrap();
    for number in numbers {
        assert_eq!(
            snapshot.get(tree, &key(number)).unwrap(),
            Some(value(number))
        );
    }
}

#[test]
fn keys_are_rotated_while_the_store_works() {
    let home = tempfile::tempdir().unwrap();
    let threaded = |key| options(key, true).with_threads(2);
    let db = Db::open(home.path(), threaded(Some(master(0)))).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let first = db.encryption().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..100).for_each(|i| write(&db, tree, i * 50..i * 50 + 50)));
        for round in 1..=200_u8 {
            let data = round.is_multiple_of(4);
            db.rotate_keys(Some(&master(round)), data).unwrap();
        }
    });
    let last = db.encryption().unwrap();
    assert_ne!(first.master_key, last.master_key);
    assert_eq!((first.data_key, last.data_key), (1, 51));
    db.settle(Duration::from_secs(60)).unwrap();
    let copy = home.path().join("copy");
    assert!(db.backup(&copy, &mut |_, _| true).unwrap());
    db.close().unwrap();
    for directory in [home.path(), &copy] {
        let old = Db::open(directory, threaded(Some(master(199))))
            .err()
            .unwrap();
        assert!(
            old.to_string().contains("not the one of this store"),
            "{old}"
        );
        let db = Db::open(directory, threaded(Some(master(200)))).unwrap();
        check(&db, 0..5000);
        db.close().unwrap();
    }
    let plain = Db::open(home.path().join("plain"), threaded(None)).unwrap();
    let error = plain.rotate_keys(Some(&master(1)), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(plain.encryption().is_none());
}

#[test]
fn a_power_loss_during_a_rotation_leaves_one_key_or_the_other() {
    // keys: I1, I3.
    let disk = closed(Some(master(1)), true);
    let mut outcomes = [0, 0];
    for point in 1.. {
        let disk = disk.fork();
        let db = open(&disk, DIRECTORY, options(Some(master(1)), true)).unwrap();
        disk.stop_at_change(disk.changes() + point);
        let rotated = db.rotate_keys(Some(&master(2)), true);
        if !disk.has_stopped() {
            rotated.unwrap();
            break;
        }
        for (outcome, seed) in sim::Outcome::ALL.into_iter().zip(point..) {
            let crash = sim::Crash {
                profile: sim::Profile::Atomic512,
                outcome,
                seed,
            };
            let image = disk.image(crash);
            let opens = [1, 2].map(|byte| {
                let opened = open(&image.fork(), DIRECTORY, options(Some(master(byte)), true));
                match opened {
                    Ok(db) => {
                        check(&db, 0..1000);
                        true
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                        false
                    }
                }
            });
            assert_ne!(opens[0], opens[1], "exactly one key opens it");
            outcomes[usize::from(opens[1])] += 1;
        }
    }
    assert!(0 < outcomes[0] && 0 < outcomes[1], "{outcomes:?}");
}

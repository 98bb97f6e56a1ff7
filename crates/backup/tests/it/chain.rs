//! Increments: chains that are verified and restored, and members that are missing or changed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use backup::{Codec, Facts, MANIFEST, Manifest, Place, Source, restore, take};
use kv::{Batch, Durability, Engine, EngineOptions, ErrorKind, Flow};
use stdx::rng::Rng;

use crate::store::{CODECS, Lab, content, findings, names, open, report};

/// Set keys of the store of [`Lab`], a part of each of `count` groups from `from` on.
fn change(engine: &dyn Engine, from: u32, count: u32) {
    let tree = engine.open_tree("t").unwrap();
    let mut batch = Batch::new();
    for n in from..from + count {
        let key = [n.to_be_bytes(), 7_u32.to_be_bytes()].concat();
        batch.put(tree, &key, format!("changed {n}").as_bytes());
    }
    engine.write(&batch, Durability::None).unwrap();
}

/// Take a backup to `place` on the backup `base`, or try to.
fn try_take(lab: &Lab, place: &Place, codec: Codec, base: &str) -> kv::Result<Manifest> {
    let (base, facts) = (lab.path(base), Facts::default());
    let mut watch = |_| Flow::Continue;
    let engine = &*lab.engine;
    let taken = take(engine, place, codec, None, facts, Some(&base), &mut watch);
    taken.map(|manifest| manifest.expect("nothing cancelled it"))
}

fn on(lab: &Lab, place: &Place, codec: Codec, base: &str) -> Manifest {
    try_take(lab, place, codec, base).unwrap()
}

fn size(manifest: &Manifest) -> u64 {
    manifest.files.iter().map(|file| file.size).sum()
}

fn stored(manifest: &Manifest) -> u64 {
    manifest.files.iter().map(|file| file.stored_size).sum()
}

/// Restore a backup and compare it with the open store.
fn check(lab: &Lab, backup: &str) {
    let source = Source::open(&lab.path(backup)).unwrap();
    let target = lab.path("new");
    let done = restore(&source, &target, &|_| Ok(()), &mut |_| Flow::Continue);
    done.unwrap().expect("nothing cancelled it");
    let engine = open(kv_betree::factory(), &target);
    engine.verify().unwrap();
    assert!(content(&*engine) == content(&*lab.engine), "{backup}");
    engine.close().unwrap();
    fs::remove_dir_all(&target).unwrap();
}

/// A settled store of many runs.
fn wide() -> Lab {
    let mut options = EngineOptions {
        codec: kv::Codec::None,
        ..EngineOptions::default()
    };
    options.own.insert("bucket".into(), "4K".into());
    let lab = Lab::with(kv_betree::factory(), &options);
    let tree = lab.engine.open_tree("t").unwrap();
    for (key, value) in content(&*lab.engine).into_iter().rev() {
        let mut batch = Batch::new();
        batch.put(tree, &key, &value);
        lab.engine.write(&batch, Durability::None).unwrap();
    }
    settle(&*lab.engine);
    lab
}

fn settle(engine: &dyn Engine) {
    engine.settle(Duration::from_secs(600)).unwrap();
}

#[test]
fn a_chain_of_any_codec_and_kind_is_restored() {
    for codec in CODECS {
        let lab = wide();
        lab.take(&lab.directory("full"), codec);
        let mut base = "full".to_owned();
        let others = CODECS.into_iter().cycle().skip(1);
        for (round, codec) in (0..4).zip(others) {
            change(&*lab.engine, round, 2);
            let name = format!("increment-{round}");
            let (place, name) = match round % 2 {
                0 => (lab.archive(&name), format!("{name}.tar")),
                _ => (lab.directory(&name), name),
            };
            let manifest = on(&lab, &place, codec, &base);
            assert_eq!(manifest.base.as_ref().unwrap().name, base);
            let kept: u64 = manifest.files.iter().map(backup::FileEntry::kept).sum();
            // The store may first drop the versions that `wide` replaced, which rewrites all.
            assert!(round < 2 || size(&manifest) / 2 < kept, "{manifest:?}");
            base = name;
            let found = report(&lab.path(&base));
            assert_eq!(found.findings, []);
            assert_eq!(found.bases.len(), round as usize + 1);
            check(&lab, &base);
        }
    }
}

/// What is left of pieces that no increment uses any more is in the way of nothing.
#[test]
fn a_store_that_changed_whole_is_restored() {
    let lab = wide();
    lab.take(&lab.directory("one"), Codec::None);
    change(&*lab.engine, 0, 20);
    let tree = lab.engine.open_tree("t").unwrap();
    let all = kv::KeyRange::ALL;
    let compacted = lab.engine.compact(tree, all, &mut |_| Flow::Continue);
    compacted.unwrap();
    on(&lab, &lab.directory("two"), Codec::Lz4, "one");
    lab.engine.drop_tree("t").unwrap();
    let options = kv::TreeOptions::default();
    lab.engine.create_tree("t", &options).unwrap();
    on(&lab, &lab.directory("three"), Codec::None, "two");
    check(&lab, "three");
}

fn refused(lab: &Lab, name: &str) -> String {
    let source = Source::open(&lab.path(name)).unwrap();
    let before = names(lab.folder.path());
    let target = lab.path("new");
    let done = restore(&source, &target, &|_| Ok(()), &mut |_| Flow::Continue);
    let error = done.unwrap_err().to_string();
    assert_eq!(names(lab.folder.path()), before, "nothing is written");
    let found = findings(&lab.path(name)).join("; ");
    assert!(error.contains(&found), "one reason: {error}: {found}");
    error
}

/// B5.
#[test]
fn a_missing_or_changed_member_is_named() {
    let lab = wide();
    lab.take(&lab.directory("one"), Codec::None);
    lab.take(&lab.directory("another"), Codec::None);
    change(&*lab.engine, 0, 2);
    on(&lab, &lab.directory("two"), Codec::Zstd, "one");
    change(&*lab.engine, 2, 2);
    on(&lab, &lab.archive("three"), Codec::None, "two");
    let three = "three.tar";
    for member in ["one", "two"] {
        let (path, aside) = (lab.path(member), lab.path("aside"));
        fs::rename(&path, &aside).unwrap();
        let why = refused(&lab, three);
        assert!(why.contains(&format!("base {member}")), "{why}");
        assert!(why.contains("missing; put it"), "{why}");
        // Another backup under its name, also one of the same store.
        fs::rename(lab.path("another"), &path).unwrap();
        let why = refused(&lab, three);
        let other = format!("{member} is not the backup");
        assert!(why.contains(&other), "chain: K1: {why}");
        fs::rename(&path, lab.path("another")).unwrap();
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        assert!(refused(&lab, three).contains("symbolic link"), "B4");
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        // One that is incomplete.
        let manifest = path.join(MANIFEST);
        fs::rename(&manifest, &aside).unwrap();
        let why = refused(&lab, three);
        assert!(
            why.contains("no complete backup") && why.contains(member),
            "{why}"
        );
        fs::rename(&aside, &manifest).unwrap();
        // A byte of it that the newest member may not even use.
        let data = path.join("files/data.betree");
        let mut bytes = fs::read(&data).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&data, &bytes).unwrap();
        let why = refused(&lab, three);
        assert!(
            why.contains(&format!("{member}/files/data.betree: altered")),
            "{why}"
        );
        bytes[middle] ^= 1;
        fs::write(&data, &bytes).unwrap();
        fs::write(path.join("extra"), b"x").unwrap();
        assert!(refused(&lab, three).contains(&format!("{member}/extra: not part")));
        fs::remove_file(path.join("extra")).unwrap();
    }
    check(&lab, three);
}

#[test]
fn a_base_that_does_not_fit_is_refused_before_anything_is_written() {
    let lab = Lab::new(kv_betree::factory());
    let other = Lab::new(kv_betree::factory());
    lab.take(&lab.directory("full"), Codec::None);
    other.take(&lab.directory("foreign"), Codec::None);
    let lmdb = Lab::new(kv_lmdb::factory());
    lmdb.take(&lab.directory("lmdb"), Codec::None);
    fs::create_dir(lab.path("below")).unwrap();
    lab.take(&lab.directory("below/full"), Codec::None);
    std::os::unix::fs::symlink(lab.path("full"), lab.path("link")).unwrap();
    fs::create_dir(lab.path("empty")).unwrap();
    let before = names(lab.folder.path());
    for (base, word) in [
        ("foreign", "of another store"),
        ("lmdb", "backup of lmdb"),
        ("below/full", "in one directory"),
        ("link", "symbolic link"),
        ("empty", "no complete backup"),
        ("none", "no backup has this path"),
    ] {
        let error = try_take(&lab, &lab.directory("new"), Codec::None, base).unwrap_err();
        assert!(error.to_string().contains(word), "{base}: {error}");
        assert_eq!(names(lab.folder.path()), before, "{base}");
    }
    // The name of the engine, and the next step.
    let error = try_take(&lmdb, &lmdb.directory("new"), Codec::None, "none").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(
        text.contains("lmdb") && text.contains("take a full backup"),
        "{text}"
    );
    assert!(!lmdb.path("new").exists());
    // A restored store is another one.
    let source = Source::open(&lab.path("full")).unwrap();
    let target = lab.path("restored");
    restore(&source, &target, &|_| Ok(()), &mut |_| Flow::Continue).unwrap();
    let engine = open(kv_betree::factory(), &target);
    let lab = Lab { engine, ..lab };
    let error = try_take(&lab, &lab.directory("new"), Codec::None, "full").unwrap_err();
    assert!(error.to_string().contains("restored store"), "{error}");
}

#[test]
fn an_increment_that_ends_early_leaves_nothing() {
    let lab = wide();
    lab.take(&lab.directory("full"), Codec::None);
    let mut stop = 0;
    loop {
        change(&*lab.engine, stop % 20, 1);
        let before = names(lab.folder.path());
        let (mut left, base) = (stop, lab.path("full"));
        let mut watch = |_| {
            left = left.saturating_sub(1);
            match left {
                0 => Flow::Cancel,
                _ => Flow::Continue,
            }
        };
        stop += 1;
        let (place, facts) = (lab.directory("part"), Facts::default());
        let base = Some(&*base);
        let engine = &*lab.engine;
        let taken = take(engine, &place, Codec::Lz4, None, facts, base, &mut watch);
        if taken.unwrap().is_some() {
            break;
        }
        assert_eq!(names(lab.folder.path()), before, "call {stop}");
    }
    assert!(2 < stop);
    check(&lab, "part");
}

/// Backups after which a store without writers must be at rest.
const ROUNDS: u32 = 10;

/// Bytes that an increment has, of those of a full backup, in permille, after a share of a settled
/// store was changed: `ranges` of neighbours, or each key by itself.
fn share(keys: u64, changed: u64, ranges: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::default();
    options.own.insert("bucket".into(), "64K".into());
    let store = folder.path().join("db");
    let engine = kv_betree::factory().open(&store, &options).unwrap();
    let tree = engine
        .create_tree("t", &kv::TreeOptions::default())
        .unwrap();
    let mut rng = Rng::new(5);
    let mut value = vec![0; 200];
    let mut set = |numbers: &mut dyn Iterator<Item = u64>| {
        let numbers: Vec<u64> = numbers.collect();
        for some in numbers.chunks(500) {
            let mut batch = Batch::new();
            for number in some {
                rng.fill(&mut value);
                batch.put(tree, &number.to_be_bytes(), &value);
            }
            engine.write(&batch, Durability::None).unwrap();
        }
    };
    // In no order: a load in the order of keys leaves runs as large as a flush.
    set(&mut (0..keys).map(|number| number * 7_919 % keys));
    settle(&*engine);
    let take = |name: &str, base: Option<&Path>| {
        let place = Place::Directory(folder.path().join(name));
        let (facts, mut watch) = (Facts::default(), |_| Flow::Continue);
        let taken = take(&*engine, &place, Codec::None, None, facts, base, &mut watch);
        stored(&taken.unwrap().unwrap())
    };
    // A merge that met an open snapshot leaves versions behind, which a later one drops by writing
    // the run again. An increment without a change in between shows whether that is over.
    let mut rounds = (0..ROUNDS).map(|round| format!("full-{round}"));
    let (name, full) = loop {
        let name = rounds.next().expect("the store comes to rest");
        let full = take(&name, None);
        settle(&*engine);
        let nothing = take(&format!("again-{name}"), Some(&folder.path().join(&name)));
        if nothing * 100 < full {
            break (name, full);
        }
    };
    let mut places = Rng::new(9);
    let length = changed / ranges;
    let mut hot = (0..ranges).flat_map(|_| {
        let start = places.below(keys - length);
        start..start + length
    });
    set(&mut hot);
    settle(&*engine);
    let base = folder.path().join(name);
    take("increment", Some(&base)) * 1_000 / full
}

/// Runs are what an increment leaves out, so it depends on how many buckets change.
#[test]
fn an_increment_after_hot_ranges_changed_is_small() {
    let hot = share(100_000, 5_000, 5);
    let random = share(100_000, 5_000, 5_000);
    println!("permille of a full backup: hot ranges {hot}, random keys {random}");
    assert!(hot <= 100, "{hot} permille");
    assert!(hot < random && random <= 1_100, "{random} permille");
}

//! The codecs of trees: the library's own and ours.

use kv::{Batch, Durability, Engine, ErrorKind, StatScope, TreeId};

use super::durability::copy_all;
use super::{count, create, fill, get, open_with, own, put};

const CODECS: [&str; 5] = ["none", "snappy", "lz4", "zlib", "zstd"];

/// Each codec paired with the next one, and the last with the first.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    CODECS.into_iter().zip(CODECS.into_iter().cycle().skip(1))
}

fn size(db: &dyn Engine, tree: TreeId) -> u64 {
    let stats = db.tree_stats(tree, StatScope::Quick).unwrap();
    stats.allocated_bytes.unwrap()
}

#[test]
fn a_tree_of_any_codec_is_read_with_any_other() {
    const ROWS: u64 = 20_000;
    let mut plain = None;
    for (codec, other) in pairs() {
        let dir = tempfile::tempdir().unwrap();
        let db = open_with(dir.path(), &own(&[("codec", codec)]));
        let t = create(&*db, "t");
        fill(&*db, t, ROWS, 100);
        db.checkpoint().unwrap();
        let bytes = size(&*db, t);
        let plain = *plain.get_or_insert(bytes);
        assert!(codec == "none" || bytes * 2 < plain, "{codec}: {bytes}");
        db.close().unwrap();
        for codec in [other, codec] {
            let db = open_with(dir.path(), &own(&[("codec", codec)]));
            let t = db.open_tree("t").unwrap();
            assert_eq!(count(&*db, t), ROWS, "{codec}");
            for n in [0, 1, ROWS / 2, ROWS - 1] {
                let byte = u8::try_from(n % 251).unwrap();
                let value = get(&*db, t, &n.to_be_bytes()).unwrap();
                assert_eq!(value, [byte; 100], "{codec}");
            }
            db.verify().unwrap();
            put(&*db, t, b"more", b"v", Durability::Sync);
            let mut batch = Batch::new();
            batch.delete(t, b"more");
            db.write(&batch, Durability::Sync).unwrap();
            db.close().unwrap();
        }
    }
}

/// Crash after a checkpoint, so that recovery reads compressed pages and writes to them.
fn check_crash(more: &[(&str, &str)]) {
    let with = |codec| own(&[&[("codec", codec)], more].concat());
    for (codec, other) in pairs() {
        let dir = tempfile::tempdir().unwrap();
        let db = open_with(dir.path(), &with(codec));
        let t = create(&*db, "t");
        fill(&*db, t, 2_000, 500);
        db.checkpoint().unwrap();
        for n in 2_000..2_040_u64 {
            let mut batch = Batch::new();
            batch.put(t, &n.to_be_bytes(), &[3; 1000]);
            batch.put(t, &(n - 2_000).to_be_bytes(), b"changed");
            let level = match n % 2 {
                0 => Durability::Sync,
                _ => Durability::Interval,
            };
            db.write(&batch, level).unwrap();
        }
        let u = create(&*db, "u");
        put(&*db, u, b"k", &[9; 1000], Durability::Sync);
        for after in [codec, other, "none"] {
            let copy = tempfile::tempdir().unwrap();
            copy_all(dir.path(), copy.path());
            let db = open_with(copy.path(), &with(after));
            let t = db.open_tree("t").unwrap();
            assert_eq!(count(&*db, t), 2_040, "{codec} then {after}");
            let first = get(&*db, t, &0_u64.to_be_bytes());
            assert_eq!(first.as_deref(), Some(&b"changed"[..]));
            let u = db.open_tree("u").unwrap();
            assert_eq!(get(&*db, u, b"k").unwrap(), [9; 1000]);
            db.verify().unwrap();
            db.close().unwrap();
        }
    }
}

#[test]
fn a_crash_with_any_codec_is_recovered_with_any_other() {
    check_crash(&[]);
}

#[test]
fn a_crash_with_any_codec_is_recovered_with_any_other_in_an_lsm() {
    check_crash(&[("type", "lsm")]);
}

#[test]
fn stores_of_different_codecs_are_open_at_once() {
    let dirs = CODECS.map(|codec| (codec, tempfile::tempdir().unwrap()));
    let stores = dirs
        .each_ref()
        .map(|(codec, dir)| open_with(dir.path(), &own(&[("codec", codec)])));
    for db in &stores {
        let t = create(&**db, "t");
        fill(&**db, t, 2_000, 100);
        db.checkpoint().unwrap();
        assert_eq!(count(&**db, t), 2_000);
    }
}

#[test]
fn only_the_librarys_own_codecs_need_its_extensions() {
    let with = |codec| own(&[("extension_dir", "/nowhere"), ("codec", codec)]);
    let dir = tempfile::tempdir().unwrap();
    for codec in ["snappy", "zlib"] {
        let refused = kv_wiredtiger::factory().open(dir.path(), &with(codec));
        let error = refused.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let file = format!("/nowhere/libwiredtiger_{codec}.so");
        assert!(error.to_string().contains(&file), "{error}");
    }
    for codec in ["none", "lz4", "zstd"] {
        let db = open_with(dir.path(), &with(codec));
        let t = create(&*db, codec);
        fill(&*db, t, 1_000, 100);
        db.close().unwrap();
    }
    let db = open_with(dir.path(), &with("none"));
    for codec in ["none", "lz4", "zstd"] {
        assert_eq!(count(&*db, db.open_tree(codec).unwrap()), 1_000);
    }
}

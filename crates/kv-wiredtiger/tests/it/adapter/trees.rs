//! Names, handles, types and options.

use kv::{Codec, Durability, EngineOptions, ErrorKind, NAME_MAX};
use stdx::ByteSize;

use super::{count, create, fill, get, open, open_with, own, put};

#[test]
fn any_name_becomes_a_table_and_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let long = "/".repeat(NAME_MAX);
    let names = [
        "$a",
        "..",
        "A",
        "a",
        "a.b:c/d$e-f_g",
        "table:x",
        long.as_str(),
    ];
    {
        let db = open(dir.path());
        for name in names {
            let t = create(&*db, name);
            put(&*db, t, b"name", name.as_bytes(), Durability::Sync);
        }
        db.close().unwrap();
    }
    let db = open(dir.path());
    let mut sorted = names.map(str::to_owned);
    sorted.sort();
    assert_eq!(db.trees().unwrap(), sorted);
    for name in names {
        let t = db.open_tree(name).unwrap();
        assert_eq!(get(&*db, t, b"name").as_deref(), Some(name.as_bytes()));
    }
}

#[test]
fn a_tree_with_a_reader_is_not_dropped_until_the_reader_ends() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let t = create(&*db, "t");
    fill(&*db, t, 100, 10);
    let reader = db.begin_read().unwrap();
    assert!(reader.get(t, &3u64.to_be_bytes()).unwrap().is_some());
    let error = db.drop_tree("t").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "P1: a cursor is open");
    assert_eq!(error.tree(), Some("t"));
    assert!(reader.get(t, &4u64.to_be_bytes()).unwrap().is_some());
    drop(reader);
    db.drop_tree("t").unwrap();
    assert_eq!(db.open_tree("t").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn cursors_waiting_in_many_sessions_do_not_keep_a_tree() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    for round in 0..5 {
        let t = create(&*db, "t");
        put(&*db, t, b"k", b"v", Durability::None);
        let readers: Vec<_> = (0..10).map(|_| db.begin_read().unwrap()).collect();
        for reader in &readers {
            assert!(reader.get(t, b"k").unwrap().is_some(), "round {round}");
        }
        drop(readers);
        db.drop_tree("t").unwrap();
        let error = db.begin_read().unwrap().get(t, b"k").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    let files = dir.path().join("db").read_dir().unwrap();
    let tables = files.filter(|f| {
        f.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with('t')
    });
    assert_eq!(tables.count(), 0);
}

#[test]
fn both_types_live_in_one_store() {
    let dir = tempfile::tempdir().unwrap();
    {
        let db = open(dir.path());
        let t = create(&*db, "btree");
        fill(&*db, t, 1000, 30);
        db.close().unwrap();
    }
    let mut options = own(&[("type", "lsm")]);
    options.cache = ByteSize::mib(8);
    {
        let db = open_with(dir.path(), &options);
        let t = create(&*db, "lsm");
        fill(&*db, t, 30_000, 100);
        db.close().unwrap();
    }
    let db = open(dir.path());
    assert_eq!(count(&*db, db.open_tree("btree").unwrap()), 1000);
    assert_eq!(count(&*db, db.open_tree("lsm").unwrap()), 30_000);
    let chunks = dir.path().join("db").read_dir().unwrap();
    let lsm = |f: std::io::Result<std::fs::DirEntry>| {
        f.unwrap().file_name().to_string_lossy().ends_with(".lsm")
    };
    assert!(chunks.map(lsm).filter(|&lsm| lsm).count() >= 1);
    db.drop_tree("lsm").unwrap();
}

#[test]
fn compressed_trees_open_without_the_codec_and_compression_compresses() {
    let dir = tempfile::tempdir().unwrap();
    let plain = EngineOptions {
        codec: Codec::None,
        ..EngineOptions::default()
    };
    {
        let db = open(dir.path());
        let t = create(&*db, "compressed");
        fill(&*db, t, 20_000, 100);
        db.close().unwrap();
    }
    let db = open_with(dir.path(), &plain);
    let t = create(&*db, "plain");
    fill(&*db, t, 20_000, 100);
    db.checkpoint().unwrap();
    let compressed = db.open_tree("compressed").unwrap();
    assert_eq!(count(&*db, compressed), 20_000);
    let size = |tree| {
        let stats = db.tree_stats(tree, kv::StatScope::Quick).unwrap();
        stats.allocated_bytes.unwrap()
    };
    assert!(
        size(compressed) * 2 < size(t),
        "{} {}",
        size(compressed),
        size(t)
    );
}

#[test]
fn unknown_and_bad_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for pair in [
        ("typo", "1"),
        ("type", "heap"),
        ("leaf_page", "1"),
        ("codec", "lzma"),
    ] {
        let error = kv_wiredtiger::factory()
            .open(dir.path(), &own(&[pair]))
            .err()
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(pair.0), "{error}");
    }
}

#[test]
fn an_open_store_is_not_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let error = kv_wiredtiger::factory()
        .open(dir.path(), &EngineOptions::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("open already"), "{error}");
    drop(db);
    drop(open(dir.path()));
}

#[test]
fn small_pages_and_direct_io_work() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = own(&[("leaf_page", "8K"), ("internal_page", "4K")]);
    options.direct_io = true;
    // If the file system does not support direct I/O, the call must fail with `Invalid`; otherwise
    // it succeeds.
    match kv_wiredtiger::factory().open(dir.path(), &options) {
        Ok(db) => {
            let t = create(&*db, "t");
            fill(&*db, t, 5000, 200);
            db.checkpoint().unwrap();
            assert_eq!(count(&*db, t), 5000);
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid, "{error}"),
    }
}

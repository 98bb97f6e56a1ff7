//! The codecs of data blocks: blocks of each codec are readable whatever codec the next open
//! chooses.

use std::fs;
use std::path::Path;

use kv::{
    Batch, Compaction, Direction, Durability, Engine, EngineOptions, Flow, KeyRange, TreeId,
    TreeOptions,
};

const CODECS: [&str; 5] = ["none", "snappy", "lz4", "zlib", "zstd"];

const ROWS: u32 = 20_000;

fn open(directory: &Path, codec: &str, compaction: &str) -> Box<dyn Engine> {
    let own = [("codec", codec), ("compaction", compaction)];
    let options = EngineOptions {
        own: own.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..EngineOptions::default()
    };
    kv_rocksdb::factory().open(directory, &options).unwrap()
}

fn value(n: u32) -> [u8; 100] {
    let mut value = [7; 100];
    value[..4].copy_from_slice(&n.to_le_bytes());
    value
}

fn fill(engine: &dyn Engine, tree: TreeId, keys: std::ops::Range<u32>) {
    let mut batch = Batch::new();
    for n in keys {
        batch.put(tree, &n.to_be_bytes(), &value(n));
    }
    engine.write(&batch, Durability::None).unwrap();
}

/// Write all entries into the last level, which is compressed.
fn rewrite(engine: &dyn Engine, tree: TreeId) {
    engine.checkpoint().unwrap();
    let done = engine.compact(tree, KeyRange::ALL, &mut |_| Flow::Continue);
    assert_eq!(done.unwrap(), Compaction::Complete);
}

fn check(engine: &dyn Engine, tree: TreeId, rows: u32) {
    let now = engine.begin_read().unwrap();
    let mut cursor = now.cursor(tree, KeyRange::ALL, Direction::Forward).unwrap();
    let mut found = 0_u32;
    while cursor.advance().unwrap() {
        assert_eq!(cursor.key(), found.to_be_bytes());
        assert_eq!(cursor.value(), value(found));
        found += 1;
    }
    assert_eq!(found, rows);
}

/// Size of all table files, in bytes.
fn size(directory: &Path) -> u64 {
    let files = fs::read_dir(directory.join("db")).unwrap();
    let files = files.map(|file| file.unwrap());
    let tables = files.filter(|f| f.path().extension().is_some_and(|e| e == "sst"));
    tables.map(|table| table.metadata().unwrap().len()).sum()
}

fn check_codecs(compaction: &str) {
    let mut plain = None;
    for (codec, other) in CODECS.into_iter().zip(CODECS.into_iter().cycle().skip(1)) {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path(), codec, compaction);
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        fill(&*engine, tree, 0..ROWS);
        rewrite(&*engine, tree);
        engine.close().unwrap();
        let bytes = size(directory.path());
        let plain = *plain.get_or_insert(bytes);
        println!("{codec}: {bytes}");
        assert!(codec == "none" || bytes * 2 < plain, "{codec}: {bytes}");

        // Existing blocks are readable after an open with another codec, also beside blocks of that
        // codec.
        let engine = open(directory.path(), other, compaction);
        let tree = engine.open_tree("t").unwrap();
        check(&*engine, tree, ROWS);
        fill(&*engine, tree, ROWS..2 * ROWS);
        engine.checkpoint().unwrap();
        check(&*engine, tree, 2 * ROWS);
        engine.close().unwrap();

        let engine = open(directory.path(), codec, compaction);
        let tree = engine.open_tree("t").unwrap();
        rewrite(&*engine, tree);
        check(&*engine, tree, 2 * ROWS);
        engine.verify().unwrap();
        engine.close().unwrap();
    }
}

#[test]
fn a_store_of_any_codec_is_read_with_any_other() {
    check_codecs("leveled");
}

#[test]
fn a_universal_store_of_any_codec_is_read_with_any_other() {
    check_codecs("universal");
}

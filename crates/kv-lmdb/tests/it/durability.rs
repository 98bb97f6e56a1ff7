//! The effects of each level, as far as a test without a power cut can see them.

use std::env;
use std::path::Path;
use std::process::{self, Command};
use std::time::Duration;

use kv::{Batch, Durability, Engine, EngineOptions, ErrorKind, TreeOptions};

use crate::support::{keys, open, open_with, refused};

/// Commit one key at `level`; returns whether a power loss may lose it now.
fn owes(engine: &dyn Engine, level: Durability) -> bool {
    let tree = match engine.open_tree("t") {
        Ok(tree) => tree,
        Err(_) => engine.create_tree("t", &TreeOptions::default()).unwrap(),
    };
    let mut batch = Batch::new();
    batch.put(tree, level.name().as_bytes(), b"v");
    engine.write(&batch, level).unwrap();
    engine.stats().unwrap().debt_bytes.is_none()
}

#[test]
fn strong_levels_owe_nothing_and_weak_ones_do_until_a_sync() {
    for mode in ["metasync", "background", "nosync"] {
        let dir = tempfile::tempdir().unwrap();
        let mut options = EngineOptions {
            interval: Duration::from_secs(3600),
            ..EngineOptions::default()
        };
        options.own.insert("interval".to_owned(), mode.to_owned());
        let engine = kv_lmdb::factory().open(dir.path(), &options).unwrap();
        for (level, weak) in [
            (Durability::Sync, false),
            (Durability::None, true),
            (Durability::Group, false),
            (Durability::Interval, true),
            (Durability::Sync, false),
            (Durability::Interval, true),
        ] {
            assert_eq!(owes(&*engine, level), weak, "{mode} {level}");
        }
        engine.sync_log().unwrap();
        assert_eq!(engine.stats().unwrap().debt_bytes, Some(0));
        assert!(owes(&*engine, Durability::None));
        engine.checkpoint().unwrap();
        assert_eq!(engine.stats().unwrap().debt_bytes, Some(0));
        engine.close().unwrap();
        let engine = open(dir.path());
        let tree = engine.open_tree("t").unwrap();
        assert_eq!(keys(&*engine.begin_read().unwrap(), tree).len(), 4);
    }
}

#[test]
fn a_commit_of_nothing_pays_no_debt() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    assert!(owes(&*engine, Durability::None));
    engine.write(&Batch::new(), Durability::Sync).unwrap();
    assert_eq!(engine.stats().unwrap().debt_bytes, None);
    assert!(!owes(&*engine, Durability::Sync));
}

#[test]
fn interval_commits_are_synced_in_the_background() {
    // I3.
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        interval: Duration::ZERO,
        ..EngineOptions::default()
    };
    let engine = kv_lmdb::factory().open(dir.path(), &options).unwrap();
    for _ in 0..3 {
        owes(&*engine, Durability::Interval);
        // The loop ends when the background thread has synced; if it never does, the test hangs.
        while engine.stats().unwrap().debt_bytes.is_none() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn without_a_log_only_none_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        log: false,
        ..EngineOptions::default()
    };
    let engine = kv_lmdb::factory().open(dir.path(), &options).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.put(tree, b"k", b"v");
    for level in [Durability::Interval, Durability::Group, Durability::Sync] {
        let error = refused(engine.write(&batch, level));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{level}");
        let mut txn = engine.begin_write().unwrap();
        txn.put(tree, b"k", b"v").unwrap();
        assert_eq!(refused(txn.commit(level)).kind(), ErrorKind::Unsupported);
    }
    assert!(keys(&*engine.begin_read().unwrap(), tree).is_empty());
    engine.write(&batch, Durability::None).unwrap();
    drop(engine);
    let engine = open_with(dir.path(), &[]).unwrap();
    let tree = engine.open_tree("t").unwrap();
    assert_eq!(keys(&*engine.begin_read().unwrap(), tree), [b"k"]);
}

/// Environment variable with the directory, for the process that ends without closing the store.
const VICTIM: &str = "KV_LMDB_TEST_VICTIM";

/// Environment variable with the mode of `interval` durability of that process.
const MODE: &str = "KV_LMDB_TEST_MODE";

#[test]
fn commits_at_every_level_survive_the_end_of_the_process() {
    if let Some(directory) = env::var_os(VICTIM) {
        let mode = env::var(MODE).unwrap();
        let engine = open_with(Path::new(&directory), &[("interval", &mode)]).unwrap();
        for level in Durability::ALL {
            owes(&*engine, level);
        }
        let mut txn = engine.begin_write().unwrap();
        txn.put(engine.open_tree("t").unwrap(), b"open", b"v")
            .unwrap();
        process::abort();
    }
    let test = "durability::commits_at_every_level_survive_the_end_of_the_process";
    for mode in ["metasync", "background", "nosync"] {
        let dir = tempfile::tempdir().unwrap();
        let ended = Command::new(env::current_exe().unwrap())
            .args(["--exact", test])
            .env(VICTIM, dir.path())
            .env(MODE, mode)
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), None, "it ends by a signal: {ended:?}");
        let engine = open_with(dir.path(), &[("interval", mode)]).unwrap();
        let tree = engine.open_tree("t").unwrap();
        let found = keys(&*engine.begin_read().unwrap(), tree);
        assert_eq!(found, [&b"group"[..], b"interval", b"none", b"sync"]);
        engine.verify().unwrap();
        // The writer that died does not block later ones.
        assert!(!owes(&*engine, Durability::Sync));
    }
}

#[test]
fn concurrent_synced_commits_in_the_background_mode_owe_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open_with(dir.path(), &[("interval", "background")]).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let engine = &*engine;
            scope.spawn(move || {
                for n in 0..50_u32 {
                    let mut batch = Batch::new();
                    batch.put(
                        tree,
                        &[thread.to_be_bytes(), n.to_be_bytes()].concat(),
                        b"v",
                    );
                    let written = engine.write(&batch, Durability::Sync);
                    written.expect("R1: no commit runs while the meta page is copied");
                }
            });
        }
    });
    assert_eq!(engine.stats().unwrap().debt_bytes, Some(0));
    assert_eq!(keys(&*engine.begin_read().unwrap(), tree).len(), 200);
}

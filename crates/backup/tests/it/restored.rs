//! Restored stores.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use backup::{Codec, MARK, Mark, Source, restore};
use kv::identity::Identity;
use kv::{Error, ErrorKind, Flow, Result};

use crate::store::{CODECS, Lab, content, engines, names, open};

fn anything(_: &Identity) -> Result<()> {
    Ok(())
}

#[test]
fn a_restored_store_equals_the_store() {
    for factory in engines() {
        let lab = Lab::new(factory);
        let expected = content(&*lab.engine);
        for codec in CODECS {
            let name = codec.to_string();
            for place in [lab.directory(&name), lab.archive(&name)] {
                lab.take(&place, codec);
                let source = Source::open(place.path()).unwrap();
                let target = lab.path("new");
                let mut watch = |_| Flow::Continue;
                let done = restore(&source, &target, &anything, &mut watch).unwrap();
                let manifest = done.expect("nothing cancelled it");
                let mark = Mark::read(&target).unwrap().expect("it is marked");
                assert_eq!(mark.started, manifest.started);
                let mode = fs::metadata(&target).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o700);
                let engine = open(factory, &target);
                assert!(content(&*engine) == expected, "{} {codec}", factory.name());
                engine.close().unwrap();
                Mark::remove(&target).unwrap();
                assert_eq!(Mark::read(&target).unwrap(), None);
                fs::remove_dir_all(&target).unwrap();
            }
        }
    }
}

#[test]
fn a_target_that_is_taken_is_refused_and_untouched() {
    let lab = Lab::new(kv_betree::factory());
    lab.take(&lab.directory("copy"), Codec::None);
    let source = Source::open(&lab.path("copy")).unwrap();
    fs::create_dir(lab.path("taken")).unwrap();
    fs::write(lab.path("taken/mine"), b"precious").unwrap();
    fs::write(lab.path("file"), b"precious").unwrap();
    fs::create_dir(lab.path("empty")).unwrap();
    symlink(lab.path("empty"), lab.path("link")).unwrap();
    let before = names(lab.folder.path());
    for name in ["taken", "file", "link", "taken/mine"] {
        let done = restore(&source, &lab.path(name), &anything, &mut |_| Flow::Continue);
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Exists, "{name}");
    }
    let done = restore(&source, &lab.path("a/b"), &anything, &mut |_| {
        Flow::Continue
    });
    assert_eq!(done.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(names(lab.folder.path()), before, "B2");
    let done = restore(&source, &lab.path("empty"), &anything, &mut |_| {
        Flow::Continue
    });
    assert!(done.unwrap().is_some());
    assert!(lab.path("empty").join(MARK).exists());
}

#[test]
fn a_store_that_cannot_be_opened_is_refused_before_anything_is_written() {
    let lab = Lab::new(kv_lmdb::factory());
    lab.take(&lab.directory("copy"), Codec::None);
    let source = Source::open(&lab.path("copy")).unwrap();
    let before = names(lab.folder.path());
    let refuse = |identity: &Identity| -> Result<()> {
        Err(Error::invalid(format!("no {} here", identity.engine)))
    };
    let done = restore(&source, &lab.path("new"), &refuse, &mut |_| Flow::Continue);
    assert!(done.unwrap_err().to_string().contains("no lmdb here"));
    assert_eq!(names(lab.folder.path()), before);
}

/// R1: the files are named, and nothing is written.
#[test]
fn a_damaged_backup_is_not_restored() {
    let lab = Lab::new(kv_betree::factory());
    lab.take(&lab.directory("copy"), Codec::Zstd);
    let path = lab.path("copy/files/data.betree");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let before = names(lab.folder.path());
    let source = Source::open(&lab.path("copy")).unwrap();
    let done = restore(&source, &lab.path("new"), &anything, &mut |_| {
        Flow::Continue
    });
    let error = done.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("files/data.betree"), "{error}");
    assert_eq!(names(lab.folder.path()), before, "R1");
}

/// R2.
#[test]
fn a_restore_that_ends_early_leaves_nothing_that_starts() {
    for factory in engines() {
        let lab = Lab::new(factory);
        lab.take(&lab.directory("copy"), Codec::Lz4);
        let source = Source::open(&lab.path("copy")).unwrap();
        let target = lab.path("new");
        let work = lab.path("new.restoring");
        let calls = Cell::new(0);
        let mut watch = |_| {
            calls.set(calls.get() + 1);
            // What a kill would leave.
            assert!(!target.exists(), "R2");
            if work.exists() {
                let options = kv::EngineOptions::default();
                let copy = lab.path("opened");
                for inner in [work.join("store"), work.clone()] {
                    if !inner.exists() {
                        continue;
                    }
                    copy_flat(&inner, &copy);
                    let opened = factory.open(&copy, &options).map(drop);
                    let claimed = kv::identity::read(&inner).unwrap();
                    assert!(opened.is_err() || claimed.is_some(), "R2");
                    fs::remove_dir_all(&copy).unwrap();
                }
            }
            Flow::Continue
        };
        let done = restore(&source, &target, &anything, &mut watch).unwrap();
        assert!(done.is_some());
        fs::remove_dir_all(&target).unwrap();
        let before = names(lab.folder.path());
        for stop in 1..=calls.get() {
            let mut left = stop;
            let mut watch = |_| {
                left -= 1;
                if left == 0 {
                    Flow::Cancel
                } else {
                    Flow::Continue
                }
            };
            let done = restore(&source, &target, &anything, &mut watch).unwrap();
            assert!(done.is_none(), "call {stop}");
            assert_eq!(names(lab.folder.path()), before, "call {stop}");
        }
        // What a killed restore left is removed by the next one.
        fs::create_dir_all(work.join("store")).unwrap();
        fs::write(work.join("store/data.betree"), b"half").unwrap();
        let done = restore(&source, &target, &anything, &mut |_| Flow::Continue);
        assert!(done.unwrap().is_some());
        assert!(!work.exists());
        assert_eq!(content(&*open(factory, &target)), content(&*lab.engine));
        // What no restore has left is not removed (B2).
        fs::create_dir(&work).unwrap();
        fs::write(work.join("notes.txt"), b"precious").unwrap();
        let next = lab.path("new");
        fs::remove_dir_all(&next).unwrap();
        let done = restore(&source, &next, &anything, &mut |_| Flow::Continue);
        let error = done.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert!(error.to_string().contains("notes.txt"), "{error}");
        assert_eq!(fs::read(work.join("notes.txt")).unwrap(), b"precious");
        // Another restore that runs is not disturbed.
        let other = lab.path("other.restoring");
        fs::create_dir(&other).unwrap();
        let lock = vfs::DirLock::acquire(&other).unwrap();
        let done = restore(&source, &lab.path("other"), &anything, &mut |_| {
            Flow::Continue
        });
        assert!(done.unwrap_err().to_string().contains("is running"));
        drop(lock);
    }
}

fn copy_flat(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

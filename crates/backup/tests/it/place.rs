//! Where backups are written, and what is left when they end early.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use backup::{Clock, Codec, Facts, MANIFEST, Place, Source, Throttle, take};
use kv::{EngineOptions, ErrorKind, Flow};

use crate::store::{CODECS, Lab, engines, findings, names};

fn try_take(lab: &Lab, place: &Place) -> kv::Result<Option<backup::Manifest>> {
    let mut watch = |_| Flow::Continue;
    let facts = Facts::default();
    take(
        &*lab.engine,
        place,
        Codec::None,
        None,
        facts,
        None,
        &mut watch,
    )
}

fn refused(lab: &Lab, place: &Place) -> ErrorKind {
    try_take(lab, place).unwrap_err().kind()
}

#[test]
fn backups_are_for_their_owner_only_and_compressed_ones_are_smaller() {
    for factory in engines() {
        let lab = Lab::new(factory);
        let mut sizes = Vec::new();
        for codec in CODECS {
            let name = codec.to_string();
            let manifest = lab.take(&lab.directory(&name), codec);
            lab.take(&lab.archive(&name), codec);
            assert_eq!(manifest.engine, factory.name());
            sizes.push(manifest.files.iter().map(|f| f.stored_size).sum::<u64>());
            for path in names(&lab.path(&name)) {
                let found = fs::metadata(lab.path(&name).join(&path)).unwrap();
                let mode = found.permissions().mode() & 0o777;
                assert_eq!(mode, if found.is_dir() { 0o700 } else { 0o600 }, "{path}");
            }
            let archive = fs::metadata(lab.path(&format!("{name}.tar"))).unwrap();
            assert_eq!(archive.permissions().mode() & 0o777, 0o600);
            let mut expected = vec![MANIFEST.to_owned(), "files/".to_owned()];
            expected.extend(manifest.files.iter().map(|f| format!("files/{}", f.path)));
            expected.sort();
            assert_eq!(names(&lab.path(&name)), expected, "nothing else is left");
        }
        assert!(sizes[2] < sizes[0], "{sizes:?}");
    }
}

/// B2.
#[test]
fn a_staging_directory_of_somebody_else_is_not_removed() {
    for factory in engines() {
        let lab = Lab::new(factory);
        for suffix in ["staging", "incomplete"] {
            let other = lab.path(&format!("copy.tar.{suffix}"));
            fs::create_dir(&other).unwrap();
            fs::write(other.join("mine"), b"precious").unwrap();
            let error = try_take(&lab, &lab.archive("copy")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
            assert!(error.to_string().contains("was killed"), "{error}");
            assert_eq!(fs::read(other.join("mine")).unwrap(), b"precious");
            fs::remove_dir_all(&other).unwrap();
        }
        assert!(try_take(&lab, &lab.archive("copy")).unwrap().is_some());
    }
}

/// B2.
#[test]
fn the_next_backup_names_what_a_killed_one_left() {
    let lab = Lab::new(kv_betree::factory());
    let copy = lab.path("copy");
    for left in ["files", "files staging", "files backup.incomplete"] {
        fs::create_dir(&copy).unwrap();
        for name in left.split(' ') {
            fs::create_dir(copy.join(name)).unwrap();
        }
        let error = try_take(&lab, &lab.directory("copy")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
        assert!(error.to_string().contains("was killed"), "{error}");
        // Beside another file it is not what a backup left.
        fs::write(copy.join("mine"), b"precious").unwrap();
        let error = try_take(&lab, &lab.directory("copy")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
        assert!(error.to_string().contains("name a new one"), "{error}");
        assert_eq!(fs::read(copy.join("mine")).unwrap(), b"precious");
        fs::remove_dir_all(&copy).unwrap();
    }
}

/// B2.
#[test]
fn nothing_that_exists_is_overwritten() {
    let lab = Lab::new(kv_betree::factory());
    let taken = lab.path("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("mine"), b"precious").unwrap();
    symlink(&taken, lab.path("link")).unwrap();
    fs::create_dir(lab.path("empty")).unwrap();
    symlink(lab.path("empty"), lab.path("link to empty")).unwrap();
    symlink(lab.path("nowhere"), lab.path("dangling")).unwrap();
    for name in [
        "taken",
        "taken/mine",
        "link",
        "link to empty",
        "dangling",
        "db",
    ] {
        assert_eq!(
            refused(&lab, &lab.directory(name)),
            ErrorKind::Exists,
            "{name}"
        );
    }
    symlink(taken.join("mine"), lab.path("link.tar")).unwrap();
    symlink(lab.path("nowhere"), lab.path("dangling.tar")).unwrap();
    fs::write(lab.path("file.tar"), b"precious").unwrap();
    for name in ["link", "dangling", "file"] {
        assert_eq!(
            refused(&lab, &lab.archive(name)),
            ErrorKind::Exists,
            "{name}"
        );
    }
    symlink(taken.join("mine"), lab.path("trap.tar.incomplete")).unwrap();
    assert_eq!(refused(&lab, &lab.archive("trap")), ErrorKind::Exists);
    assert_eq!(refused(&lab, &lab.directory("a/b")), ErrorKind::NotFound);
    assert_eq!(fs::read(taken.join("mine")).unwrap(), b"precious");
    assert_eq!(fs::read(lab.path("file.tar")).unwrap(), b"precious");
    assert_eq!(names(&taken), ["mine"]);
    assert!(!lab.path("nowhere").exists());
    try_take(&lab, &lab.directory("empty")).unwrap();
    assert_eq!(findings(&lab.path("empty")), [""; 0]);
}

#[test]
fn an_engine_without_backups_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let opened = kv::memory::factory().open(folder.path(), &EngineOptions::default());
    let engine = opened.unwrap();
    let place = Place::Directory(folder.path().join("copy"));
    let mut watch = |_| Flow::Continue;
    let taken = take(
        &*engine,
        &place,
        Codec::None,
        None,
        Facts::default(),
        None,
        &mut watch,
    );
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(!folder.path().join("copy").exists());
}

#[test]
fn a_cancelled_backup_leaves_nothing() {
    for factory in engines() {
        let lab = Lab::new(factory);
        fs::create_dir(lab.path("mine")).unwrap();
        let before = names(lab.folder.path());
        for place in [
            lab.directory("new"),
            lab.directory("mine"),
            lab.archive("one"),
        ] {
            let mut calls = 0;
            let mut count = |_| {
                calls += 1;
                Flow::Continue
            };
            let scratch = lab.directory("scratch");
            let facts = Facts::default();
            let taken = take(
                &*lab.engine,
                &scratch,
                Codec::Lz4,
                None,
                facts,
                None,
                &mut count,
            );
            taken.unwrap();
            fs::remove_dir_all(lab.path("scratch")).unwrap();
            for stop in 1..=calls {
                let mut left = stop;
                let mut watch = |_| {
                    left -= 1;
                    if left == 0 {
                        Flow::Cancel
                    } else {
                        Flow::Continue
                    }
                };
                let facts = Facts::default();
                let taken = take(
                    &*lab.engine,
                    &place,
                    Codec::Lz4,
                    None,
                    facts,
                    None,
                    &mut watch,
                );
                let ended = taken.unwrap();
                assert!(ended.is_none(), "call {stop} of {calls}");
                let left: Vec<_> = names(lab.folder.path());
                let left = left.into_iter().filter(|name| !before.contains(name));
                let left: Vec<_> = left.filter(|name| !name.starts_with("db/")).collect();
                assert_eq!(left, [""; 0], "{place:?}");
            }
        }
    }
}

/// Copies a directory tree at each call, as a kill at that moment would leave it.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// B1.
#[test]
fn what_a_killed_backup_leaves_is_refused_as_incomplete() {
    let lab = Lab::new(kv_betree::factory());
    let seen = Cell::new(0);
    let mut watch = |_| {
        let copy = lab.path(&format!("seen {}", seen.get()));
        copy_tree(&lab.path("copy"), &copy);
        seen.set(seen.get() + 1);
        Flow::Continue
    };
    let facts = Facts::default();
    let place = lab.directory("copy");
    take(
        &*lab.engine,
        &place,
        Codec::None,
        None,
        facts,
        None,
        &mut watch,
    )
    .unwrap();
    assert!(1 < seen.get());
    for n in 0..seen.get() {
        let error = Source::open(&lab.path(&format!("seen {n}")))
            .unwrap()
            .manifest();
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "B1");
        assert!(error.to_string().contains("no complete backup"), "{error}");
    }
    lab.take(&lab.archive("whole"), Codec::None);
    let bytes = fs::read(lab.path("whole.tar")).unwrap();
    for cut in (0..bytes.len())
        .step_by(257)
        .chain(bytes.len() - 2_000..bytes.len())
    {
        fs::write(lab.path("cut.tar"), &bytes[..cut]).unwrap();
        let found = findings(&lab.path("cut.tar"));
        assert!(found[0].contains("complete"), "B1: {cut}: {found:?}");
    }
}

#[derive(Clone, Default)]
struct Hand(Rc<Cell<Duration>>);

impl Clock for Hand {
    fn now(&self) -> Duration {
        self.0.get()
    }

    fn sleep(&self, duration: Duration) {
        self.0.set(self.0.get() + duration);
    }
}

#[test]
fn a_throttle_is_kept_within_a_tenth() {
    for factory in engines() {
        let lab = Lab::new(factory);
        let hand = Hand::default();
        let rate = 100_000;
        let throttle = Throttle::new(rate, Box::new(hand.clone()));
        let facts = Facts::default();
        let place = lab.directory("copy");
        let mut watch = |_| Flow::Continue;
        let taken = take(
            &*lab.engine,
            &place,
            Codec::Zstd,
            Some(throttle),
            facts,
            None,
            &mut watch,
        );
        let files = taken.unwrap().unwrap().files;
        let bytes: u64 = files.iter().map(|file| file.size).sum();
        let expected = bytes as f64 / rate as f64;
        let took = hand.now().as_secs_f64();
        assert!(
            (0.9..=1.1).contains(&(took / expected)),
            "{took} s, {expected} s"
        );
    }
}

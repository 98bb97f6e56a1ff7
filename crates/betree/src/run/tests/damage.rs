//! Damage is detected and reported, and never returned as data.

use std::ops::Bound;
use std::sync::Arc;

use stdx::Rng;

use super::rig::{DATA_START, Rig, Shape, Version, random};
use crate::error::{Error, ErrorKind};
use crate::merge::Source;
use crate::run::{Run, RunMeta, sites};
use crate::types::{Direction, Extent, RunId, Seq, UNIT};

/// Read the run in every way: the result must be right, or `Corrupt`.
fn read_all(rig: &Rig, run: &Arc<Run>, versions: &[Version]) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut value = Vec::new();
    let cold = rig.cold(run, 1 << 20);
    for version in versions {
        match cold.get(&version.key, version.seq, &mut value) {
            Ok(found) => {
                assert_eq!(found, Some((version.seq, version.op)));
                assert_eq!(value, version.value);
            }
            Err(error) => errors.push(error),
        }
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let cold = rig.cold(run, 1 << 20);
        let mut cursor = cold.cursor(direction);
        let mut expected: Vec<&Version> = versions.iter().collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        let mut result = cursor.seek(Bound::Unbounded);
        let mut expected = expected.into_iter();
        while result.is_ok() {
            let next = expected.next();
            assert_eq!(cursor.entry(), next.map(Version::entry));
            if next.is_none() {
                break;
            }
            result = cursor.advance();
        }
        errors.extend(result.err());
    }
    let mut expected = versions.iter();
    let scan = rig.cold(run, 1 << 20).scan(sites::MERGE_READ);
    let result = scan.and_then(|mut scan| {
        while let Some(entry) = scan.current() {
            assert_eq!(Some(entry), expected.next().map(Version::entry));
            scan.advance()?;
        }
        assert_eq!(expected.next(), None);
        Ok(())
    });
    errors.extend(result.err());
    errors
}

#[test]
fn every_damaged_byte_gives_the_right_answer_or_an_error() {
    let rig = Rig::new(1 << 20);
    let mut rng = Rng::new(5);
    let shape = Shape {
        keys: 24,
        versions: 4,
        fixed: false,
        max_value: 12,
    };
    let versions = random(&mut rng, shape);
    let run = rig.write(150, 10, &versions);
    assert!(4 <= run.meta().pages, "{} pages", run.meta().pages);
    assert!(read_all(&rig, &run, &versions).is_empty());
    for at in 0..run.meta().allocated() {
        let place = usize::try_from(DATA_START + at).unwrap();
        let flip = 1 << rng.below(8);
        rig.file.bytes.lock()[place] ^= flip;
        let errors = read_all(&rig, &run, &versions);
        for error in &errors {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let text = error.to_string();
            for part in ["run 1", "tree 5", "data.betree", "file offset"] {
                assert!(text.contains(part), "{text}");
            }
        }
        let used = at < run.meta().bytes;
        assert_eq!(!errors.is_empty(), used, "byte {at}");
        assert_eq!(run.verify().is_err(), used, "byte {at}");
        rig.file.bytes.lock()[place] ^= flip;
    }
    run.verify().unwrap();
}

#[test]
fn a_file_that_ends_early_is_damage() {
    let rig = Rig::new(1 << 20);
    let versions: Vec<Version> = (0..100u32)
        .map(|it| Version::new(it.to_be_bytes(), 0, *b"v"))
        .collect();
    let run = rig.write(100, 10, &versions);
    rig.file
        .bytes
        .lock()
        .truncate(usize::try_from(DATA_START).unwrap());
    let errors = read_all(&rig, &run, &versions);
    assert!(!errors.is_empty());
    assert!(
        errors.iter().all(|it| it.kind() == ErrorKind::Corrupt),
        "{:?}",
        errors[0]
    );
    assert!(
        errors[0].to_string().contains("ends within run 1"),
        "{}",
        errors[0]
    );
}

#[test]
fn a_run_is_not_taken_for_another() {
    let rig = Rig::new(1 << 20);
    let versions = [Version::new(*b"a", 1, *b"x"), Version::new(*b"b", 2, *b"y")];
    let run = rig.write(1, 10, &versions);
    let mut meta = run.meta().clone();
    meta.id = RunId(77);
    let other = Run::open(&rig.store, meta);
    let mut value = Vec::new();
    let error = other.get(b"a", Seq::MAX, &mut value).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(other.scan(sites::MERGE_READ).is_err());
    assert!(other.verify().is_err());
}

#[test]
fn verify_compares_the_description() {
    let rig = Rig::new(1 << 20);
    let versions: Vec<Version> = (0..50u32)
        .map(|it| Version::new(it.to_be_bytes(), 1, *b"v"))
        .collect();
    let run = rig.write(100, 0, &versions);
    let changes: [fn(&mut RunMeta); 6] = [
        |it| it.entries += 1,
        |it| it.tombstones += 1,
        |it| it.raw_bytes += 1,
        |it| it.max_seq = Seq(9),
        |it| it.min_key = Box::default(),
        |it| it.max_key = Box::new([255]),
    ];
    for change in changes {
        let mut meta = run.meta().clone();
        change(&mut meta);
        meta.check().unwrap();
        let error = Run::open(&rig.store, meta).verify().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn a_wrong_description_is_refused() {
    // meta: I1, I2, I3.
    let rig = Rig::new(1 << 20);
    let run = rig.write(100, 10, &[Version::new(*b"a", 1, *b"x")]);
    let changes: [fn(&mut RunMeta); 12] = [
        |it| it.extents.clear(),
        |it| it.extents[0].len += 1,
        |it| it.extents[0].offset += 1,
        |it| it.extents[0].len = 0,
        |it| it.extents[0].offset = u64::MAX - UNIT + 1,
        |it| {
            it.extents.push(Extent {
                offset: 0,
                len: UNIT,
            })
        },
        |it| it.entries = 0,
        |it| it.pages = 2,
        |it| it.tombstones = 2,
        |it| it.min_key = Box::new([255]),
        |it| it.fence_offset = u64::MAX,
        |it| it.bytes += 1,
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut meta = run.meta().clone();
        change(&mut meta);
        let error = meta.check().expect_err(&format!("change {index}"));
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}

//! Every way of reading, compared with the list of written entries.

use std::ops::Bound;
use std::sync::Arc;

use stdx::Rng;

use super::rig::{Rig, Shape, Version, random, random_key};
use crate::merge::Source;
use crate::run::{Run, RunCursor, RunScan, sites};
use crate::types::{Direction, Op, Seq};

const SHAPES: [Shape; 5] = [
    Shape {
        keys: 300,
        versions: 1,
        fixed: true,
        max_value: 0,
    },
    Shape {
        keys: 200,
        versions: 4,
        fixed: false,
        max_value: 20,
    },
    Shape {
        keys: 12,
        versions: 90,
        fixed: false,
        max_value: 30,
    },
    Shape {
        keys: 1,
        versions: 60,
        fixed: true,
        max_value: 3,
    },
    Shape {
        keys: 8,
        versions: 2,
        fixed: false,
        max_value: 9000,
    },
];

/// Runs of all shapes, with pages of one entry up to all entries, with and without a cache.
fn for_all(check: impl Fn(&mut Rng, Shape, &Arc<Run>, &[Version])) {
    for (round, shape) in SHAPES.iter().cycle().take(40).enumerate() {
        let mut rng = Rng::new(round as u64);
        let rig = Rig::new(64 << 10);
        let versions = random(&mut rng, *shape);
        let page_raw = [1, 60, 300, 2000, 16 << 10][rng.index(5)];
        let filter_bits = [0, 10][rng.index(2)];
        let run = rig.write(page_raw, filter_bits, &versions);
        let run = if rng.chance(0.5) {
            rig.cold(&run, 1 << 20)
        } else {
            run
        };
        println!("round {round}: {shape:?}, pages of {page_raw}, {filter_bits} bits");
        check(&mut rng, *shape, &run, &versions);
    }
}

fn some_key(rng: &mut Rng, shape: Shape, versions: &[Version]) -> Vec<u8> {
    let mut key = versions[rng.index(versions.len())].key.clone();
    match rng.below(5) {
        0 => key.push(0),
        1 => drop(key.pop()),
        2 => key = random_key(rng, shape),
        _ => {}
    }
    key
}

#[test]
fn the_description_is_of_what_was_written() {
    for_all(|_, _, run, versions| {
        let meta = run.meta();
        assert_eq!(meta.entries, versions.len() as u64);
        let tombstones = versions.iter().filter(|it| it.op == Op::Delete).count();
        assert_eq!(meta.tombstones, tombstones as u64);
        let raw: usize = versions
            .iter()
            .map(|it| it.key.len() + it.value.len())
            .sum();
        assert_eq!(meta.raw_bytes, raw as u64);
        assert_eq!(*meta.min_key, *versions[0].key);
        assert_eq!(*meta.max_key, *versions[versions.len() - 1].key);
        assert_eq!(
            meta.max_seq,
            versions.iter().map(|it| it.seq).max().unwrap()
        );
        meta.check().unwrap();
        run.verify().unwrap();
    });
}

#[test]
fn get_finds_the_newest_version_a_snapshot_sees() {
    // fence: I2.
    for_all(|rng, shape, run, versions| {
        let mut value = b"before".to_vec();
        for _ in 0..300 {
            let key = some_key(rng, shape, versions);
            let snapshot = match rng.below(4) {
                0 => Seq::MAX,
                1 => Seq::ANCIENT,
                _ => Seq(rng.below(1000)),
            };
            let found = run.get(&key, snapshot, &mut value).unwrap();
            let expected = versions
                .iter()
                .find(|it| it.key == key && it.seq <= snapshot);
            assert_eq!(
                found,
                expected.map(|it| (it.seq, it.op)),
                "{key:?} at {snapshot}"
            );
            if let Some(expected) = expected {
                assert_eq!(value, expected.value);
            }
        }
    });
}

fn forward_matches(bound: Bound<&[u8]>, key: &[u8]) -> bool {
    match bound {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    }
}

fn backward_matches(bound: Bound<&[u8]>, key: &[u8]) -> bool {
    match bound {
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
        Bound::Unbounded => true,
    }
}

/// The target of a seek, as an index into `versions`.
fn target(versions: &[Version], direction: Direction, bound: Bound<&[u8]>) -> Option<usize> {
    match direction {
        Direction::Forward => versions
            .iter()
            .position(|it| forward_matches(bound, &it.key)),
        Direction::Backward => versions
            .iter()
            .rposition(|it| backward_matches(bound, &it.key)),
    }
}

fn compare(cursor: &RunCursor, versions: &[Version], at: Option<usize>) {
    assert_eq!(cursor.entry(), at.map(|at| versions[at].entry()));
}

#[test]
fn cursors_go_where_a_list_would_in_both_directions() {
    for_all(|rng, shape, run, versions| {
        for direction in [Direction::Forward, Direction::Backward] {
            let mut cursor = run.cursor(direction);
            assert_eq!(cursor.entry(), None);
            for _ in 0..120 {
                let key = some_key(rng, shape, versions);
                let bound = match rng.below(9) {
                    0 => Bound::Unbounded,
                    1..=4 => Bound::Included(key.as_slice()),
                    _ => Bound::Excluded(key.as_slice()),
                };
                cursor.seek(bound).unwrap();
                let mut at = target(versions, direction, bound);
                compare(&cursor, versions, at);
                let steps = if rng.chance(0.1) {
                    versions.len() + 2
                } else {
                    rng.index(40)
                };
                for _ in 0..steps {
                    cursor.advance().unwrap();
                    at = at.and_then(|at| match direction {
                        Direction::Forward => Some(at + 1).filter(|at| *at < versions.len()),
                        Direction::Backward => at.checked_sub(1),
                    });
                    compare(&cursor, versions, at);
                }
            }
        }
    });
}

fn collect(mut scan: RunScan) -> Vec<Version> {
    let mut found = Vec::new();
    while let Some(entry) = scan.current() {
        found.push(Version::of(entry));
        scan.advance().unwrap();
    }
    scan.advance().unwrap();
    assert_eq!(scan.current(), None, "the end stays the end");
    found
}

#[test]
fn scans_give_all_versions_of_a_range() {
    for_all(|rng, shape, run, versions| {
        assert_eq!(collect(run.scan(sites::MERGE_READ).unwrap()), versions);
        for _ in 0..30 {
            let lo = if rng.chance(0.2) {
                Vec::new()
            } else {
                some_key(rng, shape, versions)
            };
            let hi = some_key(rng, shape, versions);
            let hi = if rng.chance(0.2) {
                None
            } else {
                Some(hi.as_slice())
            };
            let expected: Vec<Version> = versions
                .iter()
                .filter(|it| it.key >= lo && hi.is_none_or(|hi| it.key.as_slice() < hi))
                .cloned()
                .collect();
            let found = collect(run.scan_from(sites::MERGE_READ, &lo, hi).unwrap());
            assert_eq!(found, expected, "from {lo:?} to {hi:?}");
        }
    });
}

#[test]
fn a_seek_within_the_page_does_not_ask_the_cache() {
    let rig = Rig::new(1 << 20);
    let versions: Vec<Version> = (0..1000u32)
        .map(|it| Version::new(it.to_be_bytes(), 0, *b"v"))
        .collect();
    let run = rig.write(4000, 0, &versions);
    let mut cursor = run.cursor(Direction::Forward);
    cursor.seek(Bound::Included(&10u32.to_be_bytes())).unwrap();
    let before = (rig.cache.hits(), rig.cache.misses());
    for key in [200u32, 11, 50, 50, 199] {
        cursor.seek(Bound::Included(&key.to_be_bytes())).unwrap();
        assert_eq!(cursor.entry().unwrap().key, key.to_be_bytes());
    }
    assert_eq!(before, (rig.cache.hits(), rig.cache.misses()));
}

#[test]
fn a_long_scan_by_cursor_reads_ahead() {
    let rig = Rig::new(64 << 20);
    let mut rng = Rng::new(1);
    let shape = Shape {
        keys: 40_000,
        versions: 1,
        fixed: true,
        max_value: 100,
    };
    let versions = random(&mut rng, shape);
    let run = rig.write(4000, 0, &versions);
    for direction in [Direction::Forward, Direction::Backward] {
        let cold = rig.cold(&run, 64 << 20);
        let mut cursor = cold.cursor(direction);
        cursor.seek(Bound::Unbounded).unwrap();
        let mut count = 0;
        while cursor.entry().is_some() {
            count += 1;
            cursor.advance().unwrap();
        }
        assert_eq!(count, versions.len());
        let reads = cold.store().traffic().page_read.operations();
        assert!(reads * 20 < u64::from(run.meta().pages), "{reads} reads");
        let bytes = cold.store().traffic().page_read.bytes();
        assert_eq!(bytes, run.meta().fence_offset, "every page is read once");
        // Now all pages are cached.
        cursor.seek(Bound::Unbounded).unwrap();
        while cursor.entry().is_some() {
            cursor.advance().unwrap();
        }
        assert_eq!(reads, cold.store().traffic().page_read.operations());
    }
}

#[test]
fn a_filter_spares_the_pages_of_absent_keys() {
    let rig = Rig::new(64 << 20);
    let key = |it: u64| stdx::rng::mix64(it).to_be_bytes();
    let mut versions: Vec<Version> = (0..20_000)
        .map(|it| Version::new(key(it), 0, *b"v"))
        .collect();
    versions.sort_by(|a, b| a.key.cmp(&b.key));
    let run = rig.cold(&rig.write(4000, 10, &versions), 64 << 20);
    let mut value = Vec::new();
    let before = run.store().traffic().page_read.operations();
    let looks = run.store().cache().misses() + run.store().cache().hits();
    for it in 20_000..30_000 {
        assert_eq!(run.get(&key(it), Seq::MAX, &mut value).unwrap(), None);
    }
    let looks = run.store().cache().misses() + run.store().cache().hits() - looks;
    assert!(
        looks < 10_000 + 2 * 10_000 / 50,
        "{looks} looks: few pass the filter"
    );
    assert_eq!(before, 0);
    assert_eq!(
        run.store().traffic().index_read.operations(),
        2,
        "the filter and the fences"
    );
    for it in 0..1000 {
        assert!(run.get(&key(it), Seq::MAX, &mut value).unwrap().is_some());
    }
}

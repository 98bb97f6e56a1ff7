//! The space that runs allocate, when they free it, and how they write.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vfs::{File, Open, RealVfs, Site, Vfs};

use super::rig::{DATA_START, Rig, TREE, Version, options};
use crate::cache::Cache;
use crate::error::ErrorKind;
use crate::merge::Source;
use crate::run::{RunStore, RunWriter, sites};
use crate::space::Space;
use crate::types::{Direction, Op, RunId, Seq, UNIT};

fn incompressible(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stdx::Rng::new(seed).fill(&mut bytes);
    bytes
}

/// `count` entries of `len` bytes that do not compress.
fn rows(count: u32, len: usize) -> Vec<Version> {
    (0..count)
        .map(|it| Version::new(it.to_be_bytes(), 0, incompressible(u64::from(it), len)))
        .collect()
}

#[test]
fn a_tiny_run_takes_one_unit_and_one_read() {
    let rig = Rig::new(1 << 20);
    for _ in 0..100 {
        let run = rig.write(16 << 10, 0, &rows(3, 10));
        assert_eq!(run.meta().extents.len(), 1);
        assert_eq!(run.meta().allocated(), UNIT);
        let cold = rig.cold(&run, 1 << 20);
        let mut value = Vec::new();
        assert!(
            cold.get(&1u32.to_be_bytes(), Seq::MAX, &mut value)
                .unwrap()
                .is_some()
        );
        let traffic = cold.store().traffic();
        let reads = traffic.index_read.operations() + traffic.page_read.operations();
        assert_eq!(reads, 1, "one page needs no fences");
    }
    assert_eq!(rig.space.used_bytes(), 100 * UNIT);
    assert_eq!(rig.store.traffic().flush_write.bytes(), 100 * UNIT);
}

#[test]
fn single_pages_are_read_alone_and_sequences_in_order() {
    let rig = Rig::new(1 << 20);
    let run = rig.write(4 << 10, 10, &rows(4000, 1000));
    let reads = || {
        let file = &rig.file;
        let both = [&file.scattered, &file.in_order];
        both.map(|count| count.swap(0, Ordering::Relaxed))
    };
    let cold = rig.cold(&run, 64 << 10);
    reads();
    let mut value = Vec::new();
    for key in [7u32, 3000, 1500] {
        let found = cold.get(&key.to_be_bytes(), Seq::MAX, &mut value);
        assert!(found.unwrap().is_some());
    }
    let [scattered, in_order] = reads();
    assert!(3 <= scattered, "pages, fences and filter: {scattered}");
    assert_eq!(in_order, 0);

    let mut scan = cold.scan(sites::MERGE_READ).unwrap();
    while scan.current().is_some() {
        scan.advance().unwrap();
    }
    let [scattered, in_order] = reads();
    assert_eq!(scattered, 0);
    assert!(0 < in_order);

    // A cursor starts like a point read and continues like a scan.
    let mut cursor = cold.cursor(Direction::Forward);
    cursor.seek(Bound::Unbounded).unwrap();
    while cursor.entry().is_some() {
        cursor.advance().unwrap();
    }
    let [scattered, in_order] = reads();
    assert!((1..=4).contains(&scattered), "{scattered} alone");
    assert!(0 < in_order && in_order < 1000, "{in_order} in order");
}

#[test]
fn a_large_run_is_written_in_large_whole_pieces_and_gives_the_rest_back() {
    // writer: I2.
    let rig = Rig::new(1 << 20);
    let run = rig.write(16 << 10, 10, &rows(9000, 1000));
    let meta = run.meta();
    assert_eq!(meta.allocated(), meta.bytes.next_multiple_of(UNIT));
    assert_eq!(rig.space.used_bytes(), meta.allocated());
    let writes = rig.file.writes.lock().clone();
    let (last, whole) = writes.split_last().unwrap();
    assert!(whole.iter().all(|len| *len == 512 << 10), "{writes:?}");
    assert!(last % 4096 == 0 && *last <= 512 << 10);
    assert_eq!(
        rig.store.traffic().flush_write.operations(),
        writes.len() as u64
    );
    run.verify().unwrap();
}

#[test]
fn runs_lie_in_many_extents_when_the_file_is_shared() {
    let rig = Rig::new(1 << 20);
    let versions = rows(9000, 1000);
    let mut a = rig.writer(16 << 10, 0);
    let mut b = rig.writer(16 << 10, 0);
    for version in &versions {
        a.push(version.entry()).unwrap();
        b.push(version.entry()).unwrap();
    }
    for run in [a.finish().unwrap(), b.finish().unwrap()] {
        assert!(3 <= run.meta().extents.len());
        run.verify().unwrap();
        let cold = rig.cold(&run, 1 << 20);
        let mut value = Vec::new();
        for version in &versions {
            let found = cold.get(&version.key, Seq::MAX, &mut value).unwrap();
            assert_eq!(found, Some((Seq(0), Op::Put)));
            assert_eq!(value, version.value);
        }
        let mut scan = cold.scan(sites::MERGE_READ).unwrap();
        for version in &versions {
            assert_eq!(scan.current(), Some(version.entry()));
            scan.advance().unwrap();
        }
        assert_eq!(scan.current(), None);
        let forgotten = rig.file.forgotten.swap(0, Ordering::Relaxed);
        assert_eq!(forgotten, run.meta().fence_offset.next_multiple_of(UNIT));
        let reads = cold.store().traffic().merge_read.operations();
        assert!(reads < 30, "{reads} reads of some 9 MB");
    }
}

#[test]
fn huge_values_are_stored_whole() {
    let rig = Rig::new(1 << 20);
    let mut versions = rows(3, 10);
    versions[1].value = incompressible(7, 5 << 20);
    versions.push(Version::new(*b"zero", 3, vec![0; 64 << 20]));
    let run = rig.write(16 << 10, 10, &versions);
    run.verify().unwrap();
    let mut value = Vec::new();
    for version in &versions {
        let found = run.get(&version.key, Seq::MAX, &mut value).unwrap();
        assert_eq!(found, Some((version.seq, Op::Put)));
        assert!(value == version.value);
    }
    let mut cursor = run.cursor(Direction::Backward);
    cursor.seek(std::ops::Bound::Unbounded).unwrap();
    for version in versions.iter().rev() {
        assert!(cursor.entry() == Some(version.entry()));
        cursor.advance().unwrap();
    }
    assert!(rig.cache.used() <= rig.cache.capacity());
}

#[test]
fn a_retired_run_releases_its_extents_with_its_last_reader() {
    let rig = Rig::new(1 << 20);
    let run = rig.write(1000, 0, &rows(100, 100));
    let used = rig.space.used_bytes();
    let reader = Arc::clone(&run);
    run.retire();
    drop(run);
    assert_eq!(rig.space.used_bytes(), used, "a reader still holds it");
    let mut value = Vec::new();
    let found = reader.get(&rows(1, 100)[0].key, Seq::MAX, &mut value);
    assert!(found.unwrap().is_some());
    assert!(0 < rig.cache.used());
    drop(reader);
    assert_eq!(rig.space.used_bytes(), 0);
    assert_eq!(rig.space.pending_bytes(), used);
    assert_eq!(rig.cache.used(), 0, "its pages are forgotten");
}

#[test]
fn a_cursor_holds_its_page_and_not_the_run() {
    let rig = Rig::new(1 << 20);
    for direction in [Direction::Forward, Direction::Backward] {
        let run = rig.write(1000, 0, &rows(100, 100));
        let mut cursor = run.cursor(direction);
        cursor.seek(std::ops::Bound::Unbounded).unwrap();
        assert!(!cursor.is_gone());
        run.retire();
        drop(run);
        assert!(cursor.is_gone());
        assert_eq!(rig.space.used_bytes(), 0, "the cursor keeps no space");
        let mut steps = 0;
        let last = loop {
            let before = cursor.entry().unwrap().key.to_vec();
            if cursor.advance().is_err() {
                break before;
            }
            steps += 1;
        };
        assert!(steps < 50, "{steps} steps within the page");
        assert_eq!(cursor.entry().unwrap().key, last, "it stays where it was");
        assert_eq!(cursor.passed(), last);
        assert!(cursor.seek(std::ops::Bound::Unbounded).is_err());
        assert!(cursor.entry().is_none());
    }
}

#[test]
fn a_run_that_is_not_retired_keeps_its_extents() {
    let rig = Rig::new(1 << 20);
    drop(rig.write(1000, 0, &rows(100, 100)));
    assert!(0 < rig.space.used_bytes());
    assert_eq!(rig.space.pending_bytes(), 0);
}

#[test]
fn an_abandoned_writer_leaves_nothing() {
    let rig = Rig::new(1 << 20);
    let mut writer = rig.writer(16 << 10, 10);
    for version in rows(4000, 1000) {
        writer.push(version.entry()).unwrap();
    }
    assert!(0 < rig.space.used_bytes());
    drop(writer);
    assert_eq!(rig.space.used_bytes(), 0);
    assert_eq!(rig.space.pending_bytes(), 0, "no image has named them");
}

#[test]
fn a_failed_write_leaves_nothing_and_says_why() {
    for writes in 0..5 {
        let rig = Rig::new(1 << 20);
        rig.file.writes_left.store(writes, Ordering::Relaxed);
        let error = rig.try_write(16 << 10, 0, &rows(4000, 1000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
        assert!(error.to_string().contains("data.betree"), "{error}");
        assert_eq!(rig.space.used_bytes(), 0);
    }
}

#[test]
fn a_run_is_the_same_bytes_each_time() {
    let (a, b) = (Rig::new(1 << 20), Rig::new(1 << 20));
    let versions = rows(500, 90);
    for rig in [&a, &b] {
        let mut writer = RunWriter::new(&rig.store, TREE, RunId(3), options(1000, 10));
        versions
            .iter()
            .for_each(|it| writer.push(it.entry()).unwrap());
        drop(writer.finish().unwrap());
    }
    assert!(Arc::ptr_eq(&a.file, &a.file) && *a.file.bytes.lock() == *b.file.bytes.lock());
}

#[test]
fn runs_on_a_real_file_read_as_they_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.betree");
    for direct in [false, true] {
        let how = Open {
            create: true,
            direct,
        };
        let file = RealVfs::new().open(Site("test"), &path, how).unwrap();
        let file: Arc<dyn File> = file.into();
        let space = Arc::new(Space::new(DATA_START));
        let cache = Arc::new(Cache::new(1 << 20));
        let store = RunStore::new(file, &path, Arc::clone(&space), cache, None);
        let versions = rows(3000, 700);
        let mut writers: Vec<RunWriter> = (1..4)
            .map(|id| RunWriter::new(&store, TREE, RunId(id), options(4000, 10)))
            .collect();
        for version in &versions {
            for writer in &mut writers {
                writer.push(version.entry()).unwrap();
            }
        }
        for writer in writers {
            let run = writer.finish().unwrap();
            run.verify().unwrap();
            let mut value = Vec::new();
            for version in &versions {
                let found = run.get(&version.key, Seq::MAX, &mut value).unwrap();
                assert_eq!(found, Some((Seq(0), Op::Put)));
                assert_eq!(value, version.value);
            }
            let mut scan = run.scan(sites::MERGE_READ).unwrap();
            for version in &versions {
                assert_eq!(scan.current(), Some(version.entry()));
                scan.advance().unwrap();
            }
        }
    }
}

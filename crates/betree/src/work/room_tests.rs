//! What is freed on a full disk, how often that is tried, and what commits learn of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sim::{Fault, FaultKind, Lasts, SimOptions, SimVfs, Sites, When};
use vfs::Vfs;

use super::room::PATIENCE;
use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{Codec, Options};
use crate::types::{Batch, Durability, Seq, TreeId, TreeOptions};

/// Size of a log segment.
const SEGMENT: u64 = 64 << 10;

/// A store that makes checkpoints for space only.
fn open() -> (SimVfs, Arc<Core>, TreeId) {
    let disk = SimVfs::new(SimOptions::default());
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(1 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_log_segment(SEGMENT)
        .with_checkpoint_interval(Duration::from_secs(86_400))
        .with_checkpoint_bytes(1 << 30)
        .with_threads(0);
    let (core, _) = crate::db::open(&vfs, Path::new("/store"), &options).unwrap();
    let tree = core.create_tree("t", TreeOptions::default()).unwrap();
    core.checkpoint().unwrap();
    (disk, Arc::new(core), tree)
}

/// Commit rows and flush them.
fn put(core: &Core, tree: TreeId, numbers: impl Iterator<Item = u32>) {
    let mut batch = Batch::new();
    for number in numbers {
        batch.put(tree, &number.to_be_bytes(), &[7; 1000]);
    }
    core.write(&batch, Durability::None).unwrap();
    core.flush().unwrap();
}

/// From now on calls at these sites find the disk full.
pub(super) fn fill(disk: &SimVfs, sites: &'static str) {
    disk.inject(Fault {
        sites: Sites::StartWith(sites),
        call: None,
        when: When::Nth(1),
        lasts: Lasts::Sticky,
        kind: FaultKind::Enospc,
    });
}

/// Do background work until none is left or the disk is full.
fn work(disk: &SimVfs, core: &Core) -> Result<()> {
    for _ in 0..1000 {
        disk.sleep(Duration::from_millis(1));
        if !core.step()? && core.is_idle() {
            return Ok(());
        }
    }
    panic!("the work does not end");
}

#[test]
fn log_that_a_checkpoint_sets_aside_is_removed_for_space() {
    let (disk, core, tree) = open();
    for round in 0..5 {
        put(&core, tree, round * 50..(round + 1) * 50);
    }
    assert_eq!(core.space.pending_bytes(), 0, "only log can be freed");
    assert!(core.waits_for_checkpoint());
    let most = disk.used() + SEGMENT / 2;
    let mut tries = 0;
    let done = core.or_freed(|| {
        tries += 1;
        if most < disk.used() + 2 * SEGMENT {
            return Err(Error::new(ErrorKind::Full, "no room"));
        }
        Ok(())
    });
    assert!(done.is_ok(), "{done:?} after {tries} tries");
    assert_eq!(tries, 3, "a checkpoint, then the spare segments");
}

#[test]
fn a_checkpoint_without_room_is_not_tried_again_at_once() {
    let (disk, core, tree) = open();
    for round in 0..5 {
        put(&core, tree, round * 50..(round + 1) * 50);
    }
    assert!(core.waits_for_checkpoint());
    fill(&disk, "image.");
    let calls = || {
        let before = disk.ios();
        assert!(!core.free_space().unwrap());
        disk.ios() - before
    };
    assert!(0 < calls(), "a checkpoint is tried");
    assert_eq!(calls(), 0, "none a moment later");
    disk.sleep(PATIENCE);
    assert!(0 < calls());
}

#[test]
fn space_is_not_freed_in_a_closed_store() {
    let (_, core, tree) = open();
    for round in 0..5 {
        put(&core, tree, round * 50..(round + 1) * 50);
    }
    core.checkpoint().unwrap();
    let log = core.log.as_ref().unwrap();
    log.close();
    let kind = |done: Result<bool>| done.map_err(|error| error.kind());
    assert_eq!(kind(log.give_up_spares()), Err(ErrorKind::Closed));
    core.health.close();
    assert_eq!(kind(core.free_space()), Err(ErrorKind::Closed));
}

/// I2 of room.
#[test]
fn merges_without_room_are_trouble_but_do_not_keep_memory_full() {
    let (disk, core, tree) = open();
    for offset in 0..8 {
        put(&core, tree, (offset..200).step_by(8));
    }
    fill(&disk, "merge.write");
    disk.sleep(Duration::from_secs(1));
    let worked = work(&disk, &core).map_err(|error| error.kind());
    assert_eq!(worked, Err(ErrorKind::Full));
    assert!(core.health.trouble().is_some(), "commits need not sleep");
    assert!(core.flush_trouble().is_none(), "I2: flushes succeed");

    fill(&disk, "flush.write");
    let mut batch = Batch::new();
    batch.put(tree, b"key", b"value");
    core.write(&batch, Durability::None).unwrap();
    core.freeze_older_than(Seq::MAX);
    assert!(core.step().is_err());
    let trouble = core.flush_trouble().map(|error| error.kind());
    assert_eq!(trouble, Some(ErrorKind::Full), "I2");
    disk.clear_faults();
    disk.sleep(PATIENCE);
    work(&disk, &core).unwrap();
    assert!(core.health.trouble().is_none());
    assert!(core.flush_trouble().is_none());
}

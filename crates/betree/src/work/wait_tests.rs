//! What background work waits for, and what it must not wait for.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use sim::{SimOptions, SimVfs};
use stdx::sync::atomic::{AtomicBool, Ordering};
use vfs::Vfs;

use super::pick::Zeal;
use crate::db::{Changes, Chunks, Core};
use crate::error::Result;
use crate::options::{Codec, Options};
use crate::types::{Batch, Durability, Seq, TreeId, TreeOptions};
use crate::work::Ask;

const DIRECTORY: &str = "/store";

fn open() -> (SimVfs, Arc<Core>) {
    let disk = SimVfs::new(SimOptions::default());
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_threads(0)
        .with_seed(1);
    let (core, _) = crate::db::open(&vfs, Path::new(DIRECTORY), &options).unwrap();
    (disk, Arc::new(core))
}

fn put(core: &Core, tree: TreeId, numbers: impl Iterator<Item = u32>) {
    let mut batch = Batch::new();
    for number in numbers {
        batch.put(tree, &number.to_be_bytes(), &[7; 40]);
    }
    core.write(&batch, Durability::None).unwrap();
}

#[test]
fn flushes_of_what_came_later_are_not_waited_for() {
    let (_, core) = open();
    let first = core.create_tree("a", TreeOptions::default()).unwrap();
    let second = core.create_tree("b", TreeOptions::default()).unwrap();
    put(&core, first, 0..10);
    core.freeze_older_than(Seq::MAX);
    let through = core.commit.lock().last;
    put(&core, second, 0..10);
    core.freeze_older_than(Seq::MAX);
    assert!(!core.queue.is_past(through));
    let (early, late) = (core.queue.take().unwrap(), core.queue.take().unwrap());
    assert!(!core.queue.is_past(through), "it is being flushed");
    core.queue.put_back(early);
    assert!(!core.queue.is_past(through), "it waits again");
    assert!(core.flush_one().unwrap());
    assert!(core.queue.is_past(through));
    assert!(!core.queue.is_idle(), "a later flush is under way");
    core.queue.put_back(late);
    assert!(core.flush_one().unwrap());
    assert!(core.queue.is_idle());
}

#[test]
fn compacting_does_not_wait_for_flushes_of_what_came_later() {
    let (_, core) = open();
    let trees = ["a", "b", "c"];
    let [range, other, later] =
        trees.map(|name| core.create_tree(name, TreeOptions::default()).unwrap());
    put(&core, range, 0..10);
    core.freeze_older_than(Seq::MAX);
    let early = core.queue.take().unwrap();
    put(&core, other, 0..10);
    let (ended, wait) = mpsc::channel();
    let worker = {
        let core = Arc::clone(&core);
        stdx::sync::spawn("compact", move || {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let done = core.compact(range, all.0, all.1, &mut |_, _| true);
            ended.send(done.unwrap()).unwrap();
        })
        .unwrap()
    };
    // It has flushed what it can, and waits for the flush of the range.
    while core.counters.flushes.get() == 0 {
        std::thread::yield_now();
    }
    put(&core, later, 0..10);
    core.freeze_older_than(Seq::MAX);
    let late = core.queue.take().unwrap();
    core.queue.put_back(early);
    let done = wait.recv_timeout(Duration::from_secs(60));
    assert_eq!(done, Ok(true), "it waits for the later flush");
    core.queue.put_back(late);
    worker.join().unwrap();
}

#[test]
fn a_merge_that_has_to_cut_waits_for_a_flush_without_spinning() {
    let (_, core) = open();
    let tree = core.create_tree("t", TreeOptions::default()).unwrap();
    for offset in 0..2 {
        put(&core, tree, (offset..1200).step_by(2));
        core.freeze_older_than(Seq::MAX);
        core.flush_until_idle().unwrap();
    }
    assert_eq!(core.buckets().len(), 1);
    put(&core, tree, (0..1200).step_by(100));
    core.freeze_older_than(Seq::MAX);
    // Another thread is flushing.
    let taken = core.queue.take().unwrap();
    let mut slices = 0;
    while core.merge_slice(|| core.pick_merge(Zeal::Idle)).unwrap() {
        slices += 1;
        assert!(slices < 1000, "the merge goes round");
    }
    assert!(0 < slices, "there is something to merge");
    assert_eq!(core.buckets().len(), 1, "a bucket is not cut under a flush");
    assert_eq!(core.merges.open(), 1);
    core.queue.put_back(taken);
    assert!(core.flush_one().unwrap());
    assert!(core.merge_slice(|| None).unwrap(), "now it is published");
    assert!(1 < core.buckets().len());
    assert!(core.settle(Duration::from_secs(3600)).unwrap());
    core.verify().unwrap();
}

#[test]
fn a_store_is_not_idle_during_a_bulk_commit() {
    let (disk, core) = open();
    core.create_tree("t", TreeOptions::default()).unwrap();
    core.is_idle();
    assert!(core.is_idle());
    let watch = || {
        for _ in 0..3 {
            disk.sleep(Duration::from_secs(1));
            assert!(!core.is_idle(), "a commit is under way");
        }
    };
    let ask = Ask::new(1, false);
    core.with_room(&ask, || {
        core.commit_bulk(&Watched(&watch), &ask, Durability::None, &mut |_| Ok(()))
    })
    .unwrap();
    assert!(core.is_idle(), "it wrote nothing");
}

#[test]
fn a_commit_for_which_another_has_found_room_meanwhile_needs_no_space() {
    let (_, core) = open();
    let checkpoints = core.counters.checkpoints.get();
    let (ask, other) = (Ask::new(1 << 20, false), Ask::new(2 << 20, false));
    let mut attempts = 0;
    core.with_room(&ask, || {
        attempts += 1;
        let refused = core.check_room(&ask);
        core.with_room(&other, || core.check_room(&other))?;
        refused
    })
    .unwrap();
    assert_eq!(attempts, 2, "the first one found no room");
    assert_eq!(core.counters.checkpoints.get(), checkpoints);
}

#[test]
fn not_every_delete_counts_the_buffers() {
    let (_, core) = open();
    let mut attempts = 0;
    for bytes in 1..=1_000 {
        let ask = Ask::new(bytes, true);
        core.with_room(&ask, || {
            attempts += 1;
            core.check_room(&ask)
        })
        .unwrap();
    }
    assert!(attempts <= 1_010, "{attempts} attempts of 1,000 deletes");
}

/// Whether all buffers are empty although memory is full is asked in one step: the other thread
/// fills the memory while it holds the commit lock, as a commit does, and has freed it before it
/// releases the lock, as if its buffer had been flushed.
#[test]
fn no_commit_comes_between_the_search_for_a_full_buffer_and_its_check() {
    let (_, core) = open();
    let limit = core.memory.limit();
    let ended = Arc::new(AtomicBool::new(false));
    let commits = {
        let (core, ended) = (Arc::clone(&core), Arc::clone(&ended));
        stdx::sync::spawn("commits", move || {
            for _ in 0..2_000 {
                let committer = core.commit.lock();
                core.memory.grow(limit);
                std::thread::yield_now();
                core.memory.forget_active(limit);
                drop(committer);
            }
            ended.store(true, Ordering::Release);
        })
        .unwrap()
    };
    while !ended.load(Ordering::Acquire) {
        assert!(!core.freeze_fullest(), "nothing is buffered");
    }
    commits.join().unwrap();
}

/// A change set without changes that calls a closure.
struct Watched<'a>(&'a dyn Fn());

impl Changes for Watched<'_> {
    fn pass(&self, _out: &mut Chunks<'_>) -> Result<()> {
        (self.0)();
        Ok(())
    }
}

#[test]
fn compacting_a_range_ends_while_each_look_finds_another_delta() {
    let (_, core) = open();
    let tree = core.create_tree("t", TreeOptions::default()).unwrap();
    for offset in 0..3 {
        put(&core, tree, (offset..3000).step_by(3));
        core.freeze_older_than(Seq::MAX);
        core.flush_until_idle().unwrap();
    }
    let mut looks = 0;
    let ended = core.compact(
        tree,
        Bound::Unbounded,
        Bound::Unbounded,
        &mut |done, all| {
            looks += 1;
            assert!(done <= all);
            // One writer, and flushes that keep up with it.
            put(&core, tree, (looks % 7..3000).step_by(300));
            core.flush().unwrap();
            looks < 2000
        },
    );
    assert!(ended.unwrap(), "it follows the writer, {looks} looks");
    core.verify().unwrap();
}

//! What commits find on a full disk: what is kept for their flushes, and what is done for them.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sim::{Fault, FaultKind, SimOptions, SimVfs};
use stdx::rng::Rng;
use vfs::Vfs;

use super::pick::Zeal;
use super::room_tests::fill;
use crate::db::Core;
use crate::error::{ErrorKind, Result};
use crate::options::{Codec, Options};
use crate::space::Purpose;
use crate::tree::Bucket;
use crate::types::{Batch, Durability, Extent, KeyRange, Seq, TreeId, TreeOptions, UNIT};

/// How often a commit that must succeed in the end is tried.
const TRIES: usize = 200;

/// No checkpoint is made for any other reason than space, and no buffer is flushed for its size.
fn options() -> Options {
    Options::default()
        .with_memory(4 << 20)
        .with_bucket(16 << 10)
        .with_page(1 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_log_segment(64 << 10)
        .with_checkpoint_interval(Duration::from_secs(86_400))
        .with_checkpoint_bytes(1 << 30)
        .with_threads(0)
        .with_seed(1)
}

fn open(disk: &SimVfs, options: &Options) -> Arc<Core> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let (core, _) = crate::db::open(&vfs, Path::new("/store"), options).unwrap();
    Arc::new(core)
}

/// A store with a tree, and its disk.
fn store() -> (SimVfs, Arc<Core>, TreeId) {
    store_with(&options())
}

fn store_with(options: &Options) -> (SimVfs, Arc<Core>, TreeId) {
    let disk = SimVfs::new(SimOptions::default());
    let core = open(&disk, options);
    let tree = core.create_tree("t", TreeOptions::default()).unwrap();
    (disk, core, tree)
}

fn write(
    core: &Core,
    tree: TreeId,
    numbers: impl Iterator<Item = u32>,
    put: Option<usize>,
) -> Result<()> {
    let mut batch = Batch::new();
    for number in numbers {
        match put {
            Some(bytes) => {
                let mut value = vec![0; bytes];
                Rng::new(u64::from(number)).fill(&mut value);
                batch.put(tree, &number.to_be_bytes(), &value);
            }
            None => batch.delete(tree, &number.to_be_bytes()),
        }
    }
    core.write(&batch, Durability::Sync)
}

/// Flush and merge everything.
fn settle(core: &Core) {
    core.flush().unwrap();
    while core.merge_slice(|| core.pick_merge(Zeal::Idle)).unwrap() {}
    core.checkpoint().unwrap();
}

/// Commit, now or after background work.
fn in_the_end(disk: &SimVfs, core: &Core, mut commit: impl FnMut() -> Result<()>) {
    for _ in 0..TRIES {
        match commit() {
            Ok(()) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Full, "{error}"),
        }
        disk.sleep(Duration::from_millis(30));
        for _ in 0..5 {
            let _ = core.step();
        }
    }
    panic!("a commit is refused for good");
}

#[test]
fn puts_succeed_after_deletes_that_nothing_else_would_flush() {
    let (disk, core, tree) = store();
    for first in (0..4000).step_by(400) {
        write(&core, tree, first..first + 400, Some(200)).unwrap();
    }
    settle(&core);
    disk.set_capacity(Some(disk.used()));
    let mut next = 4000;
    let mut put = || {
        next += 100;
        write(&core, tree, next..next + 100, Some(200))
    };
    while put().is_ok() {}
    for first in (0..4000).step_by(40) {
        in_the_end(&disk, &core, || write(&core, tree, first..first + 40, None));
    }
    // It is never idle: a commit precedes each look.
    in_the_end(&disk, &core, put);
    core.verify().unwrap();
}

/// Take all but `left` bytes of each long free piece of the file.
fn take_room(core: &Core, purpose: Purpose, left: u64) -> Vec<Extent> {
    core.release_excess();
    let layout = core.space.layout();
    let tail = core.space.backed() - layout.end;
    let pieces = layout.free.iter().map(|hole| hole.len).chain([tail]);
    let pieces = pieces.filter(|len| left < *len);
    pieces
        .map(|len| core.space.take(purpose, len - left / UNIT * UNIT).unwrap())
        .collect()
}

#[test]
fn deletes_need_no_room_in_buckets_that_they_leave_alone() {
    let (disk, core, tree) = store();
    for offset in 0..8 {
        write(&core, tree, (offset..8000).step_by(8), Some(100)).unwrap();
        core.flush().unwrap();
    }
    settle(&core);
    disk.set_capacity(Some(disk.used()));
    let buckets = core.buckets().len();
    let used = core.space.used_bytes();
    assert!(40 < buckets, "{buckets} buckets, {used} bytes");
    // Others hold all but what flushes of a few buffers and a merge take.
    let left = 20 * UNIT + core.options.bucket() * 2;
    assert!(left < buckets as u64 * UNIT, "{buckets} buckets");
    let taken = take_room(&core, Purpose::Other, left);
    let (start, end) = (0_u32.to_be_bytes(), 100_u32.to_be_bytes());
    in_the_end(&disk, &core, || write(&core, tree, 200..240, None));
    in_the_end(&disk, &core, || {
        let mut batch = Batch::new();
        let (start, end) = (Bound::Included(&start[..]), Bound::Excluded(&end[..]));
        batch.delete_range(tree, KeyRange { start, end });
        core.write(&batch, Durability::None)
    });
    core.space.discard(&taken);
    core.verify().unwrap();
}

#[test]
fn room_is_kept_for_what_a_replay_has_buffered() {
    let (disk, core, tree) = store();
    write(&core, tree, 0..300, Some(100)).unwrap();
    drop(core);
    let core = open(&disk, &options());
    let buffered = core.memory.buffered();
    assert!(300 * 100 < buffered, "{buffered} bytes were replayed");
    assert!(buffered as u64 <= core.space.kept(), "before any commit");
    assert!(buffered <= core.space.ceiling().get());

    // Spare segments for the opening.
    core.checkpoint().unwrap();
    drop(core);
    disk.set_capacity(Some(disk.used()));
    let core = open(&disk, &options());
    assert!(
        buffered as u64 <= core.space.kept(),
        "it was granted before"
    );
}

#[test]
fn a_small_flush_lets_commits_continue_without_counting() {
    let (_, core, tree) = store();
    write(&core, tree, 0..3, Some(10)).unwrap();
    let before = core.space.ceiling().get();
    core.freeze_older_than(Seq::MAX);
    assert!(core.flush_one().unwrap());
    let after = core.space.ceiling().get();
    assert!(0 < after && after < before, "{before} bytes, then {after}");
    let kept = core.space.kept();
    assert!(after as u64 <= kept, "{kept} kept for {after}");
    assert_eq!(kept % UNIT, 0, "whole units");
}

#[test]
fn a_range_delete_asks_for_the_room_of_its_tombstones() {
    let (_, core, tree) = store();
    for first in (0..20_000).step_by(1000) {
        write(&core, tree, first..first + 1000, Some(20)).unwrap();
    }
    settle(&core);
    core.release_excess();
    let mut batch = Batch::new();
    let (start, end) = (Bound::Unbounded, Bound::Unbounded);
    batch.delete_range(tree, KeyRange { start, end });
    core.write(&batch, Durability::None).unwrap();
    let (buffered, ceiling) = (core.memory.buffered(), core.space.ceiling().get());
    assert!(20_000 * 4 < buffered, "{buffered} bytes of tombstones");
    // Slots count twice as much as such small keys.
    assert!(buffered / 2 <= ceiling, "{buffered} bytes, {ceiling}");
}

#[test]
fn a_merge_that_lacks_room_does_not_hide_another() {
    let (disk, core, first) = store();
    let second = core.create_tree("u", TreeOptions::default()).unwrap();
    for (tree, rounds) in [(first, 4), (second, 2)] {
        for round in 0..rounds {
            write(&core, tree, (round..200).step_by(4), Some(20)).unwrap();
            core.flush().unwrap();
        }
    }
    let pick = || core.pick_merge(Zeal::Idle).map(|(tree, _)| tree.id);
    let merge = || {
        while core.merge_slice(|| core.pick_merge(Zeal::Idle))? && 0 < core.merges.open() {}
        Ok::<(), crate::Error>(())
    };
    assert_eq!(pick(), Some(first), "it has more deltas");
    disk.inject(Fault::once("merge.write", 1, FaultKind::Enospc));
    assert_eq!(merge().unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(pick(), Some(second), "the other one comes next");
    disk.inject(Fault::once("merge.write", 1, FaultKind::Enospc));
    assert_eq!(merge().unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(pick(), Some(first), "they take turns");
    merge().unwrap();
    merge().unwrap();
    assert_eq!(core.merges.waiting_bytes(), 0, "all is merged");
}

/// A buffer shared by the parts of a split bucket is flushed into the first part, fails in the
/// second, and is flushed again: what the first attempt took is not given up a second time.
#[test]
fn a_flush_that_is_tried_again_accounts_for_what_it_took_before() {
    let (disk, core, tree) = store();
    let other = core.create_tree("u", TreeOptions::default()).unwrap();
    for round in 0..2 {
        write(&core, tree, (round..1000).step_by(2), Some(50)).unwrap();
        core.flush().unwrap();
    }
    write(&core, other, 0..400, Some(100)).unwrap();
    write(&core, tree, (0..1000).step_by(3), Some(50)).unwrap();
    while core.merge_slice(|| core.pick_merge(Zeal::Idle)).unwrap() {}
    let parts = core.catalog.by_name("t").unwrap().routing().buckets().len();
    assert!(1 < parts, "{parts} parts");
    assert_eq!(core.queue.len().0, 1, "its active buffer is shared");
    disk.inject(Fault::once("flush.write", 2, FaultKind::Enospc));
    assert!(core.flush_one().is_err());
    assert!(core.flush_one().unwrap());
    let (left, kept) = (core.memory.buffered() as u64, core.space.kept());
    assert!(400 * 100 < left && left <= kept, "{kept} kept for {left}");
}

#[test]
fn a_split_keeps_room_for_the_runs_of_each_part() {
    let (_disk, core, tree) = store();
    for _ in 0..2 {
        write(&core, tree, 0..60, Some(1000)).unwrap();
        core.flush().unwrap();
    }
    write(&core, tree, 0..60, Some(10)).unwrap();
    assert!(
        core.release_excess(),
        "no more is kept than one bucket needs"
    );
    let splits = core.counters.splits.get();
    while core.merge_slice(|| core.pick_merge(Zeal::Idle)).unwrap() {}
    assert!(splits < core.counters.splits.get(), "it was split");
    assert!(0 < core.memory.buffered(), "nothing was flushed");
    // Nothing more can be released, as each part needs a run of its own.
    let kept = core.space.kept();
    assert!(core.least_kept() <= kept, "{kept}");
}

/// A store of one bucket that is due for a split, with buffered writes, on a disk that leaves
/// `more` bytes beside what is kept. Returns what is taken, too.
fn due_for_a_split(more: u64) -> (Arc<Core>, TreeId, Vec<Extent>) {
    // Memory for each commit as a whole, which is one run.
    let options = options().with_memory(64 << 20).with_bucket(128 << 10);
    let (disk, core, tree) = store_with(&options);
    for _ in 0..2 {
        write(&core, tree, 0..60, Some(8_000)).unwrap();
        core.flush().unwrap();
    }
    write(&core, tree, 60..65, Some(10)).unwrap();
    core.runs.grow(core.space.backed() + (2 << 20)).unwrap();
    fill(&disk, "run.allocate");
    core.release_excess();
    let left = core.space.kept() + more;
    let taken = take_room(&core, Purpose::Other, left);
    (core, tree, taken)
}

#[test]
fn a_bucket_stays_whole_where_there_is_no_room_for_the_runs_of_its_parts() {
    let whole = (8..60).find_map(|pieces| {
        let (core, tree, taken) = due_for_a_split(pieces * 4 * UNIT);
        let before = (core.counters.merges.get(), core.counters.splits.get());
        // One slice merges all of it, or lacks room for the outputs.
        for _ in 0..3 {
            let merged = core.merge_slice(|| core.pick_merge(Zeal::Idle));
            let _ = core.or_free(merged);
        }
        let splits = before.1 < core.counters.splits.get();
        (before.0 < core.counters.merges.get() && !splits).then_some((core, tree, taken))
    });
    let (core, tree, taken) = whole.expect("some room suffices for the merge alone");
    let rows = || {
        let snapshot = crate::db::Snapshot::new(&core).unwrap();
        let keys = (0..65).map(|number: u32| number.to_be_bytes());
        keys.filter(|key| snapshot.get(tree, key).unwrap().is_some())
            .count()
    };
    assert_eq!(rows(), 65);
    let merges = core.counters.merges.get();
    for _ in 0..100 {
        let _ = core.merge_slice(|| core.pick_merge(Zeal::Idle));
    }
    let again = core.counters.merges.get() - merges;
    assert!(again < 4, "it is merged {again} times for nothing");
    core.space.give_back(Purpose::Other, &taken);
    core.flush().unwrap();
    // What was flushed is appended, so there is nothing to merge.
    assert_eq!(core.buckets().len(), 2);
    assert!(core.settle(Duration::MAX).unwrap());
    assert!(2 < core.buckets().len(), "it was split once there was room");
    let all = core.buckets();
    let size = |bucket: &Bucket| bucket.state().base_bytes();
    let most = core.options.bucket() / 4 * 5;
    assert!(all.iter().all(|(_, bucket)| size(bucket) <= most));
    assert_eq!(rows(), 65);
    core.verify().unwrap();
}

/// What a merge in progress has taken returns when it ends: the next merge will not lack it.
#[test]
fn deletes_are_accepted_while_a_merge_fills_the_disk() {
    let (disk, core, tree) = store_with(&options().with_bucket(256 << 10));
    for first in (0..4000).step_by(400) {
        write(&core, tree, first..first + 400, Some(200)).unwrap();
    }
    settle(&core);
    fill(&disk, "run.allocate");
    let delete = || write(&core, tree, 0..10, None).map_err(|error| error.kind());
    let left = 20 * UNIT;
    assert!(left < core.options.bucket(), "too little for a merge");
    let taken = take_room(&core, Purpose::Other, left);
    assert_eq!(delete(), Err(ErrorKind::Full), "no merge could free it");
    core.space.give_back(Purpose::Other, &taken);
    let claim = core.space.claim(left).unwrap();
    let taken = take_room(&core, Purpose::Merge(claim), left);
    assert_eq!(delete(), Ok(()), "claims are no margin of deletes");
    core.space.give_back(Purpose::Merge(claim), &taken);
    core.space.end_claim(claim);
    settle(&core);
    core.verify().unwrap();
}

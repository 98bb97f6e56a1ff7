//! Tests of the state during a bulk commit.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use sim::{Crash, Outcome, Profile, SimOptions, SimVfs};
use vfs::Vfs;

use super::bulk::{Changes, Chunks};
use super::core::Core;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::types::{Durability, TreeId, TreeOptions};
use crate::work::Ask;

const DIRECTORY: &str = "/store";

fn tiny() -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_threads(0)
}

fn open(disk: &SimVfs, options: &Options) -> Arc<Core> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    Arc::new(
        super::open::open(&vfs, Path::new(DIRECTORY), options)
            .unwrap()
            .0,
    )
}

/// Puts of ascending keys; calls `watch` at each with the number of the pass.
struct Puts<'a> {
    tree: TreeId,
    count: u32,
    passes: Cell<u32>,
    watch: &'a dyn Fn(u32, u32) -> Result<()>,
}

impl Changes for Puts<'_> {
    fn pass(&self, out: &mut Chunks<'_>) -> Result<()> {
        self.passes.set(self.passes.get() + 1);
        for number in 0..self.count {
            (self.watch)(self.passes.get(), number)?;
            // Spread over the buckets, so that the flushes are small.
            let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
            out.put(self.tree, &key, &[7; 60])?;
        }
        Ok(())
    }
}

fn commit(core: &Arc<Core>, count: u32, watch: &dyn Fn(u32, u32) -> Result<()>) -> Result<()> {
    let changes = Puts {
        tree: core.catalog.by_name("t").unwrap().id,
        count,
        passes: Cell::new(0),
        watch,
    };
    let durability = match core.log {
        Some(_) => Durability::Sync,
        None => Durability::None,
    };
    let ask = Ask::new(1, false);
    core.with_room(&ask, || {
        core.commit_bulk(&changes, &ask, durability, &mut |_| Ok(()))
    })
}

fn present(core: &Arc<Core>, count: u32) -> u32 {
    let reader = super::reader::Reader::new(core).unwrap();
    let tree = core.catalog.by_name("t").unwrap().id;
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    let there = |number: &u32| {
        let mut value = Vec::new();
        reader.get_into(tree, &key(*number), &mut value).unwrap()
    };
    u32::try_from((0..count).filter(there).count()).unwrap()
}

#[test]
fn memory_stays_within_the_limit_while_a_commit_of_many_times_that_is_applied() {
    let disk = SimVfs::new(SimOptions::default());
    let core = open(&disk, &tiny());
    core.create_tree("t", TreeOptions::default()).unwrap();
    let limit = core.memory.limit();
    let count = u32::try_from(limit).unwrap() / 16;
    commit(&core, count, &|_, _| {
        // A chunk is applied at once, and takes about twice its bytes, and in each bucket a new
        // buffer.
        let buckets = core.catalog.by_name("t")?.routing().buckets().len();
        assert!(core.memory.buffered() <= limit + 3 * core.tuning.chunk + 512 * buckets);
        Ok(())
    })
    .unwrap();
    assert_eq!(present(&core, count), count);
}

#[test]
fn nothing_is_applied_when_the_changes_cannot_be_read_the_first_time() {
    let disk = SimVfs::new(SimOptions::default());
    let core = open(&disk, &tiny());
    core.create_tree("t", TreeOptions::default()).unwrap();
    let refuse = |_, number| match number {
        9000 => Err(Error::invalid("no more")),
        _ => Ok(()),
    };
    commit(&core, 10_000, &refuse).unwrap_err();
    assert_eq!(present(&core, 10_000), 0);
    // Others commit after it, and recovery passes over the parts.
    commit(&core, 100, &|_, _| Ok(())).unwrap();
    drop(core);
    let core = open(
        &disk.crash(Crash {
            profile: Profile::DropsEverything,
            outcome: Outcome::None,
            seed: 1,
        }),
        &tiny(),
    );
    assert_eq!(present(&core, 10_000), 100);
    assert_eq!(core.snapshots.visible(), core.commit.lock().last);
}

#[test]
fn a_commit_that_cannot_be_read_again_is_applied_by_the_next_open() {
    // bulk: I2. Its parts are in the log:
    // replay: I2.
    let disk = SimVfs::new(SimOptions::default());
    let core = open(&disk, &tiny());
    core.create_tree("t", TreeOptions::default()).unwrap();
    let refuse = |pass, number| match (pass, number) {
        (2, 9000) => Err(Error::invalid("gone")),
        _ => Ok(()),
    };
    commit(&core, 10_000, &refuse).unwrap_err();
    assert_eq!(present(&core, 10_000), 0);
    commit(&core, 1, &|_, _| Ok(())).unwrap_err();
    core.log.as_ref().unwrap().sync().unwrap();
    drop(core);
    let core = open(&disk.fork(), &tiny());
    assert_eq!(present(&core, 10_000), 10_000);
}

#[test]
fn a_checkpoint_in_the_middle_captures_no_half() {
    // bulk: I4.
    for pass in 1..=2 {
        for at in [0, 3000, 6001, 9999] {
            let disk = SimVfs::new(SimOptions::default());
            let core = open(&disk, &tiny());
            core.create_tree("t", TreeOptions::default()).unwrap();
            let image = Cell::new(None);
            let watch = |p, number| {
                if (p, number) == (pass, at) {
                    core.checkpoint()?;
                    assert_eq!(present(&core, 10_000), 0);
                    image.set(Some(disk.image(Crash {
                        profile: Profile::DropsEverything,
                        outcome: Outcome::None,
                        seed: 1,
                    })));
                }
                Ok(())
            };
            commit(&core, 10_000, &watch).unwrap();
            assert_eq!(present(&core, 10_000), 10_000);
            // All of it was logged before the second pass, and the checkpoint synced that.
            let expected = if pass == 1 { 0 } else { 10_000 };
            let core = open(&image.take().unwrap(), &tiny());
            assert_eq!(present(&core, 10_000), expected, "pass {pass}, at {at}");
            core.checkpoint().unwrap();
            commit(&core, 10, &|_, _| Ok(())).unwrap();
        }
    }
}

#[test]
fn without_a_log_a_bulk_commit_is_whole_or_not_there() {
    let disk = SimVfs::new(SimOptions::default());
    let options = tiny().with_log(false);
    let core = open(&disk, &options);
    core.create_tree("t", TreeOptions::default()).unwrap();
    core.checkpoint().unwrap();
    let refuse = |pass, number| match (pass, number) {
        (1, 9000) => Err(Error::invalid("no more")),
        _ => Ok(()),
    };
    commit(&core, 10_000, &refuse).unwrap_err();
    assert_eq!(present(&core, 10_000), 0);
    let held_off = |_, _| {
        assert!(!core.checkpoint_due());
        Ok(())
    };
    commit(&core, 10_000, &held_off).unwrap();
    assert_eq!(present(&core, 10_000), 10_000);
    let lose = Crash {
        profile: Profile::DropsEverything,
        outcome: Outcome::None,
        seed: 1,
    };
    assert_eq!(present(&open(&disk.image(lose), &options), 10_000), 0);
    core.checkpoint().unwrap();
    assert_eq!(present(&open(&disk.image(lose), &options), 10_000), 10_000);
}

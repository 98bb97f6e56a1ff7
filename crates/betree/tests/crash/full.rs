//! A full disk: what merges replaced is freed before a commit is refused.

use std::time::Duration;

use betree::{Codec, Durability, ErrorKind, Options};
use sim::checker::Change;
use sim::{SimOptions, SimVfs};
use vfs::Vfs;

use crate::rig::World;

/// How often a commit that must succeed in the end is tried again.
const TRIES: usize = 1000;
/// How long a store is left alone after a refused commit.
const MOMENT: Duration = Duration::from_millis(30);
/// Bytes of the disk beyond those in use after the first commits.
const MORE: u64 = 2500 << 10;

/// No checkpoint is made for any other reason than space.
fn options() -> Options {
    Options::default()
        .with_threads(0)
        .with_memory(1 << 20)
        .with_buffer_share(0.5)
        .with_bucket(16 << 10)
        .with_page(1 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_log_segment(64 << 10)
        .with_log_max(256 << 10)
        .with_checkpoint_interval(Duration::from_secs(86_400))
        .with_checkpoint_bytes(1 << 30)
}

/// Commit, now or when the background has made room.
fn in_the_end(world: &mut World, changes: &[Change]) {
    for _ in 0..TRIES {
        let done = world.write(changes.to_vec(), Durability::Interval);
        if done.expect("nothing stops it") {
            return;
        }
        let full = |kind: &ErrorKind| *kind == ErrorKind::Full;
        assert!(world.errors.iter().all(full), "{:?}", world.errors);
        world.errors.clear();
        world.vfs.sleep(MOMENT);
        world.steps(20).expect("nothing stops it");
    }
    let space = world.db().stats().expect("an open store").space;
    panic!("refused for good: {space:?}");
}

/// Rows are replaced on a disk that has room for some of what merges replace, but not for all.
#[test]
fn what_merges_replaced_is_freed_on_a_full_disk() {
    let mut world = World::new(SimVfs::new(SimOptions::default()), options());
    world.open().expect("nothing stops it");
    world.create("a").expect("nothing stops it");
    world.checkpoint().expect("nothing stops it");
    let number = |world: &World| {
        let stats = world.db().stats();
        stats.expect("an open store").checkpoint.number
    };
    let before = number(&world);
    for commit in 0..800_u32 {
        if commit == 100 {
            world.vfs.set_capacity(Some(world.vfs.used() + MORE));
            world.faulty = true;
        }
        let put = |row: u32| {
            let key = ((commit * 10 + row) * 37 % 1000).to_be_bytes();
            Change::Put("a".to_owned(), key.to_vec(), vec![7; 200])
        };
        let changes: Vec<Change> = (0..10).map(put).collect();
        in_the_end(&mut world, &changes);
        world.vfs.sleep(Duration::from_millis(1));
        world.steps(2).expect("nothing stops it");
    }
    world.look().expect("nothing stops it");
    let after = number(&world);
    assert!(before < after, "checkpoints made room");
}

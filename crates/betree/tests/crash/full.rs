//! A full disk: what waits for a checkpoint is freed before a commit is refused, and what lacks
//! space keeps no other work from being done.

use std::path::{Path, PathBuf};
use std::time::Duration;

use betree::{Codec, Durability, ErrorKind, Options};
use sim::checker::Change;
use sim::{
    Crash, Fault, FaultKind, Lasts, Outcome, Pages, Profile, SimOptions, SimVfs, Sites, When,
};
use stdx::Rng;
use vfs::{Site, Vfs};

use crate::rig::{DIRECTORY, World};

/// How often a commit that must succeed in the end is tried again.
const TRIES: usize = 1000;
/// How long a store is left alone after a refused commit.
const MOMENT: Duration = Duration::from_millis(30);
/// For how long a checkpoint that found no space is not tried again.
const PATIENCE: Duration = Duration::from_millis(100);
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

/// A store with an empty tree "a" and a checkpoint.
fn town(options: Options, seed: u64) -> World {
    let disk = SimOptions {
        seed,
        ..SimOptions::default()
    };
    let mut world = World::new(SimVfs::new(disk), options);
    world.open().expect("nothing stops it");
    world.create("a").expect("nothing stops it");
    world.checkpoint().expect("nothing stops it");
    world
}

/// Commit ten rows, for which there is room.
fn rows(world: &mut World, rng: &mut Rng) {
    let mut put = || {
        let key = u32::try_from(rng.below(4000)).expect("a small number");
        Change::Put("a".to_owned(), key.to_be_bytes().to_vec(), world.value(200))
    };
    let changes = (0..10).map(|_| put()).collect();
    let done = world.write(changes, Durability::None);
    assert!(done.expect("nothing stops it"), "{:?}", world.errors);
}

/// Do a unit of background work after a moment.
fn work(world: &mut World) {
    world.vfs.sleep(Duration::from_millis(1));
    world.steps(1).expect("nothing stops it");
}

fn pending(world: &World) -> u64 {
    let stats = world.db().stats();
    stats.expect("an open store").space.pending_bytes
}

fn number(world: &World) -> u64 {
    let stats = world.db().stats();
    stats.expect("an open store").checkpoint.number
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
    let mut world = town(options(), SimOptions::default().seed);
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

/// A transaction needs more than is free, and less than what waits for a checkpoint.
#[test]
fn a_transaction_spills_where_a_checkpoint_frees_space() {
    let mut world = town(options(), 6);
    let mut rng = Rng::new(6);
    while pending(&world) < 1500 << 10 {
        rows(&mut world, &mut rng);
        work(&mut world);
    }
    let capacity = world.vfs.used() + (300 << 10);
    world.vfs.set_capacity(Some(capacity));
    let tree = world.id("a");
    let mut transaction = world.db().begin().expect("an open store");
    for key in 0..800_u32 {
        let key = key.to_be_bytes();
        let put = transaction.put_blind(tree, &key, &[8; 1000]);
        put.expect("a checkpoint makes room");
    }
    assert!(pending(&world) < 1500 << 10, "a checkpoint was made");
    drop(transaction);
    world.look().expect("nothing stops it");
    world.reopen(options()).expect("nothing stops it");
}

/// Checkpoints are due all the time, and have no room for their image.
#[test]
fn a_checkpoint_without_room_keeps_no_other_work_from_being_done() {
    let options = options().with_checkpoint_interval(Duration::from_millis(1));
    let mut world = town(options.clone(), 5);
    world.create("dropped").expect("nothing stops it");
    let before = number(&world);
    world.faulty = true;
    world.vfs.inject(Fault {
        sites: Sites::StartWith("image."),
        call: None,
        when: When::Nth(1),
        lasts: Lasts::Sticky,
        kind: FaultKind::Enospc,
    });
    let mut rng = Rng::new(5);
    let put = Change::Put("dropped".to_owned(), b"key".to_vec(), vec![7; 2000]);
    let done = world.write(vec![put], Durability::None);
    assert!(done.expect("nothing stops it"));
    for _ in 0..400 {
        rows(&mut world, &mut rng);
        // I1 of room: what fails here does not wait for itself.
        work(&mut world);
        work(&mut world);
    }
    // I2 of room: commits that must wait are not refused while flushes succeed.
    for _ in 0..400 {
        rows(&mut world, &mut rng);
    }
    // A checkpoint is tried again, and fails, at the beginning of each step.
    let owed = |world: &World| {
        let stats = world.db().stats().expect("an open store");
        stats.delta_bytes
    };
    assert!(0 < owed(&world), "there is something to merge");
    for _ in 0..1000 {
        if owed(&world) == 0 {
            break;
        }
        world.vfs.sleep(2 * PATIENCE);
        world.steps(1).expect("nothing stops it");
    }
    assert_eq!(owed(&world), 0, "an idle store merges");
    let done = world.drop_tree("dropped");
    assert!(done.expect("nothing stops it"), "{:?}", world.errors);
    work(&mut world);
    let full = |kind: &ErrorKind| *kind == ErrorKind::Full;
    assert!(world.errors.iter().all(full), "{:?}", world.errors);
    assert!(!world.errors.is_empty(), "checkpoints were due");
    assert_eq!(number(&world), before);
    let merges = world.db().stats().expect("an open store").operations.merges;
    assert!(0 < merges, "there was work to do");
    world.look().expect("nothing stops it");
    world.vfs.clear_faults();
    world.faulty = false;
    world.checkpoint().expect("nothing stops it");
    world.reopen(options).expect("nothing stops it");
}

/// Free bytes of the disk once there is something to merge: enough for the merge or for a flush of
/// what is buffered then, but not for both.
const EITHER: u64 = 1 << 20;

/// A store without a log whose next merge writes about 700 KiB, with 350 KiB of rows that are not
/// flushed, on a disk with [`EITHER`] bytes for both.
fn unflushed() -> World {
    // So much memory that nothing is flushed for lack of it.
    let options = options().with_memory(8 << 20).with_bucket(8 << 20);
    let mut world = town(options.with_log(false), 7);
    let put = |world: &mut World, keys: &[u32]| {
        for keys in keys.chunks(10) {
            let mut put = |key: &u32| {
                let (tree, key) = ("a".to_owned(), key.to_be_bytes().to_vec());
                Change::Put(tree, key, world.value(1000))
            };
            let changes = keys.iter().map(&mut put).collect();
            let done = world.write(changes, Durability::None);
            assert!(done.expect("nothing stops it"), "{:?}", world.errors);
        }
    };
    for part in 0..2 {
        let half: Vec<u32> = (part..700).step_by(2).collect();
        put(&mut world, &half);
        world.checkpoint().expect("nothing stops it");
    }
    let space = world.db().stats().expect("an open store").space;
    let room = space.file_bytes - space.used_bytes;
    assert!(room < EITHER, "the file has grown further: {room}");
    let capacity = world.vfs.used() - room + EITHER;
    world.vfs.set_capacity(Some(capacity));
    world.faulty = true;
    put(&mut world, &Vec::from_iter(0..350));
    world
}

/// Flush what is buffered while the disk is full.
fn flush(world: &World) {
    let buffered = || world.db().stats().expect("an open store").buffered_bytes;
    assert!(300 << 10 < buffered(), "there is much to flush");
    world.db().checkpoint().expect("room was kept for it");
    assert_eq!(buffered(), 0);
}

/// There is room again.
fn continues(mut world: World) {
    world.vfs.set_capacity(None);
    assert!(world.settle().expect("nothing stops it"));
    world.look().expect("nothing stops it");
    let options = world.options.clone();
    world.reopen(options).expect("nothing stops it");
}

#[test]
fn a_merge_leaves_the_room_that_is_kept_for_a_flush() {
    let mut world = unflushed();
    let merges = |world: &World| {
        let stats = world.db().stats().expect("an open store");
        stats.operations.merges
    };
    let before = merges(&world);
    for _ in 0..20 {
        world.vfs.sleep(MOMENT);
        world.steps(5).expect("nothing stops it");
    }
    let after = merges(&world);
    flush(&world);
    assert!(world.errors.contains(&ErrorKind::Full), "a merge was tried");
    assert_eq!(after, before, "there was no room for a merge");
    continues(world);
}

#[test]
fn a_spill_leaves_the_room_that_is_kept_for_a_flush() {
    let world = unflushed();
    let tree = world.id("a");
    let mut transaction = world.db().begin().expect("an open store");
    let mut put = |key: u32| transaction.put_blind(tree, &key.to_be_bytes(), &[8; 1000]);
    let refused = (0..5000).find_map(|key| put(key).err());
    let refused = refused.expect("the disk is full");
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    flush(&world);
    drop(transaction);
    continues(world);
}

/// The disk, full, after a process was killed with more unsynced commits in the log than a spare
/// segment has room for. With `lost`, a sync failed before: the page cache still shows commits that
/// the device does not have.
fn unsynced(lost: bool) -> World {
    let mut world = town(options().with_log_max(1 << 20), 8);
    let mut rng = Rng::new(8);
    for _ in 0..100 {
        rows(&mut world, &mut rng);
    }
    if lost {
        world.faulty = true;
        world.vfs.inject(Fault {
            sites: Sites::StartWith("log."),
            call: None,
            when: When::Nth(1),
            lasts: Lasts::Once,
            kind: FaultKind::SyncFails(Pages::Keep),
        });
        let put = Change::Put("a".to_owned(), b"key".to_vec(), vec![7; 20]);
        let done = world.write(vec![put], Durability::Sync);
        assert!(!done.expect("nothing stops it"), "the sync failed");
    }
    let vfs = world.vfs.fork();
    // As after several openings on a full disk: one spare segment is left.
    let is_spare = |path: &PathBuf| path.to_string_lossy().contains("spare-");
    let files = vfs.files().into_iter().map(|(path, _)| path);
    for path in files.filter(is_spare).skip(1) {
        vfs.remove(Site("test"), &path).expect("it is there");
    }
    vfs.sync_dir(Site("test"), Path::new(DIRECTORY))
        .expect("nothing stops it");
    vfs.set_capacity(Some(vfs.used()));
    World::new(vfs, world.options.clone())
}

/// What an opened store shows is durable, though there is no room to copy the commits of its log.
#[test]
fn a_killed_store_opens_on_a_full_disk_and_keeps_what_it_shows() {
    let mut world = unsynced(false);
    world.open().expect("nothing stops it");
    let shown = world.found().expect("nothing stops it");
    assert!(500 < shown["a"].len(), "all commits are there");
    let after = world.vfs.crash(Crash {
        profile: Profile::DropsEverything,
        outcome: Outcome::None,
        seed: 8,
    });
    let mut world = World::new(after, world.options.clone());
    world.open().expect("nothing stops it");
    let kept = world.found().expect("nothing stops it");
    assert!(kept == shown, "a power loss takes nothing of it");
}

#[test]
fn what_only_the_page_cache_shows_does_not_open_on_a_full_disk() {
    let mut world = unsynced(true);
    world.faulty = true;
    world.open().expect("nothing stops it");
    assert!(world.is_down(), "nothing proves what it would show");
    assert_eq!(world.errors, [ErrorKind::Full]);
    world.vfs.set_capacity(None);
    world.open().expect("nothing stops it");
    assert!(!world.is_down(), "there is room for copies");
}

//! Random lives of stores on a disk that is full again and again.
//!
//! After each time: nothing failed but for lack of space; a store without a log makes a checkpoint
//! all the same; it opens and closes on the full disk with everything acknowledged; what deletes
//! leave is given back there; commits then work without more room.

use std::time::Duration;

use betree::{Codec, Durability, ErrorKind, Options};
use sim::checker::Change;
use sim::{Crash, Outcome, Profile, SimOptions, SimVfs};
use stdx::Rng;
use vfs::Vfs;

use crate::draw::{self, Load};
use crate::rig::World;
use crate::{FULL_DISKS, Repeat, setting};

/// How often what must succeed in the end is tried again.
const TRIES: usize = 3000;
/// Keys that are deleted at once.
const AT_ONCE: usize = 10;

/// How long a store is left alone.
const MOMENT: Duration = Duration::from_millis(30);

/// A store on a disk that is full now and then.
struct Life {
    world: World,
    rng: Rng,
    /// No checkpoint is made for any other reason than space.
    space_only: bool,
    refused: u64,
}

impl Life {
    /// Some time passes, and `n` units of work are done.
    fn steps(&mut self, n: u64) {
        self.world.vfs.sleep(MOMENT);
        self.world.steps(n).expect("nothing stops it");
    }

    /// Fill the disk up to a limit, with any operations.
    fn fill(&mut self) {
        let world = &mut self.world;
        let more = (40 << 10) + self.rng.below(400 << 10);
        world.vfs.set_capacity(Some(world.vfs.used() + more));
        world.faulty = true;
        let mut load = Load::draw(&mut self.rng);
        for _ in 0..self.rng.below(250) {
            load.act(world, &mut self.rng).expect("nothing stops it");
            if self.rng.chance(0.1) {
                world.vfs.sleep(MOMENT);
            }
        }
        world.held.clear();
        self.judge();
    }

    /// Errors so far are of the full disk.
    fn judge(&mut self) {
        let world = &mut self.world;
        assert!(!world.poisoned, "a full disk closes no store");
        let full = |kind: &ErrorKind| *kind == ErrorKind::Full;
        assert!(world.errors.iter().all(full), "{:?}", world.errors);
        self.refused += world.errors.len() as u64;
        world.errors.clear();
    }

    /// Without a log what was acknowledged is kept by a checkpoint, and by close.
    fn keep(&mut self) {
        if !self.world.logged() {
            let done = self.world.checkpoint().expect("nothing stops it");
            assert!(done, "room for a checkpoint was kept: {}", self.space());
        }
        self.judge();
    }

    /// End the process or the machine, and open on the full disk.
    fn again(&mut self) {
        let world = &mut self.world;
        match self.rng.below(4) {
            0 => {
                let options = options(&mut self.rng, (world.logged(), self.space_only));
                world.reopen(options).expect("nothing stops it");
            }
            1 => {
                let crashed = world.vfs.crash(Crash::draw(&mut self.rng));
                world.abandon();
                world.vfs = crashed;
                world.open().expect("nothing stops it");
                assert!(world.db.is_some(), "it opens: {:?}", world.errors);
                world.adopt().expect("nothing stops it");
            }
            _ => return,
        }
        assert!(self.world.errors.is_empty(), "{:?}", self.world.errors);
    }

    fn space(&self) -> String {
        let stats = self.world.db().stats().expect("an open store");
        format!("{:?}, {} buffered", stats.space, stats.buffered_bytes)
    }

    /// Commit, now or when the background has made room.
    fn in_the_end(&mut self, changes: &[Change]) {
        for _ in 0..TRIES {
            let durability = Durability::Interval;
            let done = self.world.write(changes.to_vec(), durability);
            if done.expect("nothing stops it") {
                return;
            }
            self.judge();
            self.steps(20);
        }
        panic!("refused for good: {}", self.space());
    }

    /// Delete all there is, and write again, on the disk as it is.
    fn empty(&mut self) {
        let names: Vec<String> = self.world.model.keys().cloned().collect();
        for name in &names {
            let keys = self.world.model.get(name).expect("named").keys();
            let keys: Vec<Vec<u8>> = keys.cloned().collect();
            for some in keys.chunks(AT_ONCE) {
                let delete = |key: &Vec<u8>| Change::Delete(name.clone(), key.clone());
                let changes: Vec<Change> = some.iter().map(delete).collect();
                self.in_the_end(&changes);
                self.steps(3);
            }
        }
        for _ in 0..TRIES {
            let settled = self.world.settle().expect("nothing stops it");
            self.judge();
            if settled {
                break;
            }
            self.steps(20);
        }
        let space = self.world.db().stats().expect("an open store").space;
        assert_eq!(space.pending_bytes, 0, "{space:?}");
        assert!(space.used_bytes < 64 << 10, "nothing is stored: {space:?}");
        let name = names.first().cloned();
        let Some(name) = name else { return };
        for number in 0..20_u32 {
            let key = number.to_be_bytes().to_vec();
            let value = self.world.value(100);
            self.in_the_end(&[Change::Put(name.clone(), key, value)]);
        }
        self.world.look().expect("nothing stops it");
        self.judge();
    }

    /// With room enough everything works at once.
    fn recover(&mut self) {
        let world = &mut self.world;
        world.vfs.set_capacity(None);
        world.faulty = false;
        if world.ids.is_empty() {
            world.create("a").expect("nothing stops it");
        }
        let name = world.ids.keys().next().expect("there is one").clone();
        let done = world.fill(&name, (7, 30, 3), 50, Durability::Interval);
        assert_eq!(done, Ok(true), "there is room");
        world.look().expect("nothing stops it");
        world.checkpoint().expect("nothing stops it");
    }
}

/// Drawn options.
fn options(rng: &mut Rng, (log, space_only): (bool, bool)) -> Options {
    let options = draw::options(rng).with_log(log);
    match space_only {
        true => for_space_only(options),
        false => options,
    }
}

fn for_space_only(options: Options) -> Options {
    options
        .with_checkpoint_interval(Duration::from_secs(86_400))
        .with_checkpoint_bytes(1 << 30)
}

/// One seed; how many calls were refused.
fn life(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let log = rng.chance(0.6);
    // Every other store makes checkpoints only for the sake of space.
    let space_only = !seed.is_multiple_of(2);
    let options = options(&mut rng, (log, space_only));
    let disk = SimOptions {
        seed,
        capacity: None,
    };
    let mut world = World::new(SimVfs::new(disk), options);
    world.open().expect("nothing stops it");
    world.create("a").expect("nothing stops it");
    world.checkpoint().expect("nothing stops it");
    let mut life = Life {
        world,
        rng,
        space_only,
        refused: 0,
    };
    for _ in 0..1 + life.rng.below(3) {
        life.fill();
        life.keep();
        life.again();
        if life.rng.chance(0.7) {
            life.empty();
        }
        life.recover();
    }
    life.refused
}

#[test]
fn random_lives_on_full_disks_go_on_when_there_is_room() {
    let first = setting("BETREE_SIM_SEED").unwrap_or(1);
    let runs = setting("BETREE_SIM_RUNS").unwrap_or(FULL_DISKS);
    let mut refused = 0;
    for seed in first..first + runs {
        let _repeat = Repeat(format!(
            "BETREE_SIM_SEED={seed} BETREE_SIM_RUNS=1 cargo test -p betree --test crash \
             random_lives"
        ));
        refused += life(seed);
    }
    println!("{runs} lives: {refused} calls refused for lack of space");
    assert!(0 < refused || runs < FULL_DISKS, "disks were full");
}

/// A store with the tree "a" on a disk without limit, which makes checkpoints for space only.
fn small(log: bool) -> Life {
    let options = Options::default()
        .with_threads(0)
        .with_memory(1 << 20)
        .with_buffer_share(0.5)
        .with_bucket(16 << 10)
        .with_page(1 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_log(log)
        .with_log_segment(64 << 10)
        .with_log_max(256 << 10);
    let mut world = World::new(SimVfs::new(SimOptions::default()), for_space_only(options));
    world.open().expect("nothing stops it");
    world.create("a").expect("nothing stops it");
    world.checkpoint().expect("nothing stops it");
    Life {
        world,
        rng: Rng::new(1),
        space_only: true,
        refused: 0,
    }
}

/// Rows are replaced on a disk that has room for some of what merges replace, but not for all.
#[test]
fn what_merges_replaced_is_freed_on_a_full_disk() {
    for log in [true, false] {
        let mut life = small(log);
        for commit in 0..800_u32 {
            if commit == 100 {
                let used = life.world.vfs.used();
                life.world.vfs.set_capacity(Some(used + (600 << 10)));
                life.world.faulty = true;
            }
            let put = |row: u32| {
                let key = ((commit * 10 + row) * 37 % 1000).to_be_bytes();
                Change::Put("a".to_owned(), key.to_vec(), vec![7; 200])
            };
            let changes: Vec<Change> = (0..10).map(put).collect();
            life.in_the_end(&changes);
            life.steps(2);
        }
        life.judge();
        life.world.look().expect("nothing stops it");
    }
}

/// A full disk, and a log whose last record is longer than its spare files together. Nothing proves
/// that it was synced; recovery has no room to copy it.
fn long_record() -> (Life, u64) {
    let mut life = small(true);
    let world = &mut life.world;
    world.faulty = true;
    let value = world.value(400_000);
    let put = Change::Put("a".to_owned(), b"long".to_vec(), value);
    let done = world.write(vec![put], Durability::Sync);
    assert_eq!(done, Ok(true), "there is room: {:?}", world.errors);
    let capacity = world.vfs.used();
    (life, capacity)
}

/// The machine stops, and has a disk of `capacity` bytes when it runs again.
fn crash(world: &mut World, profile: Profile, seed: u64, capacity: u64) {
    let crashed = world.vfs.crash(Crash {
        profile,
        outcome: Outcome::Random,
        seed,
    });
    world.abandon();
    world.vfs = crashed;
    world.vfs.set_capacity(Some(capacity));
}

/// The store opens with the long record in it.
fn holds_the_record(life: &mut Life) {
    let world = &mut life.world;
    world.open().expect("nothing stops it");
    assert!(world.db.is_some(), "it opens: {:?}", world.errors);
    world.adopt().expect("nothing stops it");
    let rows = world.model.get("a").map(|tree| tree.len());
    assert_eq!(rows, Some(1), "what was synced is there");
    life.judge();
}

#[test]
fn a_record_longer_than_the_spare_log_does_not_keep_a_store_from_opening() {
    for profile in [Profile::KeepsEverything, Profile::Atomic512] {
        for seed in 0..20 {
            let (mut life, capacity) = long_record();
            for opening in 0..6 {
                println!("{profile:?}, seed {seed}, opening {opening}");
                crash(&mut life.world, profile, seed, capacity);
                holds_the_record(&mut life);
            }
        }
    }
}

/// The record is flushed instead of copied, whenever that is interrupted.
#[test]
fn an_opening_that_flushes_the_log_may_stop_after_each_call() {
    for profile in [Profile::KeepsEverything, Profile::Atomic512] {
        let mut stop = 1;
        loop {
            println!("{profile:?}, stopped after {stop}");
            let (mut life, capacity) = long_record();
            let world = &mut life.world;
            crash(world, profile, stop, capacity);
            world.vfs.stop_at(world.vfs.ios() + stop);
            let opened = world.open().is_ok() && !world.vfs.has_stopped();
            crash(world, profile, stop, capacity);
            holds_the_record(&mut life);
            if opened {
                break;
            }
            stop += 1;
        }
        assert!(30 < stop, "an opening has more calls than {stop}");
    }
}

/// Options of a later opening ask for longer files of the log than the full disk has room for.
#[test]
fn a_log_of_short_files_serves_longer_segments_on_a_full_disk() {
    let mut life = small(true);
    let world = &mut life.world;
    let done = world.fill("a", (0, 500, 1), 100, Durability::Sync);
    assert_eq!(done, Ok(true), "there is room");
    world.checkpoint().expect("nothing stops it");
    world.vfs.set_capacity(Some(world.vfs.used() + (32 << 10)));
    world.faulty = true;
    let options = world.options.clone().with_log_segment(256 << 10);
    world.reopen(options).expect("nothing stops it");
    assert!(world.db.is_some(), "it opens: {:?}", world.errors);
    for number in 0..200_u32 {
        let key = (number % 10).to_be_bytes().to_vec();
        let value = life.world.value(20);
        life.in_the_end(&[Change::Put("a".to_owned(), key, value)]);
        // The next commit takes a block of its own.
        life.world.sync_log().expect("nothing stops it");
    }
    life.judge();
    life.world.look().expect("nothing stops it");
}

//! Random lives of stores on a disk that is full again and again.
//!
//! After each time: nothing failed but for lack of space; a store without a log makes a checkpoint
//! all the same; it opens and closes on the full disk with everything acknowledged; what deletes
//! leave is given back there; commits then work without more room.

use std::time::Duration;

use betree::{Durability, ErrorKind};
use sim::checker::Change;
use sim::{Crash, SimOptions, SimVfs};
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
                let options = draw::options(&mut self.rng).with_log(world.logged());
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

/// One seed; how many calls were refused.
fn life(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let log = rng.chance(0.6);
    let options = draw::options(&mut rng).with_log(log);
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

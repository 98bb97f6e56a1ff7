//! Lives of a store on a full disk. A life is filled until commits are refused, deletes, closes,
//! opens on the full disk and continues, while the limit of the disk moves.
//!
//! What is required, besides that nothing acknowledged is lost:
//! - Deletes of a bounded size are accepted on a full disk, though perhaps not at once.
//! - When most of the data are deleted, puts succeed again.
//! - With a log, a store opens on a full disk.
//! - Without a log, `checkpoint` and `close` succeed on a disk that did not shrink.
//! - While the limit is below what the store has, everything may be refused; when the limit is what
//!   it was, the store continues.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

use betree::{Codec, Durability, ErrorKind, Options};
use sim::checker::Change;
use sim::{Crash, SimOptions, SimVfs};
use stdx::Rng;
use vfs::Vfs;

use crate::draw::pick;
use crate::rig::{World, say};
use crate::{Repeat, setting};

/// Number of lives, unless `BETREE_SIM_RUNS` is set.
const LIVES: u64 = 60;
/// Maximum number of times that a life fills the disk.
const ROUNDS: u64 = 4;
/// How often a commit that must succeed in the end is tried.
const TRIES: usize = 1000;
/// The disk is full when this many commits in a row were refused, with background work between.
const REFUSED: usize = 4;
/// Maximum number of commits of a round: all rows may fit.
const COMMITS: usize = 5000;
/// Simulated time between two tries.
const MOMENT: Duration = Duration::from_millis(30);
/// Units of background work between two tries.
const STEPS: u64 = 20;
/// Real time between two tries if the store has threads.
const YIELD: Duration = Duration::from_millis(3);
/// Bytes that are much more than what the ends of units and the margin for deletes take.
const MUCH: u64 = 200 << 10;
/// Rows of a commit that deletes.
const DELETES: usize = 40;
/// Trees of a store.
const TREES: [&str; 2] = ["a", "b"];

fn options(rng: &mut Rng, threads: &[u32]) -> Options {
    Options::default()
        .with_threads(pick(rng, threads))
        .with_memory(1 << 20)
        .with_buffer_share(pick(rng, &[0.05, 0.2, 0.5]))
        .with_page(pick(rng, &[512, 1024, 4096]))
        .with_bucket(pick(rng, &[8 << 10, 16 << 10, 64 << 10]))
        .with_rho(pick(rng, &[0.5, 2.0, 16.0]))
        .with_k_cap(pick(rng, &[2, 4, 16]))
        .with_codec(pick(rng, &[Codec::None, Codec::Lz4]))
        .with_delta_codec(pick(rng, &[Codec::None, Codec::Lz4]))
        .with_log(rng.chance(0.65))
        .with_log_segment(pick(rng, &[64 << 10, 128 << 10]))
        .with_log_max(pick(rng, &[256 << 10, 1 << 20]))
        .with_checkpoint_bytes(pick(rng, &[16 << 10, 256 << 10, 1 << 30]))
        .with_checkpoint_interval(Duration::from_millis(pick(rng, &[5, 100, 86_400_000])))
        .with_interval(Duration::from_millis(pick(rng, &[1, 20])))
        .with_seed(rng.next_u64())
}

/// A store, and how it is loaded.
struct Life {
    world: World,
    rng: Rng,
    /// Numbers of background threads that it may have.
    threads: &'static [u32],
    /// The highest row so far.
    next: u64,
    value: u64,
    rows: u64,
    ascending: bool,
    /// Bytes of the data file in use when the disk was full.
    full: u64,
    refused: usize,
    deleted: usize,
}

impl Life {
    fn new(seed: u64, threads: &'static [u32]) -> Life {
        let mut rng = Rng::new(seed);
        let disk = SimOptions {
            seed,
            capacity: None,
        };
        let mut world = World::new(SimVfs::new(disk), options(&mut rng, threads));
        world.open().expect("nothing stops it");
        for tree in TREES {
            world.create(tree).expect("nothing stops it");
        }
        world.checkpoint().expect("nothing stops it");
        world.faulty = true;
        let (value, rows) = (
            pick(&mut rng, &[20, 100, 400]),
            pick(&mut rng, &[3, 20, 60]),
        );
        let ascending = rng.chance(0.3);
        Life {
            world,
            rng,
            next: 0,
            threads,
            value,
            rows,
            ascending,
            full: 0,
            refused: 0,
            deleted: 0,
        }
    }

    fn live(&mut self) {
        for round in 0..1 + self.rng.below(ROUNDS) {
            let more = pick(&mut self.rng, &[0, 40 << 10, 300 << 10, 700 << 10]);
            let capacity = self.world.vfs.used() + more;
            say(|| format!("round {round}: capacity {capacity}"));
            self.world.vfs.set_capacity(Some(capacity));
            self.fill();
            if self.rng.chance(0.3) {
                self.shrink(capacity);
            }
            if self.rng.chance(0.5) {
                let times = 1 + self.rng.below(2);
                (0..times).for_each(|_| self.reopen());
            }
            if self.world.logged() && self.rng.chance(0.2) {
                self.crash(capacity);
            }
            if self.rng.chance(0.3) {
                self.world.look().expect("nothing stops it");
            }
            self.empty();
            if self.rng.chance(0.3) {
                self.reopen();
            }
            self.fits_again();
        }
        self.world.vfs.set_capacity(None);
        let changes = self.puts(10);
        self.in_the_end(&changes, "without a limit");
        self.world.look().expect("nothing stops it");
        self.reopen();
        self.world.faulty = false;
        assert!(self.world.settle().expect("nothing stops it"), "no limit");
        self.world.look().expect("nothing stops it");
    }

    /// Commit until the disk is full.
    fn fill(&mut self) {
        self.full = 0;
        let mut refused = 0;
        for _ in 0..COMMITS {
            if refused == REFUSED {
                let stats = self.world.db().stats().expect("an open store");
                self.full = stats.space.used_bytes;
                return;
            }
            let changes = self.put_some();
            if self.commit(&changes) {
                refused = 0;
                self.work(2, Duration::from_millis(1));
            } else {
                self.refused += 1;
                refused += 1;
                self.work(STEPS, MOMENT);
            }
        }
    }

    /// Other files take what is free and more; some commits come; then the limit is what it was.
    fn shrink(&mut self, capacity: u64) {
        let less = pick(&mut self.rng, &[0, 4096, 50 << 10, 400 << 10]);
        let limit = self.world.vfs.used().saturating_sub(less);
        say(|| format!("shrinks to {limit}"));
        self.world.vfs.set_capacity(Some(limit));
        for _ in 0..self.rng.below(30) {
            let changes = if self.rng.chance(0.5) {
                self.put_some()
            } else {
                self.deletes(DELETES)
            };
            self.commit(&changes);
            self.work(STEPS, MOMENT);
        }
        if self.world.logged() && self.rng.chance(0.5) {
            self.reopen();
        }
        self.world.look().expect("nothing stops it");
        self.world.vfs.set_capacity(Some(capacity));
    }

    /// Close the store and open it again, with the same log, but perhaps with other threads.
    fn reopen(&mut self) {
        let threads = pick(&mut self.rng, self.threads);
        let before = self.world.model.clone();
        let options = self.world.options.clone().with_threads(threads);
        self.world.errors.clear();
        self.world.reopen(options).expect("nothing stops it");
        let state = self.state();
        assert!(
            self.world.errors.is_empty(),
            "{:?} {state}",
            self.world.errors
        );
        assert!(self.world.db.is_some(), "it opens on a full disk: {state}");
        assert!(self.world.model == before, "a close keeps everything");
    }

    fn crash(&mut self, capacity: u64) {
        let crash = Crash::draw(&mut self.rng);
        say(|| format!("{crash:?}"));
        // No thread may write to the disk that is left behind.
        let image = self.world.vfs.crash(crash);
        self.world.abandon();
        image.set_capacity(Some(capacity));
        self.world.vfs = image;
        self.world.open().expect("nothing stops it");
        let state = self.state();
        assert!(self.world.db.is_some(), "it opens on a full disk: {state}");
        self.world.adopt().expect("nothing stops it");
    }

    /// Delete at least seven eighths of the rows.
    fn empty(&mut self) {
        let rows = self.rows();
        let ranges = self.rng.chance(0.3);
        while rows / 8 < self.rows() {
            let changes = if ranges {
                self.delete_range()
            } else {
                self.deletes(DELETES)
            };
            self.in_the_end(&changes, "a delete");
            self.deleted += changes.len();
            self.work(2, Duration::from_millis(1));
        }
        if !self.world.logged() {
            let done = self.world.checkpoint().expect("nothing stops it");
            assert!(done, "a checkpoint without a log: {}", self.state());
        }
    }

    /// After the deletes there is room, if much was there before.
    fn fits_again(&mut self) {
        if self.full < MUCH {
            return;
        }
        for _ in 0..10 {
            let changes = self.puts(10);
            self.in_the_end(&changes, "a put after deletes");
            self.work(2, Duration::from_millis(1));
        }
    }

    fn rows(&self) -> usize {
        self.world.model.values().map(|tree| tree.len()).sum()
    }

    fn put_some(&mut self) -> Vec<Change> {
        let large = self.rng.chance(0.02);
        let rows = if large {
            150
        } else {
            1 + self.rng.below(self.rows)
        };
        self.puts(rows)
    }

    fn puts(&mut self, rows: u64) -> Vec<Change> {
        (0..rows).map(|_| self.put()).collect()
    }

    fn put(&mut self) -> Change {
        let tree = pick(&mut self.rng, &TREES).to_owned();
        self.next += 1;
        let row = if self.ascending {
            self.next
        } else {
            self.rng.below(20_000)
        };
        let length = usize::try_from(self.rng.below(self.value + 1)).expect("small");
        let value = self.world.value(length);
        Change::Put(tree, format!("{row:08}").into_bytes(), value)
    }

    /// Delete at most `most` rows from a random one on.
    fn deletes(&mut self, most: usize) -> Vec<Change> {
        let tree = pick(&mut self.rng, &TREES);
        let from = self.from(tree);
        let rows = self.world.model.get(tree).expect("a tree of the model");
        let keys = rows.range(from..).chain(rows).map(|(key, _)| key.clone());
        let keys: BTreeSet<Vec<u8>> = keys.take(most).collect();
        let delete = |key| Change::Delete(tree.to_owned(), key);
        keys.into_iter().map(delete).collect()
    }

    fn delete_range(&mut self) -> Vec<Change> {
        let tree = pick(&mut self.rng, &TREES);
        let from = self.from(tree);
        let rows = self.world.model.get(tree).expect("a tree of the model");
        let end = rows.range(from.clone()..).nth(200);
        let end = end.map_or(Bound::Unbounded, |(key, _)| Bound::Excluded(key.clone()));
        let start = Bound::Included(from);
        vec![Change::DeleteRange(tree.to_owned(), start, end)]
    }

    fn from(&mut self, tree: &str) -> Vec<u8> {
        let rows = self.world.model.get(tree).expect("a tree of the model");
        let at = self.rng.index(rows.len().max(1));
        rows.keys().nth(at).cloned().unwrap_or_default()
    }

    fn commit(&mut self, changes: &[Change]) -> bool {
        let durability = pick(&mut self.rng, &[Durability::None, Durability::Sync]);
        let done = self.world.write(changes.to_vec(), durability);
        let full = |kind: &ErrorKind| *kind == ErrorKind::Full;
        assert!(
            self.world.errors.iter().all(full),
            "{:?}",
            self.world.errors
        );
        self.world.errors.clear();
        done.expect("nothing stops it")
    }

    fn in_the_end(&mut self, changes: &[Change], what: &str) {
        for _ in 0..TRIES {
            if changes.is_empty() || self.commit(changes) {
                return;
            }
            self.refused += 1;
            self.work(STEPS, MOMENT);
        }
        panic!("{what} is refused for good: {}", self.state());
    }

    fn work(&mut self, steps: u64, time: Duration) {
        self.world.vfs.sleep(time);
        if self.world.options.threads() == 0 {
            self.world.steps(steps).expect("nothing stops it");
        } else if MOMENT <= time {
            stdx::time::sleep(YIELD);
        }
    }

    fn state(&self) -> String {
        let disk = self.world.vfs.used();
        let files = self.world.vfs.files();
        let Some(db) = &self.world.db else {
            return format!("{disk} bytes used by {files:?}");
        };
        let stats = db.stats().expect("an open store");
        format!(
            "{disk} bytes used by {files:?}, {:?}, buffered {}, {:?}, options {:?}",
            stats.space, stats.buffered_bytes, stats.runs_per_bucket, self.world.options,
        )
    }
}

#[test]
fn a_full_disk_stops_no_store_for_good() {
    // With background threads the calls of a seed differ from run to run.
    let threads: &[u32] = match setting("BETREE_SIM_THREADS") {
        None => &[0, 1, 2],
        Some(0) => &[0],
        Some(1) => &[1],
        Some(_) => &[2],
    };
    let first = setting("BETREE_SIM_SEED").unwrap_or(1);
    let runs = setting("BETREE_SIM_RUNS").unwrap_or(LIVES);
    let (mut refused, mut deleted) = (0, 0);
    for seed in first..first + runs {
        let _repeat = Repeat(format!(
            "BETREE_SIM_SEED={seed} BETREE_SIM_RUNS=1 cargo test -p betree --test crash lives"
        ));
        let mut life = Life::new(seed, threads);
        life.live();
        refused += life.refused;
        deleted += life.deleted;
    }
    println!("{runs} lives: {refused} commits refused, {deleted} deletes on a full disk");
}

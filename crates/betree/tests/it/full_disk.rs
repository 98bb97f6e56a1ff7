//! Stores on a full disk: what waits for a checkpoint is freed before a commit is refused, what was
//! acknowledged is kept, and the store continues when there is space again.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{Batch, Codec, Db, Direction, Durability, ErrorKind, Options, TreeId, TreeOptions};
use sim::{Fault, FaultKind, Lasts, SimOptions, SimVfs, Sites, When};
use stdx::Rng;

use crate::slow::{Slow, Watch};

/// How often a commit that must get in is tried again.
const TRIES: usize = 1_000_000;

/// Where threads and log differ.
const KINDS: [(u32, bool); 6] = [
    (0, true),
    (0, false),
    (1, true),
    (1, false),
    (2, true),
    (2, false),
];

/// A store, and what it was acknowledged to hold.
struct Town {
    disk: SimVfs,
    options: Options,
    db: Option<Db>,
    tree: Option<TreeId>,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    writes: u32,
}

/// No checkpoint is made for any other reason than space.
fn options(threads: u32, log: bool) -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_buffer_share(0.1)
        .with_bucket(32 << 10)
        .with_page(1 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_log(log)
        .with_log_segment(64 << 10)
        .with_log_max(256 << 10)
        .with_checkpoint_interval(Duration::from_secs(86_400))
        .with_checkpoint_bytes(1 << 30)
        .with_threads(threads)
}

impl Town {
    fn new((threads, log): (u32, bool), seed: u64) -> Town {
        Town::with(options(threads, log), seed)
    }

    fn with(options: Options, seed: u64) -> Town {
        let disk = SimVfs::new(SimOptions {
            seed,
            capacity: None,
        });
        let mut town = Town {
            disk,
            options,
            db: None,
            tree: None,
            model: BTreeMap::new(),
            writes: 0,
        };
        town.open();
        let tree = town.db().create_tree("rows", TreeOptions::default());
        town.tree = Some(tree.unwrap());
        town.db().checkpoint().unwrap();
        town
    }

    fn open(&mut self) {
        let vfs = Arc::new(Slow::new(&self.disk, &Arc::new(Watch::default())));
        let db = Db::open_with(vfs, Path::new("/store"), self.options.clone()).unwrap();
        self.tree = db.open_tree("rows").ok();
        self.db = Some(db);
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// Commit puts (or deletes) of `keys`: done, or `Full` and not done.
    fn write(&mut self, keys: &[u32], put: bool) -> bool {
        let tree = self.tree.unwrap();
        self.writes += 1;
        let mut batch = Batch::new();
        let mut after = Vec::new();
        for key in keys {
            let name = key.to_be_bytes().to_vec();
            let value = [&self.writes.to_be_bytes()[..], &[7; 200]].concat();
            if put {
                batch.put(tree, &name, &value);
            } else {
                batch.delete(tree, &name);
            }
            after.push((name, put.then_some(value)));
        }
        match self.db().write(&batch, Durability::None) {
            Ok(()) => {
                for (key, value) in after {
                    match value {
                        Some(value) => self.model.insert(key, value),
                        None => self.model.remove(&key),
                    };
                }
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                false
            }
        }
    }

    /// Do a unit of background work; threads of the store may be at others.
    fn work(&self) {
        match self.db().step() {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Full, "{error}"),
        }
    }

    /// Commit, now or when the background has made room.
    fn write_in_the_end(&mut self, keys: &[u32], put: bool) {
        for _ in 0..TRIES {
            if self.write(keys, put) {
                return;
            }
            self.work();
        }
        panic!("refused for good: {:?}", self.db().stats().unwrap().space);
    }

    fn check(&self) {
        let snapshot = self.db().begin_read().unwrap();
        let (from, to) = (Bound::Unbounded, Bound::Unbounded);
        let cursor = snapshot.cursor(self.tree.unwrap(), from, to, Direction::Forward);
        let mut cursor = cursor.unwrap();
        let mut found = BTreeMap::new();
        while cursor.advance().unwrap() {
            found.insert(cursor.key().to_vec(), cursor.value().to_vec());
        }
        assert!(found == self.model, "what was acknowledged is there");
    }

    /// Close: everything that was acknowledged is kept.
    fn reopen(&mut self) {
        self.db.take().unwrap().close().unwrap();
        self.open();
        self.check();
    }

    /// Bytes from now on.
    fn limit(&self, more: u64) {
        self.disk.set_capacity(Some(self.disk.used() + more));
    }
}

fn keys(rng: &mut Rng, below: u64) -> Vec<u32> {
    let mut keys: Vec<u32> = (0..10)
        .map(|_| u32::try_from(rng.below(below)).unwrap())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Rows are replaced on a disk that has room for some of what merges replace, but not for all.
#[test]
fn what_waits_for_a_checkpoint_is_freed_before_commits_are_refused() {
    for kind in KINDS {
        println!("threads and log: {kind:?}");
        let mut town = Town::new(kind, 1);
        let mut rng = Rng::new(1);
        for _ in 0..400 {
            town.write_in_the_end(&keys(&mut rng, 4000), true);
        }
        assert!(town.db().settle(Duration::from_secs(60)).unwrap());
        town.limit(900 << 10);
        for _ in 0..1500 {
            town.write_in_the_end(&keys(&mut rng, 4000), true);
            if kind.0 == 0 {
                town.work();
            }
        }
        town.check();
        town.db().verify().unwrap();
        let stats = town.db().stats().unwrap();
        assert!(2 < stats.checkpoint.number, "{:?}", stats.checkpoint);
        town.reopen();
    }
}

/// Fill up, delete, write again, with a limit that moves; close in the middle.
fn life(kind: (u32, bool), seed: u64) {
    println!("threads and log {kind:?}, seed {seed}");
    let mut town = Town::new(kind, seed);
    let mut rng = Rng::new(seed);
    for round in 0..5 {
        town.limit((200 << 10) + rng.below(500 << 10));
        let mut refused = 0;
        for _ in 0..3000 {
            refused += u32::from(!town.write(&keys(&mut rng, 20_000), true));
            if kind.0 == 0 || rng.chance(0.1) {
                town.work();
            }
            if 5 < refused {
                break;
            }
        }
        assert!(0 < refused, "round {round}: 700 KiB are filled by 6 MB");
        town.check();
        if rng.chance(0.5) {
            town.reopen();
        }
        for _ in 0..rng.below(300) {
            town.write(&keys(&mut rng, 20_000), false);
            if kind.0 == 0 {
                town.work();
            }
        }
        town.check();
        if rng.chance(0.3) {
            let made = town.db().checkpoint();
            assert!(kind.1 || made.is_ok(), "round {round}: {made:?}");
        }
        if rng.chance(0.5) {
            town.reopen();
        }
        town.limit(500 << 10);
        for _ in 0..20 {
            town.write_in_the_end(&keys(&mut rng, 20_000), true);
        }
        town.check();
        town.db().verify().unwrap();
    }
    town.disk.set_capacity(None);
    assert!(town.db().settle(Duration::from_secs(60)).unwrap());
    let stats = town.db().stats().unwrap();
    let live: usize = town.model.iter().map(|(k, v)| k.len() + v.len()).sum();
    let most = 2 * live as u64 + (256 << 10);
    assert!(
        stats.space.used_bytes < most,
        "{live} live, {:?}",
        stats.space
    );
    town.reopen();
}

#[test]
fn a_store_that_was_full_keeps_what_was_acknowledged_and_goes_on() {
    let seeds = std::env::var("ROMANESCO_SEEDS").map_or(2, |text| text.parse().unwrap());
    for seed in 0..seeds {
        for kind in KINDS {
            life(kind, seed);
        }
    }
}

/// Deletes need a little room, which puts leave; what they free is freed on the full disk.
#[test]
fn deletes_make_room_on_a_full_disk() {
    for kind in KINDS {
        println!("threads and log: {kind:?}");
        let mut town = Town::new(kind, 3);
        let mut rng = Rng::new(3);
        town.limit(1500 << 10);
        let mut refused = 0;
        while refused < 10 {
            refused += u32::from(!town.write(&keys(&mut rng, 20_000), true));
            town.work();
        }
        let all: Vec<u32> = town
            .model
            .keys()
            .map(|key| u32::from_be_bytes(key[..].try_into().unwrap()))
            .collect();
        for some in all.chunks(20) {
            town.write_in_the_end(some, false);
            if kind.0 == 0 {
                town.work();
            }
        }
        for _ in 0..100 {
            town.write_in_the_end(&keys(&mut rng, 20_000), true);
        }
        town.check();
        town.db().verify().unwrap();
        town.reopen();
    }
}

/// A transaction needs more than is free, and less than what waits for a checkpoint.
#[test]
fn a_transaction_spills_where_a_checkpoint_frees_space() {
    let mut town = Town::new((0, true), 6);
    let mut rng = Rng::new(6);
    let pending = |town: &Town| town.db().stats().unwrap().space.pending_bytes;
    while pending(&town) < 1500 << 10 {
        assert!(town.write(&keys(&mut rng, 4000), true), "there is room");
        town.work();
    }
    town.limit(0);
    let tree = town.tree.unwrap();
    let mut transaction = town.db().begin().unwrap();
    for key in 0..1200_u32 {
        let key = key.to_be_bytes();
        transaction.put_blind(tree, &key, &[8; 1000]).unwrap();
    }
    assert!(pending(&town) < 1500 << 10, "a checkpoint was made");
    drop(transaction);
    town.check();
    town.reopen();
}

/// Checkpoints are due all the time, and have no room for their image.
#[test]
fn a_checkpoint_without_room_keeps_no_other_work_from_being_done() {
    let options = options(0, true).with_checkpoint_interval(Duration::from_millis(1));
    let mut town = Town::with(options, 5);
    let dropped = town.db().create_tree("dropped", TreeOptions::default());
    let before = town.db().stats().unwrap();
    town.disk.inject(Fault {
        sites: Sites::StartWith("image."),
        call: None,
        when: When::Nth(1),
        lasts: Lasts::Sticky,
        kind: FaultKind::Enospc,
    });
    let mut rng = Rng::new(5);
    let mut batch = Batch::new();
    batch.put(dropped.unwrap(), b"key", &[7; 2000]);
    town.db().write(&batch, Durability::None).unwrap();
    for _ in 0..400 {
        assert!(town.write(&keys(&mut rng, 4000), true), "there is room");
        // I1 of room: what fails here does not wait for itself.
        town.work();
        town.work();
    }
    // I2 of room: commits that must wait are not refused while flushes succeed.
    for _ in 0..400 {
        assert!(town.write(&keys(&mut rng, 4000), true), "there is room");
    }
    town.db().drop_tree("dropped").unwrap();
    town.work();
    let stats = town.db().stats().unwrap();
    assert_eq!(stats.checkpoint.number, before.checkpoint.number);
    assert!(0 < stats.operations.merges, "{:?}", stats.operations);
    town.check();
    town.disk.clear_faults();
    town.db().checkpoint().unwrap();
    town.reopen();
}

/// Each opening takes a file for the log; none may be the last.
#[test]
fn a_store_opens_any_number_of_times_on_a_full_disk() {
    for log in [true, false] {
        let mut town = Town::new((0, log), 4);
        let mut rng = Rng::new(4);
        town.limit(800 << 10);
        let mut refused = 0;
        while refused < 10 {
            refused += u32::from(!town.write(&keys(&mut rng, 20_000), true));
            town.work();
        }
        let some: Vec<u32> = (0..20_000).collect();
        for opening in 0..40 {
            town.limit(0);
            town.reopen();
            let keys = some.get(opening * 10..opening * 10 + 10).unwrap();
            assert!(town.write(keys, false), "log {log}, opening {opening}");
            assert!(town.write(keys, false), "log {log}, opening {opening}");
            (0..30).for_each(|_| town.work());
            town.db().sync_log().unwrap();
        }
        town.check();
    }
}

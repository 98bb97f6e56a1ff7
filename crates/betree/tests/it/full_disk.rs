//! Stores on a full disk: what waits for a checkpoint is freed, and what lacks space keeps no other
//! work from being done.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{Batch, Codec, Db, Direction, Durability, ErrorKind, Options, TreeId, TreeOptions};
use sim::{Fault, FaultKind, Lasts, SimOptions, SimVfs, Sites, When};
use stdx::Rng;

use crate::slow::{Slow, Watch};

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
fn options() -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_buffer_share(0.1)
        .with_bucket(32 << 10)
        .with_page(1 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_log_segment(64 << 10)
        .with_log_max(256 << 10)
        .with_checkpoint_interval(Duration::from_secs(86_400))
        .with_checkpoint_bytes(1 << 30)
        .with_threads(0)
}

impl Town {
    fn new(options: Options, seed: u64) -> Town {
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

    /// Commit puts of `keys`, for which there is room.
    fn write(&mut self, keys: &[u32]) {
        let tree = self.tree.unwrap();
        self.writes += 1;
        let mut batch = Batch::new();
        for key in keys {
            let name = key.to_be_bytes().to_vec();
            let value = [&self.writes.to_be_bytes()[..], &[7; 200]].concat();
            batch.put(tree, &name, &value);
            self.model.insert(name, value);
        }
        self.db().write(&batch, Durability::None).unwrap();
    }

    /// Do a unit of background work.
    fn work(&self) {
        match self.db().step() {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Full, "{error}"),
        }
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

/// A transaction needs more than is free, and less than what waits for a checkpoint.
#[test]
fn a_transaction_spills_where_a_checkpoint_frees_space() {
    let mut town = Town::new(options(), 6);
    let mut rng = Rng::new(6);
    let pending = |town: &Town| town.db().stats().unwrap().space.pending_bytes;
    while pending(&town) < 1500 << 10 {
        town.write(&keys(&mut rng, 4000));
        town.work();
    }
    town.limit(300 << 10);
    let tree = town.tree.unwrap();
    let mut transaction = town.db().begin().unwrap();
    for key in 0..800_u32 {
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
    let options = options().with_checkpoint_interval(Duration::from_millis(1));
    let mut town = Town::new(options, 5);
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
        town.write(&keys(&mut rng, 4000));
        // I1 of room: what fails here does not wait for itself.
        town.work();
        town.work();
    }
    // I2 of room: commits that must wait are not refused while flushes succeed.
    for _ in 0..400 {
        town.write(&keys(&mut rng, 4000));
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

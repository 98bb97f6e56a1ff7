//! The engine against a sorted map: the input is the tape of a workload on a simulated disk, with
//! crashes that keep what was synced or anything between.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::fuzzing::Target;
use betree::{
    Batch, Codec, Db, Direction, Durability, ErrorKind, KeyRange, Options, Seq, Snapshot, TreeId,
    TreeOptions,
};
use sim::{Crash, Outcome, Profile, SimOptions, SimVfs};
use stdx::tape::Tape;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) const TARGET: Target = Target {
    name: "engine",
    decode: run,
    repair: <[u8]>::to_vec,
    seeds,
};

const DIRECTORY: &str = "/store";

fn seeds() -> Vec<Vec<u8>> {
    let tape = |seed| Tape::from_seed(seed, 3_000).bytes().to_vec();
    (1..6).map(tape).collect()
}

/// A store with its model.
struct World {
    disk: SimVfs,
    db: Db,
    tree: TreeId,
    options: Options,
    model: Model,
    /// Snapshots and the content that they must see.
    held: Vec<(Snapshot, Model)>,
    /// The states after commits that need not survive a crash, oldest first; everything before the
    /// first of them is durable.
    perhaps: VecDeque<Model>,
    durable: Model,
    done: u64,
}

fn options(tape: &mut Tape) -> Options {
    let codec = [Codec::Lz4, Codec::None][tape.index(2)];
    Options::default()
        .with_memory(1 << 20)
        .with_buffer_share([0.5, 0.05, 0.2][tape.index(3)])
        .with_bucket([16 << 10, 4 << 10][tape.index(2)])
        .with_page([512, 256, 4096][tape.index(3)])
        .with_codec(codec)
        .with_delta_codec(codec)
        .with_k_cap([4, 1, 16][tape.index(3)])
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_bytes([64 << 10, 4 << 10][tape.index(2)])
        .with_threads(0)
        .with_seed(1)
}

fn open(disk: &SimVfs, options: &Options) -> Db {
    Db::open_with(
        Arc::new(disk.clone()),
        Path::new(DIRECTORY),
        options.clone(),
    )
    .unwrap()
}

fn run(bytes: &[u8]) -> u64 {
    let mut tape = Tape::new(bytes.to_vec());
    let options = options(&mut tape);
    let disk = SimVfs::new(SimOptions::default());
    let db = open(&disk, &options);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let mut world = World {
        disk,
        db,
        tree,
        options,
        model: Model::new(),
        held: Vec::new(),
        perhaps: VecDeque::new(),
        durable: Model::new(),
        done: 0,
    };
    while !tape.is_empty() {
        world = world.act(&mut tape);
    }
    same(&world.db.begin_read().unwrap(), tree, &world.model);
    world.db.verify().unwrap();
    let mut hasher = DefaultHasher::new();
    world.done.hash(&mut hasher);
    hasher.finish()
}

fn same(snapshot: &Snapshot, tree: TreeId, model: &Model) {
    for direction in [Direction::Forward, Direction::Backward] {
        let cursor = snapshot.cursor(tree, Bound::Unbounded, Bound::Unbounded, direction);
        assert_eq!(walk(cursor.unwrap(), direction), *model, "{direction:?}");
    }
}

fn walk(mut cursor: betree::Cursor<'_>, direction: Direction) -> Model {
    let mut found = Model::new();
    let mut last: Option<Vec<u8>> = None;
    while cursor.advance().unwrap() {
        if let Some(last) = &last {
            let ascends = last.as_slice() < cursor.key();
            assert_eq!(ascends, direction == Direction::Forward, "in order");
        }
        last = Some(cursor.key().to_vec());
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    found
}

fn key(tape: &mut Tape) -> Vec<u8> {
    let number = [tape.below(16), tape.below(3000)][tape.index(2)];
    let mut key = number.to_be_bytes().to_vec();
    let long = [0, 0, 1, 40][tape.index(4)];
    key.extend(std::iter::repeat_n(7, long));
    key
}

impl World {
    fn act(mut self, tape: &mut Tape) -> World {
        let choice = tape.below(32);
        self.done |= 1 << choice;
        match choice {
            0..=13 => self.write(tape),
            14 | 15 => self.transaction(tape),
            16..=18 => {
                for _ in 0..tape.below(30) {
                    self.db.step().unwrap();
                }
            }
            19 | 20 => {
                let key = key(tape);
                let found = self.db.begin_read().unwrap().get(self.tree, &key).unwrap();
                assert_eq!(found.as_ref(), self.model.get(&key));
            }
            21 => self.scan(tape),
            22 => self
                .held
                .push((self.db.begin_read().unwrap(), self.model.clone())),
            23 if !self.held.is_empty() => {
                let (snapshot, then) = self.held.swap_remove(tape.index(self.held.len()));
                same(&snapshot, self.tree, &then);
            }
            24 => {
                self.db.checkpoint().unwrap();
                self.now_durable();
            }
            25 => {
                self.db.sync_log().unwrap();
                self.now_durable();
            }
            26 => {
                assert!(self.db.settle(Duration::from_secs(600)).unwrap());
                self.now_durable();
            }
            27 => assert!(!self.db.settle(Duration::ZERO).unwrap(), "no time to"),
            28 => self.delete_range(tape),
            29 => return self.reopen(),
            30 => return self.crash(tape),
            _ => drop(self.db.verify().unwrap()),
        }
        self
    }

    fn newest(&self) -> Seq {
        self.db.begin_read().unwrap().seq()
    }

    fn now_durable(&mut self) {
        self.perhaps.clear();
        self.durable = self.model.clone();
    }

    /// Record that an acknowledged write changed the model to `next`. `before` is the newest commit
    /// before it: a write without changes may not be a commit, and then makes nothing durable.
    fn committed(&mut self, before: Seq, next: Model, durability: Durability) {
        if self.newest() == before {
            assert_eq!(self.model, next, "changes are commits");
            return;
        }
        self.model = next;
        self.perhaps.push_back(self.model.clone());
        if Durability::Group <= durability {
            self.now_durable();
        }
    }

    fn write(&mut self, tape: &mut Tape) {
        let (mut batch, mut next) = (Batch::new(), self.model.clone());
        let most = [4, 60][tape.index(2)];
        for _ in 0..=tape.below(most) {
            let key = key(tape);
            if tape.chance(60) {
                batch.delete(self.tree, &key);
                next.remove(&key);
            } else {
                let value = vec![tape.byte(); [9, 0, 100, 3000][tape.index(4)]];
                batch.put(self.tree, &key, &value);
                next.insert(key, value);
            }
        }
        let durability = level(tape);
        let before = self.newest();
        self.db.write(&batch, durability).unwrap();
        self.committed(before, next, durability);
    }

    fn transaction(&mut self, tape: &mut Tape) {
        let mut transaction = self.db.begin().unwrap();
        let mut next = self.model.clone();
        for _ in 0..=tape.below(6) {
            let key = key(tape);
            match tape.below(4) {
                0 => {
                    let there = transaction.delete(self.tree, &key).unwrap();
                    assert_eq!(there, next.remove(&key).is_some());
                }
                1 => match transaction.insert(self.tree, &key, b"inserted") {
                    Ok(()) => assert!(next.insert(key, b"inserted".to_vec()).is_none()),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Exists);
                        assert!(next.contains_key(&key));
                    }
                },
                2 => {
                    transaction.put(self.tree, &key, &[1; 20]).unwrap();
                    next.insert(key, vec![1; 20]);
                }
                _ => {
                    let found = transaction.get(self.tree, &key).unwrap();
                    assert_eq!(found.as_ref(), next.get(&key));
                }
            }
        }
        if tape.chance(60) {
            return transaction.rollback();
        }
        let durability = level(tape);
        let before = self.newest();
        transaction.commit(durability).unwrap();
        self.committed(before, next, durability);
    }

    fn delete_range(&mut self, tape: &mut Tape) {
        let (mut start, mut end) = (key(tape), key(tape));
        if end < start {
            std::mem::swap(&mut start, &mut end);
        }
        let mut batch = Batch::new();
        batch.delete_range(self.tree, KeyRange::half_open(&start, &end));
        let mut next = self.model.clone();
        next.retain(|key, _| *key < start || end <= *key);
        let durability = level(tape);
        let before = self.newest();
        self.db.write(&batch, durability).unwrap();
        self.committed(before, next, durability);
    }

    fn scan(&mut self, tape: &mut Tape) {
        let (mut start, mut end) = (key(tape), key(tape));
        if end < start {
            std::mem::swap(&mut start, &mut end);
        }
        let direction = [Direction::Forward, Direction::Backward][tape.index(2)];
        let snapshot = self.db.begin_read().unwrap();
        let bounds = (Bound::Excluded(&start[..]), Bound::Included(&end[..]));
        let cursor = snapshot
            .cursor(self.tree, bounds.0, bounds.1, direction)
            .unwrap();
        let mut expected = self.model.clone();
        expected.retain(|key, _| start < *key && *key <= end);
        assert_eq!(walk(cursor, direction), expected, "{direction:?}");
    }

    fn reopen(mut self) -> World {
        self.held.clear();
        self.db.close().unwrap();
        self.db = open(&self.disk, &self.options);
        same(&self.db.begin_read().unwrap(), self.tree, &self.model);
        self.perhaps.clear();
        self.durable = self.model.clone();
        self
    }

    /// Crash and recover: the result must be a state between the durable and the committed one.
    fn crash(mut self, tape: &mut Tape) -> World {
        let outcomes = [
            Outcome::None,
            Outcome::All,
            Outcome::Random,
            Outcome::PrefixTorn,
        ];
        let profiles = [Profile::Atomic512, Profile::Atomic4096, Profile::Sequential];
        let crash = Crash {
            profile: profiles[tape.index(3)],
            outcome: outcomes[tape.index(4)],
            seed: u64::from(tape.below(1 << 16)),
        };
        self.disk = self.disk.crash(crash);
        self.held.clear();
        drop(self.db);
        self.db = open(&self.disk, &self.options);
        let snapshot = self.db.begin_read().unwrap();
        let cursor = snapshot.cursor(
            self.tree,
            Bound::Unbounded,
            Bound::Unbounded,
            Direction::Forward,
        );
        let found = walk(cursor.unwrap(), Direction::Forward);
        let allowed = found == self.durable || self.perhaps.contains(&found);
        assert!(
            allowed,
            "a state after some commit, with all that was durable"
        );
        drop(snapshot);
        self.model = found;
        // The recovered state is durable.
        self.now_durable();
        self
    }
}

fn level(tape: &mut Tape) -> Durability {
    [
        Durability::Interval,
        Durability::None,
        Durability::Group,
        Durability::Sync,
    ][tape.index(4)]
}

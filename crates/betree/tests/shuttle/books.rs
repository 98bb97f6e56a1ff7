//! Writers that keep books, so that any snapshot can be audited.
//!
//! Writer `w` makes batches 1, 2, 3, ... Each sets its counter and puts or deletes some of its keys
//! as a pure function of `w` and the number. So what a snapshot must hold follows from the counters
//! it holds; and as each commit raises one counter by one, their sum follows from its number.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use betree::{Batch, Codec, Db, Direction, Durability, Options, Snapshot, TreeId, TreeOptions};
use sim::{SimOptions, SimVfs};
use stdx::sync::{JoinHandle, spawn};

const KEYS: u32 = 6;

pub(crate) type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store on a simulated disk, its writers, and their acknowledged commits.
pub(crate) struct Books {
    pub(crate) db: Db,
    pub(crate) disk: SimVfs,
    pub(crate) tree: TreeId,
    /// Size of a value in bytes.
    size: usize,
    /// The number of the last commit before those that the counters count.
    base: u64,
    /// The last batch of each writer that was acknowledged as durable.
    acknowledged: Vec<AtomicU32>,
}

pub(crate) fn directory() -> &'static Path {
    Path::new("/store")
}

/// Options of a tiny store without threads.
pub(crate) fn tiny() -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(4 << 10)
        .with_page(256)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_threads(0)
        .with_seed(1)
}

pub(crate) fn disk() -> SimVfs {
    SimVfs::new(SimOptions::default())
}

pub(crate) fn open(disk: &SimVfs, options: &Options) -> Db {
    Db::open_with(Arc::new(disk.clone()), directory(), options.clone()).unwrap()
}

/// Start a thread of the test.
pub(crate) fn thread(body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    spawn("kernel", body).unwrap()
}

/// Wait for all threads.
pub(crate) fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

/// All entries of a tree, read forward; checks that reading backward returns the same.
pub(crate) fn scan(snapshot: &Snapshot, tree: TreeId) -> Content {
    let walk = |direction| {
        let cursor = snapshot.cursor(tree, Bound::Unbounded, Bound::Unbounded, direction);
        let mut cursor = cursor.unwrap();
        let mut entries = Vec::new();
        while cursor.advance().unwrap() {
            entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        }
        entries
    };
    let forward = walk(Direction::Forward);
    assert!(
        forward.is_sorted_by(|a, b| a.0 < b.0),
        "keys ascend, each once"
    );
    let mut backward = walk(Direction::Backward);
    backward.reverse();
    assert_eq!(forward, backward, "at {}", snapshot.seq());
    forward.into_iter().collect()
}

fn counter(writer: u32) -> Vec<u8> {
    format!("counter {writer}").into_bytes()
}

impl Books {
    /// A new store whose writers put values of `size` bytes.
    pub(crate) fn new(writers: u32, size: usize, options: &Options) -> Arc<Books> {
        let disk = disk();
        let db = open(&disk, options);
        let tree = db.create_tree("books", TreeOptions::default()).unwrap();
        Arc::new(Books::of(db, disk, tree, writers, size, 1))
    }

    fn of(db: Db, disk: SimVfs, tree: TreeId, writers: u32, size: usize, base: u64) -> Books {
        Books {
            db,
            disk,
            tree,
            size,
            base,
            acknowledged: (0..writers).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn changes(&self, writer: u32, number: u32) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut changes = vec![(counter(writer), Some(number.to_be_bytes().to_vec()))];
        for key in 0..KEYS {
            let choice = (number + key + writer) % 4;
            if choice == 0 {
                continue;
            }
            let value = format!("{writer} {key} {number} ").into_bytes();
            let value: Vec<u8> = value.iter().copied().cycle().take(self.size).collect();
            let name = format!("key {key} {writer}").into_bytes();
            changes.push((name, (choice != 1).then_some(value)));
        }
        changes
    }

    /// Commit batch `number` of `writer`.
    pub(crate) fn write(
        &self,
        writer: u32,
        number: u32,
        durability: Durability,
    ) -> betree::Result<()> {
        let mut batch = Batch::new();
        for (key, value) in self.changes(writer, number) {
            match value {
                Some(value) => batch.put(self.tree, &key, &value),
                None => batch.delete(self.tree, &key),
            }
        }
        self.db.write(&batch, durability)?;
        if Durability::Group <= durability {
            let acknowledged = self.acknowledged.get(writer as usize).unwrap();
            acknowledged.store(number, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A thread that commits batches `1..=last` of `writer`.
    pub(crate) fn writer(
        self: &Arc<Books>,
        writer: u32,
        last: u32,
        level: Durability,
    ) -> JoinHandle<()> {
        let books = Arc::clone(self);
        thread(move || {
            for number in 1..=last {
                books.write(writer, number, level).unwrap();
            }
        })
    }

    /// A thread that repeatedly freezes, flushes and merges buffers.
    pub(crate) fn worker(self: &Arc<Books>, rounds: u32) -> JoinHandle<()> {
        let books = Arc::clone(self);
        thread(move || {
            for _ in 0..rounds {
                books.freeze();
                while books.db.step().unwrap() {}
            }
        })
    }

    /// Freeze every buffer.
    pub(crate) fn freeze(&self) {
        assert!(
            !self.db.settle(Duration::ZERO).unwrap(),
            "no time for anything else"
        );
    }

    /// The last batch of each writer that was acknowledged as durable.
    pub(crate) fn acknowledged(&self) -> Vec<u32> {
        self.acknowledged
            .iter()
            .map(|a| a.load(Ordering::Relaxed))
            .collect()
    }

    /// The last batch of each writer that a snapshot sees.
    pub(crate) fn counters(&self, snapshot: &Snapshot) -> Vec<u32> {
        let writers = 0..u32::try_from(self.acknowledged.len()).unwrap();
        let number = |writer| match snapshot.get(self.tree, &counter(writer)).unwrap() {
            Some(bytes) => u32::from_be_bytes(bytes.try_into().unwrap()),
            None => 0,
        };
        writers.map(number).collect()
    }

    /// Check the content of a snapshot; returns its counters.
    pub(crate) fn audit(&self, snapshot: &Snapshot) -> Vec<u32> {
        let counters = self.audit_content(snapshot);
        let sum: u32 = counters.iter().sum();
        let seq = snapshot.seq();
        assert_eq!(seq.0, self.base + u64::from(sum), "counters {counters:?}");
        counters
    }

    /// The same for a snapshot whose number need not match the counters.
    pub(crate) fn audit_content(&self, snapshot: &Snapshot) -> Vec<u32> {
        let counters = self.counters(snapshot);
        let mut expected = Content::new();
        for (writer, &last) in (0..).zip(&counters) {
            for number in 1..=last {
                for (key, value) in self.changes(writer, number) {
                    match value {
                        Some(value) => expected.insert(key, value),
                        None => expected.remove(&key),
                    };
                }
            }
        }
        let found = scan(snapshot, self.tree);
        let seq = snapshot.seq();
        assert_eq!(
            found.len(),
            expected.len(),
            "snapshot {seq}, counters {counters:?}"
        );
        assert_eq!(found, expected, "snapshot {seq}, counters {counters:?}");
        for (key, value) in &expected {
            let got = snapshot.get(self.tree, key).unwrap();
            assert_eq!(got.as_ref(), Some(value), "snapshot {seq}");
        }
        counters
    }

    /// Open `disk`, which a crash of this store left, and check it: at least the batches in
    /// `acknowledged` must exist.
    pub(crate) fn recover(&self, disk: &SimVfs, options: &Options, acknowledged: &[u32]) -> Books {
        let db = open(disk, options);
        let writers = u32::try_from(acknowledged.len()).unwrap();
        let found = Books::of(db, disk.clone(), self.tree, writers, self.size, self.base);
        let counters = found.audit(&found.db.begin_read().unwrap());
        let kept = counters
            .iter()
            .zip(acknowledged)
            .all(|(found, acked)| acked <= found);
        assert!(kept, "acknowledged {acknowledged:?}, found {counters:?}");
        found
    }
}

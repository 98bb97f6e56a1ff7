//! Each law is broken on purpose in the captured state of a valid store, and must be reported.

use std::path::Path;
use std::sync::Arc;

use sim::{SimOptions, SimVfs};

use super::Look;
use super::laws::{self, Law, MemoryLook};
use super::look::BucketLook;
use crate::db::{Core, DATA_FILE};
use crate::types::{Extent, RunId, Seq, UNIT};
use crate::{Batch, Db, Durability, ErrorKind, Options, TreeId, TreeOptions};

struct Rig {
    disk: SimVfs,
    db: Db,
    tree: TreeId,
}

impl Rig {
    /// A store whose tree has several buckets, with bases, deltas, and buffers of both kinds.
    fn new() -> Rig {
        let disk = SimVfs::new(SimOptions::default());
        let options = Options::default()
            .with_memory(1 << 20)
            .with_bucket(16 << 10)
            .with_page(512)
            .with_threads(0);
        let db = Db::open_with(Arc::new(disk.clone()), Path::new("/db"), options).unwrap();
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        let rig = Rig { disk, db, tree };
        // The open snapshot keeps versions apart, so that runs contain sequence numbers.
        let held = rig.db.begin_read().unwrap();
        for round in 0..40 {
            rig.write(round);
        }
        rig.db.settle(std::time::Duration::from_secs(60)).unwrap();
        for round in 40..44 {
            rig.write(round);
            rig.core().freeze_older_than(Seq::MAX);
            rig.core().flush_until_idle().unwrap();
        }
        for round in 44..46 {
            rig.write(round);
            rig.core().freeze_older_than(Seq::MAX);
        }
        rig.write(46);
        rig.db.verify().unwrap();
        drop(held);
        rig
    }

    fn core(&self) -> &Core {
        self.db.core()
    }

    fn write(&self, round: u64) {
        let mut batch = Batch::new();
        for i in 0..200_u64 {
            let key = (round * 7919 + i * 104_729) % 5000;
            batch.put(self.tree, &key.to_be_bytes(), &[3; 30]);
        }
        self.db.write(&batch, Durability::Group).unwrap();
    }

    fn look(&self) -> Look {
        Look::at(self.core(), &self.core().commit.lock())
    }

    /// The reported law after a change of the first bucket that has runs and buffers of all kinds.
    fn structure(&self, change: impl FnOnce(&mut BucketLook)) -> Law {
        let mut look = self.look();
        let newest = look.newest;
        let mut buckets = look.trees.iter_mut().flat_map(|tree| &mut tree.buckets);
        let rich = |b: &&mut BucketLook| {
            1 < b.deltas.len() && !b.base.is_empty() && 1 < b.frozen.len() && 0 < b.active.entries
        };
        change(buckets.find(rich).expect("a bucket with everything"));
        assert!(newest <= look.newest, "the look is of one moment");
        laws::structure(&look, RunId(self.core().peek_run()))
    }
}

fn broken(law: Law, number: &str) {
    let said = law.unwrap_err();
    assert!(
        said.contains(&format!("law {number}:")),
        "law {number}: {said}"
    );
}

#[test]
fn a_broken_routing_is_found() {
    let rig = Rig::new();
    assert_eq!(rig.structure(|_| ()), Ok(()));
    broken(rig.structure(|b| b.retired = true), "1");
    broken(
        rig.structure(|b| b.hi = Some(Arc::from(&b"\xff\xff"[..]))),
        "1",
    );
    broken(rig.structure(|b| b.lo = Arc::from(&b"\xff"[..])), "1");
    let mut look = rig.look();
    look.trees[0].buckets.pop();
    broken(laws::routing(&look.trees[0]), "1");
    look.trees[0].buckets.clear();
    broken(laws::routing(&look.trees[0]), "1");
}

#[test]
fn a_broken_base_is_found() {
    let rig = Rig::new();
    let twice = |b: &mut BucketLook| {
        let base: Vec<_> = b.base.iter().chain(b.base.iter()).cloned().collect();
        b.base = base.into();
    };
    broken(rig.structure(twice), "2");
    let look = rig.look();
    let buckets = &look.trees[0].buckets;
    let mut foreign = buckets[0].clone();
    foreign.base = Arc::clone(&buckets[buckets.len() - 1].base);
    broken(laws::base(&foreign), "2");
}

#[test]
fn commits_in_the_wrong_places_are_found() {
    let rig = Rig::new();
    broken(rig.structure(|b| b.flushed = Seq::MAX), "3");
    broken(rig.structure(|b| b.flushed = Seq(1)), "3");
    broken(rig.structure(|b| b.deltas.reverse()), "3");
    broken(rig.structure(|b| b.frozen.reverse()), "4");
    broken(rig.structure(|b| b.active.first = Some(Seq(1))), "4");
    broken(rig.structure(|b| b.active.last = Some(Seq::MAX)), "4");
    broken(rig.structure(|b| b.frozen[0].0.entries = 0), "4");
    broken(rig.structure(|b| b.frozen[0].1 = Seq(2)), "4");
    broken(laws::structure(&rig.look(), RunId(1)), "5");
}

#[test]
fn wrong_counts_of_names_and_of_memory_are_found() {
    let rig = Rig::new();
    let look = rig.look();
    let names = |run| rig.core().sharing.names(run);
    assert_eq!(laws::sharing(&look, names), Ok(()));
    broken(laws::sharing(&look, |run| names(run) + 1), "6");
    let (waiting, flushing) = rig.core().queue.bytes();
    assert!(0 < waiting);
    let right = MemoryLook {
        waiting,
        flushing,
        frozen: rig.core().memory.frozen(),
        buffered: rig.core().memory.buffered(),
    };
    assert_eq!(laws::memory(&look, right), Ok(()));
    let wrong = [
        MemoryLook {
            waiting: 0,
            ..right
        },
        MemoryLook {
            frozen: right.frozen + 1,
            ..right
        },
        MemoryLook {
            frozen: right.frozen - 1,
            ..right
        },
        MemoryLook {
            buffered: right.buffered + 1,
            ..right
        },
        MemoryLook {
            buffered: right.buffered - 1,
            ..right
        },
    ];
    for memory in wrong {
        broken(laws::memory(&look, memory), "7");
    }
}

#[test]
fn space_that_is_lost_or_given_twice_is_found() {
    let rig = Rig::new();
    let look = rig.look();
    let core = rig.core();
    let (held, layout) = core.runs.accounts();
    let image = core.checkpoints.superblock().image.unwrap().extent();
    let space =
        |layout: &crate::space::Layout, held| laws::space(&look, layout, held, Some(image), &[]);
    assert_eq!(space(&layout, held), Ok(()));
    broken(space(&layout, held - UNIT), "8");
    let mut longer = layout.clone();
    longer.end += UNIT;
    broken(space(&longer, held), "8");
    // The extent of a run is also free; the sums stay right.
    let taken = look
        .buckets()
        .find_map(|b| b.base.first())
        .unwrap()
        .meta()
        .extents[0];
    let mut twice = layout.clone();
    let unit = Extent { len: UNIT, ..taken };
    twice.free.push(unit);
    twice.end += UNIT;
    broken(space(&twice, held), "8");
    // An extent that the durable image refers to is free.
    let mut freed = layout.clone();
    freed.free.push(Extent {
        offset: layout.end,
        len: UNIT,
    });
    freed.end += UNIT;
    assert_eq!(space(&freed, held), Ok(()));
    let durable = [(
        RunId(u64::MAX),
        Extent {
            offset: layout.end,
            len: UNIT,
        },
    )];
    broken(laws::space(&look, &freed, held, Some(image), &durable), "8");
}

#[test]
fn a_log_that_is_too_short_is_found() {
    let rig = Rig::new();
    let look = rig.look();
    let from = rig.core().checkpoints.superblock().log_from;
    assert_eq!(laws::log(&look, Seq(from.0 - 1), from), Ok(()));
    broken(laws::log(&look, from, from), "9");
    broken(laws::log(&look, from, Seq(look.newest.0 + 1)), "9");
}

#[test]
fn lost_accounts_of_a_store_are_found() {
    let rig = Rig::new();
    rig.core().memory.grow(1);
    let error = rig.db.verify().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("law 7"), "{error}");
    rig.core().memory.forget_active(1);
    rig.db.verify().unwrap();
    let leaked = rig.core().space.allocate(UNIT);
    let error = rig.db.verify().unwrap_err();
    assert!(error.to_string().contains("law 8"), "{error}");
    rig.core().space.discard(&[leaked]);
    rig.db.verify().unwrap();
}

#[test]
fn damaged_bytes_of_a_run_and_of_the_image_are_found() {
    let rig = Rig::new();
    let path = Path::new("/db").join(DATA_FILE);
    let bytes = rig.disk.peek(&path).unwrap();
    let look = rig.look();
    let run = look
        .buckets()
        .find_map(|b| b.base.first())
        .unwrap()
        .meta()
        .extents[0]
        .offset;
    let image = rig.core().checkpoints.superblock().image.unwrap().offset;
    for at in [run + 100, image + 60, 20] {
        let old = bytes[usize::try_from(at).unwrap()];
        rig.disk.poke(&path, at, &[old ^ 4]);
        let result = rig.db.verify();
        // One bad slot of the four is tolerated.
        if at != 20 {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
        }
        rig.disk.poke(&path, at, &[old]);
        rig.db.verify().unwrap();
    }
}

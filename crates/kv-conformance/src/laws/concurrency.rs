//! Threads: readers see only whole commits, and no commit of a writer is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::bench::Bench;
use crate::verbs::{
    Backward, Forward, QUICK, all, change, create, fill_numbered, get, keys, numbered, put, scan,
};
use kv::{
    Batch, Durability, Engine, ErrorKind, Flow, KeyRange, Result, Transaction, TreeId, TreeOptions,
};

/// Maximum number of attempts of a writer: far more than any fair engine needs.
const TRIES: u32 = 10_000;

/// Sets the flag when it is dropped, so that readers stop even if the writers panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Run `body` in a transaction, and retry after a conflict.
fn retry(db: &dyn Engine, body: impl Fn(&mut dyn Transaction) -> Result<()>) {
    for _ in 0..TRIES {
        match change(db, &body) {
            Ok(()) => return,
            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
        }
        thread::yield_now();
    }
    panic!("still in conflict after {TRIES} tries");
}

fn number(bytes: Option<Vec<u8>>) -> u32 {
    bytes.map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()))
}

/// Run `write` on one thread. Two other threads repeat `read` until `write` has ended, and once
/// after it.
fn write_and_read(write: impl FnOnce() + Send, read: impl Fn() + Sync) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    read();
                }
            });
        }
        scope.spawn(|| {
            let _done = Done(&over);
            write();
        });
    });
    read();
}

pub(crate) fn readers_see_whole_batches(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    let write = || {
        let mut batch = Batch::new();
        for n in 0..300u32 {
            batch.clear();
            for key in 0..10 {
                batch.put(t, &numbered(key), &n.to_be_bytes());
                batch.put(u, &numbered(key), &n.to_be_bytes());
            }
            db.write(&batch, QUICK).unwrap();
        }
    };
    write_and_read(write, || {
        let now = db.begin_read().unwrap();
        let mut seen = scan(&*now, t, KeyRange::ALL, Forward);
        seen.extend(scan(&*now, u, KeyRange::ALL, Backward));
        assert!(seen.is_empty() || seen.len() == 20, "{} of 20", seen.len());
        assert!(
            seen.iter().all(|entry| entry.1 == seen[0].1),
            "a torn batch"
        );
    });
}

pub(crate) fn readers_see_whole_transactions(lab: &mut Bench<'_>) {
    let db = lab.open();
    let (t, u) = (create(&*db, "t"), create(&*db, "u"));
    let write = || {
        for n in 0..300u32 {
            let (gone, new) = (numbered(n), numbered(n + 1));
            change(&*db, |txn| {
                txn.delete(t, &gone)?;
                txn.put(t, &new, b"v")?;
                txn.put_blind(u, b"n", &(n + 1).to_be_bytes())
            })
            .unwrap();
        }
    };
    write_and_read(write, || {
        let now = db.begin_read().unwrap();
        let n = number(now.get(u, b"n").unwrap());
        let expected: Vec<String> = (0 < n).then(|| format!("{n:08}")).into_iter().collect();
        assert_eq!(keys(&*now, t, KeyRange::ALL, Forward), expected);
    });
}

pub(crate) fn readers_see_range_deletes_whole(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let write = || {
        for n in 0..150u32 {
            let mut batch = Batch::new();
            batch.delete_range(t, KeyRange::ALL);
            for key in 0..8 {
                batch.put(t, &numbered(n * 8 + key), b"v");
            }
            db.write(&batch, QUICK).unwrap();
        }
    };
    write_and_read(write, || {
        let now = db.begin_read().unwrap();
        let seen = scan(&*now, t, KeyRange::ALL, Forward).len();
        assert!(seen == 0 || seen == 8, "{seen} of 8 keys");
    });
}

pub(crate) fn increments_are_not_lost(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    retry(&*db, |txn| {
                        let n = number(txn.get(t, b"n")?);
                        txn.put(t, b"n", &(n + 1).to_be_bytes())
                    });
                }
            });
        }
    });
    assert_eq!(number(get(&*db, t, b"n")), 200);
}

/// Eight accounts with 100 each; two threads make 400 transfers while a reader adds up all
/// accounts.
pub(crate) fn transfers_keep_the_sum(lab: &mut Bench<'_>) {
    const ACCOUNTS: u32 = 8;
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, ACCOUNTS, &100u32.to_be_bytes());
    let transfer = |n: u32| {
        let (from, to) = (numbered(n % ACCOUNTS), numbered((n * 5 + 3) % ACCOUNTS));
        retry(&*db, |txn| {
            let rest = number(txn.get(t, &from)?);
            let more = number(txn.get(t, &to)?);
            if from == to || rest == 0 {
                return Ok(());
            }
            txn.put(t, &from, &(rest - 1).to_be_bytes())?;
            txn.put(t, &to, &(more + 1).to_be_bytes())
        });
    };
    let write = || {
        thread::scope(|scope| {
            for start in [0, 1000] {
                scope.spawn(move || (start..start + 200).for_each(transfer));
            }
        });
    };
    write_and_read(write, || {
        let now = db.begin_read().unwrap();
        let entries = scan(&*now, t, KeyRange::ALL, Forward);
        let sum: u32 = entries
            .into_iter()
            .map(|(_, value)| number(Some(value)))
            .sum();
        assert_eq!(sum, 100 * ACCOUNTS);
    });
}

pub(crate) fn batches_of_several_threads_all_arrive(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    thread::scope(|scope| {
        for writer in 0..4u32 {
            let db = &*db;
            scope.spawn(move || {
                for n in 0..100 {
                    let mut batch = Batch::new();
                    batch.put(t, &numbered(writer * 1000 + n), b"own");
                    batch.put(t, b"shared", &writer.to_be_bytes());
                    db.write(&batch, QUICK).unwrap();
                }
            });
        }
    });
    assert_eq!(all(&*db, t).len(), 401);
}

pub(crate) fn writers_of_different_trees_all_arrive(lab: &mut Bench<'_>) {
    let db = lab.open();
    let trees = ["a", "b", "c"].map(|name| create(&*db, name));
    thread::scope(|scope| {
        for tree in trees {
            let db = &*db;
            scope.spawn(move || {
                for n in 0..100 {
                    put(db, tree, &numbered(n), &tree.0.to_be_bytes());
                }
            });
        }
    });
    for tree in trees {
        let found = all(&*db, tree);
        assert_eq!(found.len(), 100);
        assert!(
            found
                .iter()
                .all(|(_, value)| *value == tree.0.to_be_bytes())
        );
    }
}

pub(crate) fn durable_commits_of_several_threads_all_arrive(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    thread::scope(|scope| {
        for writer in 0..4u32 {
            let db = &*db;
            scope.spawn(move || {
                for n in 0..10 {
                    let level = Durability::ALL[(n + writer) as usize % 4];
                    let mut txn = db.begin_write().unwrap();
                    txn.put(t, &numbered(writer * 1000 + n), b"v").unwrap();
                    txn.commit(level).unwrap();
                }
            });
        }
    });
    assert_eq!(all(&*db, t).len(), 40);
}

pub(crate) fn of_racing_inserts_one_wins(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for round in 0..20u32 {
        let key = numbered(round);
        let insert = |writer: u8| match change(&*db, |txn| txn.insert(t, &key, &[writer])) {
            Ok(()) => Some(writer),
            Err(e) => {
                let lost = [ErrorKind::Conflict, ErrorKind::Exists];
                assert!(lost.contains(&e.kind()), "{e}");
                None
            }
        };
        let winners: Vec<u8> = thread::scope(|scope| {
            let racers = [0, 1, 2].map(|writer| scope.spawn(move || insert(writer)));
            racers
                .into_iter()
                .filter_map(|r| r.join().unwrap())
                .collect()
        });
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        assert_eq!(get(&*db, t, &key), Some(winners));
    }
}

pub(crate) fn later_snapshots_never_go_back(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !over.load(Ordering::Acquire) {
                    let n = number(get(&*db, t, b"n"));
                    assert!(last <= n, "{n} after {last}");
                    last = n;
                }
            });
        }
        scope.spawn(|| {
            let _done = Done(&over);
            (1..=400u32).for_each(|n| put(&*db, t, b"n", &n.to_be_bytes()));
        });
    });
    assert_eq!(number(get(&*db, t, b"n")), 400);
}

pub(crate) fn commit_is_seen_by_other_threads_at_once(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let (committed, heard) = mpsc::channel::<u32>();
    thread::scope(|scope| {
        scope.spawn(|| {
            let committed = committed;
            for n in 1..=200u32 {
                put(&*db, t, b"n", &n.to_be_bytes());
                committed.send(n).unwrap();
            }
        });
        for n in heard {
            let seen = number(get(&*db, t, b"n"));
            assert!(n <= seen, "{seen} after the commit of {n} returned");
        }
    });
}

pub(crate) fn of_racing_creates_one_wins(lab: &mut Bench<'_>) {
    let db = lab.open();
    for round in 0..10 {
        let name = format!("tree {round}").replace(' ', ".");
        let make = || match db.create_tree(&name, &TreeOptions::default()) {
            Ok(tree) => Some(tree),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Exists, "{e}");
                None
            }
        };
        let winners: Vec<TreeId> = thread::scope(|scope| {
            let racers = [(); 3].map(|()| scope.spawn(make));
            racers
                .into_iter()
                .filter_map(|r| r.join().unwrap())
                .collect()
        });
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        assert_eq!(db.open_tree(&name).unwrap(), winners[0]);
    }
}

pub(crate) fn trees_come_and_go_beside_writers(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    thread::scope(|scope| {
        scope.spawn(|| (0..200).for_each(|n| put(&*db, t, &numbered(n), b"v")));
        scope.spawn(|| {
            for round in 0..8 {
                let name = format!("passing.{round}");
                let tree = create(&*db, &name);
                put(&*db, tree, b"k", b"v");
                assert_eq!(all(&*db, tree).len(), 1);
                // Readers and writers of other trees must not prevent the drop forever, but an
                // engine may refuse it while their snapshots are open, and require a retry.
                for _ in 0..TRIES {
                    match db.drop_tree(&name) {
                        Ok(()) => break,
                        Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
                    }
                    thread::yield_now();
                }
            }
        });
    });
    assert_eq!(db.trees().unwrap(), ["t"]);
    assert_eq!(all(&*db, t).len(), 200);
}

pub(crate) fn checkpoints_beside_writers(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    thread::scope(|scope| {
        scope.spawn(|| (0..300).for_each(|n| put(&*db, t, &numbered(n), b"v")));
        for _ in 0..8 {
            db.checkpoint().unwrap();
            db.sync_log().unwrap();
            let now = db.begin_read().unwrap();
            let seen = scan(&*now, t, KeyRange::ALL, Forward);
            assert!((0u32..).zip(&seen).all(|(n, (key, _))| *key == numbered(n)));
        }
    });
    assert_eq!(all(&*db, t).len(), 300);
}

pub(crate) fn compaction_beside_writers(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_numbered(&*db, t, 500, b"old");
    thread::scope(|scope| {
        scope.spawn(|| (0..500).for_each(|n| put(&*db, t, &numbered(n), b"new")));
        for _ in 0..5 {
            db.compact(t, KeyRange::ALL, &mut |_| Flow::Continue)
                .unwrap();
            assert_eq!(all(&*db, t).len(), 500);
        }
    });
    assert!(all(&*db, t).iter().all(|(_, value)| value == b"new"));
}

pub(crate) fn statistics_beside_writers(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let write = || (0..300).for_each(|n| put(&*db, t, &numbered(n), b"v"));
    write_and_read(write, || {
        db.stats().unwrap();
        let entries = db.tree_stats(t, kv::StatScope::Exact).unwrap().entries;
        assert!(entries.value <= 300, "{entries:?}");
    });
}

pub(crate) fn threads_end_before_close(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    thread::scope(|scope| {
        for writer in 0..3u32 {
            let db = &*db;
            scope.spawn(move || {
                (0..50).for_each(|n| put(db, t, &numbered(writer * 100 + n), b"v"));
                assert!(50 <= all(db, t).len());
            });
        }
    });
    db.close().unwrap();
    // The directory is unlocked again.
    lab.open().close().unwrap();
}

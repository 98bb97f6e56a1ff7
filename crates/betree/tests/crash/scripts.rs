//! Short scenes, each for one situation. The exhaustive lane crashes each after every call, the
//! sweep makes each call fail.

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use betree::{Codec, Durability, Filter, MasterKey, Options};
use sim::checker::Change;
use sim::{Crash, Outcome, Profile};

use crate::remnant::{half_a_rotation, keys_alone};
use crate::rig::{DIRECTORY, Step, World};

use Durability::{Group, Interval, None, Sync};

/// A scene: the initial state, and the operations.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) options: fn() -> Options,
    pub(crate) before: fn(&mut World) -> Step,
    pub(crate) scene: fn(&mut World) -> Step,
}

/// Small limits; checkpoints and syncs only on request.
pub(crate) fn small() -> Options {
    Options::default()
        .with_threads(0)
        .with_memory(1 << 20)
        .with_buffer_share(0.05)
        .with_page(256)
        .with_bucket(4 << 10)
        .with_k_cap(3)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_interval(Duration::from_secs(3600))
        .with_interval(Duration::from_secs(3600))
        .with_seed(7)
}

fn unlogged() -> Options {
    small().with_log(false)
}

fn sealed() -> Options {
    small().with_encryption(Some(MasterKey::new([7; 32])))
}

fn sealed_unlogged() -> Options {
    sealed().with_log(false)
}

fn roomy() -> Options {
    small()
        .with_buffer_share(0.9)
        .with_memory(4 << 20)
        .with_bucket(1 << 20)
}

fn busy() -> Options {
    small()
        .with_checkpoint_bytes(4 << 10)
        .with_checkpoint_interval(Duration::from_millis(20))
        .with_interval(Duration::from_millis(1))
}

fn nothing(_: &mut World) -> Step {
    Ok(())
}

/// An empty tree.
fn tree(w: &mut World) -> Step {
    w.open()?;
    w.create("a").map(drop)
}

/// A tree with 60 keys in memory and in the log.
fn logged(w: &mut World) -> Step {
    tree(w)?;
    w.fill("a", (0, 60, 10), 40, Sync).map(drop)
}

/// A tree of several buckets, entirely in runs.
fn settled(w: &mut World) -> Step {
    tree(w)?;
    for i in 0..6 {
        w.fill("a", (i, 60, 10), 60, Interval)?;
    }
    w.settle()?;
    w.sync_log().map(drop)
}

/// The same, with further changes in memory.
fn stirred(w: &mut World) -> Step {
    settled(w)?;
    w.fill("a", (3, 60, 10), 30, Sync)?;
    w.clear("a", (0, 20, 10)).map(drop)
}

/// A store that was not closed, as after its process was killed.
fn killed(w: &mut World) -> Step {
    stirred(w)?;
    w.create("b")?;
    w.fill("b", (0, 40, 1), 20, Interval)?;
    w.abandon();
    Ok(())
}

/// The same after a power loss.
fn torn(w: &mut World) -> Step {
    stirred(w)?;
    for i in 0..4 {
        w.fill("a", (i, 30, 7), 50, None)?;
    }
    let crash = Crash {
        profile: Profile::Atomic512,
        outcome: Outcome::Random,
        seed: 3,
    };
    let image = w.vfs.crash(crash);
    w.abandon();
    w.vfs = image;
    w.open()?;
    w.adopt()?;
    w.abandon();
    Ok(())
}

fn open(w: &mut World) -> Step {
    w.open()?;
    if w.db.is_some() { w.adopt() } else { Ok(()) }
}

fn reopen(w: &mut World, options: Options) -> Step {
    w.reopen(options)
}

fn range(low: &[u8], high: &[u8]) -> Change {
    let (low, high) = (
        Bound::Included(low.to_vec()),
        Bound::Excluded(high.to_vec()),
    );
    Change::DeleteRange("a".to_owned(), low, high)
}

fn put(tree: &str, key: &[u8], value: &[u8]) -> Change {
    Change::Put(tree.to_owned(), key.to_vec(), value.to_vec())
}

/// All scripts.
pub(crate) fn all() -> Vec<Script> {
    let parts: [fn() -> Vec<Script>; 12] = [
        commits,
        trees,
        checkpoints,
        merges,
        shared,
        segments,
        recoveries,
        logs,
        views,
        sizes,
        background,
        encrypted,
    ];
    parts.into_iter().flat_map(|part| part()).collect()
}

fn script(
    name: &'static str,
    options: fn() -> Options,
    before: fn(&mut World) -> Step,
    scene: fn(&mut World) -> Step,
) -> Script {
    Script {
        name,
        options,
        before,
        scene,
    }
}

/// Commits at all levels.
fn commits() -> Vec<Script> {
    vec![
        script("the store is made", small, nothing, |w| w.open()),
        script("the store is made without a log", unlogged, nothing, |w| {
            w.open()
        }),
        script("first commit", small, tree, |w| {
            w.fill("a", (0, 1, 1), 10, Sync).map(drop)
        }),
        script("one commit at each level", small, tree, |w| {
            for (i, level) in (0..).zip(Durability::ALL) {
                w.fill("a", (i, 3, 10), 10, level)?;
            }
            Ok(())
        }),
        script("unsynced commits, then a sync", small, tree, |w| {
            for i in 0..5 {
                w.fill("a", (i, 3, 10), 10, None)?;
            }
            w.sync_log().map(drop)
        }),
        script("a synced delete finds nothing left", small, logged, |w| {
            w.write(vec![range(b"", b"~")], None)?;
            w.write(vec![range(b"", b"~")], Sync)?;
            w.sync_log().map(drop)
        }),
        script(
            "a synced transaction finds nothing left",
            small,
            logged,
            |w| {
                w.write(vec![range(b"", b"~")], None)?;
                let Some(mut txn) = w.begin()? else {
                    return Ok(());
                };
                w.transact(&mut txn, range(b"", b"~"), false)?;
                w.finish(txn, Sync)?;
                w.sync_log().map(drop)
            },
        ),
        script("synced commits in a row", small, tree, |w| {
            for i in 0..8 {
                w.fill("a", (i % 3, 2, 10), 10, Group)?;
            }
            Ok(())
        }),
    ]
}

/// Creating and dropping trees.
fn trees() -> Vec<Script> {
    vec![
        script("a tree is created", small, logged, |w| {
            w.create("b")?;
            w.write(vec![put("a", b"x", b"1"), put("b", b"x", b"2")], Sync)
                .map(drop)
        }),
        script("many trees are created", small, tree, |w| {
            for name in ["b", "c", "d", "e", "f"] {
                w.create(name)?;
            }
            w.checkpoint().map(drop)
        }),
        script("a tree is dropped", small, logged, |w| {
            w.drop_tree("a").map(drop)
        }),
        script("a tree in the image is dropped", small, stirred, |w| {
            w.drop_tree("a")?;
            w.checkpoint().map(drop)
        }),
        script("a tree is dropped and made again", small, stirred, |w| {
            w.drop_tree("a")?;
            w.create("a")?;
            w.fill("a", (5, 5, 1), 10, Sync)?;
            w.checkpoint()?;
            w.fill("a", (7, 5, 1), 10, Sync).map(drop)
        }),
    ]
}

/// Checkpoints and flushes.
fn checkpoints() -> Vec<Script> {
    vec![
        script("first checkpoint", small, logged, |w| {
            w.checkpoint().map(drop)
        }),
        script("checkpoints take turns in the slots", small, logged, |w| {
            for i in 0..5 {
                w.fill("a", (i, 2, 1), 10, Interval)?;
                w.checkpoint()?;
            }
            Ok(())
        }),
        script("checkpoint of nothing new", small, settled, |w| {
            w.checkpoint()?;
            w.checkpoint().map(drop)
        }),
        script("a buffer is flushed", small, tree, |w| {
            w.fill("a", (0, 150, 1), 60, Interval)?;
            w.steps(20)?;
            w.checkpoint().map(drop)
        }),
        script("ascending keys are appended and cut", small, tree, |w| {
            for i in 0..5 {
                w.fill("a", (i * 100, 100, 1), 70, Interval)?;
                w.steps(10)?;
            }
            w.checkpoint().map(drop)
        }),
    ]
}

/// Merges and their results.
fn merges() -> Vec<Script> {
    vec![
        script("a delta is merged", small, stirred, |w| {
            w.compact("a").map(drop)
        }),
        script("a merge splits", small, tree, |w| {
            w.fill("a", (0, 400, 10), 30, Interval)?;
            w.compact("a").map(drop)
        }),
        script("many deltas force a merge", small, settled, |w| {
            for i in 0..4 {
                w.fill("a", (i, 90, 7), 60, Interval)?;
                w.steps(10)?;
            }
            w.checkpoint().map(drop)
        }),
        script("deletes empty buckets", small, settled, |w| {
            w.write(vec![range(b"000100", b"000400")], Interval)?;
            w.settle().map(drop)
        }),
        script("everything is deleted", small, settled, |w| {
            w.write(vec![range(b"", b"9")], Sync)?;
            w.settle()?;
            w.fill("a", (0, 3, 1), 10, Sync).map(drop)
        }),
        script("a range is deleted", small, stirred, |w| {
            w.write(
                vec![put("a", b"000015x", b"1"), range(b"00001", b"00003")],
                Sync,
            )
            .map(drop)
        }),
    ]
}

/// Buffers that wait for their flush while other operations run.
fn shared() -> Vec<Script> {
    vec![
        script("a checkpoint meets frozen buffers", small, settled, |w| {
            w.fill("a", (2, 200, 3), 60, Interval)?;
            w.checkpoint()?;
            w.steps(20)?;
            w.checkpoint().map(drop)
        }),
        script("two frozen buffers of one bucket", small, tree, |w| {
            w.fill("a", (2, 110, 3), 60, Interval)?;
            w.fill("a", (1, 110, 3), 60, Interval)?;
            w.steps(1)?;
            w.checkpoint()?;
            w.steps(20).map(drop)
        }),
        script(
            "a split shares frozen buffers",
            roomy,
            |w| {
                tree(w)?;
                for i in 0..3 {
                    w.fill("a", (i, 3000, 3), 0, Interval)?;
                }
                w.settle()?;
                let bucket = 48 << 10;
                let options = small()
                    .with_memory(4 << 20)
                    .with_buffer_share(0.9)
                    .with_k_cap(1);
                reopen(w, options.with_bucket(bucket).with_page(1 << 10))?;
                w.fill("a", (0, 5000, 2), 0, Interval).map(drop)
            },
            |w| {
                w.steps(3)?;
                w.fill("a", (1, 500, 9), 20, Interval)?;
                w.checkpoint()?;
                w.steps(30)?;
                w.checkpoint().map(drop)
            },
        ),
    ]
}

/// Several log segments.
fn segments() -> Vec<Script> {
    vec![
        script("the log goes on in another segment", small, tree, |w| {
            for i in 0..5 {
                w.fill(
                    "a",
                    (i, 100, 3),
                    150,
                    if i % 2 == 0 { Sync } else { Interval },
                )?;
            }
            w.sync_log().map(drop)
        }),
        script("segments are recycled", small, tree, |w| {
            for i in 0..8 {
                w.fill("a", (i, 100, 3), 150, Interval)?;
                w.steps(3)?;
                w.checkpoint()?;
            }
            w.fill("a", (1, 2, 3), 10, Sync).map(drop)
        }),
        script("spare segments are removed", small, tree, |w| {
            for i in 0..6 {
                w.fill("a", (i, 100, 3), 150, Interval)?;
                w.checkpoint()?;
            }
            w.settle().map(drop)
        }),
        script("a record longer than the buffer", small, logged, |w| {
            w.fill("a", (5, 1, 1), 40_000, Sync)?;
            w.fill("a", (6, 1, 1), 10, Sync).map(drop)
        }),
        script("a record longer than a segment", small, logged, |w| {
            w.fill("a", (5, 2, 1), 75_000, Interval)?;
            w.fill("a", (6, 1, 1), 10, Sync)?;
            w.checkpoint().map(drop)
        }),
    ]
}

/// Opening a store that was not closed.
fn recoveries() -> Vec<Script> {
    vec![
        script("recovery", small, killed, open),
        script("recovery after a torn tail", small, torn, open),
        script(
            "recovery reads from the device",
            small,
            |w| {
                tree(w)?;
                // More than a file of the reserve has room for.
                w.fill("a", (0, 60, 10), 700, Sync)?;
                w.abandon();
                Ok(())
            },
            open,
        ),
        script("recovery twice", small, killed, |w| {
            open(w)?;
            reopen(w, small())
        }),
        script(
            "recovery flushes",
            roomy,
            |w| {
                tree(w)?;
                for i in 0..5 {
                    w.fill("a", (i, 100, 3), 150, Sync)?;
                }
                w.abandon();
                w.options = small();
                Ok(())
            },
            |w| {
                open(w)?;
                w.checkpoint().map(drop)
            },
        ),
        script(
            "a slot of the superblock is repaired",
            small,
            |w| {
                settled(w)?;
                w.abandon();
                w.vfs
                    .poke(&Path::new(DIRECTORY).join("data.betree"), 8, b"nonsense");
                Ok(())
            },
            open,
        ),
        script("settle", small, stirred, |w| w.settle().map(drop)),
        script("settle gives space back", small, settled, |w| {
            w.fill("a", (0, 300, 1), 60, Interval)?;
            w.settle()?;
            w.write(vec![range(b"", b"9")], Interval)?;
            w.settle()?;
            w.settle().map(drop)
        }),
    ]
}

/// With a log and without.
fn logs() -> Vec<Script> {
    vec![
        script("the log is switched off", small, killed, |w| {
            w.options = unlogged();
            open(w)?;
            w.fill("a", (5, 9, 1), 10, None)?;
            w.checkpoint().map(drop)
        }),
        script("the log is switched on", unlogged, settled, |w| {
            reopen(w, small())?;
            w.fill("a", (5, 9, 1), 10, Sync).map(drop)
        }),
        script("the log is switched off and on", small, stirred, |w| {
            reopen(w, unlogged())?;
            w.fill("a", (5, 9, 1), 10, None)?;
            reopen(w, small())?;
            w.fill("a", (6, 9, 1), 10, Sync).map(drop)
        }),
        script("checkpoints without a log", unlogged, tree, |w| {
            for i in 0..3 {
                w.fill("a", (i, 40, 3), 60, None)?;
                w.checkpoint()?;
            }
            w.fill("a", (9, 4, 3), 60, None).map(drop)
        }),
        script("work without a log", unlogged, settled, |w| {
            for i in 0..3 {
                w.fill("a", (i, 100, 3), 60, None)?;
                w.steps(5)?;
            }
            w.settle().map(drop)
        }),
    ]
}

/// Snapshots and transactions.
fn views() -> Vec<Script> {
    vec![
        script("a snapshot is held across merges", small, settled, |w| {
            w.hold();
            w.clear("a", (0, 50, 10))?;
            w.settle()?;
            w.fill("a", (0, 50, 10), 30, Interval)?;
            w.hold();
            w.settle()?;
            w.release(0)?;
            w.release(0)?;
            w.settle().map(drop)
        }),
        script("a snapshot is held across a drop", small, stirred, |w| {
            w.hold();
            w.drop_tree("a")?;
            w.checkpoint()?;
            w.release(0)?;
            w.steps(5)?;
            w.checkpoint().map(drop)
        }),
        script("transactions over two trees", small, logged, |w| {
            w.create("b")?;
            let Some(mut one) = w.begin()? else {
                return Ok(());
            };
            let Some(mut two) = w.begin()? else {
                return Ok(());
            };
            w.transact(&mut one, put("a", b"k", b"1"), false)?;
            w.transact(&mut one, put("b", b"k", b"1"), false)?;
            w.transact(&mut two, put("b", b"k", b"2"), false)?;
            w.transact(&mut two, range(b"", b"9"), false)?;
            w.finish(one, Sync)?;
            w.finish(two, Sync).map(drop)
        }),
        script(
            "close with unsynced commits, and open",
            small,
            stirred,
            |w| {
                w.fill("a", (1, 9, 1), 10, None)?;
                reopen(w, small())
            },
        ),
    ]
}

/// Growth, long values, and other options.
fn sizes() -> Vec<Script> {
    vec![
        script("the file grows", small, tree, |w| {
            for i in 0..3 {
                w.fill("a", (i * 9, 3, 1), 50_000, Interval)?;
                w.steps(9)?;
            }
            w.checkpoint().map(drop)
        }),
        script("values longer than a page", small, tree, |w| {
            w.fill("a", (0, 5, 2), 9_000, Interval)?;
            w.settle()?;
            w.fill("a", (1, 5, 2), 9_000, Interval)?;
            w.settle().map(drop)
        }),
        script("other options at open", small, stirred, |w| {
            let options = small()
                .with_codec(Codec::Zstd(1))
                .with_page(4096)
                .with_bucket(64 << 10);
            reopen(w, options.with_filter(Filter::All))?;
            w.fill("a", (1, 90, 2), 30, Interval)?;
            w.settle().map(drop)
        }),
    ]
}

/// Periodic work, spills and copies.
fn background() -> Vec<Script> {
    vec![
        script("checkpoints and syncs come due", busy, tree, |w| {
            for i in 0..6 {
                w.fill("a", (i, 60, 3), 60, Interval)?;
                w.steps(20)?;
            }
            Ok(())
        }),
        script("merges go on while idle", busy, settled, |w| {
            for i in 0..3 {
                w.fill("a", (i, 90, 3), 60, Interval)?;
                w.steps(9)?;
            }
            for _ in 0..200 {
                w.steps(1)?;
            }
            Ok(())
        }),
        script("a transaction spills", small, logged, |w| {
            let Some(mut txn) = w.begin()? else {
                return Ok(());
            };
            for i in 0..60_u32 {
                let value = w.value(2000);
                w.transact(
                    &mut txn,
                    put("a", format!("{:06}", i * 7).as_bytes(), &value),
                    true,
                )?;
            }
            w.finish(txn, Sync)?;
            w.steps(9)?;
            w.checkpoint().map(drop)
        }),
        script("a backup", small, stirred, |w| w.backup()),
        script("reads from runs", small, stirred, |w| {
            reopen(w, small().with_filter(Filter::All))?;
            w.look()?;
            w.settle()?;
            w.look()
        }),
    ]
}

/// The same on an encrypted store.
fn encrypted() -> Vec<Script> {
    vec![
        script("an encrypted store is made", sealed, nothing, |w| w.open()),
        script(
            "an encrypted store is made without a log",
            sealed_unlogged,
            nothing,
            |w| w.open(),
        ),
        script("encrypted commits at each level", sealed, tree, |w| {
            for (i, level) in (0..).zip(Durability::ALL) {
                w.fill("a", (i, 3, 10), 10, level)?;
            }
            w.sync_log().map(drop)
        }),
        script("an encrypted log with long records", sealed, logged, |w| {
            w.write(vec![put("a", b"long", &[b'x'; 150_000])], Sync)?;
            for i in 0..5 {
                w.fill("a", (i, 60, 1), 200, Interval)?;
                w.checkpoint()?;
            }
            w.write(vec![put("a", b"long", &[b'y'; 9_000])], Sync)
                .map(drop)
        }),
        script("encrypted runs are merged", sealed, settled, |w| {
            for i in 0..4 {
                w.fill("a", (i, 90, 7), 60, Interval)?;
                w.steps(10)?;
            }
            w.compact("a")?;
            w.checkpoint().map(drop)
        }),
        script("the data key is rotated", sealed, stirred, |w| {
            w.rotate()?;
            w.fill("a", (1, 60, 7), 60, Sync)?;
            w.checkpoint()?;
            w.rotate()?;
            w.compact("a")?;
            w.checkpoint().map(drop)
        }),
        script("recovery of an encrypted store", sealed, killed, open),
        script(
            "recovery of an encrypted store after a torn tail",
            sealed,
            torn,
            open,
        ),
        script("a backup of an encrypted store", sealed, stirred, |w| {
            w.backup()
        }),
        script("a store is made beside old keys", sealed, keys_alone, |w| {
            w.open()
        }),
        script("half a rotation is left", sealed, half_a_rotation, open),
    ]
}

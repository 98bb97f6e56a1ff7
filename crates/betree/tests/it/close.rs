//! Nothing writes a file of the store after close has returned, whichever call is delayed in the
//! file system.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use betree::{Batch, Db, Durability, ErrorKind, Options, Transaction, TreeId, TreeOptions};
use sim::{SimOptions, SimVfs};
use stdx::sync::{JoinHandle, spawn};

use crate::slow::{Slow, Watch};

/// Time for which a close that must wait is observed. One that does not wait returns earlier.
const WATCHED: Duration = Duration::from_millis(300);

fn options(threads: u32) -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(64 << 10)
        .with_page(1 << 10)
        .with_log_segment(64 << 10)
        .with_log_max(256 << 10)
        .with_checkpoint_interval(Duration::from_millis(20))
        .with_threads(threads)
}

fn directory() -> PathBuf {
    PathBuf::from("/store")
}

fn open(disk: &SimVfs, watch: &Arc<Watch>, threads: u32) -> Db {
    let slow = Slow::new(disk, watch);
    Db::open_with(Arc::new(slow), &directory(), options(threads)).unwrap()
}

fn fill(db: &Db, tree: TreeId, keys: std::ops::Range<u32>) {
    for key in keys {
        let mut batch = Batch::new();
        let key = key.wrapping_mul(0x9E37_79B1).to_be_bytes();
        batch.put(tree, &key, &[key[3]; 200]);
        db.write(&batch, Durability::None).unwrap();
    }
}

/// Close `db` while a call is held, which is released when close has returned, or after a while;
/// then open again, write, and let `work` end. The store is whole.
fn close_while_held(
    disk: &SimVfs,
    watch: &Arc<Watch>,
    db: Db,
    work: JoinHandle<()>,
) -> Vec<&'static str> {
    watch.wait_until_held();
    let (closed, wait) = mpsc::channel();
    let its_watch = Arc::clone(watch);
    let closer = spawn("close", move || {
        db.close().unwrap();
        its_watch.seal();
        closed.send(()).unwrap();
    })
    .unwrap();
    let early = wait.recv_timeout(WATCHED).is_ok();
    if !early {
        watch.let_go();
        wait.recv_timeout(Duration::from_secs(60))
            .expect("close ends when nothing is held");
    }
    closer.join().unwrap();
    let fresh = Arc::new(Watch::default());
    let next = open(disk, &fresh, 0);
    let tree = next.open_tree("rows").unwrap();
    fill(&next, tree, 50_000..52_000);
    next.flush().unwrap();
    next.checkpoint().unwrap();
    next.verify().unwrap();
    watch.let_go();
    work.join().unwrap();
    next.verify().unwrap();
    next.close().unwrap();
    open(disk, &fresh, 0).verify().unwrap();
    watch.wrong()
}

fn rig() -> (SimVfs, Arc<Watch>) {
    let disk = SimVfs::new(SimOptions::default());
    (disk, Arc::new(Watch::default()))
}

/// Puts until the store is closed.
fn put_on(transaction: &mut Transaction, tree: TreeId) {
    for key in 0..20_000_u32 {
        let put = transaction.put_blind(tree, &key.to_be_bytes(), &[3; 500]);
        if let Err(error) = put {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            return;
        }
    }
    panic!("a transaction of 10 MB did not notice that the store is closed");
}

#[test]
fn a_spill_that_is_under_way_at_close_does_not_hurt_the_next_store() {
    for threads in [0, 1] {
        let (disk, watch) = rig();
        let db = open(&disk, &watch, threads);
        let tree = db.create_tree("rows", TreeOptions::default()).unwrap();
        watch.hold("spill.write", 0);
        let mut transaction = db.begin().unwrap();
        let work = spawn("work", move || put_on(&mut transaction, tree)).unwrap();
        let wrong = close_while_held(&disk, &watch, db, work);
        assert_eq!(wrong, <[&str; 0]>::default(), "{threads} threads");
    }
}

/// Eight spills of one size are merged into one, which is the ninth write.
#[test]
fn a_merge_of_spills_that_is_under_way_at_close_does_not_hurt_the_next_store() {
    let (disk, watch) = rig();
    let db = open(&disk, &watch, 0);
    let tree = db.create_tree("rows", TreeOptions::default()).unwrap();
    watch.hold("spill.write", 8);
    let mut transaction = db.begin().unwrap();
    let work = spawn("work", move || put_on(&mut transaction, tree)).unwrap();
    let wrong = close_while_held(&disk, &watch, db, work);
    assert_eq!(wrong, <[&str; 0]>::default());
}

/// Commit transactions that were begun before until the store is closed. They outlive the handle,
/// and wait for memory when flushes are held, so this runs in a thread of its own.
fn commit_on(transactions: Vec<Transaction>, tree: TreeId) {
    for (number, mut transaction) in (0_u32..).zip(transactions) {
        for row in 0..100_u32 {
            let key = (number * 100 + row).wrapping_mul(0x9E37_79B1).to_be_bytes();
            let put = transaction.put_blind(tree, &key, &[key[3]; 200]);
            if let Err(error) = put {
                assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                return;
            }
        }
        if let Err(error) = transaction.commit(Durability::None) {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            return;
        }
    }
}

/// Work of the store's own threads, or of commits where it has none, held one kind at a time.
#[test]
fn no_background_work_of_a_store_goes_on_after_close() {
    let sites = [
        ("flush.write", 0),
        ("flush.write", 2),
        ("merge.write", 2),
        ("image.write", 2),
        ("log.write", 2),
    ];
    for (site, threads) in sites {
        let (disk, watch) = rig();
        let db = open(&disk, &watch, threads);
        let tree = db.create_tree("rows", TreeOptions::default()).unwrap();
        let transactions = (0..200).map(|_| db.begin().unwrap()).collect();
        watch.hold(site, 0);
        let work = spawn("work", move || commit_on(transactions, tree)).unwrap();
        let wrong = close_while_held(&disk, &watch, db, work);
        assert_eq!(wrong, <[&str; 0]>::default(), "{site}, {threads} threads");
    }
}

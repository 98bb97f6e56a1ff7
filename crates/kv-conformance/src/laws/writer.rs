//! Engines with one writer at a time: a second writer waits, and a thread never deadlocks with
//! itself.

use std::sync::mpsc;
use std::thread;

use crate::bench::Bench;
use crate::verbs::{QUICK, all_keys, change, create, get, put};
use kv::{Batch, ErrorKind};

pub(crate) fn second_transaction_of_the_thread_is_invalid(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut held = db.begin_write().unwrap();
    held.put(t, b"a", b"one").unwrap();
    match db.begin_write() {
        Ok(_) => panic!("a second write transaction of one thread"),
        Err(e) => assert_eq!(e.kind(), ErrorKind::Invalid),
    }
    held.put(t, b"b", b"two").unwrap();
    held.commit(QUICK).unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b"]);
    put(&*db, t, b"c", b"the next one begins");
}

pub(crate) fn second_transaction_waits_and_sees_the_first(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut held = db.begin_write().unwrap();
    held.put(t, b"n", &[1]).unwrap();
    let (ready, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            ready.send(()).unwrap();
            change(&*db, |txn| {
                let seen = txn.get(t, b"n")?.expect("the first has committed");
                txn.put(t, b"n", &[seen[0] + 1])
            })
            .unwrap();
        });
        is_ready.recv().unwrap();
        held.commit(QUICK).unwrap();
    });
    assert_eq!(get(&*db, t, b"n"), Some(vec![2]));
}

pub(crate) fn batch_waits_for_the_transaction(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let mut held = db.begin_write().unwrap();
    held.put(t, b"k", b"transaction").unwrap();
    let (ready, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut batch = Batch::new();
            batch.put(t, b"k", b"batch");
            ready.send(()).unwrap();
            db.write(&batch, QUICK).unwrap();
        });
        is_ready.recv().unwrap();
        held.commit(QUICK).unwrap();
    });
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"batch"[..]));
}

pub(crate) fn readers_do_not_wait_for_the_writer(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"old");
    let mut held = db.begin_write().unwrap();
    held.put(t, b"k", b"new").unwrap();
    let seen = thread::scope(|scope| scope.spawn(|| get(&*db, t, b"k")).join().unwrap());
    assert_eq!(seen.as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"old"[..]));
    held.commit(QUICK).unwrap();
    assert_eq!(get(&*db, t, b"k").as_deref(), Some(&b"new"[..]));
}

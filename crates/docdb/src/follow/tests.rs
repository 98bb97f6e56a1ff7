//! What is read while a write has reserved its times and is not committed.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bson::{Document, RawDocumentBuf, Timestamp, doc};
use kv::{Durability, EngineOptions};
use query::{Code, Error, Namespace};
use stdx::sync::atomic::Ordering;

use crate::change::token::Token;
use crate::cursor::GetMore;
use crate::find::FindRequest;
use crate::oplog::entry::OpTime;
use crate::oplog::{take_read, take_written};
use crate::stop::{Point, at_points};
use crate::store::{Options, Store};
use crate::txn::Op;
use crate::write::{InsertOptions, UpdateStatement};
use crate::{AggregateRequest, Batch};

const ZERO: Timestamp = OpTime::NONE.ts;

fn open() -> Arc<Store> {
    let directory = tempfile::tempdir().unwrap();
    let engine = kv::memory::factory().open(directory.path(), &EngineOptions::default());
    let options = Options {
        oplog: true,
        oplog_period: None,
        ttl_period: None,
        ..Options::default()
    };
    Store::open(Arc::from(engine.unwrap()), options).unwrap()
}

fn op() -> Op<'static> {
    Op::new(Durability::Interval)
}

fn ns() -> Namespace {
    Namespace::new("test", "c").unwrap()
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// Insert a document; the time of its entry.
fn insert(store: &Store, id: i32) -> Timestamp {
    let document = raw(&doc! { "_id": id });
    let options = InsertOptions::default();
    store.insert(&op(), &ns(), &[&document], options).unwrap();
    take_written().unwrap()
}

/// Insert document 1, and document 2 while the first one has its time and is not committed; call
/// `within` then. The times of both.
fn overtaken(store: &Arc<Store>, within: impl Fn(Timestamp) + 'static) -> (Timestamp, Timestamp) {
    insert(store, 0);
    let (other, second) = (Arc::clone(store), Rc::new(Cell::new(None)));
    let noted = Rc::clone(&second);
    let hook = move |point| {
        if point == Point::Reserved && noted.get().is_none() {
            // Its own commit reaches the point, too.
            noted.set(Some(ZERO));
            let time = insert(&other, 2);
            noted.set(Some(time));
            within(time);
        }
    };
    let first = at_points(hook, || insert(store, 1));
    (first, second.get().unwrap())
}

fn ids(store: &Store, op: &Op<'_>) -> Vec<i32> {
    let found = store.find(op, &ns(), &FindRequest::default()).unwrap();
    let id = |document: &RawDocumentBuf| document.get_i32("_id").unwrap();
    let mut ids: Vec<i32> = found.documents.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

/// `oplog::written`: W1. The time of a read is before that of a commit that it may not have, though
/// later ones are in it: a change stream from that time on misses none.
#[test]
fn the_time_of_a_read_is_before_all_that_it_may_lack() {
    let store = open();
    let (reader, seen) = (Arc::clone(&store), Rc::new(Cell::new(ZERO)));
    let noted = Rc::clone(&seen);
    let (first, second) = overtaken(&store, move |_| {
        let _: Option<Timestamp> = take_read();
        assert_eq!(ids(&reader, &op()), [0, 2]);
        noted.set(take_read().unwrap());
    });
    assert!(first < second, "the second one has overtaken the first");
    assert!(seen.get() < first, "W1");
    let _: Option<Timestamp> = take_read();
    assert_eq!(ids(&store, &op()), [0, 1, 2]);
    assert_eq!(take_read(), Some(second));
    ids(&store, &op());
    insert(&store, 3);
    ids(&store, &op());
    assert_eq!(take_read(), Some(second), "W1: the first snapshot counts");
}

/// Trap 24 of replication: a snapshot may have commits that are later than its time; one that has
/// exactly those up to it is opened between commits.
#[test]
fn an_exact_snapshot_is_opened_between_commits_only() {
    let store = open();
    let reader = Arc::clone(&store);
    let (_, second) = overtaken(&store, move |_| {
        let busy = || Err(Error::new(Code::LOCK_TIMEOUT, "a commit is under way"));
        let opened = reader.see_exactly(ZERO, &busy).map(drop);
        assert_eq!(opened.unwrap_err().code, Code::LOCK_TIMEOUT);
    });
    let held = store
        .at_present(&op(), |op| {
            insert(&store, 3);
            Ok((ids(&store, op), op.held.map(|held| held.time())))
        })
        .unwrap();
    assert_eq!(held, (vec![0, 1, 2], Some(second)));
    // No entry gets a time up to that of a snapshot, also of one that is later than all entries.
    let last = store.oplog_last().unwrap();
    let least = Timestamp {
        time: last.time + 100,
        increment: 1,
    };
    let check = || Ok(());
    let (_, time) = store.see_exactly(least, &check).unwrap();
    assert_eq!(time, Some(least));
    assert!(least < insert(&store, 4));
}

/// Trap 2 of replication: while a commit takes long, all who follow the oplog stop before its time,
/// and it is reported.
#[test]
fn a_commit_that_takes_long_is_reported_and_none_who_follow_pass_it() {
    let store = open();
    let watched = watch(&store, &doc! {});
    let (follower, id) = (Arc::clone(&store), watched.id);
    let at = Rc::new(Cell::new(ZERO));
    let noted = Rc::clone(&at);
    let (first, second) = overtaken(&store, move |second| {
        let oldest = follower.oplog_slots().unwrap();
        assert_eq!((oldest.holder, oldest.open), ("write", 1));
        noted.set(oldest.time);
        assert!(oldest.time < second);
        assert!(follower.oplog_visible().unwrap() < oldest.time);
        // A find now returns the second document already.
        assert_eq!(follower.oplog_seen(), Some(second));
        assert_eq!(follower.oplog_reached(second), second);
        let batch = more(&follower, id);
        assert_eq!(inserted(&batch), [0], "the second one is behind the first");
        let token = Token::parse(batch.resume.as_ref().unwrap()).unwrap();
        assert!(token.time() < oldest.time, "no token is behind it");
    });
    assert_eq!(at.get(), first);
    assert_eq!(inserted(&more(&store, id)), [1, 2]);
    assert_eq!(store.oplog_slots(), None);
    assert_eq!(store.oplog_visible(), Some(second));
}

/// `oplog::slots`: S4. A commit that fails gives up its times: no reader waits for them.
#[test]
fn a_commit_that_fails_does_not_hold_up_those_who_follow() {
    let store = open();
    insert(&store, 0);
    let change = |store: &Store, field: &str| {
        let mut change = Document::new();
        change.insert(field, 1);
        let change = raw(&doc! { "$inc": change });
        let statement = UpdateStatement::new(raw(&doc! { "_id": 0 }), change);
        let done = store.update(&op(), &ns(), &[statement], true, false);
        assert_eq!(done.unwrap().errors, []);
    };
    let (other, done) = (Arc::clone(&store), Cell::new(false));
    let hook = move |point| {
        if point == Point::Reserved && !done.replace(true) {
            change(&other, "b");
        }
    };
    at_points(hook, || change(&store, "a"));
    let conflicts = store.figures().conflicts.load(Ordering::Relaxed);
    assert_eq!(conflicts, 1, "the first commit of the outer one failed");
    assert_eq!(store.oplog_slots(), None);
    assert_eq!(store.oplog_visible(), take_written());
    assert_eq!(store.oplog_visible(), store.oplog_last());
}

/// A write that is given up leaves a time that no position comes to.
#[test]
fn a_read_waits_for_entries_that_exist_or_may_still_be_committed() {
    let store = open();
    insert(&store, 1);
    let last = store.oplog_visible().unwrap();
    let mut txn = store.engine().begin_write().unwrap();
    let note = bson::rawdoc! {"msg": "given up"};
    let log = store.oplog().unwrap();
    let reserved = log.put_note(txn.as_mut(), ZERO, &note).unwrap();
    let time = reserved.at().ts;
    assert_eq!(store.oplog_seen(), Some(time));
    assert_eq!(store.oplog_reached(time), time);
    drop(txn);
    reserved.end(false);
    assert_eq!(store.oplog_reached(time), last);
    insert(&store, 2);
    assert_eq!(store.oplog_reached(time), time);
}

fn watch(store: &Store, options: &Document) -> Batch {
    let request = AggregateRequest {
        pipeline: [raw(&doc! { "$changeStream": options })].iter().collect(),
        ..AggregateRequest::default()
    };
    store.aggregate(&op(), &ns(), &request).unwrap()
}

fn more(store: &Store, id: i64) -> Batch {
    let request = GetMore {
        id,
        ns: ns(),
        batch_size: None,
        waits: false,
        waited: false,
    };
    store.get_more(&op(), &request).unwrap()
}

fn inserted(batch: &Batch) -> Vec<i32> {
    let id = |event: &RawDocumentBuf| {
        let key = event.get_document("documentKey").unwrap();
        key.get_i32("_id").unwrap()
    };
    batch.documents.iter().map(id).collect()
}

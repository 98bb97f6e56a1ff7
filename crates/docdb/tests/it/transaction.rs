//! Multi-document transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use bson::{Document, doc};
use docdb::{CollectionOptions, FindRequest, InsertOptions, Namespace, Op};

use crate::lab::{Lab, find, ns, on_each, op, raw};
use crate::session::session;
use crate::write::set;

fn insert(lab: &Lab, op: Op<'static>, start: bool, document: Document) -> query::Result<i32> {
    let store = std::sync::Arc::clone(&lab.store);
    lab.store.in_transaction(op, start, move |op| {
        let raw = raw(&document);
        let reply = store.insert(op, &ns("c"), &[&raw], InsertOptions::default())?;
        Ok(reply.n)
    })
}

/// Whether the engine has one writer at a time: an open transaction is then that writer.
fn one_writer(lab: &Lab) -> bool {
    !lab.store.engine().capabilities().concurrent_writers
}

#[test]
fn transactions_commit_whole_or_not_at_all() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        assert_eq!(insert(lab, session(1, 1), true, doc! { "_id": 1 }), Ok(1));
        assert_eq!(insert(lab, session(1, 1), false, doc! { "_id": 2 }), Ok(1));
        assert_eq!(
            lab.all(&ns("c")).len(),
            1,
            "nothing is seen before the commit"
        );
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        assert_eq!(lab.all(&ns("c")).len(), 3);
        let late = insert(lab, session(1, 1), false, doc! { "_id": 3 });
        assert_eq!(late.unwrap_err().code.0, 256);
        insert(lab, session(1, 2), true, doc! { "_id": 4 }).unwrap();
        lab.store.abort_transaction(&session(1, 2)).unwrap();
        assert_eq!(lab.all(&ns("c")).len(), 3);
        let aborted = lab.store.commit_transaction(&session(1, 2));
        assert_eq!(aborted.unwrap_err().code.0, 251);
        let old = insert(lab, session(1, 1), true, doc! { "_id": 5 });
        assert_eq!(old.unwrap_err().code.0, 225);
    });
}

/// `session::transaction`: T2.
#[test]
fn a_commit_is_known_after_a_restart() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        insert(lab, session(1, 1), true, doc! { "_id": 1 }).unwrap();
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        insert(lab, session(2, 1), true, doc! { "_id": 2 }).unwrap();
        lab.store.abort_transaction(&session(2, 1)).unwrap();
        if !lab.reopen() {
            return;
        }
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        let late = insert(lab, session(1, 1), false, doc! { "_id": 3 });
        assert_eq!(late.unwrap_err().code.0, 256);
        let never = lab.store.commit_transaction(&session(2, 1));
        assert_eq!(never.unwrap_err().code.0, 251);
        assert_eq!(lab.all(&ns("c")).len(), 2);
    });
}

/// `session::transaction`: T1.
#[test]
fn an_error_aborts_the_transaction() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        insert(lab, session(1, 1), true, doc! { "_id": 1 }).unwrap();
        let clash = insert(lab, session(1, 1), false, doc! { "_id": 0 });
        assert_eq!(clash.unwrap_err().code.0, 11000);
        let late = insert(lab, session(1, 1), false, doc! { "_id": 2 });
        assert_eq!(late.unwrap_err().code.0, 251);
        assert_eq!(lab.all(&ns("c")).len(), 1);
    });
}

#[test]
fn of_two_transactions_that_change_a_document_one_conflicts() {
    on_each(|lab| {
        if one_writer(lab) {
            return;
        }
        lab.insert(&ns("c"), &[doc! { "_id": 0, "a": 0 }]);
        let update = |id: u8| {
            let store = std::sync::Arc::clone(&lab.store);
            lab.store.in_transaction(session(id, 1), true, move |op| {
                let inc = set(doc! { "_id": 0 }, doc! { "$inc": { "a": 1 } });
                store
                    .update(op, &ns("c"), &[inc], true, false)
                    .map(|reply| reply.n)
            })
        };
        assert_eq!(update(1), Ok(1));
        let second = update(2);
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        let lost = second.and_then(|_| lab.store.commit_transaction(&session(2, 1)));
        assert_eq!(lost.unwrap_err().code.0, 112);
        assert_eq!(lab.all(&ns("c")), [doc! { "_id": 0, "a": 1 }]);
    });
}

#[test]
fn an_idle_transaction_gives_way_where_there_is_one_writer() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        lab.store.tuning().set_transaction_idle(Duration::ZERO);
        for id in 1..3 {
            // No operation waits, so the transaction continues.
            assert_eq!(
                insert(lab, session(1, 1), id == 1, doc! { "_id": id }),
                Ok(1)
            );
        }
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        assert_eq!(insert(lab, session(1, 2), true, doc! { "_id": 3 }), Ok(1));
        lab.insert(&ns("c"), &[doc! { "_id": 4 }]);
        if !one_writer(lab) {
            lab.store.commit_transaction(&session(1, 2)).unwrap();
            return;
        }
        let late = insert(lab, session(1, 2), false, doc! { "_id": 5 });
        assert_eq!(late.unwrap_err().code.0, 251);
        let late = lab.store.commit_transaction(&session(1, 2));
        assert_eq!(late.unwrap_err().code.0, 251);
        assert_eq!(lab.all(&ns("c")).len(), 4);
        // An operation that waits for the collection also waits for the writer.
        assert_eq!(insert(lab, session(1, 3), true, doc! { "_id": 3 }), Ok(1));
        assert_eq!(lab.store.drop_collection(&op(), &ns("c")), Ok(true));
        let late = lab.store.commit_transaction(&session(1, 3));
        assert_eq!(late.unwrap_err().code.0, 251);
    });
}

/// An operation with a short time limit.
fn brief() -> Op<'static> {
    let mut op = op();
    op.deadline = Some(stdx::time::now() + Duration::from_millis(20));
    op
}

#[test]
fn who_waits_for_the_one_writer_of_an_engine_may_be_ended() {
    on_each(|lab| {
        if !one_writer(lab) {
            return;
        }
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        lab.insert(&ns("other"), &[doc! { "_id": 0 }]);
        assert_eq!(insert(lab, session(1, 1), true, doc! { "_id": 1 }), Ok(1));
        let late = |done: query::Result<()>| assert_eq!(done.unwrap_err().code.0, 50);
        let document = raw(&doc! { "_id": 2 });
        let options = InsertOptions::default;
        let alone = |op: &Op<'_>| {
            let reply = lab.store.insert(op, &ns("c"), &[&document], options())?;
            assert!(reply.errors.is_empty(), "{:?}", reply.errors);
            Ok(())
        };
        late(alone(&brief()));
        late(
            lab.store
                .create(&brief(), &ns("d"), CollectionOptions::default()),
        );
        let drop = |op: &Op<'_>| lab.store.drop_collection(op, &ns("other"));
        late(drop(&brief()).map(|_| ()));
        // The call has no operation that could end its wait, and does not wait for the transaction.
        let gone = session(9, 1).session.unwrap().id;
        lab.store.end_sessions(&[gone]).unwrap();
        let second = insert(lab, session(2, 1), true, doc! { "_id": 3 });
        assert_eq!(second.unwrap_err().code.0, 24);
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        alone(&op()).unwrap();
        assert_eq!(drop(&op()), Ok(true));
        assert_eq!(insert(lab, session(2, 2), true, doc! { "_id": 3 }), Ok(1));
        lab.store.commit_transaction(&session(2, 2)).unwrap();
        assert_eq!(lab.all(&ns("c")).len(), 4);
    });
}

#[test]
fn a_transaction_writes_to_a_collection_that_is_new() {
    on_each(|lab| {
        // With one writer, trees can be created only before the writer begins.
        if one_writer(lab) {
            return;
        }
        lab.insert(&ns("other"), &[doc! { "_id": 0 }]);
        let store = std::sync::Arc::clone(&lab.store);
        let first = lab.store.in_transaction(session(1, 1), true, move |op| {
            let raw = raw(&doc! { "_id": 1 });
            store.insert(op, &ns("other"), &[&raw], InsertOptions::default())
        });
        assert_eq!(first.unwrap().n, 1);
        assert_eq!(insert(lab, session(1, 1), false, doc! { "_id": 1 }), Ok(1));
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        assert_eq!(lab.all(&ns("c")).len(), 1);
    });
}

/// Create, index and fill a collection in a transaction of a session.
fn create(lab: &Lab, id: u8, coll: &'static str) {
    let store = std::sync::Arc::clone(&lab.store);
    let made = lab.store.in_transaction(session(id, 1), true, move |op| {
        store.create(op, &ns(coll), CollectionOptions::default())?;
        let spec = doc! { "key": { "a": 1 }, "name": "a_1" };
        let reply = store.create_indexes(op, &ns(coll), &[spec])?;
        assert_eq!((reply.before, reply.after), (1, 2));
        let raw = raw(&doc! { "_id": 1, "a": 7 });
        store.insert(op, &ns(coll), &[&raw], InsertOptions::default())?;
        Ok(store
            .find(op, &ns(coll), &find(doc! { "a": 7 }))?
            .documents
            .len())
    });
    assert_eq!(made, Ok(1), "the transaction sees what it has created");
}

/// `txn::catalog`: N2.
#[test]
fn what_a_transaction_creates_is_there_when_it_commits() {
    on_each(|lab| {
        let trees = lab.store.engine().trees().unwrap();
        create(lab, 1, "c");
        assert!(lab.store.collection(&ns("c")).is_none(), "{}", lab.engine());
        lab.store.abort_transaction(&session(1, 1)).unwrap();
        assert!(lab.store.collection(&ns("c")).is_none());
        assert_eq!(lab.store.engine().trees().unwrap(), trees, "none is left");
        create(lab, 2, "c");
        lab.store.commit_transaction(&session(2, 1)).unwrap();
        lab.reopen_if_persistent();
        let made = lab.store.collection(&ns("c")).unwrap();
        assert_eq!((made.indexes().len(), made.count()), (2, 1));
        assert!(made.index("a_1").unwrap().is_ready());
    });
}

#[test]
fn of_two_transactions_that_create_a_collection_one_conflicts() {
    on_each(|lab| {
        // With one writer there cannot be two transactions.
        if one_writer(lab) {
            return;
        }
        create(lab, 1, "c");
        create(lab, 2, "c");
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        let lost = lab.store.commit_transaction(&session(2, 1));
        assert_eq!(lost.unwrap_err().code.0, 112);
        assert_eq!(lab.all(&ns("c")).len(), 1);
    });
}

#[test]
fn a_transaction_does_not_index_what_it_has_not_created() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let store = std::sync::Arc::clone(&lab.store);
        let refused = lab.store.in_transaction(session(1, 1), true, move |op| {
            let spec = doc! { "key": { "a": 1 }, "name": "a_1" };
            store.create_indexes(op, &ns("c"), &[spec])
        });
        assert_eq!(refused.unwrap_err().code.0, 263);
        assert_eq!(lab.store.collection(&ns("c")).unwrap().indexes().len(), 1);
    });
}

/// `txn::catalog`: N1.
#[test]
fn a_transaction_does_not_read_what_was_changed_since_it_began() {
    on_each(|lab| {
        // With one writer nothing changes in the meantime.
        if one_writer(lab) {
            return;
        }
        lab.insert(&ns("c"), &[doc! { "_id": 0, "a": 1 }]);
        lab.insert(&ns("d"), &[doc! { "_id": 0 }]);
        insert(lab, session(1, 1), true, doc! { "_id": 1 }).unwrap();
        lab.index("d", doc! { "key": { "a": 1 }, "name": "a_1" });
        let store = std::sync::Arc::clone(&lab.store);
        let read = lab.store.in_transaction(session(1, 1), false, move |op| {
            store.find(op, &ns("d"), &FindRequest::default()).map(drop)
        });
        // The transaction's snapshot does not contain the index.
        assert_eq!(read.unwrap_err().code.0, 246);
    });
}

/// `intent`: I2.
#[test]
fn who_changes_second_learns_of_it_at_once() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        assert_eq!(insert(lab, session(1, 1), true, doc! { "_id": 1 }), Ok(1));
        let second = insert(lab, session(2, 1), true, doc! { "_id": 1 });
        assert_eq!(second.unwrap_err().code.0, 112);
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        let later = insert(lab, session(2, 2), true, doc! { "_id": 1 });
        assert_eq!(later.unwrap_err().code.0, 11000);
    });
}

#[test]
fn the_next_transaction_of_a_session_does_not_conflict_with_the_last() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        for number in 1..50 {
            // The previous transaction is still open.
            let done = insert(lab, session(1, number), true, doc! { "_id": 1 });
            assert_eq!(done, Ok(1), "{number}");
        }
        lab.store.abort_transaction(&session(1, 49)).unwrap();
    });
}

/// `ddl`: D1.
#[test]
fn a_change_that_waits_for_a_transaction_ends_when_told_and_leaves_others_alone() {
    on_each(|lab| {
        // With one writer all others wait for the transaction.
        if one_writer(lab) {
            return;
        }
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        insert(lab, session(1, 1), true, doc! { "_id": 1 }).unwrap();
        let killed = Arc::new(AtomicI32::new(0));
        let (store, told) = (Arc::clone(&lab.store), Arc::clone(&killed));
        let change = stdx::sync::spawn("change", move || {
            let mut op = op();
            op.killed = told;
            store.drop_collection(&op, &ns("c"))
        });
        // Once the operation waits, writers of the collection queue behind it, up to their time
        // limit.
        let late = (10..).find_map(|id| {
            let mut op = op();
            op.deadline = Some(stdx::time::now() + Duration::from_millis(20));
            let document = raw(&doc! { "_id": id });
            let options = InsertOptions::default();
            lab.store.insert(&op, &ns("c"), &[&document], options).err()
        });
        assert_eq!(late.unwrap().code.0, 50);
        let other = Namespace::new("other", "d").unwrap();
        let options = CollectionOptions::default();
        lab.store.create(&op(), &other, options).unwrap();
        assert!(lab.store.drop_collection(&op(), &other).unwrap());
        killed.store(11601, Ordering::Relaxed);
        let ended = change.unwrap().join().unwrap();
        assert_eq!(ended.unwrap_err().code.0, 11601);
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        assert!(lab.store.drop_collection(&op(), &ns("c")).unwrap());
    });
}

/// `ddl`: D3. A transaction writes two collections in an order of its own; a rename wants both.
#[test]
fn a_change_of_two_collections_gives_way_to_a_transaction_that_writes_both() {
    on_each(|lab| {
        if one_writer(lab) {
            return;
        }
        for (number, first, second) in [(1, "a", "b"), (2, "b", "a")] {
            for name in ["a", "b"] {
                lab.insert(&ns(name), &[doc! { "_id": 0 }]);
            }
            let op_of = |seconds: u64| Op {
                deadline: Some(stdx::time::now() + Duration::from_secs(seconds)),
                ..session(1, number)
            };
            let write = |name: &'static str, begins: bool| {
                let store = Arc::clone(&lab.store);
                let written = lab.store.in_transaction(op_of(60), begins, move |op| {
                    let document = raw(&doc! { "_id": 1 });
                    store.insert(op, &ns(name), &[&document], InsertOptions::default())
                });
                assert_eq!(written.unwrap().n, 1, "{}", lab.engine());
            };
            write(first, true);
            let store = Arc::clone(&lab.store);
            let rename = stdx::sync::spawn("rename", move || {
                store.rename(&op(), &ns("a"), &ns("b"), true)
            });
            // The rename holds or wants the other latch as soon as a short wait for it fails.
            let late = (10..).find_map(|id| {
                let mut op = op();
                op.deadline = Some(stdx::time::now() + Duration::from_millis(20));
                let document = raw(&doc! { "_id": id });
                let options = InsertOptions::default();
                let done = lab.store.insert(&op, &ns(first), &[&document], options);
                done.err()
            });
            assert_eq!(late.unwrap().code.0, 50);
            write(second, false);
            lab.store.commit_transaction(&session(1, number)).unwrap();
            rename.unwrap().join().unwrap().unwrap();
            assert!(lab.store.drop_collection(&op(), &ns("b")).unwrap());
        }
    });
}

/// `oplog::written`: W1.
#[test]
fn the_time_of_its_reads_is_that_of_its_snapshot() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let before = lab.store.oplog_visible();
        let _ = docdb::oplog::take_read();
        for start in [true, false] {
            let store = Arc::clone(&lab.store);
            let body = move |op: &Op<'_>| {
                let found = store.find(op, &ns("c"), &find(doc! {}))?;
                Ok(found.documents.len())
            };
            let found = lab.store.in_transaction(session(1, 1), start, body);
            assert_eq!(found, Ok(1));
            assert_eq!(docdb::oplog::take_read(), before, "{}", lab.engine());
            if start {
                lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
                let _ = docdb::oplog::take_read();
            }
        }
        lab.store.abort_transaction(&session(1, 1)).unwrap();
    });
}

//! Multi-document transactions.

use bson::{Document, doc};
use docdb::{InsertOptions, Op};

use crate::lab::{Lab, ns, on_each, raw};
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
        if !lab.store.engine().capabilities().concurrent_writers {
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
fn a_transaction_writes_to_a_collection_that_is_new() {
    on_each(|lab| {
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

//! Retryable writes.

use bson::{RawDocument, RawDocumentBuf, doc};
use docdb::{InsertOptions, InsertReply, Op, SessionId, SessionRef};

use crate::lab::{Lab, ns, on_each, op, raw};
use crate::write::{del, set};

pub(crate) fn session(id: u8, number: i64) -> Op<'static> {
    let mut op = op();
    op.session = Some(SessionRef {
        id: SessionId {
            id: [id; 16],
            uid: [0; 32],
        },
        txn_number: Some(number),
        stmt_id: 0,
        stmt_ids: None,
    });
    op
}

fn insert(lab: &Lab, op: &Op<'_>, ids: std::ops::Range<i32>) -> query::Result<InsertReply> {
    let raw: Vec<RawDocumentBuf> = ids.map(|i| raw(&doc! { "_id": i })).collect();
    let raw: Vec<&RawDocument> = raw.iter().map(AsRef::as_ref).collect();
    lab.store
        .insert(op, &ns("c"), &raw, InsertOptions::default())
}

/// `session`: S2.
#[test]
fn statements_are_done_once_also_after_a_restart() {
    on_each(|lab| {
        assert_eq!(insert(lab, &session(1, 1), 0..3).unwrap().n, 3);
        let again = insert(lab, &session(1, 1), 0..5).unwrap();
        assert_eq!((again.n, again.retried), (5, vec![0, 1, 2]));
        lab.reopen_if_persistent();
        if lab.store.collection(&ns("c")).is_none() {
            return;
        }
        let again = insert(lab, &session(1, 1), 0..5).unwrap();
        assert_eq!(
            (again.n, again.errors.len(), again.retried.len()),
            (5, 0, 5)
        );
        assert_eq!(lab.all(&ns("c")).len(), 5);
        let old = insert(lab, &session(1, 0), 9..10).unwrap_err();
        assert_eq!(old.code.0, 225);
        let other = insert(lab, &session(1, 2), 0..1).unwrap();
        assert_eq!((other.n, other.errors[0].error.code.0), (0, 11000));
    });
}

#[test]
fn retried_updates_and_deletes_give_the_same_reply() {
    on_each(|lab| {
        insert(lab, &session(1, 1), 0..3).unwrap();
        let inc = set(doc! { "_id": 1 }, doc! { "$inc": { "a": 1 } });
        for _ in 0..2 {
            let op = session(1, 2);
            let reply = lab
                .store
                .update(&op, &ns("c"), std::slice::from_ref(&inc), true, false)
                .unwrap();
            assert_eq!((reply.n, reply.n_modified), (1, 1));
        }
        assert_eq!(lab.all(&ns("c"))[1], doc! { "_id": 1, "a": 1 });
        for _ in 0..2 {
            let op = session(1, 3);
            let statement = del(doc! {}, false);
            assert_eq!(
                lab.store
                    .delete(&op, &ns("c"), &[statement], true)
                    .unwrap()
                    .n,
                1
            );
        }
        assert_eq!(lab.all(&ns("c")).len(), 2);
        let many = del(doc! {}, true);
        let reply = lab
            .store
            .delete(&session(1, 4), &ns("c"), &[many], true)
            .unwrap();
        assert_eq!(reply.errors[0].error.code.0, 72);
        let asked = docdb::FindAndModify {
            filter: raw(&doc! {}),
            ..docdb::FindAndModify::default()
        };
        let op = session(1, 5);
        let first = lab.store.find_and_modify(&op, &ns("c"), &asked).unwrap();
        let again = lab.store.find_and_modify(&op, &ns("c"), &asked).unwrap();
        assert_eq!((first.value, again.retried), (again.value, true));
        assert_eq!(lab.all(&ns("c")).len(), 1);
    });
}

/// The keys and values of the stored session records.
fn stored(lab: &Lab) -> Vec<(Vec<u8>, Vec<u8>)> {
    let engine = lab.store.engine();
    let tree = engine.open_tree("_sessions").unwrap();
    let snapshot = engine.begin_read().unwrap();
    let all = (kv::KeyRange::ALL, kv::Direction::Forward);
    let mut cursor = snapshot.cursor(tree, all.0, all.1).unwrap();
    let mut stored = Vec::new();
    while cursor.advance().unwrap() {
        stored.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    stored
}

#[test]
fn upserts_are_done_once_and_stored_one_by_one() {
    on_each(|lab| {
        let upsert = |i: i32| docdb::UpdateStatement {
            upsert: true,
            ..set(doc! { "k": i }, doc! { "$inc": { "n": 1 } })
        };
        let statements: Vec<_> = (0..30).map(upsert).collect();
        let run = |lab: &Lab, number: i64| {
            let op = session(1, number);
            let done = lab.store.update(&op, &ns("c"), &statements, true, false);
            done.unwrap()
        };
        let first = run(lab, 1);
        assert_eq!((first.upserted.len(), first.retried.len()), (30, 0));
        let longest = stored(lab).iter().map(|(_, value)| value.len()).max();
        assert!(longest < Some(200), "{longest:?} bytes");
        let again = run(lab, 1);
        assert_eq!((again.upserted, again.retried.len()), (first.upserted, 30));
        lab.reopen_if_persistent();
        if lab.store.collection(&ns("c")).is_some() {
            assert_eq!(run(lab, 1).retried.len(), 30);
        }
        // The next number needs one record, and removes those of this number.
        let next = run(lab, 2);
        assert_eq!((next.retried.len(), stored(lab).len()), (0, 1));
        let all = lab.all(&ns("c"));
        assert_eq!(all.len(), 30);
        let wanted = next.n_modified + i64::try_from(next.upserted.len()).unwrap();
        assert_eq!(wanted, 30);
        lab.store.drop_collection(&op(), &ns("c")).unwrap();
        run(lab, 3);
        assert_eq!(stored(lab).len(), 30);
        let id = session(1, 3).session.unwrap().id;
        lab.store.end_sessions(&[id]).unwrap();
        assert_eq!(stored(lab), []);
    });
}

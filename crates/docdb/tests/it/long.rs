//! Values longer than an engine's longest key: their index keys are truncated and end in a hash.
//! The law over all plans is `find::cut_law`; these are its first cases, on each engine.

use std::sync::Arc;

use bson::{Bson, Document, doc};
use docdb::{
    CountRequest, DistinctRequest, FindAndModify, FindRequest, UpdateStatement, Verbosity,
};
use kv::{Direction, Durability, KeyRange, TreeId};

use crate::lab::{Lab, documents, find, ns, on_each, op, raw};
use crate::session::session;
use crate::write::set;

/// A text beyond the limit of every engine.
fn long(end: impl std::fmt::Display) -> String {
    format!("{}{end}", "k".repeat(9000))
}

fn ids_of(lab: &Lab, request: &FindRequest) -> Vec<i32> {
    let batch = lab.store.find(&op(), &ns("c"), request).unwrap();
    let all = lab.drain(batch, 101).unwrap();
    all.iter().map(|d| d.get_i32("_id").unwrap()).collect()
}

fn sorted(filter: Document, sort: Document) -> FindRequest {
    FindRequest {
        sort: Some(raw(&sort)),
        ..find(filter)
    }
}

fn count(lab: &Lab, filter: Document) -> u64 {
    let request = CountRequest {
        filter: raw(&filter),
        ..CountRequest::default()
    };
    lab.store.count(&op(), &ns("c"), &request).unwrap()
}

#[test]
fn long_values_behind_a_range_are_found_and_updated() {
    on_each(|lab| {
        lab.index("c", doc! { "key": { "b": 1, "a": 1 }, "name": "ba" });
        let all: Vec<Document> = (0..20)
            .map(|i| doc! { "_id": i, "b": 1, "a": long(i) })
            .collect();
        lab.insert(&ns("c"), &all);
        for i in 0..20 {
            let filter = doc! { "b": { "$gte": 0 }, "a": long(i) };
            assert_eq!(count(lab, filter.clone()), 1, "{} {i}", lab.engine());
            let statement = UpdateStatement {
                upsert: true,
                ..set(filter, doc! { "$set": { "x": 1 } })
            };
            let reply = lab
                .store
                .update(&op(), &ns("c"), &[statement], true, false)
                .unwrap();
            assert_eq!((reply.n, reply.upserted.len()), (1, 0), "{}", lab.engine());
        }
    });
}

#[test]
fn long_values_are_returned_once_where_bounds_are_shorter() {
    on_each(|lab| {
        lab.index("c", doc! { "key": { "a": 1, "b": -1 }, "name": "ab" });
        let all: Vec<Document> = (0..60)
            .map(|i| doc! { "_id": i, "a": long(i % 7), "b": i % 3 })
            .collect();
        lab.insert(&ns("c"), &all);
        let half = "k".repeat(4500);
        for (bound, direction) in [(half.clone(), 1), (half, -1), (long(""), 1)] {
            let filter = doc! { "a": { "$gt": bound }, "b": 0 };
            let mut ids = ids_of(lab, &find(filter.clone()));
            ids.sort_unstable();
            let wanted: Vec<i32> = (0..60).filter(|i| i % 3 == 0).collect();
            assert_eq!(ids, wanted, "{}", lab.engine());
            let by_index = FindRequest {
                hint: Some(Bson::from("ab")),
                ..sorted(filter, doc! { "a": direction, "_id": 1 })
            };
            let mut wanted = wanted;
            wanted.sort_by_key(|i| (i % 7 * direction, *i));
            assert_eq!(ids_of(lab, &by_index), wanted, "{}", lab.engine());
        }
    });
}

/// Check everything that depends on the order of `a`, which is that of `_id`.
fn check_order(lab: &Lab, what: &str) {
    let what = format!("{} {what}", lab.engine());
    let any = doc! { "a": { "$gte": "" } };
    let ascending: Vec<i32> = (0..30).collect();
    let descending: Vec<i32> = (0..30).rev().collect();
    let ids = |request: &FindRequest| ids_of(lab, request);
    let up = doc! { "a": 1 };
    assert_eq!(ids(&sorted(any.clone(), up.clone())), ascending, "{what}");
    assert_eq!(
        ids(&sorted(doc! {}, doc! { "a": -1 })),
        descending,
        "{what}"
    );
    let first = FindRequest {
        limit: Some(3),
        ..sorted(any.clone(), up.clone())
    };
    assert_eq!(ids(&first), [0, 1, 2], "{what}");
    let end = |i: i32| Some(doc! { "a": long(format_args!("{i:02}")) });
    let between = |min: i32, max: i32| FindRequest {
        min: end(min),
        max: end(max),
        hint: Some(Bson::from("a_1")),
        ..sorted(doc! {}, up.clone())
    };
    assert_eq!(ids(&between(5, 10)), [5, 6, 7, 8, 9], "{what}");
    let refused = lab.store.find(&op(), &ns("c"), &between(5, 5));
    assert_eq!(refused.unwrap_err().code.0, 51175, "{what}");
    let asked = FindAndModify {
        filter: raw(&any),
        sort: Some(raw(&up)),
        ..FindAndModify::default()
    };
    let reply = lab.store.find_and_modify(&op(), &ns("c"), &asked);
    let gone = reply.unwrap().value.unwrap();
    assert_eq!(gone.get_i32("_id").unwrap(), 0, "{what}");
    lab.insert(&ns("c"), &[Document::try_from(&*gone).unwrap()]);
    let distinct = DistinctRequest {
        key: "a".to_owned(),
        ..DistinctRequest::default()
    };
    let values = lab.store.distinct(&op(), &ns("c"), &distinct).unwrap();
    let wanted: Vec<Bson> = (0..30)
        .map(|i| Bson::from(long(format_args!("{i:02}"))))
        .collect();
    assert!(values == wanted, "{what}");
    let keys = FindRequest {
        return_key: true,
        hint: Some(Bson::from("a_1")),
        ..find(doc! { "_id": 7 })
    };
    let keys = documents(&lab.store.find(&op(), &ns("c"), &keys).unwrap());
    assert!(keys == [end(7).unwrap()], "{what}");
}

fn fill(lab: &Lab) {
    let all: Vec<Document> = (0..30)
        .map(|i| doc! { "_id": i, "a": long(format_args!("{i:02}")) })
        .collect();
    lab.insert(&ns("c"), &all);
}

/// `plan::order`: O1.
#[test]
fn an_index_with_cut_keys_gives_no_order() {
    on_each(|lab| {
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a_1" });
        fill(lab);
        check_order(lab, "written");
        if lab.reopen() {
            check_order(lab, "reopened");
        }
        for (change, what) in [("prepareUnique", "prepared"), ("unique", "unique")] {
            let index = doc! { "name": "a_1", change: true };
            let asked = doc! { "index": index };
            lab.store.coll_mod(&op(), &ns("c"), &raw(&asked)).unwrap();
            check_order(lab, what);
        }
        let twin = lab.insert(&ns("c"), &[doc! { "_id": 99, "a": long("07") }]);
        assert_eq!(twin.errors[0].error.code.0, 11000, "{}", lab.engine());
        if lab.reopen() {
            check_order(lab, "unique, reopened");
        }
        lab.store
            .drop_indexes(&op(), &ns("c"), &docdb::IndexNames::All)
            .unwrap();
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a_1" });
        check_order(lab, "built");
        if lab.reopen() {
            check_order(lab, "built, reopened");
        }
    });
}

/// Whether a query of `c` has to sort.
fn sorts(lab: &Lab, request: &FindRequest) -> bool {
    let plan = lab
        .store
        .explain_find(&op(), &ns("c"), request, Verbosity::QueryPlanner);
    let plan = plan.unwrap();
    let winner = plan.get_document("queryPlanner").unwrap();
    let winner = winner.get_document("winningPlan").unwrap();
    winner.to_string().contains("\"SORT\"")
}

#[test]
fn a_transaction_knows_its_own_cut_keys_and_others_those_of_commits() {
    on_each(|lab| {
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a_1" });
        lab.insert(&ns("c"), &[doc! { "_id": 100, "a": "a" }]);
        let by_a = sorted(doc! { "a": { "$gte": "" } }, doc! { "a": 1 });
        assert!(!sorts(lab, &by_a), "{}", lab.engine());
        let store = Arc::clone(&lab.store);
        let wanted: Vec<i32> = std::iter::once(100).chain(0..30).collect();
        let within = lab.store.in_transaction(session(1, 1), true, move |op| {
            for i in 0..30 {
                let document = raw(&doc! { "_id": i, "a": long(format_args!("{i:02}")) });
                store.insert(op, &ns("c"), &[&document], docdb::InsertOptions::default())?;
            }
            let by_a = sorted(doc! { "a": { "$gte": "" } }, doc! { "a": 1 });
            let batch = store.find(op, &ns("c"), &by_a)?;
            let ids = documents(&batch).into_iter();
            Ok(ids.map(|d| d.get_i32("_id").unwrap()).collect::<Vec<_>>())
        });
        assert_eq!(within.unwrap(), wanted, "{}", lab.engine());
        lab.store.commit_transaction(&session(1, 1)).unwrap();
        assert_eq!(ids_of(lab, &by_a), wanted, "{}", lab.engine());
        if lab.reopen() {
            assert_eq!(ids_of(lab, &by_a), wanted, "{}", lab.engine());
        }
    });
}

/// Change the catalog to that of an older version, which did not record truncated keys.
fn forget_notes(lab: &Lab) {
    let engine = lab.store.engine();
    let catalog: TreeId = engine.open_tree("_catalog").unwrap();
    let mut notes = Vec::new();
    {
        let snapshot = engine.begin_read().unwrap();
        let cursor = snapshot.cursor(catalog, KeyRange::ALL, Direction::Forward);
        let mut cursor = cursor.unwrap();
        while cursor.advance().unwrap() {
            if cursor.key().starts_with(b"m") || cursor.key() == b"k" {
                notes.push(cursor.key().to_vec());
            }
        }
    }
    assert!(notes.iter().any(|key| key == b"k"), "{}", lab.engine());
    let mut txn = engine.begin_write().unwrap();
    for key in &notes {
        txn.delete(catalog, key).unwrap();
    }
    txn.commit(Durability::Group).unwrap();
}

#[test]
fn of_an_older_store_only_keys_that_cannot_be_cut_give_an_order() {
    on_each(|lab| {
        for (name, key) in [
            ("a_1", doc! { "a": 1 }),
            ("b", doc! { "b": -1 }),
            ("c", doc! { "c": 1 }),
            ("bc", doc! { "b": 1, "c": 1 }),
        ] {
            lab.index("c", doc! { "key": key, "name": name });
        }
        let mut all = Vec::new();
        for i in 0..30 {
            let end = format!("{i:02}");
            all.push(doc! { "_id": i, "a": long(&end), "b": i, "c": end });
        }
        lab.insert(&ns("c"), &all);
        let by = |field: &str| sorted(doc! {}, doc! { field: 1 });
        for field in ["_id", "b", "c"] {
            assert!(!sorts(lab, &by(field)), "{} {field}", lab.engine());
        }
        forget_notes(lab);
        if !lab.reopen() {
            return;
        }
        check_order(lab, "older");
        for (field, sorted) in [("_id", false), ("b", false), ("c", true), ("a", true)] {
            assert_eq!(sorts(lab, &by(field)), sorted, "{} {field}", lab.engine());
        }
        // Truncated keys of indexes created from now on are recorded.
        lab.store
            .drop_indexes(&op(), &ns("c"), &docdb::IndexNames::All)
            .unwrap();
        lab.index("c", doc! { "key": { "c": 1 }, "name": "c" });
        assert!(!sorts(lab, &by("c")), "{}", lab.engine());
    });
}

#[test]
fn ids_longer_than_keys_are_found_ordered_and_unique() {
    on_each(|lab| {
        let id = |i: i32| long(format_args!("{i:02}"));
        let all: Vec<Document> = (0..30).map(|i| doc! { "_id": id(i), "n": i }).collect();
        assert_eq!(lab.insert(&ns("c"), &all).n, 30, "{}", lab.engine());
        let twin = lab.insert(&ns("c"), &[doc! { "_id": id(3) }]);
        assert_eq!(twin.errors[0].error.code.0, 11000, "{}", lab.engine());
        let numbers = |request: &FindRequest| -> Vec<i32> {
            let batch = lab.store.find(&op(), &ns("c"), request).unwrap();
            let all = documents(&batch);
            all.iter().map(|d| d.get_i32("n").unwrap()).collect()
        };
        assert_eq!(numbers(&find(doc! { "_id": id(7) })), [7]);
        let between = doc! { "_id": { "$gte": id(5), "$lt": id(9) } };
        let wanted = [5, 6, 7, 8];
        assert_eq!(numbers(&sorted(between, doc! { "_id": 1 })), wanted);
        let none = doc! { "_id": long("x") };
        assert_eq!(count(lab, none), 0, "{}", lab.engine());
    });
}

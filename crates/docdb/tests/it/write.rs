//! Updates, deletes and `findAndModify`.

use bson::{Bson, Document, RawBson, RawDocumentBuf, doc};
use docdb::{
    Applied, AppliedEntry, AppliedUpdate, CollectionOptions, DeleteStatement, FindAndModify,
    InsertOptions, UpdateReply, UpdateStatement,
};

use kv::{Direction, KeyRange};
use query::update::{Difference, Form};

use crate::lab::{Lab, ns, on_each, op, raw};

pub(crate) fn set(filter: Document, update: Document) -> UpdateStatement {
    UpdateStatement::new(raw(&filter), raw(&update))
}

pub(crate) fn del(filter: Document, multi: bool) -> DeleteStatement {
    DeleteStatement {
        multi,
        ..DeleteStatement::new(raw(&filter))
    }
}

fn update(lab: &Lab, coll: &str, statement: UpdateStatement) -> UpdateReply {
    lab.store
        .update(&op(), &ns(coll), &[statement], true, false)
        .unwrap()
}

fn value(document: Option<RawDocumentBuf>) -> Option<Document> {
    document.map(|d| Document::try_from(d.as_ref()).unwrap())
}

#[test]
fn one_or_many_documents_are_updated() {
    on_each(|lab| {
        let documents: Vec<Document> = (0..1200).map(|i| doc! { "_id": i, "a": i % 3 }).collect();
        lab.insert(&ns("c"), &documents);
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        let reply = update(lab, "c", set(doc! { "a": 1 }, doc! { "$set": { "b": 1 } }));
        assert_eq!((reply.n, reply.n_modified), (1, 1));
        let many = UpdateStatement {
            multi: true,
            ..set(doc! { "a": 1 }, doc! { "$inc": { "a": 10 } })
        };
        let reply = update(lab, "c", many);
        assert_eq!((reply.n, reply.n_modified), (400, 400));
        let all = lab.all(&ns("c"));
        assert_eq!(
            all.iter()
                .filter(|d| d.get_i32("a").is_ok_and(|a| a == 11))
                .count(),
            400
        );
        let same = set(doc! { "_id": 0 }, doc! { "$set": { "a": 0 } });
        let reply = update(lab, "c", same);
        assert_eq!((reply.n, reply.n_modified), (1, 0));
    });
}

#[test]
fn updates_that_are_refused_change_nothing() {
    on_each(|lab| {
        lab.insert(
            &ns("c"),
            &[doc! { "_id": 1, "u": 1 }, doc! { "_id": 2, "u": 2, "x": 1 }],
        );
        lab.index("c", doc! { "key": { "x": 1 }, "name": "x" });
        lab.index("c", doc! { "key": { "u": 1 }, "name": "u", "unique": true });
        let clash = set(doc! { "_id": 2 }, doc! { "$set": { "u": 1, "x": 5 } });
        let reply = update(lab, "c", clash);
        assert_eq!((reply.n, reply.errors[0].error.code.0), (0, 11000));
        let id = set(doc! { "_id": 2 }, doc! { "$set": { "_id": 3 } });
        assert_eq!(update(lab, "c", id).errors[0].error.code.0, 66);
        let unknown = set(doc! { "_id": 2 }, doc! { "$oops": { "a": 3 } });
        assert_eq!(update(lab, "c", unknown).errors[0].error.code.0, 9);
        assert_eq!(lab.all(&ns("c"))[1], doc! { "_id": 2, "u": 2, "x": 1 });
    });
}

#[test]
fn upserts_insert_what_the_filter_and_the_update_say() {
    on_each(|lab| {
        let upsert = |id: i32| UpdateStatement {
            upsert: true,
            ..set(doc! { "_id": id, "k": "v" }, doc! { "$set": { "a": 1 } })
        };
        let reply = update(lab, "c", upsert(7));
        assert_eq!((reply.n, reply.n_modified, reply.upserted.len()), (1, 0, 1));
        assert_eq!(lab.all(&ns("c")), [doc! { "_id": 7, "k": "v", "a": 1 }]);
        let reply = update(lab, "c", upsert(7));
        assert_eq!((reply.n, reply.n_modified, reply.upserted.len()), (1, 0, 0));
    });
}

#[test]
fn deletes_remove_documents_and_entries() {
    on_each(|lab| {
        let documents: Vec<Document> = (0..1100)
            .map(|i| doc! { "_id": i, "a": [i, i + 1], "b": i % 2 })
            .collect();
        lab.insert(&ns("c"), &documents);
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        let delete = |statement| {
            lab.store
                .delete(&op(), &ns("c"), &[statement], true)
                .unwrap()
                .n
        };
        assert_eq!(delete(del(doc! { "_id": 4, "a": 5 }, false)), 1);
        assert_eq!(delete(del(doc! { "b": 0 }, true)), 549);
        assert_eq!(delete(del(doc! {}, true)), 550);
        assert_eq!(lab.store.collection(&ns("c")).unwrap().count(), 0);
    });
}

#[test]
fn find_and_modify_gives_the_document_before_or_after() {
    on_each(|lab| {
        lab.insert(
            &ns("c"),
            &[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }],
        );
        let asked = |new: bool| FindAndModify {
            filter: raw(&doc! {}),
            sort: Some(raw(&doc! { "a": -1 })),
            update: Some(RawBson::Document(raw(&doc! { "$inc": { "a": 10 } }))),
            new,
            fields: Some(raw(&doc! { "_id": 0 })),
            ..FindAndModify::default()
        };
        let reply = lab
            .store
            .find_and_modify(&op(), &ns("c"), &asked(false))
            .unwrap();
        assert!(reply.updated_existing);
        assert_eq!(value(reply.value), Some(doc! { "a": 2 }));
        let reply = lab
            .store
            .find_and_modify(&op(), &ns("c"), &asked(true))
            .unwrap();
        assert_eq!(value(reply.value), Some(doc! { "a": 22 }));
        let remove = FindAndModify {
            filter: raw(&doc! { "_id": 1 }),
            ..FindAndModify::default()
        };
        let reply = lab.store.find_and_modify(&op(), &ns("c"), &remove).unwrap();
        assert_eq!(value(reply.value), Some(doc! { "_id": 1, "a": 1 }));
        assert_eq!(lab.all(&ns("c")).len(), 1);
    });
}

#[test]
fn validators_refuse_documents() {
    on_each(|lab| {
        let options = CollectionOptions::parse(&doc! { "validator": { "a": { "$gt": 0 } } });
        lab.store.create(&op(), &ns("c"), options.unwrap()).unwrap();
        let reply = lab.insert(
            &ns("c"),
            &[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": -1 }],
        );
        assert_eq!((reply.n, reply.errors[0].error.code.0), (1, 121));
        let details = reply.errors[0].error.details.as_ref().unwrap();
        let info = details.get_document("errInfo").unwrap();
        assert_eq!(info.get_i32("failingDocumentId").unwrap(), 2);
        let bad = set(doc! { "_id": 1 }, doc! { "$set": { "a": -5 } });
        assert_eq!(update(lab, "c", bad).errors[0].error.code.0, 121);
        let bypass = InsertOptions {
            bypass_validation: true,
            ..InsertOptions::default()
        };
        assert_eq!(lab.insert_with(&ns("c"), &[doc! { "a": -1 }], bypass).n, 1);
    });
}

#[test]
fn validators_know_the_time_of_the_operation() {
    on_each(|lab| {
        let past = doc! { "$expr": { "$lte": ["$at", "$$NOW"] } };
        let options = CollectionOptions::parse(&doc! { "validator": past });
        lab.store.create(&op(), &ns("c"), options.unwrap()).unwrap();
        let date = |millis| bson::DateTime::from_millis(millis);
        let later = docdb::Op {
            now: date(1_000_000),
            ..op()
        };
        let insert = |document: Document| {
            let documents = [&*raw(&document)];
            let options = InsertOptions::default();
            let reply = lab.store.insert(&later, &ns("c"), &documents, options);
            reply.unwrap().errors.pop().map(|failed| failed.error)
        };
        assert_eq!(insert(doc! { "_id": 1, "at": date(999_999) }), None);
        let future = insert(doc! { "_id": 2, "at": date(1_000_001) }).unwrap();
        assert_eq!(future.code.0, 121);
        let shown = future.details.unwrap().to_string();
        assert!(shown.contains("expressionResult"), "{shown}");
        // Another operation has another time.
        let moved = |millis| set(doc! { "_id": 1 }, doc! { "$set": { "at": date(millis) } });
        let now = later.now.timestamp_millis();
        let changed = |statement| {
            let updated = lab
                .store
                .update(&later, &ns("c"), &[statement], true, false);
            updated.unwrap().errors.is_empty()
        };
        assert!(changed(moved(now)));
        assert!(!changed(moved(now + 1)));
        assert!(update(lab, "c", moved(now + 1)).errors.is_empty());
    });
}

#[test]
fn capped_collections_lose_their_oldest() {
    on_each(|lab| {
        let options = doc! { "capped": true, "size": 100_000, "max": 10 };
        let options = CollectionOptions::parse(&options).unwrap();
        lab.store.create(&op(), &ns("c"), options).unwrap();
        for i in 0..25 {
            lab.insert(&ns("c"), &[doc! { "_id": i }]);
        }
        let ids: Vec<i32> = lab
            .all(&ns("c"))
            .iter()
            .map(|d| d.get_i32("_id").unwrap())
            .collect();
        assert_eq!(ids, (15..25).collect::<Vec<_>>());
    });
}

#[test]
fn documents_expire() {
    on_each(|lab| {
        let date = |seconds: i64| bson::DateTime::from_millis(seconds * 1000);
        lab.insert(
            &ns("c"),
            &[
                doc! { "_id": 1, "t": date(100) },
                doc! { "_id": 2, "t": date(1000) },
                doc! { "_id": 3, "t": 5 },
                doc! { "_id": 4, "t": [date(5000), date(50)] },
            ],
        );
        lab.index(
            "c",
            doc! { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 60 },
        );
        let mut late = op();
        late.now = date(500);
        assert_eq!(lab.store.expire(&late).unwrap(), 2);
        let ids: Vec<i32> = lab
            .all(&ns("c"))
            .iter()
            .map(|d| d.get_i32("_id").unwrap())
            .collect();
        assert_eq!(ids, [2, 3]);
    });
}

fn applied(lab: &Lab, changes: Vec<Applied>) -> Option<usize> {
    let entry = |change| AppliedEntry {
        ns: ns("c"),
        change,
    };
    let entries: Vec<AppliedEntry> = changes.into_iter().map(entry).collect();
    let done = lab.store.apply(&op(), &entries, false);
    done.err().map(|(at, _)| at)
}

/// `write::apply`: A1 and A2.
#[test]
fn entries_are_applied_whole_or_not_and_again_change_nothing() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1, "a": 1 }]);
        lab.index("c", doc! { "key": { "u": 1 }, "name": "u", "unique": true });
        let insert = |document: Document| Applied::Insert(raw(&document));
        let update = |id: i32, operators: Document| Applied::Update {
            filter: raw(&doc! { "_id": id }),
            update: AppliedUpdate::Document(raw(&operators)),
            upsert: true,
        };
        let entries = || {
            vec![
                insert(doc! { "_id": 2, "u": 2 }),
                update(3, doc! { "$set": { "u": 3 } }),
                Applied::Delete(raw(&doc! { "_id": 1 })),
            ]
        };
        let refused = [entries(), vec![insert(doc! { "_id": 4, "u": 2 })]].concat();
        assert_eq!(applied(lab, refused), Some(3), "{}", lab.engine());
        assert_eq!(lab.all(&ns("c")), [doc! { "_id": 1, "a": 1 }]);
        for _ in 0..2 {
            assert_eq!(applied(lab, entries()), None);
            let expected = [doc! { "_id": 2, "u": 2 }, doc! { "_id": 3, "u": 3 }];
            assert_eq!(lab.all(&ns("c")), expected, "{}", lab.engine());
        }
    });
}

/// Diffs that `query` makes of two documents lead from one to the other, once and twice.
#[test]
fn diffs_of_entries_are_applied() {
    on_each(|lab| {
        let before = doc! { "_id": 1, "a": 1, "b": { "x": 1 }, "l": [1, 2, 3] };
        let after = doc! { "_id": 1, "b": { "x": 1_i64, "y": 0 }, "l": [1, 7], "a": f64::NAN };
        lab.insert(&ns("c"), std::slice::from_ref(&before));
        let made = query::update::diff(&raw(&before), &raw(&after), Form::Operators).unwrap();
        let Difference::Delta(made) = made else {
            panic!("{made:?}");
        };
        let diff = made.get_document("diff").unwrap();
        for _ in 0..2 {
            let update = Applied::Update {
                filter: raw(&doc! { "_id": 1 }),
                update: AppliedUpdate::Delta(diff.to_owned()),
                upsert: false,
            };
            assert_eq!(applied(lab, vec![update]), None, "{}", lab.engine());
            let found: Vec<RawDocumentBuf> = lab.all(&ns("c")).iter().map(raw).collect();
            assert_eq!(found, [raw(&after)], "{}", lab.engine());
        }
        let bad = Applied::Update {
            filter: raw(&doc! { "_id": 1 }),
            update: AppliedUpdate::Delta(raw(&doc! { "q": {} })),
            upsert: false,
        };
        assert_eq!(applied(lab, vec![bad]), Some(0));
    });
}

/// The stored document begins with its `_id`, also where a diff appends it. A NaN is the `_id` of
/// its document like any other value.
#[test]
fn entries_keep_the_id_in_front() {
    on_each(|lab| {
        for id in [Bson::Int32(1), Bson::Double(f64::NAN)] {
            lab.insert(&ns("c"), &[doc! { "_id": &id, "a": 1 }]);
            let change = |diff: Document| Applied::Update {
                filter: raw(&doc! { "_id": &id }),
                update: AppliedUpdate::Delta(raw(&diff)),
                upsert: false,
            };
            let moved = change(doc! { "i": { "b": 2, "_id": &id } });
            assert_eq!(applied(lab, vec![moved]), None, "{}", lab.engine());
            let other = change(doc! { "u": { "_id": 7 } });
            assert_eq!(applied(lab, vec![other]), Some(0));
            let found = || -> Vec<RawDocumentBuf> { lab.all(&ns("c")).iter().map(raw).collect() };
            let expected = doc! { "_id": &id, "a": 1, "b": 2 };
            assert_eq!(found(), [raw(&expected)], "{}", lab.engine());
            let again = Applied::Insert(raw(&doc! { "c": 3, "_id": &id }));
            assert_eq!(applied(lab, vec![again]), None, "{}", lab.engine());
            let expected = doc! { "_id": &id, "c": 3 };
            assert_eq!(found(), [raw(&expected)], "{}", lab.engine());
            let gone = Applied::Delete(raw(&doc! { "_id": &id }));
            assert_eq!(applied(lab, vec![gone]), None);
        }
    });
}

/// The number of entries of the counts.
fn counts(lab: &Lab) -> usize {
    let engine = lab.store.engine();
    let tree = engine.open_tree("_counts").unwrap();
    let snapshot = engine.begin_read().unwrap();
    let cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Forward);
    let mut cursor = cursor.unwrap();
    let mut count = 0;
    while cursor.advance().unwrap() {
        count += 1;
    }
    count
}

/// C1 of the counts.
#[test]
fn an_update_that_keeps_the_size_stores_no_counts() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1, "n": 0 }]);
        let before = counts(lab);
        let one = doc! { "_id": 1 };
        for _ in 0..5 {
            update(lab, "c", set(one.clone(), doc! { "$inc": { "n": 1 } }));
        }
        assert_eq!(counts(lab), before, "C1");
        update(lab, "c", set(one, doc! { "$set": { "s": "x" } }));
        assert_eq!(counts(lab), before + 1, "C1");
    });
}

//! The events of changes of documents.

use std::sync::Arc;

use bson::{Document, RawDocument, RawDocumentBuf, doc};
use docdb::InsertOptions;
use docdb::oplog::entry::GROUP_MAX;

use super::{Beside, Log, all_brief, brief, drain, events, everything, kinds, on, open};
use crate::lab::{Lab, ns, on_each, op, raw};
use crate::session::session;
use crate::write::{del, set};

fn update(lab: &Lab, filter: Document, change: Document) {
    let change = set(filter, change);
    let reply = lab.store.update(&op(), &ns("c"), &[change], true, false);
    reply.unwrap();
}

fn place() -> Document {
    doc! { "db": "test", "coll": "c" }
}

fn names(document: &Document) -> Vec<&str> {
    document.keys().map(String::as_str).collect()
}

#[test]
fn each_change_of_a_document_has_its_event() {
    on_each(|lab| {
        lab.insert(
            &ns("c"),
            &[doc! { "_id": 1, "a": 1, "b": { "x": 1, "y": 2 } }],
        );
        lab.insert(&ns("other"), &[doc! { "_id": 1 }]);
        let change = doc! { "$set": { "b.x": 5, "n": 0 }, "$unset": { "a": 1 } };
        update(lab, doc! { "_id": 1 }, change);
        update(lab, doc! { "_id": 1 }, doc! { "whole": true });
        lab.store
            .delete(&op(), &ns("c"), &[del(doc! { "_id": 1 }, false)], true)
            .unwrap();
        let log = Log::of(&lab.store);
        let found = events(&log, &doc! {}, &on("c"));
        let described = doc! {
            "updatedFields": { "n": 0, "b.x": 5 }, "removedFields": ["a"], "truncatedArrays": [],
        };
        let key = doc! { "_id": 1 };
        let expected = [
            doc! {
                "operationType": "insert",
                "fullDocument": { "_id": 1, "a": 1, "b": { "x": 1, "y": 2 } },
                "ns": place(), "documentKey": key.clone(),
            },
            doc! {
                "operationType": "update", "ns": place(), "documentKey": key.clone(),
                "updateDescription": described,
            },
            doc! {
                "operationType": "replace", "fullDocument": { "_id": 1, "whole": true },
                "ns": place(), "documentKey": key.clone(),
            },
            doc! { "operationType": "delete", "ns": place(), "documentKey": key },
        ];
        assert_eq!(all_brief(&found), expected);
        let insert = Document::try_from(&*found[0].document).unwrap();
        let order = [
            "_id",
            "operationType",
            "clusterTime",
            "wallTime",
            "fullDocument",
            "ns",
            "documentKey",
        ];
        assert_eq!(names(&insert), order);
        assert_eq!(events(&log, &doc! {}, &on("")).len(), 5);
        let all = events(&log, &doc! { "allChangesForCluster": true }, &everything());
        assert_eq!(all.len(), 5);
    });
}

#[test]
fn expanded_events_have_uuids_and_clear_paths() {
    on_each(|lab| {
        let document = doc! {
            "_id": 1, "l": [1, 2, 3], "a.b": 1, "0": { "1": 1 }, "m": [{ "2": 1, "x.y": 1 }],
            // Long enough that a pipeline's diff is smaller than the document.
            "long": "x".repeat(500),
        };
        lab.insert(&ns("c"), &[document]);
        let change = doc! { "$set": { "0.1": 2, "m.0.2": 2, "m.0.z": 1 } };
        update(lab, doc! { "_id": 1 }, change);
        let change = doc! { "$push": { "l": { "$each": [], "$slice": 1 } } };
        update(lab, doc! { "_id": 1 }, change);
        let log = Log::of(&lab.store);
        let found = events(&log, &doc! { "showExpandedEvents": true }, &on("c"));
        assert_eq!(kinds(&found), ["create", "insert", "update", "update"]);
        let uuid = lab.store.collection(&ns("c")).unwrap().uuid();
        for event in &found {
            let document = Document::try_from(&*event.document).unwrap();
            assert_eq!(document.get("collectionUUID").unwrap(), &uuid.into());
        }
        let first = brief(&found[2]);
        let expected = doc! {
            "updatedFields": { "0.1": 2, "m.0.2": 2, "m.0.z": 1 },
            "removedFields": [], "truncatedArrays": [],
            "disambiguatedPaths": { "0.1": ["0", "1"], "m.0.2": ["m", 0, "2"] },
        };
        assert_eq!(first.get_document("updateDescription").unwrap(), &expected);
        let second = brief(&found[3]);
        let expected = doc! {
            "updatedFields": {}, "removedFields": [],
            "truncatedArrays": [{ "field": "l", "newSize": 1 }], "disambiguatedPaths": {},
        };
        assert_eq!(second.get_document("updateDescription").unwrap(), &expected);
    });
}

#[test]
fn groups_and_transactions_have_an_event_for_each_operation() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1 }, doc! { "_id": 2 }]);
        let store = Arc::clone(&lab.store);
        let body = move |op: &docdb::Op<'_>| {
            for (coll, id) in [("other", 3), ("c", 4), ("c", 5)] {
                let document = raw(&doc! { "_id": id });
                store.insert(op, &ns(coll), &[&document], InsertOptions::default())?;
            }
            Ok(())
        };
        lab.store.in_transaction(session(1, 7), true, body).unwrap();
        lab.store.commit_transaction(&session(1, 7)).unwrap();
        let documents: [RawDocumentBuf; 2] = [6, 7].map(|id| raw(&doc! { "_id": id }));
        let documents: Vec<&RawDocument> = documents.iter().map(AsRef::as_ref).collect();
        let (retryable, options) = (session(2, 1), InsertOptions::default());
        lab.store
            .insert(&retryable, &ns("c"), &documents, options)
            .unwrap();
        let log = Log::of(&lab.store);
        let found = events(&log, &doc! {}, &on("c"));
        let ids: Vec<i32> = found.iter().map(id).collect();
        assert_eq!(ids, [1, 2, 4, 5, 6, 7]);
        let indexes: Vec<i64> = found
            .iter()
            .map(|event| event.token.stands_for().unwrap().index)
            .collect();
        assert_eq!(
            indexes,
            [0, 1, 1, 2, 0, 1],
            "of all operations of the entry"
        );
        for (event, id) in found.iter().zip(ids) {
            let document = brief(event);
            let number = document.get("txnNumber").map(|n| n.as_i64().unwrap());
            let expected = [4, 5].contains(&id).then_some(7);
            assert_eq!(number, expected, "retryable writes are no transactions");
            assert_eq!(document.contains_key("lsid"), expected.is_some());
        }
        let order = [
            "_id",
            "operationType",
            "clusterTime",
            "txnNumber",
            "lsid",
            "wallTime",
            "fullDocument",
            "ns",
            "documentKey",
        ];
        let document = Document::try_from(&*found[2].document).unwrap();
        assert_eq!(names(&document), order);
        assert_eq!(events(&log, &doc! {}, &on("other")).len(), 1);
    });
}

fn id(event: &docdb::change::event::Event) -> i32 {
    let document = brief(event);
    let key = document.get_document("documentKey").unwrap();
    key.get_i32("_id").unwrap()
}

/// The events of a chain have the time of its last entry, and are numbered through.
#[test]
fn a_chain_is_read_through_its_last_entry() {
    on_each(|lab| {
        let count = 2 * GROUP_MAX + 7;
        let one = |i| doc! { "_id": i32::try_from(i).unwrap() };
        let documents: Vec<Document> = (0..count).map(one).collect();
        lab.insert(&ns("c"), &documents);
        let log = Log::of(&lab.store);
        let (last, _) = *log.entries.last().unwrap();
        let found = events(&log, &doc! {}, &on("c"));
        assert_eq!(found.len(), count);
        for (at, event) in found.iter().enumerate() {
            assert_eq!(id(event), i32::try_from(at).unwrap());
            assert_eq!(event.token.time(), last);
            let index = event.token.stands_for().unwrap().index;
            assert_eq!(usize::try_from(index).unwrap(), at);
        }
        // A stream that stops within a chain reads the entries behind only.
        for at in [0, GROUP_MAX - 1, GROUP_MAX, 2 * GROUP_MAX + 5] {
            let mut stream = open(&doc! {}, &on("c")).unwrap();
            let mut log = log.clone();
            let beside = Beside::default();
            let mut reading = stream.read(&mut log, &beside).unwrap();
            for _ in 0..=at {
                reading.next_event().unwrap();
            }
            let rest = drain(&mut stream, &mut log, &beside).unwrap();
            assert_eq!(id(&rest[0]), i32::try_from(at + 1).unwrap());
            assert_eq!(rest.len(), count - at - 1);
        }
        let mut truncated = log.clone();
        truncated.first = last;
        let mut stream = open(&doc! { "startAtOperationTime": last }, &on("c")).unwrap();
        let error = drain(&mut stream, &mut truncated, &Beside::default()).unwrap_err();
        assert_eq!(error.code.0, 286, "S3: the entries before are gone");
    });
}

#[test]
fn documents_beside_the_oplog_are_shown_as_asked() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1, "a": 1 }]);
        update(lab, doc! { "_id": 1 }, doc! { "$set": { "a": 2 } });
        update(lab, doc! { "_id": 1 }, doc! { "a": 3 });
        lab.store
            .delete(&op(), &ns("c"), &[del(doc! { "_id": 1 }, false)], true)
            .unwrap();
        let mut log = Log::of(&lab.store);
        let key = "test.c Int32(1)".to_owned();
        let mut shown = |stage: Document, beside: &Beside, field: &str| -> query::Result<Vec<_>> {
            let mut stream = open(&stage, &on("c")).unwrap();
            let events = drain(&mut stream, &mut log, beside)?;
            let value = |event| brief(event).get(field).cloned();
            Ok(events.iter().map(value).collect())
        };
        let one = |a: i32| Some(bson::Bson::Document(doc! { "_id": 1, "a": a }));
        let null = || Some(bson::Bson::Null);
        let none = Beside::default();
        let known = Beside {
            current: [(key, doc! { "_id": 1, "a": 9 })].into(),
            before: Some(doc! { "_id": 1, "a": 1 }),
            ..Beside::default()
        };
        let full = |mode: &str| doc! { "fullDocument": mode };
        for (mode, beside, new) in [
            ("default", &known, None),
            ("updateLookup", &known, one(9)),
            ("updateLookup", &none, null()),
            ("whenAvailable", &known, one(2)),
            ("whenAvailable", &none, null()),
            ("required", &known, one(2)),
        ] {
            let found = shown(full(mode), beside, "fullDocument").unwrap();
            assert_eq!(found, [one(1), new, one(3), None], "{mode}");
        }
        let error = shown(full("required"), &none, "fullDocument").unwrap_err();
        assert_eq!(error.code.0, 47);
        let old = |mode: &str| doc! { "fullDocumentBeforeChange": mode };
        let field = "fullDocumentBeforeChange";
        for (mode, beside, old_one) in [
            ("off", &known, None),
            ("whenAvailable", &known, one(1)),
            ("whenAvailable", &none, null()),
            ("required", &known, one(1)),
        ] {
            let found = shown(old(mode), beside, field).unwrap();
            let (a, b, c) = (old_one.clone(), old_one.clone(), old_one);
            assert_eq!(found, [None, a, b, c], "{mode}");
        }
        let error = shown(old("required"), &none, field).unwrap_err();
        assert_eq!(error.code.0, 47);
    });
}

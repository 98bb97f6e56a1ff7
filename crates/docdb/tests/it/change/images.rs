//! Pre-images and post-images: kept with the change, shown by streams, expired.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, DateTime, Document, Timestamp, doc};
use docdb::oplog::Limits;
use docdb::oplog::entry::GROUP_MAX;
use docdb::{
    Applied, AppliedEntry, AppliedUpdate, CollectionOptions, FindAndModify, IndexNames, Namespace,
    Options, Store,
};
use kv::{Engine, EngineOptions};

use super::on;
use super::store::{resume, stream, watch};
use crate::lab::{Lab, documents, find, ns, on_each, op, raw};
use crate::session::session;
use crate::write::{del, set};

const NO_MATCHING_DOCUMENT: i32 = 47;

fn images() -> Namespace {
    Namespace::new("config", "system.preimages").unwrap()
}

fn enabled(on: bool) -> Document {
    doc! { "changeStreamPreAndPostImages": { "enabled": on } }
}

fn options() -> CollectionOptions {
    CollectionOptions::parse(&enabled(true)).unwrap()
}

/// A collection that keeps pre-images, with these documents.
fn keeping(lab: &Lab, documents: &[Document]) {
    lab.store.create(&op(), &ns("c"), options()).unwrap();
    lab.insert(&ns("c"), documents);
}

fn update(store: &Store, filter: Document, change: Document) {
    let change = set(filter, change);
    let reply = store.update(&op(), &ns("c"), &[change], true, false);
    assert_eq!(reply.unwrap().errors, []);
}

fn delete(store: &Store, filter: Document) {
    let gone = del(filter, true);
    store.delete(&op(), &ns("c"), &[gone], true).unwrap();
}

/// The stage that requires both documents, from the beginning on.
fn required() -> [Document; 1] {
    stream(doc! {
        "fullDocument": "required", "fullDocumentBeforeChange": "required",
        "startAtOperationTime": Timestamp { time: 1, increment: 0 },
    })
}

/// Kind, new and old document of the events of changes.
fn shown(events: &[Document]) -> Vec<(&str, Option<Document>, Option<Document>)> {
    let field = |event: &Document, name| event.get_document(name).ok().cloned();
    let changes = events
        .iter()
        .filter(|event| event.get_str("operationType").unwrap() != "insert");
    changes
        .map(|event| {
            let old = field(event, "fullDocumentBeforeChange");
            let kind = event.get_str("operationType").unwrap();
            (kind, field(event, "fullDocument"), old)
        })
        .collect()
}

fn events(lab: &Lab, stage: &[Document]) -> Vec<Document> {
    documents(&watch(lab, &on("c"), stage).unwrap())
}

/// `oplog::image`: P1. Each image is that of its own change, also where the document has changed
/// since.
#[test]
fn each_change_keeps_the_document_before_it() {
    on_each(|lab| {
        keeping(lab, &[doc! { "_id": 1, "a": 1, "long": "x".repeat(300) }]);
        update(&lab.store, doc! { "_id": 1 }, doc! { "$inc": { "a": 1 } });
        update(&lab.store, doc! { "_id": 1 }, doc! { "$inc": { "a": 0 } });
        update(&lab.store, doc! { "_id": 1 }, doc! { "$inc": { "a": 1 } });
        update(&lab.store, doc! { "_id": 1 }, doc! { "b": 1 });
        let asked = FindAndModify {
            filter: raw(&doc! { "_id": 1 }),
            update: Some(raw(&doc! { "$set": { "b": 2 } }).into()),
            ..FindAndModify::default()
        };
        lab.store.find_and_modify(&op(), &ns("c"), &asked).unwrap();
        delete(&lab.store, doc! { "_id": 1 });
        let a = |a: i32| Some(doc! { "_id": 1, "a": a, "long": "x".repeat(300) });
        let b = |b: i32| Some(doc! { "_id": 1, "b": b });
        let expected = [
            ("update", a(2), a(1)),
            ("update", a(3), a(2)),
            ("replace", b(1), a(3)),
            ("update", b(2), b(1)),
            ("delete", None, b(2)),
        ];
        let events = events(lab, &required());
        assert_eq!(shown(&events), expected, "{}", lab.engine());
        let found = lab.all(&images());
        assert_eq!(found.len(), 5, "a change of nothing has none");
        let uuid = lab.store.collection(&ns("c")).unwrap().uuid();
        let changes = &events[1..];
        for (image, event) in found.iter().zip(changes) {
            let expected = doc! {
                "_id": {
                    "nsUUID": uuid, "ts": event.get_timestamp("clusterTime").unwrap(),
                    "applyOpsIndex": 0_i64,
                },
                "operationTime": *event.get_datetime("wallTime").unwrap(),
                "preImage": event.get_document("fullDocumentBeforeChange").unwrap().clone(),
            };
            assert_eq!(*image, expected);
        }
        let collection = lab.store.collection(&images()).unwrap();
        assert_eq!(collection.count(), 5);
    });
}

/// `oplog::image`: P1, for the operations of a chain of entries and of a transaction.
#[test]
fn each_operation_of_a_chain_has_its_own_image() {
    on_each(|lab| {
        let count = i32::try_from(2 * GROUP_MAX + 7).unwrap();
        let all: Vec<Document> = (0..count).map(|id| doc! { "_id": id, "a": id }).collect();
        keeping(lab, &all);
        let entry = |id: i32| AppliedEntry {
            ns: ns("c"),
            change: Applied::Update {
                filter: raw(&doc! { "_id": id }),
                update: AppliedUpdate::Document(raw(&doc! { "$inc": { "a": 1 } })),
                upsert: false,
            },
        };
        let entries: Vec<AppliedEntry> = (0..count).map(entry).collect();
        lab.store.apply(&op(), &entries, false).unwrap();
        let store = Arc::clone(&lab.store);
        let body = move |op: &docdb::Op<'_>| {
            for id in [3, 3, 4] {
                let change = set(doc! { "_id": id }, doc! { "$inc": { "a": 1 } });
                store.update(op, &ns("c"), &[change], true, false)?;
            }
            Ok(())
        };
        lab.store.in_transaction(session(1, 7), true, body).unwrap();
        lab.store.commit_transaction(&session(1, 7)).unwrap();
        let mut batch = watch(lab, &on("c"), &required()).unwrap();
        let mut found = Vec::new();
        while !batch.documents.is_empty() {
            found.extend(documents(&batch));
            batch = lab.more(&batch, 1_000).unwrap();
        }
        let one = |id: i32, a: i32| Some(doc! { "_id": id, "a": a });
        let change = |id: i32, old: i32| ("update", one(id, old + 1), one(id, old));
        let mut expected: Vec<_> = (0..count).map(|id| change(id, id)).collect();
        expected.extend([change(3, 4), change(3, 5), change(4, 5)]);
        assert!(shown(&found) == expected, "{}", lab.engine());
        let times: BTreeSet<(u32, u32)> = lab
            .all(&images())
            .iter()
            .map(|image| {
                let id = image.get_document("_id").unwrap();
                let at = id.get_timestamp("ts").unwrap();
                (at.time, at.increment)
            })
            .collect();
        assert_eq!(
            times.len(),
            4,
            "three entries of the chain, one of the transaction"
        );
    });
}

#[test]
fn what_is_not_committed_leaves_no_image() {
    on_each(|lab| {
        keeping(lab, &[doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }]);
        lab.index(
            "c",
            doc! { "key": { "b": 1 }, "name": "b_1", "unique": true, "sparse": true },
        );
        let same = set(doc! {}, doc! { "$set": { "b": 1 } });
        let mut all = same.clone();
        all.multi = true;
        let reply = lab.store.update(&op(), &ns("c"), &[all], true, false);
        assert_eq!(reply.unwrap().errors.len(), 1);
        let store = Arc::clone(&lab.store);
        let body = move |op: &docdb::Op<'_>| {
            let change = set(doc! { "_id": 1 }, doc! { "$inc": { "a": 1 } });
            store.update(op, &ns("c"), &[change], true, false).map(drop)
        };
        lab.store.in_transaction(session(1, 7), true, body).unwrap();
        lab.store.abort_transaction(&session(1, 7)).unwrap();
        let events = events(lab, &required());
        assert_eq!(lab.all(&images()).len(), shown(&events).len());
        let count = lab.store.collection(&images()).unwrap().count();
        assert_eq!(usize::try_from(count).unwrap(), shown(&events).len());
    });
}

#[test]
fn images_are_kept_while_the_collection_asks_for_it() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1, "a": 0 }]);
        let change = |a: i32| update(&lab.store, doc! { "_id": 1 }, doc! { "$set": { "a": a } });
        let modify = |on: bool| {
            let asked = raw(&enabled(on));
            lab.store.coll_mod(&op(), &ns("c"), &asked).unwrap();
            let options = lab.store.collection(&ns("c")).unwrap();
            let shown = options.options().to_raw().unwrap();
            shown.get("changeStreamPreAndPostImages").unwrap().is_some()
        };
        change(1);
        assert!(lab.store.collection(&images()).is_none());
        assert!(modify(true));
        change(2);
        assert!(!modify(false));
        change(3);
        let some = |old: &str| {
            doc! {
                "fullDocument": "whenAvailable", "fullDocumentBeforeChange": old,
                "startAtOperationTime": Timestamp { time: 1, increment: 0 },
            }
        };
        let one = |a: i32| Some(doc! { "_id": 1, "a": a });
        let found = events(lab, &stream(some("whenAvailable")));
        let expected = [
            ("update", None, None),
            ("update", one(2), one(1)),
            ("update", None, None),
        ];
        assert_eq!(shown(&found), expected);
        for event in [&found[1], &found[3]] {
            assert_eq!(event.get("fullDocument"), Some(&Bson::Null));
            assert_eq!(event.get("fullDocumentBeforeChange"), Some(&Bson::Null));
        }
        for field in ["fullDocument", "fullDocumentBeforeChange"] {
            let mut stage = some("whenAvailable");
            stage.insert(field, "required");
            let error = watch(lab, &on("c"), &stream(stage)).unwrap_err();
            assert_eq!(error.code.0, NO_MATCHING_DOCUMENT, "{error}");
        }
    });
}

/// The stream that failed resumes without the requirement, or behind the event.
#[test]
fn a_stream_continues_before_the_event_whose_image_is_missing() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1, "a": 0 }]);
        let begun = watch(lab, &on("c"), &stream(doc! {})).unwrap();
        update(&lab.store, doc! { "_id": 1 }, doc! { "$set": { "a": 1 } });
        let stage = |mode: &str| {
            let after = resume(&begun);
            stream(doc! { "fullDocumentBeforeChange": mode, "resumeAfter": after })
        };
        let error = watch(lab, &on("c"), &stage("required")).unwrap_err();
        assert_eq!(error.code.0, NO_MATCHING_DOCUMENT);
        let found = events(lab, &stage("off"));
        assert_eq!(found.len(), 1);
        assert!(!found[0].contains_key("fullDocumentBeforeChange"));
    });
}

/// `follow::images`: by age.
#[test]
fn images_expire_at_their_age() {
    on_each(|lab| {
        for coll in ["a", "b"] {
            lab.store.create(&op(), &ns(coll), options()).unwrap();
            lab.insert(&ns(coll), &[doc! { "_id": 1, "n": 0 }]);
            for n in 1..=3 {
                let change = set(doc! {}, doc! { "$set": { "n": n } });
                lab.store
                    .update(&op(), &ns(coll), &[change], true, false)
                    .unwrap();
            }
        }
        assert_eq!(lab.store.expire_images(&op()).unwrap(), 0, "no limit");
        let age = Duration::from_secs(3_600);
        lab.store.tuning().set_image_age(Some(age));
        assert_eq!(lab.store.expire_images(&op()).unwrap(), 0);
        let mut later = op();
        let of = |image: &Document| *image.get_datetime("operationTime").unwrap();
        let last = lab.all(&images()).iter().map(of).max().unwrap();
        let passed = i64::try_from(age.as_millis()).unwrap();
        later.now = DateTime::from_millis(last.timestamp_millis() + passed);
        lab.store.expire_images(&later).unwrap();
        let left = lab.all(&images());
        assert!(
            left.iter().all(|image| of(image) == last),
            "those of the last moment are left"
        );
        later.now = DateTime::from_millis(later.now.timestamp_millis() + 1);
        lab.store.expire_images(&later).unwrap();
        assert_eq!(lab.all(&images()).len(), 0);
        assert_eq!(lab.store.collection(&images()).unwrap().count(), 0);
    });
}

fn small(engine: &Arc<dyn Engine>, oplog: bool) -> Arc<Store> {
    small_of(engine, (oplog, false))
}

/// `foreign`: the stored oplog is that of another store.
fn small_of(engine: &Arc<dyn Engine>, (oplog, foreign): (bool, bool)) -> Arc<Store> {
    let options = Options {
        oplog,
        foreign_oplog: foreign,
        oplog_limits: Limits {
            segment_bytes: 2_000,
            bytes: 4_000,
            age: Duration::ZERO,
        },
        oplog_period: None,
        ttl_period: None,
        ..Options::default()
    };
    Store::open(Arc::clone(engine), options).unwrap()
}

fn count(store: &Store) -> i64 {
    store
        .collection(&images())
        .map_or(-1, |images| images.count())
}

/// `follow::images` and `ddl::images`: D5.
#[test]
fn images_expire_with_their_entries_and_the_oplog() {
    for factory in [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let engine = factory.open(&path, &EngineOptions::default()).unwrap();
        let engine: Arc<dyn Engine> = Arc::from(engine);
        let store = small(&engine, true);
        store.create(&op(), &ns("c"), options()).unwrap();
        let document = raw(&doc! { "_id": 1, "n": 0 });
        store
            .insert(
                &op(),
                &ns("c"),
                &[&document],
                docdb::InsertOptions::default(),
            )
            .unwrap();
        let mut most = 0;
        for n in 0..400 {
            update(&store, doc! { "_id": 1 }, doc! { "$set": { "n": n + 1 } });
            store.tend_oplog().unwrap();
            store.expire_images(&op()).unwrap();
            most = most.max(count(&store));
        }
        // Entries of about 200 bytes in 3 segments of 2,000.
        assert!((5..50).contains(&most), "{most} on {}", factory.name());
        let mut reader = docdb::OplogReader::from_start(&store).unwrap();
        let first = reader.next(1, usize::MAX).unwrap();
        let entry = docdb::oplog::entry::Entry::parse(&first[0]).unwrap();
        let found = store.find(&op(), &images(), &find(doc! {})).unwrap();
        let oldest = documents(&found)[0].clone();
        let oldest = oldest.get_document("_id").unwrap().get_timestamp("ts");
        assert_eq!(oldest.unwrap(), entry.at.ts);
        drop((reader, store));
        let kept = count(&small(&engine, true));
        assert!(0 < kept, "it keeps them over a restart");
        assert_eq!(count(&small(&engine, false)), -1, "D5");
        let store = small(&engine, true);
        assert_eq!(count(&store), 0, "D4: at opening");
        update(&store, doc! { "_id": 1 }, doc! { "$set": { "n": 0 } });
        assert_eq!(count(&store), 1);
        drop(store);
        assert_eq!(count(&small_of(&engine, (true, true))), 0, "D5: of a copy");
    }
}

/// `oplog::image`: P2.
#[test]
fn only_changes_write_images() {
    on_each(|lab| {
        let store = &lab.store;
        let code = |error: query::Error| error.code.0;
        let made = store.create(&op(), &images(), CollectionOptions::default());
        assert_eq!(code(made.unwrap_err()), 73);
        keeping(lab, &[doc! { "_id": 1 }]);
        update(store, doc! { "_id": 1 }, doc! { "$set": { "a": 1 } });
        assert!(docdb::check_user_write(&images()).is_err());
        let change = set(doc! {}, doc! { "$set": { "a": 1 } });
        let reply = store
            .update(&op(), &images(), &[change], true, false)
            .unwrap();
        assert_eq!(reply.errors[0].error.code.0, 73);
        let reply = store
            .delete(&op(), &images(), &[del(doc! {}, true)], true)
            .unwrap();
        assert_eq!(reply.errors[0].error.code.0, 73);
        let dropped = store.drop_collection(&op(), &images());
        assert_eq!(code(dropped.unwrap_err()), 20);
        let renamed = store.rename(&op(), &images(), &ns("d"), false);
        assert_eq!(code(renamed.unwrap_err()), 20);
        let over = store.rename(&op(), &ns("c"), &images(), true);
        assert_eq!(code(over.unwrap_err()), 73);
        let modified = store.coll_mod(&op(), &images(), &raw(&doc! {}));
        assert_eq!(code(modified.unwrap_err()), 20);
        let capped = store.convert_to_capped(&op(), &images(), 4_096);
        assert!(capped.is_err());
        let index = doc! { "key": { "a": 1 }, "name": "a_1" };
        let indexed = store.create_indexes(&op(), &images(), &[index]);
        assert_eq!(code(indexed.unwrap_err()), 67);
        let dropped = store.drop_indexes(&op(), &images(), &IndexNames::All);
        assert_eq!(code(dropped.unwrap_err()), 20);
        assert_eq!(lab.all(&images()).len(), 1);
    });
}

#[test]
fn what_has_no_events_keeps_no_images() {
    on_each(|lab| {
        for (options, code) in [
            (doc! { "changeStreamPreAndPostImages": true }, 14),
            (
                doc! { "changeStreamPreAndPostImages": { "enabled": 1 } },
                14,
            ),
            (doc! { "changeStreamPreAndPostImages": {} }, 40_414),
            (
                doc! { "changeStreamPreAndPostImages": { "enabled": true, "a": 1 } },
                40_415,
            ),
        ] {
            let error = CollectionOptions::parse(&options).unwrap_err();
            assert_eq!(error.code.0, code, "{options}");
            lab.insert(&ns("c"), &[]);
            lab.store
                .create(&op(), &ns("c"), CollectionOptions::default())
                .unwrap();
            let error = lab.store.coll_mod(&op(), &ns("c"), &raw(&options));
            assert_eq!(error.unwrap_err().code.0, code, "{options}");
        }
        for db in ["admin", "config", "local"] {
            let ns = Namespace::new(db, "c").unwrap();
            let error = lab.store.create(&op(), &ns, options()).unwrap_err();
            assert_eq!(error.code.0, 72, "{db}");
        }
        let mut view = enabled(true);
        view.insert("viewOn", "c");
        let view = CollectionOptions::parse(&view).unwrap();
        let error = lab.store.create(&op(), &ns("v"), view).unwrap_err();
        assert_eq!(error.code.0, 72);
        let view = CollectionOptions::parse(&doc! { "viewOn": "c" }).unwrap();
        lab.store.create(&op(), &ns("v"), view).unwrap();
        let error = lab.store.coll_mod(&op(), &ns("v"), &raw(&enabled(true)));
        assert_eq!(error.unwrap_err().code.0, 72);
    });
}

#[test]
fn a_transaction_creates_what_keeps_images() {
    on_each(|lab| {
        let store = Arc::clone(&lab.store);
        let body = move |op: &docdb::Op<'_>| {
            store.create(op, &ns("c"), options())?;
            let document = raw(&doc! { "_id": 1, "a": 0 });
            let inserted = docdb::InsertOptions::default();
            store.insert(op, &ns("c"), &[&document], inserted)?;
            let change = set(doc! {}, doc! { "$inc": { "a": 1 } });
            store.update(op, &ns("c"), &[change], true, false).map(drop)
        };
        lab.store.in_transaction(session(1, 7), true, body).unwrap();
        lab.store.commit_transaction(&session(1, 7)).unwrap();
        let one = |a: i32| Some(doc! { "_id": 1, "a": a });
        let found = events(lab, &required());
        assert_eq!(shown(&found), [("update", one(1), one(0))]);
        update(&lab.store, doc! {}, doc! { "$inc": { "a": 1 } });
        assert_eq!(events(lab, &required()).len(), 3);
    });
}

/// Trap 23 of replication: what is written without a check for conflicts (index entries, images,
/// oplog entries) has the order of the commits of each document, as writers run side by side. That
/// the oplog leads to the state of the store and its indexes are sound is checked after the test.
#[test]
fn the_changes_of_a_document_are_in_the_order_of_its_commits() {
    const WRITERS: i32 = 4;
    const EACH: i32 = 60;
    on_each(|lab| {
        keeping(lab, &[doc! { "_id": 0 }, doc! { "_id": 1 }]);
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a_1" });
        let writer = |writer: i32| {
            let store = Arc::clone(&lab.store);
            let body = move || {
                for n in 0..EACH {
                    let value = doc! { "w": writer, "n": n };
                    let slice = doc! { "$each": [value], "$slice": -3 };
                    let change = doc! { "$push": { "a": slice }, "$inc": { "i": 1 } };
                    update(&store, doc! { "_id": n % 2 }, change);
                }
            };
            stdx::sync::spawn("writer", body).unwrap()
        };
        let threads: Vec<_> = (0..WRITERS).map(writer).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut batch = watch(lab, &on("c"), &required()).unwrap();
        let mut all = Vec::new();
        while !batch.documents.is_empty() {
            all.extend(documents(&batch));
            batch = lab.more(&batch, 1_000).unwrap();
        }
        for id in 0..2 {
            let mut last = Some(doc! { "_id": id });
            let mut count = 0;
            for (_, new, old) in shown(&all) {
                if new.as_ref().unwrap().get_i32("_id").unwrap() == id {
                    assert_eq!(old, last, "{}", lab.engine());
                    last = new;
                    count += 1;
                }
            }
            assert_eq!(count, WRITERS * EACH / 2);
            assert_eq!(
                lab.all(&ns("c")).get(usize::try_from(id).unwrap()),
                last.as_ref()
            );
        }
    });
}

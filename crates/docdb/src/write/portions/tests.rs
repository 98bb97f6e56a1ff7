//! Writes and reads in portions whose collection or index disappears between two portions.

use std::rc::Rc;

use bson::{Document, RawDocumentBuf, doc};
use kv::{Durability, EngineOptions, Factory};
use query::{Code, Error, Result};
use tempfile::TempDir;

use super::*;
use crate::ddl::IndexNames;
use crate::find::{CountRequest, DistinctRequest, FindRequest};
use crate::pause::next_time;
use crate::store::Options;
use crate::write::{DeleteStatement, InsertOptions, UpdateStatement};

/// Number of documents in the collection: more than two portions.
const DOCUMENTS: i32 = 1_200;

struct Site {
    store: Arc<Store>,
    ns: Namespace,
    engine: &'static str,
    _directory: TempDir,
}

fn op() -> Op<'static> {
    Op::new(Durability::None)
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn other() -> Namespace {
    Namespace::new("d", "other").unwrap()
}

impl Site {
    fn new(factory: &'static dyn Factory) -> Site {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let engine = factory.open(&path, &EngineOptions::default()).unwrap();
        let options = Options {
            temp_dir: directory.path().join("tmp"),
            ..Options::default()
        };
        let site = Site {
            store: Store::open(Arc::from(engine), options).unwrap(),
            ns: Namespace::new("d", "c").unwrap(),
            engine: factory.name(),
            _directory: directory,
        };
        site.fill(&site.ns);
        let index = doc! { "key": { "a": 1 }, "name": "a_1" };
        site.store
            .create_indexes(&op(), &site.ns, &[index])
            .unwrap();
        site
    }

    fn fill(&self, ns: &Namespace) {
        let documents: Vec<RawDocumentBuf> = (0..DOCUMENTS)
            .map(|n| raw(&doc! { "_id": n, "a": n, "x": 0 }))
            .collect();
        let refs: Vec<&bson::RawDocument> = documents.iter().map(AsRef::as_ref).collect();
        let options = InsertOptions::default();
        let reply = self.store.insert(&op(), ns, &refs, options).unwrap();
        assert!(reply.errors.is_empty());
    }

    /// The number of documents that match `filter`.
    fn count(&self, ns: &Namespace, filter: Document) -> u64 {
        let request = CountRequest {
            filter: raw(&filter),
            ..CountRequest::default()
        };
        self.store.count(&op(), ns, &request).unwrap()
    }

    fn update(&self) -> Result<()> {
        let filter = raw(&doc! { "a": { "$gte": 0 } });
        let statement = UpdateStatement {
            multi: true,
            hint: Some("a_1".into()),
            ..UpdateStatement::new(filter, raw(&doc! { "$inc": { "x": 1 } }))
        };
        let reply = self
            .store
            .update(&op(), &self.ns, &[statement], true, false)?;
        reply
            .errors
            .into_iter()
            .next()
            .map_or(Ok(()), |e| Err(e.error))
    }

    fn delete(&self) -> Result<()> {
        let statement = DeleteStatement {
            multi: true,
            hint: Some("a_1".into()),
            ..DeleteStatement::new(raw(&doc! { "a": { "$gte": 0 } }))
        };
        let reply = self.store.delete(&op(), &self.ns, &[statement], true)?;
        reply
            .errors
            .into_iter()
            .next()
            .map_or(Ok(()), |e| Err(e.error))
    }

    fn read_count(&self) -> Result<()> {
        let request = CountRequest {
            filter: raw(&doc! { "a": { "$gte": 0 }, "x": 0 }),
            hint: Some("a_1".into()),
            ..CountRequest::default()
        };
        self.store.count(&op(), &self.ns, &request).map(|_| ())
    }

    fn find(&self) -> Result<()> {
        let request = FindRequest {
            filter: raw(&doc! { "a": { "$gte": 0 } }),
            hint: Some("a_1".into()),
            batch_size: Some(2_000),
            ..FindRequest::default()
        };
        self.store.find(&op(), &self.ns, &request).map(|_| ())
    }

    fn distinct(&self) -> Result<()> {
        let request = DistinctRequest {
            key: "x".to_owned(),
            filter: raw(&doc! { "a": { "$gte": 0 } }),
            hint: Some("a_1".into()),
            ..DistinctRequest::default()
        };
        self.store.distinct(&op(), &self.ns, &request).map(|_| ())
    }

    fn aggregate(&self) -> Result<()> {
        let stages = [
            // A pipeline keeps its view while it finds documents.
            doc! { "$match": { "a": { "$gte": 0 }, "x": 5 } },
            doc! { "$group": { "_id": null, "n": { "$sum": "$x" } } },
        ];
        let request = crate::AggregateRequest {
            hint: Some("a_1".into()),
            ..pipeline(&stages)
        };
        self.store.aggregate(&op(), &self.ns, &request).map(|_| ())
    }
}

fn pipeline(stages: &[Document]) -> crate::AggregateRequest {
    let mut request = crate::AggregateRequest::default();
    for stage in stages {
        request.pipeline.push(raw(stage));
    }
    request
}

/// A change of a collection.
type Change = fn(&Store, &Namespace);

/// The changes of the collection, each with the start of the expected error message.
const CHANGES: [(Change, &str); 5] = [
    (
        |store, ns| {
            let names = IndexNames::Names(vec!["a_1".to_owned()]);
            store.drop_indexes(&op(), ns, &names).unwrap();
        },
        "query plan killed :: index 'a_1' dropped",
    ),
    (
        |store, ns| {
            assert!(store.drop_collection(&op(), ns).unwrap());
        },
        "collection dropped. UUID ",
    ),
    (
        |store, ns| store.rename(&op(), ns, &other(), false).unwrap(),
        "collection renamed from 'd.c' to 'd.other'. UUID ",
    ),
    (
        |store, ns| {
            store.rename(&op(), ns, &other(), false).unwrap();
            insert_same(store, ns);
        },
        "collection renamed from 'd.c' to 'd.other'. UUID ",
    ),
    (
        |store, ns| {
            let next = Namespace::new("d", "next").unwrap();
            insert_same(store, &next);
            store.rename(&op(), &next, ns, true).unwrap();
        },
        "collection dropped. UUID ",
    ),
];

/// Insert documents like those of the old collection, with the same record numbers.
fn insert_same(store: &Store, ns: &Namespace) {
    let documents: Vec<RawDocumentBuf> = (0..DOCUMENTS)
        .map(|n| raw(&doc! { "_id": n, "a": n, "x": 0, "new": true }))
        .collect();
    let refs: Vec<&bson::RawDocument> = documents.iter().map(AsRef::as_ref).collect();
    let reply = store.insert(&op(), ns, &refs, InsertOptions::default());
    assert!(reply.unwrap().errors.is_empty());
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    store.create_indexes(&op(), ns, &[index]).unwrap();
}

/// Run an operation on each engine, with each change after its first portion.
fn check(name: &str, operation: fn(&Site) -> Result<()>, after: impl Fn(&Site)) {
    for factory in [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ] {
        for (change, message) in CHANGES {
            let site = Site::new(factory);
            let done = Rc::new(std::cell::Cell::new(false));
            let (store, ns, ended) = (Arc::clone(&site.store), site.ns.clone(), Rc::clone(&done));
            next_time(move || {
                change(&store, &ns);
                ended.set(true);
            });
            let error: Error = operation(&site).expect_err(message);
            assert!(done.get(), "{name} on {} is in portions", site.engine);
            let place = format!("{name} on {}: {error}", site.engine);
            assert_eq!(error.code, Code::QUERY_PLAN_KILLED, "{place}");
            assert!(error.message.contains(message), "{place}");
            assert!(!error.message.contains("tree"), "{place}");
            after(&site);
        }
    }
}

/// P1.
#[test]
fn updates_end_and_change_no_other_collection() {
    check("update", Site::update, |site| {
        let changed = doc! { "x": { "$ne": 0 } };
        if site.store.collection(&site.ns).is_some() {
            let filter = doc! { "new": true, "x": { "$ne": 0 } };
            assert_eq!(site.count(&site.ns, filter), 0);
        }
        if site.store.collection(&other()).is_some() {
            assert_eq!(site.count(&other(), changed), 500, "the first portion");
        }
    });
}

/// P1.
#[test]
fn deletes_end_and_delete_nothing_of_another_collection() {
    check("delete", Site::delete, |site| {
        let all = u64::try_from(DOCUMENTS).unwrap();
        if site.store.collection(&site.ns).is_some() {
            let new = site.count(&site.ns, doc! { "new": true });
            assert!(new == 0 || new == all, "{new}");
        }
        if site.store.collection(&other()).is_some() {
            assert_eq!(site.count(&other(), doc! { "a": { "$gte": 0 } }), all - 500);
        }
    });
}

/// P3.
#[test]
fn a_collection_that_is_dropped_before_has_no_matching_documents() {
    let site = Site::new(kv::memory::factory());
    assert!(site.store.drop_collection(&op(), &site.ns).unwrap());
    site.update().unwrap();
    site.delete().unwrap();
    assert!(site.store.collection(&site.ns).is_none());
}

/// `cursor::alive`: A1 and A2.
#[test]
fn reads_end_where_they_renew_their_view() {
    check("count", Site::read_count, |_| ());
    check("find", Site::find, |_| ());
    check("distinct", Site::distinct, |_| ());
    check("aggregate", Site::aggregate, |_| ());
}

/// A portion repeated after a conflict checks again: a collection that has meanwhile taken the name
/// has records with the same numbers.
/// P2.
#[test]
fn a_portion_that_is_repeated_checks_again() {
    let site = Site::new(kv_betree::factory());
    let op = op();
    let collection = site.store.collection(&site.ns).unwrap();
    let statement = DeleteStatement::new(raw(&doc! {}));
    let seek = Seek::parse(&op, &statement.selection(), Some(&collection)).unwrap();
    let target = Target::new(&site.ns, Some(&collection));
    let (store, ns) = (Arc::clone(&site.store), site.ns.clone());
    next_time(move || {
        store
            .drop_collection(&Op::new(Durability::None), &ns)
            .unwrap();
        insert_same(&store, &ns);
    });
    let mut attempts = 0;
    let mut portions = Portions::new(&site.store, &op, target, &seek);
    let done = portions.next(&mut |_, _, _| {
        attempts += 1;
        Err(crate::error::conflict())
    });
    assert_eq!(done.unwrap_err().code, Code::QUERY_PLAN_KILLED);
    assert_eq!(attempts, 1);
}

/// The collection that the second `$unionWith` reads is dropped and created again while the first
/// one runs: the pipeline's view is older.
#[test]
fn pipelines_read_collections_that_are_newer_than_their_view() {
    for factory in [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ] {
        let site = Site::new(factory);
        site.fill(&other());
        let replace = |_: &Namespace, _: &query::stage::Statistics| {
            site.store.drop_collection(&op(), &other()).unwrap();
            insert_same(&site.store, &other());
            Ok(Vec::new())
        };
        let stages = [
            doc! { "$match": { "a": { "$lt": 1 } } },
            doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$indexStats": {} }] } },
            doc! { "$unionWith": "other" },
            doc! { "$match": { "new": true } },
            doc! { "$count": "n" },
        ];
        let request = pipeline(&stages);
        let done = site
            .store
            .aggregate_with(&op(), &site.ns, &request, Some(&replace));
        let batch = done.unwrap();
        let counted = batch.documents.first().unwrap().get_i32("n").unwrap();
        assert_eq!(counted, DOCUMENTS, "{}", site.engine);
    }
}

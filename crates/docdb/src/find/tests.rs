//! Tests of queries against a scan with the filter.

use std::sync::Arc;

use bson::{Document, RawDocumentBuf, doc};
use kv::{Durability, Engine, EngineOptions};
use query::Namespace;

use super::FindRequest;
use crate::cursor::GetMore;
use crate::store::{Options, Store};
use crate::txn::Op;

pub(crate) struct Fixture {
    pub(crate) store: Arc<Store>,
    pub(crate) ns: Namespace,
    pub(crate) op: Op<'static>,
    engine: Arc<dyn Engine>,
    directory: tempfile::TempDir,
}

fn open(engine: &Arc<dyn Engine>, directory: &tempfile::TempDir) -> Arc<Store> {
    let options = Options {
        temp_dir: directory.path().join("tmp"),
        ttl_period: None,
        ..Options::default()
    };
    Store::open(Arc::clone(engine), options).unwrap()
}

pub(crate) fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture::within(|engine| engine)
    }

    /// A fixture on the reference engine, wrapped by `wrap`.
    pub(crate) fn within(wrap: impl FnOnce(Box<dyn Engine>) -> Box<dyn Engine>) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory()
            .open(directory.path(), &EngineOptions::default())
            .unwrap();
        let engine: Arc<dyn Engine> = Arc::from(wrap(engine));
        Fixture {
            store: open(&engine, &directory),
            engine,
            ns: Namespace::parse("db.c").unwrap(),
            op: Op::new(Durability::None),
            directory,
        }
    }

    /// Close the store and open it again.
    pub(crate) fn reopen(&mut self) {
        self.store.close().unwrap();
        self.store = open(&self.engine, &self.directory);
    }

    pub(crate) fn insert(&self, documents: &[Document]) {
        let raws: Vec<RawDocumentBuf> = documents.iter().map(raw).collect();
        let refs: Vec<&bson::RawDocument> = raws.iter().map(AsRef::as_ref).collect();
        let reply = self
            .store
            .insert(&self.op, &self.ns, &refs, crate::InsertOptions::default())
            .unwrap();
        assert_eq!(reply.errors.len(), 0, "{:?}", reply.errors);
    }

    /// All documents of a query, batch by batch.
    pub(crate) fn find(&self, request: &FindRequest) -> Vec<Document> {
        let mut batch = self.store.find(&self.op, &self.ns, request).unwrap();
        let mut all = batch.documents;
        while batch.id != 0 {
            let more = GetMore {
                id: batch.id,
                ns: self.ns.clone(),
                batch_size: request.batch_size,
                waits: false,
                waited: false,
            };
            batch = self.store.get_more(&self.op, &more).unwrap();
            all.append(&mut batch.documents);
        }
        all.iter().map(|d| Document::try_from(d).unwrap()).collect()
    }
}

fn find(filter: &Document) -> FindRequest {
    FindRequest {
        filter: raw(filter),
        ..FindRequest::default()
    }
}

#[test]
fn documents_come_in_batches_sorted_and_cut() {
    let fixture = Fixture::new();
    let documents: Vec<Document> = (0..500).map(|n| doc! { "_id": n, "a": n % 7 }).collect();
    fixture.insert(&documents);
    assert_eq!(fixture.find(&find(&doc! {})), documents);
    assert_eq!(
        fixture.find(&find(&doc! { "_id": 77 })),
        [doc! { "_id": 77, "a": 0 }]
    );
    let request = FindRequest {
        sort: Some(raw(&doc! { "a": -1, "_id": 1 })),
        skip: 3,
        limit: Some(5),
        projection: Some(raw(&doc! { "_id": 1 })),
        batch_size: Some(2),
        ..find(&doc! { "a": { "$gt": 4 } })
    };
    let ids: Vec<i32> = fixture
        .find(&request)
        .iter()
        .map(|d| d.get_i32("_id").unwrap())
        .collect();
    assert_eq!(ids, [27, 34, 41, 48, 55]);
}

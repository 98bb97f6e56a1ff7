//! Shared by the tests: a store on an engine, and functions to fill and read it.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use bson::{Document, RawDocument, RawDocumentBuf};
use docdb::{
    AggregateRequest, Batch, FindRequest, GetMore, InsertOptions, InsertReply, Namespace, Op,
    Options, Store,
};
use kv::{Durability, EngineOptions, Factory};
use stdx::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// A store in its own directory.
pub(crate) struct Lab {
    factory: &'static dyn Factory,
    directory: TempDir,
    pub(crate) store: Arc<Store>,
    /// Whether entries of the oplog were removed, so that it does not lead to the state.
    partial: AtomicBool,
}

/// Run a test on each engine, and check that the oplog leads to the state of the store.
pub(crate) fn on_each(test: impl Fn(&mut Lab)) {
    let engines = [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ];
    for factory in engines {
        let mut lab = Lab::new(factory);
        test(&mut lab);
        lab.validate();
        if !lab.partial.load(Ordering::Relaxed) {
            crate::replay::check(&lab.store, lab.engine());
        }
    }
}

impl Lab {
    fn new(factory: &'static dyn Factory) -> Lab {
        let directory = tempfile::tempdir().unwrap();
        let store = open(factory, &directory);
        Lab {
            factory,
            directory,
            store,
            partial: AtomicBool::new(false),
        }
    }

    /// Do not check the oplog at the end: the test removes some of it.
    pub(crate) fn forget_oplog(&self) {
        self.partial.store(true, Ordering::Relaxed);
    }

    /// The engine's name, for messages.
    pub(crate) fn engine(&self) -> &'static str {
        self.factory.name()
    }

    /// Run `validate` on every collection.
    pub(crate) fn validate(&self) {
        for (ns, named) in self.store.catalog().iter() {
            if named.collection().is_some() {
                let report = self.store.validate(&op(), ns).unwrap();
                assert!(
                    report.get_bool("valid").unwrap(),
                    "E1 and W2: {}: {report}",
                    self.engine()
                );
            }
        }
    }

    /// Close the store and open it again. Returns false for engines that keep nothing.
    pub(crate) fn reopen(&mut self) -> bool {
        if !self.factory.capabilities().persistent {
            return false;
        }
        self.store.close().unwrap();
        // Threads of ended transactions may hold the store for a moment.
        while 1 < Arc::strong_count(&self.store) {
            std::hint::spin_loop();
        }
        // The engine must be closed before it is opened again: replace the store by another one
        // meanwhile.
        let other = tempfile::tempdir().unwrap();
        self.store = open(kv::memory::factory(), &other);
        self.store = open(self.factory, &self.directory);
        true
    }

    /// [`Lab::reopen`] if the engine is persistent.
    pub(crate) fn reopen_if_persistent(&mut self) {
        self.reopen();
    }

    pub(crate) fn insert(&self, ns: &Namespace, documents: &[Document]) -> InsertReply {
        self.insert_with(ns, documents, InsertOptions::default())
    }

    pub(crate) fn insert_with(
        &self,
        ns: &Namespace,
        documents: &[Document],
        options: InsertOptions,
    ) -> InsertReply {
        let raw: Vec<RawDocumentBuf> = documents
            .iter()
            .map(|d| RawDocumentBuf::try_from(d).unwrap())
            .collect();
        let raw: Vec<&RawDocument> = raw.iter().map(AsRef::as_ref).collect();
        self.store.insert(&op(), ns, &raw, options).unwrap()
    }

    /// Create an index.
    pub(crate) fn index(&self, coll: &str, spec: Document) {
        self.store
            .create_indexes(&op(), &ns(coll), &[spec])
            .unwrap();
    }

    /// All documents that a pipeline returns, in batches of two.
    pub(crate) fn aggregate(&self, coll: &str, pipeline: &[Document]) -> Vec<Document> {
        self.try_aggregate(coll, pipeline).unwrap()
    }

    pub(crate) fn try_aggregate(
        &self,
        coll: &str,
        pipeline: &[Document],
    ) -> query::Result<Vec<Document>> {
        let request = AggregateRequest {
            batch_size: Some(2),
            ..of(pipeline)
        };
        self.drain(self.store.aggregate(&op(), &ns(coll), &request)?, 2)
    }

    /// The documents of a batch and of all following ones, which have `size` documents each.
    pub(crate) fn drain(&self, mut batch: Batch, size: u64) -> query::Result<Vec<Document>> {
        let mut all = documents(&batch);
        while batch.id != 0 {
            batch = self.more(&batch, size)?;
            assert!(batch.documents.len() as u64 <= size, "{}", self.engine());
            all.extend(documents(&batch));
        }
        Ok(all)
    }

    /// The next batch of a cursor.
    pub(crate) fn more(&self, batch: &Batch, size: u64) -> query::Result<Batch> {
        let request = GetMore {
            id: batch.id,
            ns: batch.ns.clone(),
            batch_size: Some(size),
            waits: false,
            waited: false,
        };
        self.store.get_more(&op(), &request)
    }

    /// The next batch of a cursor. An empty one has a wait for documents, unless the cursor has
    /// `waited`.
    pub(crate) fn more_waiting(&self, batch: &Batch, waited: bool) -> Batch {
        let request = GetMore {
            id: batch.id,
            ns: batch.ns.clone(),
            batch_size: None,
            waits: true,
            waited,
        };
        self.store.get_more(&op(), &request).unwrap()
    }

    /// All documents in the order of their records.
    pub(crate) fn all(&self, ns: &Namespace) -> Vec<Document> {
        let Some(collection) = self.store.collection(ns) else {
            return Vec::new();
        };
        let snapshot = self.store.engine().begin_read().unwrap();
        let mut cursor = snapshot
            .cursor(
                collection.records(),
                kv::KeyRange::ALL,
                kv::Direction::Forward,
            )
            .unwrap();
        let mut all = Vec::new();
        while cursor.advance().unwrap() {
            let raw = RawDocument::from_bytes(cursor.value()).unwrap();
            all.push(Document::try_from(raw).unwrap());
        }
        all
    }
}

fn open(factory: &'static dyn Factory, directory: &TempDir) -> Arc<Store> {
    let path = directory.path().join("store");
    let engine = factory.open(&path, &EngineOptions::default()).unwrap();
    let options = Options {
        oplog: true,
        // Small segments, so that the oplog of most tests has several.
        oplog_limits: docdb::oplog::Limits {
            segment_bytes: 4096,
            ..docdb::oplog::Limits::default()
        },
        ..Options::default()
    };
    Store::open(Arc::from(engine), options).unwrap()
}

pub(crate) fn op() -> Op<'static> {
    Op::new(Durability::Interval)
}

pub(crate) fn ns(coll: &str) -> Namespace {
    Namespace::new("test", coll).unwrap()
}

pub(crate) fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// A `find` with only a filter.
pub(crate) fn find(filter: Document) -> FindRequest {
    FindRequest {
        filter: raw(&filter),
        ..FindRequest::default()
    }
}

/// A pipeline without further options.
pub(crate) fn of(pipeline: &[Document]) -> AggregateRequest {
    AggregateRequest {
        pipeline: pipeline.iter().map(raw).collect(),
        ..AggregateRequest::default()
    }
}

/// The documents of a batch.
pub(crate) fn documents(batch: &Batch) -> Vec<Document> {
    let owned = |raw: &RawDocumentBuf| Document::try_from(raw.as_ref()).unwrap();
    batch.documents.iter().map(owned).collect()
}

/// Whether a wait for data has ended.
pub(crate) fn is_ready(awaiting: &mut docdb::Awaiting) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(awaiting).poll(&mut context).is_ready()
}

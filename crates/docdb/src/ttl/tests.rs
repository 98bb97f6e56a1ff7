//! Passes over several collections, one of which cannot be read.

use bson::{Document, RawDocument, RawDocumentBuf, doc};
use kv::EngineOptions;
use stdx::sync::Mutex;

use super::*;
use crate::record::RecordId;
use crate::store::Options;
use crate::write::InsertOptions;

fn ns(coll: &str) -> Namespace {
    Namespace::new("d", coll).unwrap()
}

fn op() -> Op<'static> {
    Op::new(Durability::None)
}

/// A store with one collection of ten expired documents per name.
fn store(directory: &tempfile::TempDir, names: &[&str]) -> Arc<Store> {
    let factory = kv::memory::factory();
    let engine = factory.open(directory.path(), &EngineOptions::default());
    let store = Store::open(Arc::from(engine.unwrap()), Options::default()).unwrap();
    store.tuning().set_ttl_on(false);
    for name in names {
        let index = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 60 };
        let old = DateTime::from_millis(1_000);
        let documents: Vec<RawDocumentBuf> = (0..10)
            .map(|n| RawDocumentBuf::try_from(&doc! { "_id": n, "at": old, "a": n }).unwrap())
            .collect();
        let refs: Vec<&RawDocument> = documents.iter().map(AsRef::as_ref).collect();
        let reply = store.insert(&op(), &ns(name), &refs, InsertOptions::default());
        assert_eq!(reply.unwrap().n, 10);
        store.create_indexes(&op(), &ns(name), &[index]).unwrap();
    }
    store
}

fn count(store: &Store, name: &str) -> i64 {
    store.collection(&ns(name)).unwrap().count()
}

/// T1.
#[test]
fn a_delete_that_fails_leaves_the_other_collections_to_the_pass() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory, &["a", "b", "c"]);
    // A document of the second collection is damaged.
    let damaged = store.collection(&ns("b")).unwrap();
    let mut txn = store.engine().begin_write().unwrap();
    let record = RecordId::number(1).key();
    assert!(txn.get(damaged.records(), &record).unwrap().is_some());
    txn.put(damaged.records(), &record, b"no document").unwrap();
    txn.commit(Durability::None).unwrap();
    let failures = Arc::new(Mutex::new(Vec::<Document>::new()));
    let listener = Arc::clone(&failures);
    store.on_expiry_failure(Box::new(move |failure| {
        let index = failure.index.map(str::to_owned);
        let ns = failure.ns.to_string();
        listener.lock().push(doc! { "ns": ns, "index": index });
    }));
    assert_eq!(store.expire(&op()).unwrap(), 20);
    assert_eq!(count(&store, "a"), 0);
    assert_eq!(count(&store, "c"), 0, "behind the one that failed");
    let expected = doc! { "ns": "d.b", "index": "at_1" };
    assert_eq!(*failures.lock(), [expected]);
    assert_eq!(store.figures().ttl_failed.load(Ordering::Relaxed), 1);
    // An operation that must end ends the pass.
    let killed = op();
    killed.killed.store(Code::INTERRUPTED.0, Ordering::Relaxed);
    assert_eq!(store.expire(&killed).unwrap_err().code, Code::INTERRUPTED);
    assert_eq!(store.figures().ttl_failed.load(Ordering::Relaxed), 1);
}

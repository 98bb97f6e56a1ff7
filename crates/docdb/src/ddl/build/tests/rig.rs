//! Shared by the tests of builds: a filled store, and operations on their own threads that the test
//! steps from one pause point to the next.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bson::{Document, RawDocumentBuf, doc};
use kv::{Durability, EngineOptions, Factory};
use query::{Code, Namespace, Result};
use stdx::sync::atomic::{AtomicI32, Ordering};
use tempfile::TempDir;

use crate::collection::CollectionOptions;
use crate::ddl::CreateIndexesReply;
use crate::find::CountRequest;
use crate::stop::{Point, at_points};
use crate::store::{Options, Store};
use crate::txn::Op;
use crate::write::{DeleteStatement, InsertOptions, UpdateStatement};

/// Maximum time that a test waits for an expected event.
const LIMIT: Duration = Duration::from_secs(120);

/// A store with a collection.
pub(super) struct Site {
    pub(super) store: Arc<Store>,
    pub(super) ns: Namespace,
    pub(super) op: Op<'static>,
    pub(super) directory: TempDir,
    pub(super) factory: &'static dyn Factory,
}

pub(super) fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

pub(super) fn open(factory: &dyn Factory, directory: &TempDir) -> Arc<Store> {
    let path = directory.path().join("store");
    let engine = factory.open(&path, &EngineOptions::default()).unwrap();
    let options = Options {
        ttl_period: None,
        ..Options::default()
    };
    Store::open(Arc::from(engine), options).unwrap()
}

pub(super) fn named(coll: &str) -> Namespace {
    Namespace::new("d", coll).unwrap()
}

pub(super) fn on_each(body: impl Fn(Site)) {
    body(Site::new(kv_betree::factory()));
    body(Site::new(kv::memory::factory()));
    body(Site::new(kv_betree::factory()).clustered());
}

/// Run `body` on three engines with a hundred documents: each value of `a` occurs in 10 of them,
/// `u` is unique.
pub(super) fn on_filled(body: impl Fn(&Site)) {
    let engines = [
        kv_betree::factory(),
        kv::memory::factory(),
        kv_lmdb::factory(),
    ];
    for factory in engines {
        let site = Site::new(factory);
        site.fill();
        body(&site);
        site.validate();
    }
}

impl Site {
    pub(super) fn new(factory: &'static dyn Factory) -> Site {
        let directory = tempfile::tempdir().unwrap();
        Site {
            store: open(factory, &directory),
            ns: named("c"),
            op: Op::new(Durability::Group),
            directory,
            factory,
        }
    }

    pub(super) fn clustered(self) -> Site {
        let options = doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } };
        let options = CollectionOptions::parse(&options).unwrap();
        self.store.create(&self.op, &self.ns, options).unwrap();
        self
    }

    pub(super) fn fill(&self) {
        for id in 0..100 {
            self.put(&self.ns, &doc! { "_id": id, "a": id % 10, "u": id })
                .unwrap();
        }
    }

    /// Close the store, once its operations have ended, and open it again.
    pub(super) fn reopen(self) -> Site {
        let Site {
            store,
            ns,
            op,
            directory,
            factory,
        } = self;
        // Threads of ended transactions may hold the store for a moment.
        while 1 < Arc::strong_count(&store) {
            std::hint::spin_loop();
        }
        drop(store);
        Site {
            store: open(factory, &directory),
            ns,
            op,
            directory,
            factory,
        }
    }

    /// Insert a document.
    pub(super) fn put(&self, ns: &Namespace, document: &Document) -> Result<()> {
        let document = raw(document);
        let options = InsertOptions::default();
        let reply = self.store.insert(&self.op, ns, &[&document], options)?;
        match reply.errors.into_iter().next() {
            None => Ok(()),
            Some(first) => Err(first.error),
        }
    }

    pub(super) fn insert(&self, id: i32, a: i32) {
        self.put(&self.ns, &doc! { "_id": id, "a": a }).unwrap();
    }

    pub(super) fn set(&self, id: i32, a: i32) {
        let change =
            UpdateStatement::new(raw(&doc! { "_id": id }), raw(&doc! { "$set": { "a": a } }));
        let store = &self.store;
        store
            .update(&self.op, &self.ns, &[change], true, false)
            .unwrap();
    }

    pub(super) fn remove(&self, id: i32) {
        let gone = DeleteStatement::new(raw(&doc! { "_id": id }));
        self.store
            .delete(&self.op, &self.ns, &[gone], true)
            .unwrap();
    }

    /// The names of the indexes, each with whether it is ready.
    pub(super) fn indexes(&self, ns: &Namespace) -> Vec<(String, bool)> {
        let collection = self.store.collection(ns);
        let indexes = collection.iter().flat_map(|c| c.indexes());
        indexes
            .map(|index| (index.name().to_owned(), index.is_ready()))
            .collect()
    }

    /// The names of the indexes; checks that all are ready.
    pub(super) fn ready(&self, ns: &Namespace) -> Vec<String> {
        let ready = |(name, is_ready): (String, bool)| {
            assert!(is_ready, "{name}");
            name
        };
        self.indexes(ns).into_iter().map(ready).collect()
    }

    /// The number of documents that match.
    pub(super) fn count(&self, ns: &Namespace, filter: Document) -> u64 {
        self.store.count(&self.op, ns, &counting(&filter)).unwrap()
    }

    /// Run `validate` on every collection.
    pub(super) fn validate(&self) {
        for (ns, named) in self.store.catalog().iter() {
            if named.collection().is_some() {
                let report = self.store.validate(&self.op, ns).unwrap();
                assert!(report.get_bool("valid").unwrap(), "{report}");
            }
        }
    }

    /// Start a `createIndexes` on its own thread, which stops at the given points.
    pub(super) fn create(&self, ns: &Namespace, specs: &[Document], stops: &[Point]) -> Actor {
        Actor::new(&self.store, ns.clone(), specs.to_vec(), stops, None)
    }
}

pub(super) fn counting(filter: &Document) -> CountRequest {
    CountRequest {
        filter: raw(filter),
        ..CountRequest::default()
    }
}

/// The specification of an index, with the name that drivers generate.
pub(super) fn spec(key: &Document, more: Document) -> Document {
    let parts = key.iter().map(|(field, kind)| format!("{field}_{kind}"));
    let name = parts.collect::<Vec<_>>().join("_");
    let mut spec = doc! { "key": key.clone(), "name": name };
    spec.extend(more);
    spec
}

pub(super) fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code
}

/// A `createIndexes` on its own thread.
pub(super) struct Actor {
    orders: Sender<Order>,
    news: Receiver<News>,
    killed: Arc<AtomicI32>,
}

enum Order {
    Next,
    Finish,
    Die,
}

/// The state of an [`Actor`].
#[derive(Debug)]
pub(super) enum News {
    /// It has stopped at a point; at [`Point::Waits`] it waits for another build instead.
    At(Point),
    Done(Result<CreateIndexesReply>),
    /// Its thread was ended, as in a killed process.
    Dead,
}

/// The panic payload that ends a thread.
struct Death;

impl Actor {
    pub(super) fn new(
        store: &Arc<Store>,
        ns: Namespace,
        specs: Vec<Document>,
        stops: &[Point],
        limit: Option<Duration>,
    ) -> Actor {
        let (orders, taken) = channel();
        let (sender, news) = channel();
        let killed = Arc::new(AtomicI32::new(0));
        let (store, stops, kill) = (Arc::clone(store), stops.to_vec(), Arc::clone(&killed));
        let hook_news = sender.clone();
        let hook = hook(stops, taken, hook_news);
        let body = move || {
            let work = || {
                let op = Op {
                    killed: kill,
                    deadline: limit.map(|limit| stdx::time::now() + limit),
                    ..Op::new(Durability::Group)
                };
                at_points(hook, || store.create_indexes(&op, &ns, &specs))
            };
            let done = catch_unwind(AssertUnwindSafe(work));
            drop(store);
            let last = match done {
                Ok(done) => News::Done(done),
                Err(why) if why.is::<Death>() => News::Dead,
                Err(why) => resume_unwind(why),
            };
            // The receiver is gone if the test has ended.
            drop(sender.send(last));
        };
        drop(stdx::sync::spawn("actor", body).unwrap());
        Actor {
            orders,
            news,
            killed,
        }
    }

    /// Wait for its next state.
    pub(super) fn news(&self) -> News {
        self.news.recv_timeout(LIMIT).expect("the thread lives")
    }

    /// Wait until it stops at a point.
    pub(super) fn at(&self, point: Point) -> &Actor {
        match self.news() {
            News::At(there) if there == point => self,
            other => panic!("{other:?} and not {point:?}"),
        }
    }

    /// Let it continue to its next point.
    pub(super) fn go(&self) -> &Actor {
        self.orders.send(Order::Next).unwrap();
        self
    }

    /// Let it continue to its end without further stops; returns its result.
    pub(super) fn finish(&self) -> Result<CreateIndexesReply> {
        self.orders.send(Order::Finish).unwrap();
        self.end()
    }

    /// Wait for its result without letting it continue.
    pub(super) fn end(&self) -> Result<CreateIndexesReply> {
        match self.news() {
            News::Done(done) => done,
            other => panic!("{other:?} and not the end"),
        }
    }

    /// End its thread at the point where it has stopped.
    pub(super) fn die(&self) {
        self.orders.send(Order::Die).unwrap();
        let last = self.news();
        assert!(matches!(last, News::Dead), "{last:?}");
    }

    /// `killOp`.
    pub(super) fn kill(&self) {
        self.killed.store(Code::INTERRUPTED.0, Ordering::Relaxed);
    }
}

/// Stop at points until an order arrives. An operation that waits for another build does not stop.
fn hook(stops: Vec<Point>, orders: Receiver<Order>, sender: Sender<News>) -> impl Fn(Point) {
    let free = std::cell::Cell::new(false);
    move |point| {
        if free.get() || !stops.contains(&point) {
            return;
        }
        drop(sender.send(News::At(point)));
        if point == Point::Waits {
            return;
        }
        match orders.recv() {
            Ok(Order::Next) => {}
            Ok(Order::Finish) => free.set(true),
            // After a failed test the thread ends.
            Ok(Order::Die) | Err(_) => resume_unwind(Box::new(Death)),
        }
    }
}

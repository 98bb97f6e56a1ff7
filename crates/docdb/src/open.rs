//! Opening a store: loads it with the state of the modules above, and cleans up after a crash.

use std::sync::Arc;

use kv::{Durability, Engine};
use query::Result;

use crate::cursor::Cursors;
use crate::follow;
use crate::replica::{Copies, Locks};
use crate::session::{Moments, Sessions};
use crate::store::{Options, Parts, Store};
use crate::ttl::{self, Listener};
use crate::txn::Op;

impl Store {
    /// Open the store in an engine, or create one in an empty engine. Index builds that a crash
    /// interrupted are completed before it returns.
    ///
    /// # Errors
    /// Errors of the engine; a catalog that cannot be read.
    pub fn open(engine: Arc<dyn Engine>, options: Options) -> Result<Arc<Store>> {
        let parts = Parts::default()
            .with(Sessions::default())
            .with(Moments::default())
            .with(Cursors::default())
            .with(Listener::default())
            .with(Locks::default())
            .with(Copies::default());
        let (store, temporary) = Store::load(engine, options, parts)?;
        if !store.is_follower() {
            // Temporary collections are left by an `$out` that did not finish.
            let op = Op::new(Durability::Group);
            for ns in &temporary {
                store.drop_collection(&op, ns)?;
            }
        }
        store.load_copy()?;
        store.prepare_images()?;
        store.resume_builds()?;
        let store = Arc::new(store);
        ttl::start(&store);
        follow::start(&store);
        Ok(store)
    }
}

#[cfg(test)]
mod tests {
    use bson::RawDocumentBuf;
    use query::Namespace;

    use super::*;
    use crate::collection::CollectionOptions;
    use crate::write::InsertOptions;

    fn open(engine: &Arc<dyn Engine>) -> Arc<Store> {
        let options = Options {
            ttl_period: None,
            ..Options::default()
        };
        Store::open(Arc::clone(engine), options).unwrap()
    }

    fn named(coll: &str) -> Namespace {
        Namespace::new("test", coll).unwrap()
    }

    /// `ddl`: D2.
    #[test]
    fn trees_that_a_crash_left_are_dropped_at_opening() {
        let path = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(path.path(), &kv::EngineOptions::default());
        let engine: Arc<dyn Engine> = Arc::from(engine.unwrap());
        let store = open(&engine);
        let op = Op::new(Durability::Group);
        store
            .create(&op, &named("c"), CollectionOptions::default())
            .unwrap();
        let kept = engine.trees().unwrap();
        drop(store);
        for name in ["c.0123", "i.0123.7"] {
            engine
                .create_tree(name, &kv::TreeOptions::default())
                .unwrap();
        }
        let store = open(&engine);
        assert_eq!(engine.trees().unwrap(), kept);
        assert!(store.collection(&named("c")).is_some());
    }

    #[test]
    fn what_is_marked_as_temporary_is_dropped_and_no_name_is() {
        let path = tempfile::tempdir().unwrap();
        let factory = kv::memory::factory();
        let engine = factory.open(path.path(), &kv::EngineOptions::default());
        let engine: Arc<dyn Engine> = Arc::from(engine.unwrap());
        let store = open(&engine);
        let op = Op::new(Durability::Group);
        let [user, left, renamed] = ["0", "1", "2"].map(|last| {
            let name = format!("tmp.agg_out.000000000000000{last}");
            named(&name)
        });
        let document = RawDocumentBuf::try_from(&bson::doc! { "_id": 1 }).unwrap();
        let options = InsertOptions::default();
        store.insert(&op, &user, &[&document], options).unwrap();
        for ns in [&left, &renamed] {
            let options = CollectionOptions::default();
            store.create_temporary(&op, ns, options).unwrap();
            let index = bson::doc! { "key": { "a": 1 }, "name": "a_1" };
            store.create_indexes(&op, ns, &[index]).unwrap();
        }
        let target = named("target");
        store.rename(&op, &renamed, &target, false).unwrap();
        drop(store);
        let store = open(&engine);
        let names: Vec<Namespace> = store.catalog().iter().map(|(ns, _)| ns.clone()).collect();
        assert_eq!(names, [target, user.clone()]);
        assert_eq!(store.collection(&user).unwrap().count(), 1);
    }
}

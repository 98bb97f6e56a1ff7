//! Builds, with writers between their steps.

use bson::doc;
use stdx::Rng;

use query::Code;

use super::super::*;
use super::rig::{Site, on_each, open, raw};
use crate::examined::Examined;
use crate::txn::{SessionId, SessionRef};
use crate::write::{DeleteStatement, InsertOptions, UpdateStatement};

impl Site {
    fn begin(&self, unique: bool) -> Begun {
        let spec = IndexSpec::parse(&doc! { "key": { "a": 1 }, "unique": unique }).unwrap();
        match self.store.begin_builds(&self.op, &self.ns, &[spec]) {
            Ok(Beginning::Here(begun)) => begun,
            Ok(_) => panic!("the index is there"),
            Err(e) => panic!("{e}"),
        }
    }

    /// Build an index; `meanwhile` runs between reading the documents and inserting the entries.
    fn build(&self, unique: bool, meanwhile: impl FnOnce(&Build)) -> Result<()> {
        let begun = self.begin(unique);
        let found = self.store.find_entries(&self.op, &begun).unwrap();
        meanwhile(&begun.build);
        let loaded = self.store.put_found(&self.op, &begun, found);
        let done = loaded.and_then(|()| self.store.end_builds(&begun));
        if let Err(error) = &done {
            self.store.abort_builds(&begun, error).unwrap();
        }
        done
    }

    /// Check the index against the documents; returns the number of entries.
    fn entries(&self) -> i64 {
        let index = self.store.collection(&self.ns).unwrap();
        assert!(index.index("a_1").unwrap().usable());
        let report = self.store.validate(&self.op, &self.ns).unwrap();
        assert!(report.get_bool("valid").unwrap(), "{report}");
        let keys = report.get_document("keysPerIndex").unwrap();
        keys.get_i64("a_1").unwrap()
    }
}

/// `load`: F2.
#[test]
fn what_changes_between_reading_and_putting_counts() {
    on_each(|site| {
        (0..10).for_each(|id| site.insert(id, id));
        let built = site.build(false, |_| {
            site.set(1, 100);
            site.set(1, 101);
            site.remove(2);
            site.remove(3);
            site.insert(3, 103);
            site.insert(10, 5);
            // Changed back: the entry that was read is valid again.
            site.set(4, 104);
            site.set(4, 4);
        });
        built.unwrap();
        assert_eq!(site.entries(), 10);
    });
}

#[test]
fn unique_keys_move_between_documents_while_they_are_read_and_put() {
    on_each(|site| {
        (0..10).for_each(|id| site.insert(id, id));
        let built = site.build(true, |_| {
            // Another document takes the key of a document that is removed later, whose own entry
            // is not yet inserted.
            site.insert(10, 1);
            site.remove(1);
            site.set(2, 102);
            site.insert(11, 2);
        });
        built.unwrap();
        assert_eq!(site.entries(), 11);
    });
}

/// `load`: F3.
#[test]
fn duplicates_end_a_build_wherever_they_come_from() {
    on_each(|site| {
        (0..4).for_each(|id| site.insert(id, id));
        let refused = |meanwhile: &dyn Fn()| site.build(true, |_| meanwhile()).unwrap_err();
        let written = refused(&|| site.insert(4, 3));
        assert_eq!(written.code, Code::DUPLICATE_KEY, "{written}");
        let there = refused(&|| {});
        assert_eq!(there.code, Code::DUPLICATE_KEY, "{there}");
        assert!(there.message.contains("dup key: { a: 3 }"), "{there}");
        site.build(true, |_| site.remove(3)).unwrap();
        assert_eq!(site.entries(), 4);
    });
}

#[test]
fn any_changes_are_found_from_runs_and_when_they_are_too_many_to_remember() {
    for lose in [false, true] {
        on_each(|site| {
            let seed = 11;
            let mut rng = Rng::new(seed);
            let mut number = |most: u64| i32::try_from(rng.below(most)).unwrap();
            site.store.tuning().set_index_memory(4_000);
            (0..500).for_each(|id| site.insert(id, id % 7));
            let built = site.build(false, |build| {
                for step in 0..300 {
                    match step % 3 {
                        0 => site.set(number(500), number(7)),
                        1 => site.remove(number(500)),
                        _ => site.insert(1_000 + step, number(7)),
                    }
                }
                if lose {
                    build.lose_changes();
                }
            });
            built.unwrap();
            let there = site
                .store
                .collection(&site.ns)
                .unwrap()
                .core()
                .counts
                .documents();
            assert_eq!(site.entries(), there, "seed {seed}");
        });
    }
}

#[test]
fn arrays_that_were_read_are_known_before_the_index_is_used() {
    on_each(|site| {
        let document = raw(&doc! { "_id": 0, "a": [1, 2] });
        let options = InsertOptions::default();
        site.store
            .insert(&site.op, &site.ns, &[&document], options)
            .unwrap();
        site.build(false, |_| ()).unwrap();
        let Site {
            store,
            ns,
            directory,
            factory,
            ..
        } = site;
        let multikey = |store: &Store| {
            let collection = store.collection(&ns).unwrap();
            collection.index("a_1").unwrap().is_multikey()
        };
        assert!(multikey(&store));
        let persistent = store.engine().capabilities().persistent;
        drop(store);
        if persistent {
            assert!(multikey(&open(factory, &directory)));
        }
    });
}

#[test]
fn a_build_that_a_crash_ended_is_done_at_the_next_opening() {
    let site = Site::new(kv_betree::factory());
    (0..3_000).for_each(|id| site.insert(id, id));
    let begun = site.begin(true);
    let found = site.store.find_entries(&site.op, &begun).unwrap();
    site.store.put_found(&site.op, &begun, found).unwrap();
    site.insert(3_000, 3_000);
    let unready = site.store.collection(&site.ns).unwrap();
    assert!(!unready.index("a_1").unwrap().usable());
    drop((unready, begun));
    let site = site.reopen();
    assert_eq!(site.entries(), 3_001);
}

/// What a transaction that began before entries were inserted may change afterwards.
#[test]
fn a_transaction_conflicts_with_entries_that_came_since_it_began() {
    for factory in [kv_betree::factory(), kv::memory::factory()] {
        let site = Site::new(factory);
        (0..10).for_each(|id| site.insert(id, id));
        let begun = site.begin(true);
        let found = site.store.find_entries(&site.op, &begun).unwrap();
        let session = || Op {
            session: Some(SessionRef {
                id: SessionId {
                    id: [1; 16],
                    uid: [0; 32],
                },
                txn_number: Some(1),
                stmt_id: 0,
                stmt_ids: None,
            }),
            ..Op::new(Durability::Group)
        };
        let other = Namespace::new("d", "other").unwrap();
        site.store.ensure_collection(&site.op, &other).unwrap();
        let store = Arc::clone(&site.store);
        let before = site.store.in_transaction(session(), true, move |op| {
            let document = raw(&doc! { "_id": 1 });
            store.insert(op, &other, &[&document], InsertOptions::default())
        });
        assert_eq!(before.unwrap().n, 1);
        site.store.put_found(&site.op, &begun, found).unwrap();
        let (store, ns) = (Arc::clone(&site.store), site.ns.clone());
        let after = site.store.in_transaction(session(), false, move |op| {
            let gone = DeleteStatement::new(raw(&doc! { "_id": 3 }));
            store.delete(op, &ns, &[gone], true)
        });
        let ended = after.and_then(|_| site.store.commit_transaction(&session()));
        assert_eq!(ended.unwrap_err().code, Code::WRITE_CONFLICT);
        site.store.end_builds(&begun).unwrap();
        assert_eq!(site.entries(), 10);
    }
}

#[test]
fn a_key_that_stays_is_not_put_over_anothers() {
    on_each(|site| {
        (0..4).for_each(|id| site.insert(id, id));
        let refused = site.build(true, |_| {
            site.insert(4, 3);
            // The same key with another type.
            let change = doc! { "$set": { "a": 3.0 } };
            let change = UpdateStatement::new(raw(&doc! { "_id": 3 }), raw(&change));
            let done = site
                .store
                .update(&site.op, &site.ns, &[change], true, false)
                .unwrap();
            let error = &done.errors.first().unwrap().error;
            assert_eq!(error.code, Code::DUPLICATE_KEY, "{error}");
        });
        assert_eq!(refused.unwrap_err().code, Code::DUPLICATE_KEY);
    });
}

#[test]
fn a_build_tells_how_far_it_is() {
    let mut site = Site::new(kv_betree::factory());
    (0..3_000).for_each(|id| site.insert(id, id));
    let examined = Arc::new(Examined::default());
    site.op.examined = Some(Arc::clone(&examined));
    let stage = |what: &str| {
        let stage = examined.stage().unwrap();
        assert!(stage.what.contains(what), "{stage:?}");
        (stage.done, stage.total)
    };
    let begun = site.begin(false);
    let found = site.store.find_entries(&site.op, &begun).unwrap();
    assert_eq!(stage("scanning"), (3_000, 3_000));
    site.store.put_found(&site.op, &begun, found).unwrap();
    assert_eq!(stage("inserting"), (3_000, 3_000));
    site.store.end_builds(&begun).unwrap();
    let spec = IndexSpec::parse(&doc! { "key": { "b": 1 } }).unwrap();
    site.store
        .build_indexes(&site.op, &site.ns, &[spec])
        .unwrap();
    assert_eq!(examined.stage(), None);
}

/// `ttl`: T2.
#[test]
fn documents_expire_while_another_index_is_built() {
    on_each(|site| {
        let ttl = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 60 };
        let (store, op) = (&site.store, &site.op);
        store.create_indexes(op, &site.ns, &[ttl]).unwrap();
        let old = raw(&doc! { "_id": 1, "at": bson::DateTime::from_millis(1_000) });
        let options = InsertOptions::default();
        store.insert(op, &site.ns, &[&old], options).unwrap();
        let begun = site.begin(false);
        let collection = store.collection(&site.ns).unwrap();
        assert!(collection.indexes().iter().any(|index| !index.is_ready()));
        assert_eq!(store.expire(op).unwrap(), 1);
        let cause = error::index_build_aborted("given up");
        store.abort_builds(&begun, &cause).unwrap();
    });
}

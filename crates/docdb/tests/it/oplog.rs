//! The oplog: the entries that each write leaves, and stores without one. That the oplog leads to
//! the state of its store is checked after each test of this binary (see `replay`).

use std::sync::Arc;

use bson::{Document, RawDocument, RawDocumentBuf, Timestamp, doc};
use docdb::oplog::entry::{Entry, GROUP_MAX, Operation};
use docdb::{
    Applied, AppliedEntry, AppliedUpdate, CollectionOptions, FindAndModify, IndexNames,
    InsertOptions, Store,
};

use crate::lab::{Lab, ns, on_each, op, raw};
use crate::replay::{self, BEGIN, shown};
use crate::session::session;
use crate::write::{del, set};

/// The entries that `write` leaves, without the fields that every entry has.
fn left(lab: &Lab, write: impl FnOnce(&Store)) -> Vec<Document> {
    let before = replay::entries(&lab.store).len();
    write(&lab.store);
    let entries = replay::entries(&lab.store).split_off(before);
    let brief = |entry: RawDocumentBuf| {
        let mut entry = shown(&entry);
        for name in ["ts", "t", "v", "wall", "ui", "lsid", "prevOpTime"] {
            entry.remove(name);
        }
        if let Ok(group) = entry
            .get_document_mut("o")
            .and_then(|o| o.get_array_mut("applyOps"))
        {
            for operation in group.iter_mut().filter_map(|o| o.as_document_mut()) {
                operation.remove("ui");
            }
        }
        entry
    };
    entries.into_iter().map(brief).collect()
}

fn insert(store: &Store, coll: &str, documents: &[Document]) {
    let raw: Vec<RawDocumentBuf> = documents.iter().map(raw).collect();
    let raw: Vec<&RawDocument> = raw.iter().map(AsRef::as_ref).collect();
    let options = InsertOptions::default();
    store.insert(&op(), &ns(coll), &raw, options).unwrap();
}

fn inserted(document: Document) -> Document {
    let id = document.get("_id").unwrap().clone();
    doc! { "op": "i", "ns": "test.c", "o": document, "o2": { "_id": id } }
}

fn updated(id: i32, update: Document) -> Document {
    doc! { "op": "u", "ns": "test.c", "o": update, "o2": { "_id": id } }
}

fn command(command: Document) -> Document {
    doc! { "op": "c", "ns": "test.$cmd", "o": command }
}

#[test]
fn a_write_of_documents_leaves_its_entry_and_no_other() {
    on_each(|lab| {
        let update = |filter, update| set(filter, update);
        insert(&lab.store, "c", &[doc! { "_id": 0 }]);
        let entries = left(lab, |store| {
            insert(store, "c", &[doc! { "_id": 1, "a": 1 }]);
        });
        assert_eq!(entries, [inserted(doc! { "_id": 1, "a": 1 })]);
        let entries = left(lab, |store| {
            let change = update(doc! { "_id": 1 }, doc! { "$set": { "b": 2 } });
            for _ in 0..2 {
                store
                    .update(&op(), &ns("c"), std::slice::from_ref(&change), true, false)
                    .unwrap();
            }
        });
        let diff = doc! { "$v": 2, "diff": { "i": { "b": 2 } } };
        assert_eq!(entries, [updated(1, diff)], "one of both changes something");
        let entries = left(lab, |store| {
            let whole = update(doc! { "_id": 1 }, doc! { "c": 3 });
            store
                .update(&op(), &ns("c"), &[whole], true, false)
                .unwrap();
        });
        assert_eq!(entries, [updated(1, doc! { "_id": 1, "c": 3 })]);
        let entries = left(lab, |store| {
            let mut new = update(doc! { "_id": 2 }, doc! { "$set": { "a": 1 } });
            new.upsert = true;
            store.update(&op(), &ns("c"), &[new], true, false).unwrap();
        });
        assert_eq!(entries, [inserted(doc! { "_id": 2, "a": 1 })]);
        let entries = left(lab, |store| {
            let asked = FindAndModify {
                filter: raw(&doc! { "_id": 2 }),
                ..FindAndModify::default()
            };
            store.find_and_modify(&op(), &ns("c"), &asked).unwrap();
            let gone = del(doc! { "_id": 2 }, false);
            store.delete(&op(), &ns("c"), &[gone], true).unwrap();
        });
        let deleted = doc! { "op": "d", "ns": "test.c", "o": { "_id": 2 } };
        assert_eq!(entries, [deleted], "the second finds nothing");
    });
}

/// `txn::logged`: G1. Failed writes and refused documents leave none.
#[test]
fn what_changes_nothing_leaves_no_entry() {
    on_each(|lab| {
        insert(&lab.store, "c", &[doc! { "_id": 0 }]);
        let entries = left(lab, |store| {
            insert(store, "c", &[doc! { "_id": 0, "a": 1 }]);
            let bad = set(doc! { "_id": 0 }, doc! { "$inc": { "_id": 1 } });
            store.update(&op(), &ns("c"), &[bad], true, false).unwrap();
            store
                .create(&op(), &ns("c"), CollectionOptions::default())
                .unwrap();
            store.drop_collection(&op(), &ns("missing")).unwrap();
            store.drop_database(&op(), "missing").unwrap();
        });
        assert_eq!(entries, [], "G1: a failed write leaves none");
    });
}

#[test]
fn a_batch_is_one_entry_and_a_larger_one_a_chain() {
    on_each(|lab| {
        let count = 2 * GROUP_MAX + 1;
        let some = |count: usize| -> Vec<Document> {
            let one = |i| doc! { "_id": i64::try_from(i).unwrap() };
            (0..count).map(one).collect()
        };
        insert(&lab.store, "a", &some(GROUP_MAX));
        insert(&lab.store, "b", &some(count));
        let entries = replay::entries(&lab.store);
        let groups: Vec<Document> = entries.iter().map(|e| shown(e)).collect();
        let groups: Vec<&Document> = groups.iter().filter(|e| e.contains_key("o")).collect();
        let kinds: Vec<(usize, bool, bool)> = groups
            .iter()
            .filter_map(|entry| {
                let o = entry.get_document("o").unwrap();
                let group = o.get_array("applyOps").ok()?;
                let partial = o.contains_key("partialTxn");
                Some((group.len(), partial, entry.contains_key("prevOpTime")))
            })
            .collect();
        let chain = [
            (GROUP_MAX, true, true),
            (GROUP_MAX, true, true),
            (1, false, true),
        ];
        assert_eq!(kinds[0], (GROUP_MAX, false, false));
        assert_eq!(kinds[1..], chain);
        let last = groups.last().unwrap();
        let o = last.get_document("o").unwrap();
        assert_eq!(o.get_i64("count").unwrap(), i64::try_from(count).unwrap());
        let times: Vec<Timestamp> = entries
            .iter()
            .map(|entry| Entry::parse(entry).unwrap().at.ts)
            .collect();
        let before = last.get_document("prevOpTime").unwrap();
        assert_eq!(before.get_timestamp("ts").unwrap(), times[times.len() - 2]);
    });
}

/// The create comes before the insert that causes it.
#[test]
fn an_implicit_collection_is_created_before_its_first_document() {
    on_each(|lab| {
        let entries = left(lab, |store| insert(store, "c", &[doc! { "_id": 1 }]));
        let index = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        let create = command(doc! { "create": "c", "idIndex": index });
        assert_eq!(entries, [create, inserted(doc! { "_id": 1 })]);
    });
}

#[test]
fn a_retryable_write_has_its_session_and_statements() {
    on_each(|lab| {
        insert(&lab.store, "c", &[doc! { "_id": 0 }]);
        let entries = left(lab, |store| {
            let (one, two) = (raw(&doc! { "_id": 1 }), raw(&doc! { "_id": 2 }));
            let documents: [&RawDocument; 2] = [&one, &two];
            for _ in 0..2 {
                let (op, options) = (session(1, 1), InsertOptions::default());
                store.insert(&op, &ns("c"), &documents, options).unwrap();
            }
            let change = [set(doc! { "_id": 1 }, doc! { "$set": { "a": 1 } })];
            for _ in 0..2 {
                let op = session(1, 2);
                store.update(&op, &ns("c"), &change, true, false).unwrap();
            }
        });
        let [group, update] = &entries[..] else {
            panic!("the second attempt writes nothing: {entries:?}");
        };
        assert_eq!(group.get_i64("txnNumber").unwrap(), 1);
        let group = group.get_document("o").unwrap();
        let group = group.get_array("applyOps").unwrap();
        let numbers: Vec<i32> = group
            .iter()
            .map(|o| o.as_document().unwrap().get_i32("stmtId").unwrap())
            .collect();
        assert_eq!(numbers, [0, 1]);
        assert_eq!(update.get_i64("txnNumber").unwrap(), 2);
        assert_eq!(update.get_i32("stmtId").unwrap(), 0);
        let stored = replay::entries(&lab.store);
        let last = Entry::parse(stored.last().unwrap()).unwrap();
        let id = last.session.unwrap().id;
        assert!(matches!(
            id.get("id"),
            Ok(Some(bson::RawBsonRef::Binary(_)))
        ));
    });
}

/// Trap of secondaries: the documents that leave a capped collection have entries of their own.
#[test]
fn documents_evicted_from_a_capped_collection_are_deleted_by_entries() {
    on_each(|lab| {
        let options = doc! { "capped": true, "size": 4096, "max": 2 };
        let options = CollectionOptions::parse(&options).unwrap();
        lab.store.create(&op(), &ns("c"), options).unwrap();
        insert(&lab.store, "c", &[doc! { "_id": 1 }, doc! { "_id": 2 }]);
        let entries = left(lab, |store| insert(store, "c", &[doc! { "_id": 3 }]));
        let group = [
            inserted(doc! { "_id": 3 }),
            doc! { "op": "d", "ns": "test.c", "o": { "_id": 1 } },
        ];
        let o = doc! { "applyOps": group.to_vec() };
        assert_eq!(entries, [doc! { "op": "c", "ns": "admin.$cmd", "o": o }]);
    });
}

#[test]
fn expired_documents_are_deleted_by_entries() {
    on_each(|lab| {
        let index = doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 1 };
        lab.index("c", index);
        let old = bson::DateTime::from_millis(0);
        insert(&lab.store, "c", &[doc! { "_id": 1, "at": old }]);
        let entries = left(lab, |store| {
            store.expire(&op()).unwrap();
        });
        assert_eq!(
            entries,
            [doc! { "op": "d", "ns": "test.c", "o": { "_id": 1 } }]
        );
    });
}

#[test]
fn a_change_of_the_catalog_leaves_its_entry_and_no_other() {
    on_each(|lab| {
        insert(&lab.store, "c", &[doc! { "_id": 1 }]);
        let entries = left(lab, |store| {
            let index = doc! { "key": { "a": 1 }, "name": "a_1" };
            store.create_indexes(&op(), &ns("c"), &[index]).unwrap();
        });
        let names: Vec<&String> = entries
            .iter()
            .map(|e| e.get_document("o").unwrap().keys().next().unwrap())
            .collect();
        assert_eq!(names, ["startIndexBuild", "commitIndexBuild"]);
        let entries = left(lab, |store| {
            let hide = raw(&doc! { "index": { "name": "a_1", "hidden": true } });
            store.coll_mod(&op(), &ns("c"), &hide).unwrap();
            store
                .drop_indexes(&op(), &ns("c"), &IndexNames::All)
                .unwrap();
            store.rename(&op(), &ns("c"), &ns("d"), false).unwrap();
        });
        let changed = doc! { "collMod": "c", "index": { "name": "a_1", "hidden": true } };
        let dropped = doc! { "dropIndexes": "c", "index": "a_1" };
        let renamed = doc! { "renameCollection": "test.c", "to": "test.d", "stayTemp": false };
        let commands: Vec<&Document> = entries
            .iter()
            .map(|e| e.get_document("o").unwrap())
            .collect();
        assert_eq!(commands, [&changed, &dropped, &renamed]);
        let entries = left(lab, |store| {
            insert(store, "e", &[doc! { "_id": 1 }]);
            store.rename(&op(), &ns("e"), &ns("d"), true).unwrap();
            store.convert_to_capped(&op(), &ns("d"), 4096).unwrap();
            store.drop_database(&op(), "test").unwrap();
        });
        let of = |entry: &Document| {
            let o = entry.get_document("o").unwrap();
            o.keys().next().unwrap().clone()
        };
        let names: Vec<String> = entries.iter().map(of).collect();
        assert_eq!(
            names,
            [
                "create",
                "_id",
                "renameCollection",
                "convertToCapped",
                "drop",
                "dropDatabase"
            ]
        );
        assert_eq!(
            entries[2].get_document("o2").unwrap(),
            &doc! { "numRecords": 1_i64 }
        );
        assert!(
            entries[2]
                .get_document("o")
                .unwrap()
                .contains_key("dropTarget")
        );
    });
}

#[test]
fn a_failed_build_leaves_the_entry_that_aborts_it() {
    on_each(|lab| {
        let documents = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }];
        insert(&lab.store, "c", &documents);
        let entries = left(lab, |store| {
            let index = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true };
            let failed = store.create_indexes(&op(), &ns("c"), &[index]);
            assert_eq!(failed.unwrap_err().code.0, 11000);
        });
        let commands: Vec<&Document> = entries
            .iter()
            .map(|e| e.get_document("o").unwrap())
            .collect();
        let [begun, aborted] = commands[..] else {
            panic!("{entries:?}");
        };
        assert!(begun.contains_key("startIndexBuild"));
        assert_eq!(aborted.get_str("abortIndexBuild").unwrap(), "c");
        let (one, two) = (begun.get("indexBuildUUID"), aborted.get("indexBuildUUID"));
        assert_eq!(one, two);
        let cause = aborted.get_document("cause").unwrap();
        assert_eq!(cause.get_str("codeName").unwrap(), "DuplicateKey");
    });
}

/// Entries that a client applies become entries of this store.
#[test]
fn applied_entries_leave_entries_of_their_own() {
    on_each(|lab| {
        insert(&lab.store, "c", &[doc! { "_id": 1, "a": 1 }]);
        let entries = left(lab, |store| {
            let change = |change| AppliedEntry {
                ns: ns("c"),
                change,
            };
            let delta = AppliedUpdate::Delta(raw(&doc! { "u": { "a": 2 } }));
            let entries = [
                change(Applied::Insert(raw(&doc! { "_id": 2 }))),
                change(Applied::Update {
                    filter: raw(&doc! { "_id": 1 }),
                    update: delta,
                    upsert: false,
                }),
                change(Applied::Delete(raw(&doc! { "_id": 2 }))),
            ];
            store.apply(&op(), &entries, false).unwrap();
        });
        let group = [
            inserted(doc! { "_id": 2 }),
            updated(1, doc! { "$v": 2, "diff": { "u": { "a": 2 } } }),
            doc! { "op": "d", "ns": "test.c", "o": { "_id": 2 } },
        ];
        let o = doc! { "applyOps": group.to_vec() };
        assert_eq!(entries, [doc! { "op": "c", "ns": "admin.$cmd", "o": o }]);
    });
}

#[test]
fn a_transaction_creates_before_it_inserts_and_is_one_chain() {
    on_each(|lab| {
        let entries = left(lab, |_| {
            let store = Arc::clone(&lab.store);
            let body = move |op: &docdb::Op<'_>| {
                store.create(op, &ns("c"), CollectionOptions::default())?;
                let document = raw(&doc! { "_id": 1 });
                store.insert(op, &ns("c"), &[&document], InsertOptions::default())
            };
            lab.store.in_transaction(session(1, 1), true, body).unwrap();
            assert!(replay::entries(&lab.store).is_empty(), "before the commit");
            lab.store.commit_transaction(&session(1, 1)).unwrap();
        });
        let [create, group] = &entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!(
            create.get_document("o").unwrap().get_str("create").unwrap(),
            "c"
        );
        let o = doc! { "applyOps": [inserted(doc! { "_id": 1 })] };
        let expected = doc! { "txnNumber": 1_i64, "op": "c", "ns": "admin.$cmd", "o": o };
        assert_eq!(*group, expected);
        let stored = replay::entries(&lab.store);
        let group = Entry::parse(stored.last().unwrap()).unwrap();
        assert_eq!(group.previous, Some(docdb::oplog::entry::OpTime::NONE));
    });
}

/// `local` and the profile belong to a member.
#[test]
fn collections_of_the_member_leave_no_entry() {
    on_each(|lab| {
        let local = docdb::Namespace::new("local", "c").unwrap();
        let profile = ns("system.profile");
        let entries = left(lab, |store| {
            for ns in [&local, &profile] {
                let document = raw(&doc! { "_id": 1 });
                let options = InsertOptions::default();
                store.insert(&op(), ns, &[&document], options).unwrap();
            }
            let moved = store.rename(&op(), &local, &ns("c"), false);
            assert_eq!(moved.unwrap_err().code.0, 20);
            store.drop_collection(&op(), &profile).unwrap();
        });
        assert_eq!(entries, Vec::<Document>::new());
    });
}

#[test]
fn times_increase_over_a_restart() {
    on_each(|lab| {
        insert(&lab.store, "c", &[doc! { "_id": 1 }]);
        let before = replay::entries(&lab.store);
        if !lab.reopen() {
            return;
        }
        insert(&lab.store, "c", &[doc! { "_id": 2 }]);
        let after = replay::entries(&lab.store);
        assert_eq!(after[..before.len()], before);
        let last = Entry::parse(after.last().unwrap()).unwrap();
        assert!(matches!(last.operation, Operation::Insert { .. }));
    });
}

/// `oplog::log`: O1. A crash with a transaction that is open: the next store has the entries up to
/// the last commit, and continues after them.
#[test]
fn after_a_crash_the_oplog_is_exactly_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let factory = kv::memory::factory();
    let engine = factory.open(directory.path(), &kv::EngineOptions::default());
    let engine: Arc<dyn kv::Engine> = Arc::from(engine.unwrap());
    let options = docdb::Options {
        oplog: true,
        ttl_period: None,
        ..docdb::Options::default()
    };
    let mut count = 0;
    for life in 0..4 {
        let store = Store::open(Arc::clone(&engine), options.clone()).unwrap();
        replay::check(&store, "a store after a crash");
        assert_eq!(replay::entries(&store).len(), count, "O1: life {life}");
        insert(&store, "c", &[doc! { "_id": life }]);
        let inner = Arc::clone(&store);
        let body = move |op: &docdb::Op<'_>| {
            let document = raw(&doc! { "_id": 1 });
            let options = InsertOptions::default();
            inner.insert(op, &ns("d"), &[&document], options)
        };
        store
            .in_transaction(session(1, life.into()), true, body)
            .unwrap();
        count = replay::entries(&store).len();
        assert_eq!(count, usize::try_from(life).unwrap() + 2);
        // The store is not closed, and its transaction neither committed nor aborted.
    }
}

/// Neither a store outside of a replica set nor one without the option has the tree.
#[test]
fn a_standalone_store_has_no_oplog() {
    for (replica_set, oplog) in [(None, true), (Some("rs0".to_owned()), false)] {
        let directory = tempfile::tempdir().unwrap();
        let factory = kv::memory::factory();
        let engine = factory.open(directory.path(), &kv::EngineOptions::default());
        let options = docdb::Options {
            replica_set,
            oplog,
            ..docdb::Options::default()
        };
        let store = Store::open(Arc::from(engine.unwrap()), options).unwrap();
        insert(&store, "c", &[doc! { "_id": 1 }]);
        assert_eq!(store.oplog_after(BEGIN, 9).unwrap(), []);
        let trees = store.engine().trees().unwrap();
        assert!(
            trees.iter().all(|name| !name.starts_with("_oplog")),
            "{trees:?}"
        );
    }
}

/// Trap 10 of replication: that an index has several keys of a document is in no entry. Who applies
/// them learns it from the documents, in whatever order those of different documents come.
#[test]
fn an_index_of_arrays_is_known_as_such_after_applying_in_any_order() {
    on_each(|lab| {
        let changes = [
            Applied::Insert(raw(&doc! { "_id": 1, "a": [1, 9] })),
            Applied::Insert(raw(&doc! { "_id": 2, "a": 5 })),
            Applied::Update {
                filter: raw(&doc! { "_id": 2 }),
                update: AppliedUpdate::Delta(raw(&doc! { "u": { "a": [0, 8] } })),
                upsert: false,
            },
            Applied::Delete(raw(&doc! { "_id": 1 })),
        ];
        for (coll, order) in [
            ("x", [0, 1, 2, 3]),
            ("y", [1, 0, 3, 2]),
            ("z", [1, 2, 0, 3]),
        ] {
            lab.store
                .create(&op(), &ns(coll), CollectionOptions::default())
                .unwrap();
            lab.index(coll, doc! { "key": { "a": 1 }, "name": "a_1" });
            for at in order {
                let entry = AppliedEntry {
                    ns: ns(coll),
                    change: changes[at].clone(),
                };
                lab.store.apply(&op(), &[entry], false).unwrap();
            }
            // No element is between both bounds: an index that is taken for one without arrays
            // would find nothing.
            let mut between = crate::lab::find(doc! { "a": { "$gt": 1, "$lt": 7 } });
            between.hint = Some("a_1".into());
            let found = lab.store.find(&op(), &ns(coll), &between).unwrap();
            let found = crate::lab::documents(&found);
            assert_eq!(found, [doc! { "_id": 2, "a": [0, 8] }], "{coll}");
        }
    });
}

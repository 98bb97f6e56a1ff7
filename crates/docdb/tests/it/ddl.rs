//! Creating, dropping, renaming and modifying collections.

use bson::doc;
use docdb::{CollectionOptions, IndexNames, InsertOptions, UpdateStatement};
use query::Namespace;

use crate::lab::{ns, on_each, op, raw};

#[test]
fn collections_and_views_are_listed_and_dropped() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "a": 1 }]);
        let view = CollectionOptions::parse(&doc! { "viewOn": "c", "pipeline": [] }).unwrap();
        lab.store.create(&op(), &ns("v"), view).unwrap();
        let names: Vec<String> = lab
            .store
            .list_collections("test")
            .unwrap()
            .iter()
            .map(|d| d.get_str("name").unwrap().to_owned())
            .collect();
        assert_eq!(names, ["c", "v", "system.views"]);
        let statement = crate::write::del(doc! {}, true);
        let error = lab.store.delete(&op(), &ns("v"), &[statement], true);
        assert_eq!(error.unwrap_err().code.0, 166);
        assert!(lab.store.drop_collection(&op(), &ns("v")).unwrap());
        assert!(lab.store.drop_collection(&op(), &ns("c")).unwrap());
        assert!(!lab.store.drop_collection(&op(), &ns("c")).unwrap());
        lab.insert(&ns("c"), &[doc! { "a": 1 }]);
        assert_eq!(lab.all(&ns("c")).len(), 1);
        assert!(lab.store.drop_database(&op(), "test").unwrap());
        assert!(lab.store.list_collections("test").unwrap().is_empty());
        let left = lab.store.engine().trees().unwrap();
        assert!(left.iter().all(|name| name.starts_with('_')), "{left:?}");
    });
}

#[test]
fn collections_are_renamed_with_all_they_have() {
    on_each(|lab| {
        lab.insert(&ns("a"), &[doc! { "_id": 1, "x": [1] }]);
        lab.index("a", doc! { "key": { "x": 1 }, "name": "x" });
        lab.insert(&ns("b"), &[doc! { "_id": 2 }]);
        let refused = lab
            .store
            .rename(&op(), &ns("a"), &ns("b"), false)
            .unwrap_err();
        assert_eq!(refused.code.0, 48);
        lab.store.rename(&op(), &ns("a"), &ns("b"), true).unwrap();
        lab.reopen_if_persistent();
        if lab.store.collection(&ns("b")).is_some() {
            assert_eq!(lab.all(&ns("b")), [doc! { "_id": 1, "x": [1] }]);
            assert!(
                lab.store
                    .collection(&ns("b"))
                    .unwrap()
                    .index("x")
                    .unwrap()
                    .is_multikey()
            );
        }
        assert!(lab.store.collection(&ns("a")).is_none());
        let missing = lab
            .store
            .rename(&op(), &ns("zz"), &ns("y"), false)
            .unwrap_err();
        assert_eq!(missing.code.0, 26);
    });
}

#[test]
fn indexes_are_dropped_by_name_key_and_all() {
    on_each(|lab| {
        for name in ["a", "b", "c", "d"] {
            lab.index("c", doc! { "key": { name: 1 }, "name": name });
        }
        let drop = |names| lab.store.drop_indexes(&op(), &ns("c"), &names);
        assert_eq!(drop(IndexNames::Names(vec!["a".into()])), Ok(5));
        assert_eq!(drop(IndexNames::Key(doc! { "b": 1 })), Ok(4));
        assert_eq!(
            drop(IndexNames::Names(vec!["zz".into()]))
                .unwrap_err()
                .code
                .0,
            27
        );
        assert_eq!(
            drop(IndexNames::Names(vec!["_id_".into()]))
                .unwrap_err()
                .code
                .0,
            72
        );
        assert_eq!(drop(IndexNames::All), Ok(3));
        assert_eq!(lab.store.list_indexes(&ns("c")).unwrap().len(), 1);
    });
}

/// `catalog`: G2. No change of the catalog loses another one.
#[test]
fn changes_of_the_catalog_do_not_lose_each_other() {
    on_each(|lab| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let store = std::sync::Arc::clone(&lab.store);
                stdx::sync::spawn("creator", move || {
                    for number in 0..8 {
                        let made = ns(&format!("c{thread}_{number}"));
                        store
                            .create(&op(), &made, CollectionOptions::default())
                            .unwrap();
                        if number % 2 == 0 {
                            assert!(store.drop_collection(&op(), &made).unwrap());
                        }
                    }
                })
                .unwrap()
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(lab.store.list_collections("test").unwrap().len(), 16);
    });
}

#[test]
fn collections_are_modified() {
    on_each(|lab| {
        let spec = doc! { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 10 };
        lab.index("c", spec);
        let fields = doc! { "index": { "name": "t", "expireAfterSeconds": 20, "hidden": true } };
        let reply = lab.store.coll_mod(&op(), &ns("c"), &raw(&fields)).unwrap();
        assert_eq!(reply.get_i64("expireAfterSeconds_old").unwrap(), 10);
        assert_eq!(reply.get_i64("expireAfterSeconds_new").unwrap(), 20);
        let shown = lab.store.list_indexes(&ns("c")).unwrap();
        assert!(shown[1].get_bool("hidden").unwrap());
        let validator = doc! { "validator": { "a": 1 }, "validationLevel": "moderate" };
        lab.store
            .coll_mod(&op(), &ns("c"), &raw(&validator))
            .unwrap();
        assert_eq!(lab.insert(&ns("c"), &[doc! { "a": 2 }]).n, 0);
        lab.store.convert_to_capped(&op(), &ns("c"), 1000).unwrap();
        assert!(lab.store.collection(&ns("c")).unwrap().is_capped());
        let unknown = lab
            .store
            .coll_mod(&op(), &ns("c"), &raw(&doc! { "oops": 1 }))
            .unwrap_err();
        assert_eq!(unknown.code.0, 40415);
    });
}

#[test]
fn clustered_collections_are_keyed_by_id() {
    on_each(|lab| {
        let options = doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } };
        let options = CollectionOptions::parse(&options).unwrap();
        lab.store.create(&op(), &ns("c"), options).unwrap();
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        let reply = lab.insert(
            &ns("c"),
            &[
                doc! { "_id": 5, "a": 1 },
                doc! { "_id": 3, "a": 1 },
                doc! { "_id": 5.0, "a": 2 },
            ],
        );
        assert_eq!((reply.n, reply.errors[0].error.code.0), (2, 11000));
        let ids: Vec<i32> = lab
            .all(&ns("c"))
            .iter()
            .map(|d| d.get_i32("_id").unwrap())
            .collect();
        assert_eq!(ids, [3, 5]);
    });
}

#[test]
fn databases_do_not_differ_in_case_only() {
    on_each(|lab| {
        let named = |full: &str| Namespace::parse(full).unwrap();
        lab.insert(&named("Shop.c"), &[doc! { "a": 1 }]);
        let message = "db already exists with different case already have: [Shop] trying to \
                       create [shop]";
        let document = raw(&doc! { "a": 1 });
        let insert = lab.store.insert(
            &op(),
            &named("shop.d"),
            &[&document],
            InsertOptions::default(),
        );
        let created = lab
            .store
            .create(&op(), &named("shop.d"), CollectionOptions::default());
        let view = CollectionOptions::parse(&doc! { "viewOn": "c", "pipeline": [] }).unwrap();
        let viewed = lab.store.create(&op(), &named("shop.v"), view);
        let renamed = lab
            .store
            .rename(&op(), &named("Shop.c"), &named("shop.c"), false);
        let inserted = match insert {
            Ok(reply) => Err(reply.errors[0].error.clone()),
            Err(error) => Err(error),
        };
        for refused in [inserted, created, viewed, renamed] {
            let error = refused.unwrap_err();
            assert_eq!((error.code.0, &*error.message), (13_297, message));
        }
        lab.insert(&named("Shop.d"), &[doc! { "a": 1 }]);
        // After the database is dropped, the name can be used again.
        for name in ["Shop.c", "Shop.d"] {
            lab.store.drop_collection(&op(), &named(name)).unwrap();
        }
        lab.insert(&named("shop.c"), &[doc! { "a": 1 }]);
    });
}

#[test]
fn definitions_of_views_are_not_written_directly() {
    on_each(|lab| {
        let views = ns("system.views");
        let document = raw(&doc! { "_id": "junk" });
        let inserted = lab
            .store
            .insert(&op(), &views, &[&document], InsertOptions::default());
        let inserted = match inserted {
            Ok(reply) => reply.errors[0].error.clone(),
            Err(error) => error,
        };
        let upsert = UpdateStatement {
            upsert: true,
            ..UpdateStatement::new(raw(&doc! {}), raw(&doc! { "$set": { "a": 1 } }))
        };
        let updated = lab.store.update(&op(), &views, &[upsert], true, false);
        let created = lab
            .store
            .create(&op(), &views, CollectionOptions::default());
        lab.insert(&ns("c"), &[doc! { "a": 1 }]);
        let renamed = lab.store.rename(&op(), &ns("c"), &views, false);
        let errors = [
            inserted,
            updated.unwrap_err(),
            created.unwrap_err(),
            renamed.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.code.0, 73, "{error}");
            assert!(error.message.contains("system.views"), "{error}");
        }
        assert!(lab.store.collection(&views).is_none());
    });
}

//! Indexes: creation, uniqueness, partial and collated ones.

use bson::{Document, RawDocumentBuf, doc};
use docdb::{CollectionOptions, FindRequest};

use crate::lab::{Lab, find, ns, on_each, op, raw};

fn entries(lab: &Lab, coll: &str, name: &str) -> i64 {
    let report = lab.store.validate(&op(), &ns(coll)).unwrap();
    report
        .get_document("keysPerIndex")
        .unwrap()
        .get_i64(name)
        .unwrap()
}

#[test]
fn indexes_are_built_of_what_is_there_and_kept() {
    on_each(|lab| {
        let documents: Vec<Document> = (0..700)
            .map(|i| doc! { "_id": i, "a": i, "b": [1, 2], "s": "x" })
            .collect();
        lab.insert(&ns("c"), &documents);
        let specs = [
            doc! { "key": { "a": 1 }, "name": "a" },
            doc! { "key": { "b": 1, "a": -1 }, "name": "b" },
            doc! { "key": { "s": "hashed" }, "name": "s" },
            doc! { "key": { "$**": 1 }, "name": "w" },
            doc! { "key": { "z": 1 }, "name": "z", "sparse": true },
            doc! {
                "key": { "a": 1, "b": 1 }, "name": "p",
                "partialFilterExpression": { "a": { "$gte": 600 } },
            },
        ];
        let reply = lab.store.create_indexes(&op(), &ns("c"), &specs).unwrap();
        assert_eq!(
            (reply.before, reply.after, reply.created_collection),
            (1, 7, false)
        );
        lab.insert(&ns("c"), &[doc! { "_id": 700, "a": 700, "b": [], "z": 1 }]);
        for (name, wanted) in [("a", 701), ("b", 1401), ("s", 701), ("z", 1), ("p", 201)] {
            assert_eq!(entries(lab, "c", name), wanted, "{name}");
        }
        let collection = lab.store.collection(&ns("c")).unwrap();
        assert!(collection.index("b").unwrap().is_multikey());
        assert!(!collection.index("a").unwrap().is_multikey());
        let again = lab.store.create_indexes(&op(), &ns("c"), &specs).unwrap();
        assert_eq!((again.before, again.after), (7, 7));
        if lab.reopen() {
            let collection = lab.store.collection(&ns("c")).unwrap();
            assert_eq!(collection.index("b").unwrap().multikey_parts(0), 1);
            assert_eq!(collection.index("b").unwrap().multikey_parts(1), 0);
        }
    });
}

#[test]
fn a_build_that_finds_duplicates_leaves_nothing() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "a": 1 }, doc! { "a": 1.0 }]);
        let unique = doc! { "key": { "a": 1 }, "name": "a", "unique": true };
        let error = lab
            .store
            .create_indexes(&op(), &ns("c"), &[unique])
            .unwrap_err();
        assert_eq!(error.code.0, 11000);
        assert_eq!(lab.store.list_indexes(&ns("c")).unwrap().len(), 1);
    });
}

#[test]
fn unique_indexes_refuse_equal_keys_of_any_type() {
    on_each(|lab| {
        lab.index(
            "c",
            doc! { "key": { "a": 1, "b": 1 }, "name": "u", "unique": true },
        );
        lab.index("c", doc! { "key": { "x": 1 }, "name": "x" });
        let one = doc! { "_id": 1, "a": [1, 2], "b": 1 };
        assert_eq!(lab.insert(&ns("c"), &[one]).n, 1);
        let reply = lab.insert(&ns("c"), &[doc! { "_id": 2, "a": 2.0, "b": 1_i64, "x": 1 }]);
        let error = &reply.errors[0].error;
        assert_eq!(
            error.message,
            "E11000 duplicate key error collection: test.c index: u dup key: { a: 2.0, b: 1 }"
        );
        // Arrays that cannot be indexed together are refused after some keys were made.
        let reply = lab.insert(&ns("c"), &[doc! { "_id": 3, "a": [1], "b": [1] }]);
        assert_eq!(reply.errors[0].error.code.0, 171);
        assert_eq!(lab.insert(&ns("c"), &[doc! { "_id": 2 }]).n, 1);
    });
}

#[test]
fn collations_make_keys_equal() {
    on_each(|lab| {
        let collation = doc! { "locale": "en", "strength": 2 };
        let options = CollectionOptions::parse(&doc! { "collation": collation }).unwrap();
        lab.store.create(&op(), &ns("c"), options).unwrap();
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a", "unique": true });
        let plain = doc! {
            "key": { "a": 1 }, "name": "b", "unique": true, "collation": { "locale": "simple" },
        };
        lab.index("c", plain);
        let reply = lab.insert(&ns("c"), &[doc! { "a": "x" }, doc! { "a": "X" }]);
        assert_eq!((reply.n, reply.errors[0].error.code.0), (1, 11000));
        let shown = lab.store.list_indexes(&ns("c")).unwrap();
        let full = shown[1].get_document("collation").unwrap();
        assert_eq!(full.get_i32("strength").unwrap(), 2);
        assert!(shown[2].get("collation").unwrap().is_none());
    });
}

#[test]
fn conflicting_specifications_are_refused() {
    on_each(|lab| {
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        for (spec, code) in [
            (doc! { "key": { "a": 1 }, "name": "other" }, 85),
            (
                doc! { "key": { "a": 1 }, "name": "other", "expireAfterSeconds": 5 },
                85,
            ),
            (doc! { "key": { "a": 1 }, "name": "a", "unique": true }, 86),
            (doc! { "key": { "b": 1 }, "name": "a" }, 86),
            (doc! { "key": { "a": "2dsphere" }, "name": "g" }, 67),
            (
                doc! {
                    "key": { "a": 1 }, "name": "p",
                    "partialFilterExpression": { "a": { "$ne": 1 } },
                },
                67,
            ),
        ] {
            let error = lab
                .store
                .create_indexes(&op(), &ns("c"), std::slice::from_ref(&spec))
                .unwrap_err();
            assert_eq!(error.code.0, code, "{spec}: {error}");
        }
    });
}

#[test]
fn an_index_is_made_unique() {
    on_each(|lab| {
        let target = ns("c");
        lab.insert(
            &target,
            &[doc! { "_id": 1, "a": [1, 2] }, doc! { "_id": 2, "a": 2 }],
        );
        let spec = doc! { "key": { "a": 1 }, "name": "a" };
        lab.store.create_indexes(&op(), &target, &[spec]).unwrap();
        let modify = |option: &str, value: bool| {
            let fields = doc! { "index": { "name": "a", option: value } };
            lab.store.coll_mod(&op(), &target, &raw(&fields))
        };
        let insert = |document: Document| {
            let reply = lab.insert(&target, &[document]);
            reply.errors.first().map(|e| e.error.code.0)
        };
        assert_eq!(modify("unique", true).unwrap_err().code.0, 72);
        let told = modify("prepareUnique", true).unwrap();
        assert!(told.get_bool("prepareUnique_new").unwrap());
        // Existing duplicates stay; new documents must be unique.
        assert_eq!(insert(doc! { "_id": 3, "a": 1 }), Some(11_000));
        assert_eq!(insert(doc! { "_id": 3, "a": 3 }), None);
        assert_eq!(entries(lab, "c", "a"), 4);
        let refused = modify("unique", true).unwrap_err();
        assert_eq!(refused.code.0, 359);
        let details = refused.details.unwrap();
        assert_eq!(
            details.get_array("violations").unwrap(),
            &[doc! { "ids": [1, 2] }.into()]
        );
        let statement = docdb::DeleteStatement::new(raw(&doc! { "_id": 2 }));
        lab.store
            .delete(&op(), &target, &[statement], true)
            .unwrap();
        let told = modify("unique", true).unwrap();
        assert!(told.get_bool("unique_new").unwrap());
        assert_eq!(entries(lab, "c", "a"), 3);
        assert_eq!(insert(doc! { "_id": 4, "a": 2 }), Some(11_000));
        assert_eq!(insert(doc! { "_id": 4, "a": 4 }), None);
        let collection = lab.store.collection(&target).unwrap();
        let index = collection.index("a").unwrap();
        assert!(index.unique() && index.is_multikey() && !index.spec().prepare_unique);
        assert_eq!(modify("unique", false).unwrap_err().code.0, 2);
    });
}

#[test]
fn unique_and_sparse_indexes_stand_beside_plain_ones_of_their_key() {
    on_each(|lab| {
        let documents: Vec<Document> = (0..20).map(|i| doc! { "_id": i, "a": i }).collect();
        lab.insert(&ns("c"), &documents);
        lab.insert(&ns("c"), &[doc! { "_id": 20 }]);
        let specs = [
            doc! { "key": { "a": 1 }, "name": "plain" },
            doc! { "key": { "a": 1 }, "name": "unique", "unique": true },
            doc! { "key": { "a": 1 }, "name": "sparse", "sparse": true },
            doc! { "key": { "a": 1 }, "name": "both", "unique": true, "sparse": true },
        ];
        for (at, spec) in specs.iter().enumerate() {
            let reply = lab
                .store
                .create_indexes(&op(), &ns("c"), std::slice::from_ref(spec));
            assert_eq!(usize::try_from(reply.unwrap().after), Ok(2 + at), "{spec}");
        }
        for spec in &specs {
            let reply = lab
                .store
                .create_indexes(&op(), &ns("c"), std::slice::from_ref(spec));
            assert_eq!(reply.unwrap().after, 5, "{spec}");
            let mut renamed = spec.clone();
            renamed.insert("name", "other");
            let error = lab.store.create_indexes(&op(), &ns("c"), &[renamed]);
            assert_eq!(error.unwrap_err().code, query::Code::INDEX_OPTIONS_CONFLICT);
        }
        let same_name = doc! { "key": { "a": 1 }, "name": "plain", "unique": true };
        let error = lab.store.create_indexes(&op(), &ns("c"), &[same_name]);
        assert_eq!(
            error.unwrap_err().code,
            query::Code::INDEX_KEY_SPECS_CONFLICT
        );
        assert_eq!(entries(lab, "c", "plain"), 21);
        assert_eq!(entries(lab, "c", "sparse"), 20);
        let twice = lab.insert(&ns("c"), &[doc! { "_id": 30, "a": 3 }]);
        assert_eq!(twice.errors.len(), 1);
    });
}

#[test]
fn a_key_pattern_of_several_indexes_is_ambiguous() {
    on_each(|lab| {
        let target = ns("c");
        lab.insert(&target, &[doc! { "_id": 1, "a": 1 }]);
        let plain = doc! { "key": { "a": 1 }, "name": "plain" };
        let unique = doc! { "key": { "a": 1 }, "name": "unique", "unique": true };
        let create = |spec: &Document| {
            let specs = std::slice::from_ref(spec);
            lab.store.create_indexes(&op(), &target, specs)
        };
        create(&plain).unwrap();
        create(&unique).unwrap();
        let modify = |index: Document| {
            let fields = doc! { "index": index };
            lab.store.coll_mod(&op(), &target, &raw(&fields))
        };
        let ambiguous = query::Code::AMBIGUOUS_INDEX_KEY_PATTERN;
        let of_key = doc! { "keyPattern": { "a": 1 }, "prepareUnique": true };
        assert_eq!(modify(of_key).unwrap_err().code, ambiguous);
        let names = docdb::IndexNames::Key(doc! { "a": 1 });
        let error = lab.store.drop_indexes(&op(), &target, &names);
        assert_eq!(error.unwrap_err().code, ambiguous);
        // By name an index is made unique beside another unique one, as in MongoDB.
        modify(doc! { "name": "plain", "prepareUnique": true }).unwrap();
        modify(doc! { "name": "plain", "unique": true }).unwrap();
        let listed = lab.store.list_indexes(&target).unwrap();
        let is_unique = |d: &&RawDocumentBuf| d.get_bool("unique").unwrap_or(false);
        assert_eq!(listed.iter().filter(is_unique).count(), 2, "{listed:?}");
        // `createIndexes` compares by name first.
        let mut made = plain.clone();
        made.insert("unique", true);
        for (spec, conflict) in [
            (&made, None),
            (&unique, None),
            (&plain, Some(query::Code::INDEX_KEY_SPECS_CONFLICT)),
        ] {
            assert_eq!(create(spec).err().map(|e| e.code), conflict, "{spec}");
        }
        made.insert("name", "third");
        let other = create(&made).unwrap_err();
        assert_eq!(other.code, query::Code::INDEX_OPTIONS_CONFLICT);
    });
}

#[test]
fn an_index_of_one_name_with_other_options_conflicts() {
    on_each(|lab| {
        let create = |seconds: i32| {
            let key = doc! { "a": 1 };
            let spec = doc! { "key": key, "name": "a", "expireAfterSeconds": seconds };
            lab.store.create_indexes(&op(), &ns("c"), &[spec])
        };
        create(10).unwrap();
        create(10).unwrap();
        let error = create(11).unwrap_err();
        assert_eq!(error.code, query::Code::INDEX_OPTIONS_CONFLICT, "{error}");
    });
}

/// `plan::space`: P1.
#[test]
fn arrays_that_come_later_change_the_plans() {
    on_each(|lab| {
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        lab.insert(&ns("c"), &[doc! { "_id": 1, "a": 5 }]);
        let between = || find(doc! { "a": { "$gte": 0, "$lte": 9 } });
        assert_eq!(found(lab, &between()), [1], "{}", lab.engine());
        // One element is above the one bound, another is below the other.
        lab.insert(&ns("c"), &[doc! { "_id": 2, "a": [20, -5] }]);
        assert_eq!(found(lab, &between()), [1, 2], "{}", lab.engine());
    });
}

fn found(lab: &Lab, request: &FindRequest) -> Vec<i32> {
    let batch = lab.store.find(&op(), &ns("c"), request).unwrap();
    let all = lab.drain(batch, 101).unwrap();
    let mut ids: Vec<i32> = all.iter().map(|d| d.get_i32("_id").unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_hashed_field_between_others_may_have_any_value() {
    on_each(|lab| {
        let key = doc! { "a": 1, "b": "hashed", "c": 1 };
        lab.index("c", doc! { "key": key, "name": "abc" });
        let all: Vec<Document> = (0..100)
            .map(|i| doc! { "_id": i, "a": 1, "b": format!("{i}"), "c": i })
            .collect();
        lab.insert(&ns("c"), &all);
        let filter = doc! { "a": 1, "c": { "$gte": 10 } };
        let wanted: Vec<i32> = (10..100).collect();
        assert_eq!(found(lab, &find(filter)), wanted, "{}", lab.engine());
    });
}

#[test]
fn the_filter_of_a_partial_index_compares_as_the_index_does() {
    on_each(|lab| {
        let collation = doc! { "locale": "en", "strength": 2 };
        lab.index(
            "c",
            doc! {
                "key": { "a": 1 },
                "name": "a",
                "partialFilterExpression": { "a": { "$gt": "Z" } },
                "collation": &collation,
            },
        );
        lab.insert(
            &ns("c"),
            &[doc! { "_id": 1, "a": "b" }, doc! { "_id": 2, "a": "zz" }],
        );
        // In byte order "a" is greater than "Z".
        let request = |collation: Option<&Document>| FindRequest {
            collation: collation.map(raw),
            ..find(doc! { "a": { "$gt": "a" } })
        };
        assert_eq!(
            found(lab, &request(Some(&collation))),
            [1, 2],
            "{}",
            lab.engine()
        );
        assert_eq!(found(lab, &request(None)), [1, 2], "{}", lab.engine());
    });
}

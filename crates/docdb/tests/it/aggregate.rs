//! Pipelines over collections, and the collections that they write.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bson::{Document, doc};
use docdb::Namespace;
use query::stage::Statistics;

use crate::lab::{Lab, ns, of, on_each, op, raw};

fn sales(lab: &Lab) {
    let sales: Vec<Document> = (0..30)
        .map(|i| doc! { "_id": i, "item": i % 3, "n": i, "tags": ["x", format!("t{}", i % 2)] })
        .collect();
    lab.insert(&ns("sales"), &sales);
    let items = [
        doc! { "_id": 0, "code": 0, "name": "pen" },
        doc! { "_id": 1, "code": 1, "name": "ink" },
        doc! { "_id": 2, "code": 1, "name": "nib" },
    ];
    lab.insert(&ns("items"), &items);
}

#[test]
fn matched_documents_are_grouped_and_sorted() {
    on_each(|lab| {
        sales(lab);
        let pipeline = [
            doc! { "$match": { "n": { "$gte": 6 } } },
            doc! { "$group": { "_id": "$item", "sum": { "$sum": "$n" }, "count": { "$sum": 1 } } },
            doc! { "$sort": { "_id": -1 } },
        ];
        let wanted = [
            doc! { "_id": 2, "sum": 148, "count": 8 },
            doc! { "_id": 1, "sum": 140, "count": 8 },
            doc! { "_id": 0, "sum": 132, "count": 8 },
        ];
        assert_eq!(lab.aggregate("sales", &pipeline), wanted);
        lab.index("sales", doc! { "key": { "n": 1 }, "name": "n" });
        assert_eq!(lab.aggregate("sales", &pipeline), wanted);
        assert_eq!(lab.aggregate("none", &pipeline), [] as [Document; 0]);
        let counted = lab.aggregate("sales", &[doc! { "$count": "all" }]);
        assert_eq!(counted, [doc! { "all": 30 }]);
    });
}

#[test]
fn arrays_are_unwound() {
    on_each(|lab| {
        sales(lab);
        let counted = lab.aggregate(
            "sales",
            &[
                doc! { "$unwind": "$tags" },
                doc! { "$group": { "_id": "$tags", "n": { "$sum": 1 } } },
                doc! { "$sort": { "n": -1, "_id": 1 } },
            ],
        );
        let wanted = [
            doc! { "_id": "x", "n": 30 },
            doc! { "_id": "t0", "n": 15 },
            doc! { "_id": "t1", "n": 15 },
        ];
        assert_eq!(counted, wanted);
    });
}

#[test]
fn lookups_give_the_same_with_and_without_an_index() {
    on_each(|lab| {
        sales(lab);
        let pipeline = [
            doc! { "$match": { "_id": { "$lt": 3 } } },
            doc! { "$sort": { "_id": 1 } },
            doc! { "$lookup": {
                "from": "items", "localField": "item", "foreignField": "code", "as": "of",
                "pipeline": [{ "$sort": { "_id": 1 } }, { "$project": { "name": 1, "_id": 0 } }],
            } },
            doc! { "$project": { "of": 1 } },
        ];
        let wanted = [
            doc! { "_id": 0, "of": [{ "name": "pen" }] },
            doc! { "_id": 1, "of": [{ "name": "ink" }, { "name": "nib" }] },
            doc! { "_id": 2, "of": [] },
        ];
        assert_eq!(lab.aggregate("sales", &pipeline), wanted);
        lab.index("items", doc! { "key": { "code": 1 }, "name": "code" });
        assert_eq!(lab.aggregate("sales", &pipeline), wanted);
        let joined = lab.aggregate(
            "sales",
            &[
                doc! { "$lookup": { "from": "items", "as": "of", "localField": "item",
                "foreignField": "code" } },
                doc! { "$unwind": "$of" },
                doc! { "$count": "n" },
            ],
        );
        assert_eq!(joined, [doc! { "n": 30 }]);
    });
}

#[test]
fn facets_see_the_same_documents() {
    on_each(|lab| {
        sales(lab);
        let facets = lab.aggregate(
            "sales",
            &[
                doc! { "$match": { "n": { "$lt": 10 } } },
                doc! { "$facet": {
                    "count": [{ "$count": "n" }],
                    "top": [
                        { "$sort": { "n": -1 } }, { "$limit": 2 }, { "$project": { "_id": 1 } },
                    ],
                    "none": [{ "$match": { "n": -1 } }],
                } },
            ],
        );
        let wanted = doc! { "count": [{ "n": 10 }], "top": [{ "_id": 9 }, { "_id": 8 }],
        "none": [] };
        assert_eq!(facets, [wanted]);
    });
}

#[test]
fn out_replaces_a_collection_and_keeps_its_indexes() {
    on_each(|lab| {
        sales(lab);
        lab.insert(&ns("target"), &[doc! { "_id": "old", "sum": -1 }]);
        lab.index(
            "target",
            doc! { "key": { "sum": 1 }, "name": "sum", "unique": true },
        );
        let pipeline = [
            doc! { "$group": { "_id": "$item", "sum": { "$sum": "$n" } } },
            doc! { "$out": "target" },
        ];
        assert!(lab.aggregate("sales", &pipeline).is_empty());
        let mut all = lab.all(&ns("target"));
        all.sort_by_key(|d| d.get_i32("_id").unwrap());
        let wanted = [
            doc! { "_id": 0, "sum": 135 },
            doc! { "_id": 1, "sum": 145 },
            doc! { "_id": 2, "sum": 155 },
        ];
        assert_eq!(all, wanted);
        assert_eq!(lab.store.list_indexes(&ns("target")).unwrap().len(), 2);
        // A pipeline that fails leaves the target unchanged and nothing else behind.
        let clash = [
            doc! { "$project": { "sum": { "$literal": 1 } } },
            doc! { "$out": "target" },
        ];
        let error = lab.try_aggregate("sales", &clash).unwrap_err();
        assert_eq!(error.code.0, 11000);
        assert_eq!(lab.all(&ns("target")).len(), 3);
        assert_eq!(lab.store.catalog().in_database("test").count(), 3);
        // A collection may replace itself.
        let itself = [
            doc! { "$match": { "n": { "$lt": 4 } } },
            doc! { "$out": "sales" },
        ];
        lab.aggregate("sales", &itself);
        assert_eq!(lab.all(&ns("sales")).len(), 4);
    });
}

#[test]
fn merge_inserts_replaces_and_merges() {
    on_each(|lab| {
        sales(lab);
        let seed = [doc! { "_id": 0, "keep": 1 }, doc! { "_id": 9, "keep": 9 }];
        lab.insert(&ns("target"), &seed);
        let sums = doc! { "$group": { "_id": "$item", "sum": { "$sum": "$n" } } };
        let sort = doc! { "$sort": { "_id": 1 } };
        let merge = |how: Document| [sums.clone(), sort.clone(), doc! { "$merge": how }];
        assert!(
            lab.aggregate("sales", &merge(doc! { "into": "target" }))
                .is_empty()
        );
        let wanted = [
            doc! { "_id": 0, "keep": 1, "sum": 135 },
            doc! { "_id": 9, "keep": 9 },
            doc! { "_id": 1, "sum": 145 },
            doc! { "_id": 2, "sum": 155 },
        ];
        assert_eq!(lab.all(&ns("target")), wanted);
        lab.aggregate(
            "sales",
            &merge(doc! { "into": "target", "whenMatched": "replace" }),
        );
        assert_eq!(lab.all(&ns("target"))[0], doc! { "_id": 0, "sum": 135 });
        let add = doc! { "into": "target",
        "whenMatched": [{ "$set": { "sum": { "$add": ["$sum", "$$new.sum"] } } }] };
        lab.aggregate("sales", &merge(add));
        assert_eq!(lab.all(&ns("target"))[0], doc! { "_id": 0, "sum": 270 });
        let fail = merge(doc! { "into": "target", "whenMatched": "fail" });
        let error = lab.try_aggregate("sales", &fail).unwrap_err();
        assert_eq!(error.code.0, 11000);
        let duplicate = "E11000 duplicate key error collection: test.target index: _id_ dup key: \
                         { _id: 0 }";
        assert!(error.message.ends_with(duplicate), "{error}");
        let immutable = merge(doc! {
            "into": "target", "whenMatched": [{ "$set": { "_id": "other" } }],
        });
        let error = lab.try_aggregate("sales", &immutable).unwrap_err();
        assert_eq!(error.code.0, 66);
        let context = ":: caused by :: $merge failed to update the matching document, did you \
                       attempt to modify the _id or the shard key? :: caused by :: ";
        assert!(error.message.contains(context), "{error}");
        let absent = merge(doc! { "into": "other", "whenNotMatched": "fail" });
        let error = lab.try_aggregate("sales", &absent).unwrap_err();
        assert_eq!(error.code.0, 13113);
        lab.aggregate(
            "sales",
            &merge(doc! { "into": "other", "whenNotMatched": "discard" }),
        );
        assert!(lab.all(&ns("other")).is_empty());
    });
}

#[test]
fn merge_wants_a_unique_index_of_its_fields() {
    on_each(|lab| {
        sales(lab);
        let merge = [
            doc! { "$match": { "_id": { "$lt": 3 } } },
            doc! { "$project": { "item": 1, "n": 1, "_id": 0 } },
            doc! { "$merge": { "into": "target", "on": "item" } },
        ];
        lab.insert(&ns("target"), &[doc! { "_id": "a", "item": 0 }]);
        let error = lab.try_aggregate("sales", &merge).unwrap_err();
        assert_eq!(error.code.0, 51183);
        lab.index(
            "target",
            doc! { "key": { "item": 1 }, "name": "item", "unique": true },
        );
        lab.aggregate("sales", &merge);
        let all = lab.all(&ns("target"));
        assert_eq!(all.len(), 3);
        assert_eq!(all[0], doc! { "_id": "a", "item": 0, "n": 0 });
        assert!(all[1].get_object_id("_id").is_ok(), "{}", all[1]);
    });
}

#[test]
fn merges_at_the_same_time_lose_nothing() {
    on_each(|lab| {
        let source: Vec<Document> = (0..40).map(|i| doc! { "_id": i, "n": 1 }).collect();
        lab.insert(&ns("source"), &source);
        let merge = || {
            let store = Arc::clone(&lab.store);
            let body = move || {
                let add = doc! { "$set": { "n": { "$add": ["$n", "$$new.n"] } } };
                let merge = doc! { "$merge": { "into": "sums", "whenMatched": [add] } };
                let request = of(&[merge]);
                for _ in 0..5 {
                    store.aggregate(&op(), &ns("source"), &request)?;
                }
                Ok::<_, query::Error>(())
            };
            stdx::sync::spawn("merge", body).unwrap()
        };
        let threads: Vec<_> = (0..4).map(|_| merge()).collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        let all = lab.all(&ns("sums"));
        assert_eq!(all.len(), source.len(), "{}", lab.engine());
        for sum in all {
            assert_eq!(sum.get_i32("n").unwrap(), 20, "{}: {sum}", lab.engine());
        }
    });
}

#[test]
fn what_identifies_a_document_for_merge_is_a_value() {
    on_each(|lab| {
        let regex = bson::Bson::RegularExpression(bson::Regex {
            pattern: "a".try_into().unwrap(),
            options: "".try_into().unwrap(),
        });
        lab.insert(&ns("source"), &[doc! { "k": regex }]);
        lab.insert(&ns("target"), &[doc! { "_id": 1, "k": "abc" }]);
        let unique = doc! { "key": { "k": 1 }, "name": "k", "unique": true };
        lab.index("target", unique);
        let merge = doc! { "$merge": { "into": "target", "on": "k" } };
        lab.aggregate("source", &[doc! { "$project": { "_id": 0 } }, merge]);
        let all = lab.all(&ns("target"));
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], doc! { "_id": 1, "k": "abc" });
    });
}

#[test]
fn an_out_that_is_killed_leaves_nothing() {
    on_each(|lab| {
        lab.insert(&ns("target"), &[doc! { "_id": "old" }]);
        let trees = lab.store.engine().trees().unwrap();
        let op = op();
        let killed = Arc::clone(&op.killed);
        let report = move |_: &query::Namespace, _: &Statistics| {
            killed.store(11601, Ordering::Relaxed);
            Ok(vec![doc! { "_id": "new" }])
        };
        let request = of(&[doc! { "$listLocalSessions": {} }, doc! { "$out": "target" }]);
        let ns_all = Namespace::collectionless("test");
        let ended = lab
            .store
            .aggregate_with(&op, &ns_all, &request, Some(&report));
        assert_eq!(ended.unwrap_err().code.0, 11601);
        assert_eq!(lab.all(&ns("target")), [doc! { "_id": "old" }]);
        assert_eq!(lab.store.engine().trees().unwrap(), trees);
    });
}

#[test]
fn a_collection_named_like_those_of_an_out_is_kept_at_opening() {
    on_each(|lab| {
        let theirs = ns("tmp.agg_out.0123456789abcdef");
        lab.insert(&theirs, &[doc! { "_id": 1 }]);
        lab.insert(&ns("c"), &[doc! { "_id": 2 }]);
        lab.aggregate("c", &[doc! { "$out": "target" }]);
        if lab.reopen() {
            assert_eq!(lab.all(&theirs), [doc! { "_id": 1 }]);
            assert_eq!(
                lab.all(&ns("target")),
                [doc! { "_id": 2 }],
                "it was renamed"
            );
        }
    });
}

/// `cursor::batch`: B2.
#[test]
fn a_result_too_large_for_clients_is_an_error() {
    on_each(|lab| {
        let two = "x".repeat(2 << 20);
        let documents: Vec<Document> = (0..9).map(|i| doc! { "_id": i, "s": &two }).collect();
        for document in documents.chunks(3) {
            lab.insert(&ns("c"), document);
        }
        let push = |few: i32| {
            let group = doc! { "_id": null, "all": { "$push": "$s" } };
            let few = doc! { "$match": { "_id": { "$lt": few } } };
            lab.try_aggregate("c", &[few, doc! { "$group": group }])
        };
        assert_eq!(push(9).unwrap_err().code.0, 10334);
        assert_eq!(push(7).unwrap().len(), 1);
    });
}

#[test]
fn operations_know_the_time_of_the_deployment_and_the_roles_of_the_user() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1, "role": "read" }]);
        let time = bson::Timestamp {
            time: 7,
            increment: 1,
        };
        let roles = bson::bson!([{ "_id": "test.read", "role": "read", "db": "test" }]);
        let pipeline = of(&[
            doc! { "$match": { "$expr": { "$in": ["$role", "$$USER_ROLES.role"] } } },
            doc! { "$project": { "time": "$$CLUSTER_TIME" } },
        ]);
        let refused = lab.store.aggregate(&op(), &ns("c"), &pipeline);
        assert_eq!(refused.unwrap_err().code.0, 51_144);
        let mut known = op();
        known.system = Some(Arc::new(query::expr::System {
            cluster_time: Some(time.into()),
            user_roles: Some(Arc::new(roles)),
        }));
        let batch = lab.store.aggregate(&known, &ns("c"), &pipeline).unwrap();
        let wanted = [doc! { "_id": 1, "time": time }];
        assert_eq!(crate::lab::documents(&batch), wanted);
        let set = doc! { "$set": { "by": "$$USER_ROLES.role" } };
        let statement = docdb::UpdateStatement::new(
            crate::lab::raw(&doc! { "$expr": { "$in": ["read", "$$USER_ROLES.role"] } }),
            bson::RawBson::try_from(bson::Bson::Array(vec![set.into()])).unwrap(),
        );
        let updated = lab
            .store
            .update(&known, &ns("c"), &[statement], true, false);
        assert_eq!(updated.unwrap().n_modified, 1);
        let wanted = doc! { "_id": 1, "role": "read", "by": ["read"] };
        assert_eq!(lab.all(&ns("c")), [wanted]);
    });
}

#[test]
fn documents_say_by_which_key_they_were_sorted() {
    on_each(|lab| {
        let documents = [
            doc! { "_id": 1, "a": 2 },
            doc! { "_id": 2, "a": 1 },
            doc! { "_id": 3, "a": [5, 0] },
        ];
        lab.insert(&ns("c"), &documents);
        let key = doc! { "$meta": "sortKey" };
        let shown = doc! { "_id": 1, "k": key.clone() };
        let find = |sort: Document| docdb::FindRequest {
            sort: Some(raw(&sort)),
            projection: Some(raw(&shown)),
            ..docdb::FindRequest::default()
        };
        let sorted = [
            doc! { "_id": 3, "k": [0] },
            doc! { "_id": 2, "k": [1] },
            doc! { "_id": 1, "k": [2] },
        ];
        // First with a sort, then in the order of an index.
        for index in [false, true] {
            if index {
                lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
            }
            let batch = lab.store.find(&op(), &ns("c"), &find(doc! { "a": 1 }));
            assert_eq!(lab.drain(batch.unwrap(), 2).unwrap(), sorted);
            let pipeline = [
                doc! { "$sort": { "a": 1 } },
                doc! { "$project": shown.clone() },
            ];
            assert_eq!(lab.aggregate("c", &pipeline), sorted);
        }
        // The sort is in the pipeline; the stages behind it keep the sort key.
        let pipeline = [
            doc! { "$unwind": "$a" },
            doc! { "$sort": { "a": -1, "_id": 1 } },
            doc! { "$limit": 3 },
            doc! { "$addFields": { "k": { "$concatArrays": [key.clone(), ["x"]] } } },
            doc! { "$match": { "k": 2 } },
            doc! { "$set": { "again": { "$first": key } } },
        ];
        let expected = doc! { "_id": 1, "a": 2, "k": [2, 1, "x"], "again": 2 };
        let other = doc! { "_id": 2, "a": 1, "k": [1, 2, "x"], "again": 1 };
        assert_eq!(lab.aggregate("c", &pipeline), [expected, other]);
        // Without a sort there is no sort key.
        let pipeline = [
            doc! { "$match": { "_id": 1 } },
            doc! { "$project": shown.clone() },
        ];
        assert_eq!(lab.aggregate("c", &pipeline), [doc! { "_id": 1 }]);
        let view = doc! { "viewOn": "c", "pipeline": [{ "$sort": { "a": 1 } }] };
        let view = docdb::CollectionOptions::parse(&view).unwrap();
        lab.store.create(&op(), &ns("v"), view).unwrap();
        let batch = lab.store.find(&op(), &ns("v"), &find(doc! { "a": 1 }));
        assert_eq!(lab.drain(batch.unwrap(), 2).unwrap(), sorted);
        for target in ["c", "none", "v"] {
            for sort in [doc! {}, doc! { "$natural": 1 }] {
                let request = find(sort);
                let refused = lab.store.find(&op(), &ns(target), &request).unwrap_err();
                assert_eq!(refused.code.0, 2, "{target} {:?}", request.sort);
                let plan = docdb::Verbosity::QueryPlanner;
                let refused = lab.store.explain_find(&op(), &ns(target), &request, plan);
                assert_eq!(refused.unwrap_err().code.0, 2, "{target}");
            }
        }
        let modify = docdb::FindAndModify {
            fields: Some(raw(&shown)),
            ..docdb::FindAndModify::default()
        };
        let refused = lab.store.find_and_modify(&op(), &ns("c"), &modify);
        assert_eq!(refused.unwrap_err().code.0, 2);
    });
}

//! The output of `explain`: the stages of plans, and their statistics.

use bson::{Document, doc};
use docdb::{
    CountRequest, DeleteStatement, DistinctRequest, FindAndModify, FindRequest, UpdateStatement,
    Verbosity,
};

use crate::lab::{Lab, find, ns, of, on_each, op, raw};

fn setup(lab: &Lab) {
    let documents: Vec<Document> = (0..100)
        .map(|i| doc! { "_id": i, "a": i % 10, "b": i })
        .collect();
    lab.insert(&ns("c"), &documents);
    lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
    lab.index("c", doc! { "key": { "b": 1 }, "name": "b" });
}

/// The names of a tree's stages, from the outermost inwards; branches in parentheses.
fn names(stage: &Document) -> String {
    let mut out = stage.get_str("stage").unwrap().to_owned();
    if let Ok(inner) = stage.get_document("inputStage") {
        out = format!("{out} {}", names(inner));
    }
    if let Ok(inner) = stage.get_array("inputStages") {
        let inner: Vec<String> = inner
            .iter()
            .map(|stage| names(stage.as_document().unwrap()))
            .collect();
        out = format!("{out}({})", inner.join(", "));
    }
    out
}

/// Check the stages of the plan, and the numbers of documents returned, keys and documents
/// examined.
fn check(lab: &Lab, request: &FindRequest, stages: &str, counts: [i64; 3]) {
    let plan = lab
        .store
        .explain_find(&op(), &ns("c"), request, Verbosity::ExecutionStats)
        .unwrap();
    let winner = plan.get_document("queryPlanner").unwrap();
    let winner = winner.get_document("winningPlan").unwrap();
    assert_eq!(names(winner), stages, "{}", lab.engine());
    let stats = plan.get_document("executionStats").unwrap();
    let executed = stats.get_document("executionStages").unwrap();
    assert_eq!(names(executed), stages, "{}", lab.engine());
    let number = |name: &str| {
        let value = stats.get(name).unwrap();
        value
            .as_i64()
            .or_else(|| value.as_i32().map(i64::from))
            .unwrap()
    };
    let found = ["nReturned", "totalKeysExamined", "totalDocsExamined"].map(number);
    assert_eq!(found, counts, "{} {stages}: {stats}", lab.engine());
}

/// All parts of an explanation share one limit, so that it fits a reply.
#[test]
fn an_explanation_fits_a_reply() {
    on_each(|lab| {
        setup(lab);
        for at in 0..8 {
            let key = doc! { "a": 1, format!("f{at}"): 1 };
            lab.index("c", doc! { "key": key, "name": format!("f{at}") });
        }
        let long = "x".repeat(3 << 20);
        let request = FindRequest {
            projection: Some(raw(&doc! { "p": { "$literal": &long } })),
            ..find(doc! { "a": 1, "s": { "$ne": long } })
        };
        let plan = lab
            .store
            .explain_find(&op(), &ns("c"), &request, Verbosity::AllPlansExecution)
            .unwrap();
        let size = raw(&plan).as_bytes().len();
        assert!(size < 11 << 20, "{}: {size} bytes", lab.engine());
        let shown = plan.to_string();
        for part in ["filter", "projection"] {
            let omitted = format!("{part} omitted due to BSON size limit for explain");
            assert!(shown.contains(&omitted), "{}", lab.engine());
        }
    });
}

/// A filter of many bytes is not repeated in the reply.
#[test]
fn a_filter_that_is_too_large_is_left_out() {
    on_each(|lab| {
        setup(lab);
        for (length, fits) in [(1 << 20, true), (11 << 20, false)] {
            let filter = doc! { "s": "x".repeat(length) };
            let plan = lab
                .store
                .explain_find(&op(), &ns("c"), &find(filter), Verbosity::QueryPlanner)
                .unwrap();
            let planner = plan.get_document("queryPlanner").unwrap();
            let parsed = planner.get_document("parsedQuery").unwrap();
            assert_eq!(parsed.contains_key("s"), fits, "{}", lab.engine());
            assert_eq!(parsed.contains_key("warning"), !fits, "{}", lab.engine());
            let winner = planner.get_document("winningPlan").unwrap();
            assert_eq!(winner.contains_key("filter"), fits, "{}", lab.engine());
        }
    });
}

#[test]
fn plans_have_the_stages_and_counts_of_mongodb() {
    on_each(|lab| {
        setup(lab);
        check(lab, &find(doc! {}), "COLLSCAN", [100, 0, 100]);
        check(lab, &find(doc! { "x": 1 }), "COLLSCAN", [0, 0, 100]);
        check(lab, &find(doc! { "_id": 5 }), "EXPRESS_IXSCAN", [1, 1, 1]);
        let batch = FindRequest {
            batch_size: Some(5),
            ..find(doc! { "_id": 5 })
        };
        check(lab, &batch, "IDHACK", [1, 1, 1]);
        let options = doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } };
        let options = docdb::CollectionOptions::parse(&options).unwrap();
        lab.store.create(&op(), &ns("by_id"), options).unwrap();
        lab.insert(&ns("by_id"), &[doc! { "_id": 5 }]);
        let request = find(doc! { "_id": 5 });
        let plan = lab
            .store
            .explain_find(&op(), &ns("by_id"), &request, Verbosity::QueryPlanner)
            .unwrap();
        let winner = plan.get_document("queryPlanner").unwrap();
        let winner = winner.get_document("winningPlan").unwrap();
        assert_eq!(names(winner), "EXPRESS_CLUSTERED_IXSCAN");
        let computed = FindRequest {
            projection: Some(raw(&doc! { "x": { "$add": ["$a", 1] } })),
            ..find(doc! { "_id": 5 })
        };
        check(lab, &computed, "PROJECTION_DEFAULT IDHACK", [1, 1, 1]);
        check(lab, &find(doc! { "a": 5 }), "FETCH IXSCAN", [10, 10, 10]);
        let filtered = find(doc! { "a": 5, "x": { "$exists": true } });
        check(lab, &filtered, "FETCH IXSCAN", [0, 10, 10]);
        let sorted = FindRequest {
            sort: Some(raw(&doc! { "x": 1 })),
            ..find(doc! { "a": 5 })
        };
        check(lab, &sorted, "SORT FETCH IXSCAN", [10, 10, 10]);
        let by_index = FindRequest {
            sort: Some(raw(&doc! { "b": -1 })),
            limit: Some(3),
            skip: 1,
            ..find(doc! {})
        };
        check(lab, &by_index, "LIMIT SKIP FETCH IXSCAN", [3, 4, 4]);
        let covered = FindRequest {
            projection: Some(raw(&doc! { "a": 1, "_id": 0 })),
            ..find(doc! { "a": { "$gte": 8 } })
        };
        check(lab, &covered, "PROJECTION_COVERED IXSCAN", [20, 20, 0]);
        let simple = FindRequest {
            projection: Some(raw(&doc! { "a": 1 })),
            ..find(doc! { "a": 8 })
        };
        check(lab, &simple, "PROJECTION_SIMPLE FETCH IXSCAN", [10, 10, 10]);
        let missing = lab
            .store
            .explain_find(&op(), &ns("none"), &find(doc! {}), Verbosity::QueryPlanner)
            .unwrap();
        assert!(missing.to_string().contains("EOF"));
    });
}

#[test]
fn unions_name_their_branches() {
    on_each(|lab| {
        setup(lab);
        let union = find(doc! { "$or": [{ "a": 5 }, { "b": 5 }] });
        let plan = lab
            .store
            .explain_find(&op(), &ns("c"), &union, Verbosity::QueryPlanner)
            .unwrap();
        let winner = plan.get_document("queryPlanner").unwrap();
        let winner = winner.get_document("winningPlan").unwrap();
        let names = names(winner);
        assert!(names.contains("OR(") && names.contains("IXSCAN"), "{names}");
    });
}

#[test]
fn counts_and_pipelines_are_explained() {
    on_each(|lab| {
        setup(lab);
        let request = CountRequest {
            filter: raw(&doc! { "a": 5 }),
            skip: 0,
            limit: None,
            hint: None,
            collation: None,
            variables: None,
        };
        let plan = lab
            .store
            .explain_count(&op(), &ns("c"), &request, Verbosity::ExecutionStats)
            .unwrap();
        let stats = plan.get_document("executionStats").unwrap();
        let stages = stats.get_document("executionStages").unwrap();
        assert_eq!(names(stages), "COUNT COUNT_SCAN");
        let request = of(&[
            doc! { "$match": { "a": 5 } },
            doc! { "$group": { "_id": "$b" } },
        ]);
        let plan = lab
            .store
            .explain_aggregate(&op(), &ns("c"), &request, Verbosity::ExecutionStats)
            .unwrap();
        let stages = plan.get_array("stages").unwrap();
        assert_eq!(stages.len(), 2);
        assert!(stages[0].as_document().unwrap().contains_key("$cursor"));
        assert!(stages[1].as_document().unwrap().contains_key("$group"));
        assert!(plan.to_string().contains("IXSCAN"), "{plan}");
    });
}

/// The name of each stage of a pipeline, and the number of documents it returned.
fn returned(plan: &Document) -> Vec<(String, Option<i64>)> {
    let stages = plan.get_array("stages").unwrap().iter();
    let stages = stages.map(|stage| stage.as_document().unwrap());
    stages
        .map(|stage| {
            let timed = stage.get_i64("executionTimeMillisEstimate").ok();
            let rows = stage.get_i64("nReturned").ok();
            assert_eq!(rows.is_some(), timed.is_some(), "{stage}");
            (stage.keys().next().unwrap().clone(), rows)
        })
        .collect()
}

#[test]
fn stages_of_pipelines_say_what_they_returned() {
    on_each(|lab| {
        setup(lab);
        let explain = |pipeline: &[Document], verbosity| {
            lab.store
                .explain_aggregate(&op(), &ns("c"), &of(pipeline), verbosity)
                .unwrap()
        };
        let matched = doc! { "$match": { "a": { "$in": [3, 4] } } };
        let group = doc! { "$group": { "_id": "$a", "n": { "$sum": "$b" } } };
        let unwind = doc! { "$unwind": "$none" };
        let whole = [matched.clone(), group.clone(), unwind];
        let stages = |counts: [Option<i64>; 3]| {
            let names = ["$cursor", "$group", "$unwind"].map(str::to_owned);
            Vec::from_iter(names.into_iter().zip(counts))
        };
        let plan = explain(&whole, Verbosity::QueryPlanner);
        assert_eq!(returned(&plan), stages([None; 3]));
        let plan = explain(&whole, Verbosity::ExecutionStats);
        assert_eq!(returned(&plan), stages([Some(20), Some(2), Some(0)]));
        let cursor = |plan: &Document| {
            let first = plan.get_array("stages").unwrap()[0].as_document().unwrap();
            let cursor = first.get_document("$cursor").unwrap();
            cursor.get_document("executionStats").unwrap().clone()
        };
        let stats = cursor(&plan);
        assert_eq!(stats.get_i32("nReturned").unwrap(), 20);
        assert_eq!(stats.get_i32("totalDocsExamined").unwrap(), 20);
        // Rows that no stage requests are not read.
        let first = [
            doc! { "$unwind": "$a" },
            doc! { "$limit": 3 },
            doc! { "$count": "n" },
        ];
        let plan = explain(&first, Verbosity::ExecutionStats);
        let counts: Vec<_> = returned(&plan).into_iter().map(|(_, n)| n).collect();
        assert_eq!(counts, [Some(3), Some(3), Some(3), Some(1)]);
        assert!(cursor(&plan).get_i32("totalDocsExamined").unwrap() < 100);
        // Nothing is written.
        let out = [matched, group, doc! { "$out": "target" }];
        let plan = explain(&out, Verbosity::AllPlansExecution);
        let counts: Vec<_> = returned(&plan).into_iter().map(|(_, n)| n).collect();
        assert_eq!(counts, [Some(20), Some(2), Some(0)]);
        assert!(cursor(&plan).contains_key("allPlansExecution"));
        assert!(lab.store.collection(&ns("target")).is_none());
    });
}

#[test]
fn distinct_values_are_read_from_an_index() {
    on_each(|lab| {
        let target = ns("c");
        let mut documents: Vec<Document> = (0..300)
            .map(|i| doc! { "_id": i, "a": i % 7, "b": i })
            .collect();
        documents.push(doc! { "_id": 300, "b": 1 });
        lab.insert(&target, &documents);
        let request = DistinctRequest {
            key: "a".to_owned(),
            ..DistinctRequest::default()
        };
        let distinct = || lab.store.distinct(&op(), &target, &request).unwrap();
        let plain = distinct();
        assert_eq!(plain.len(), 7);
        lab.index("c", doc! { "key": { "a": -1, "b": 1 }, "name": "ab" });
        // A missing field has no distinct value, although the index stores it as null.
        assert_eq!(distinct(), plain);
        let told = lab
            .store
            .explain_distinct(&op(), &target, &request, Verbosity::ExecutionStats)
            .unwrap();
        let plan = told.get_document("queryPlanner").unwrap();
        let plan = plan.get_document("winningPlan").unwrap();
        let scan = plan.get_document("inputStage").unwrap();
        assert_eq!(scan.get_str("stage").unwrap(), "DISTINCT_SCAN");
        let stats = told.get_document("executionStats").unwrap();
        assert!(stats.get_i32("totalKeysExamined").unwrap() < 60, "{stats}");
        lab.insert(
            &target,
            &[
                doc! { "_id": 301, "a": null },
                doc! { "_id": 302, "a": "x" },
            ],
        );
        let mut wanted = plain.clone();
        wanted.insert(0, bson::Bson::Null);
        wanted.push("x".into());
        assert_eq!(distinct(), wanted);
        // Values in arrays are read from documents.
        lab.insert(&target, &[doc! { "_id": 303, "a": ["y", 1] }]);
        wanted.push("y".into());
        assert_eq!(distinct(), wanted);
    });
}

#[test]
fn all_plans_tell_how_their_trial_goes() {
    on_each(|lab| {
        let target = ns("c");
        let documents: Vec<Document> = (0..200)
            .map(|i| doc! { "_id": i, "a": i % 2, "b": i })
            .collect();
        lab.insert(&target, &documents);
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        lab.index("c", doc! { "key": { "b": 1 }, "name": "b" });
        let request = FindRequest {
            filter: raw(&doc! { "a": 1, "b": 7 }),
            ..FindRequest::default()
        };
        let told = lab
            .store
            .explain_find(&op(), &target, &request, Verbosity::AllPlansExecution)
            .unwrap();
        let stats = told.get_document("executionStats").unwrap();
        let all = stats.get_array("allPlansExecution").unwrap();
        assert!(1 < all.len(), "{stats}");
        for plan in all {
            let plan = plan.as_document().unwrap();
            assert!(0 < plan.get_i32("totalKeysExamined").unwrap());
            assert!(plan.get_document("executionStages").is_ok());
        }
    });
}

#[test]
fn writes_are_explained_and_not_done() {
    on_each(|lab| {
        setup(lab);
        let before = lab.all(&ns("c"));
        let stats = |plan: &Document| {
            let winner = plan.get_document("queryPlanner").unwrap();
            let winner = names(winner.get_document("winningPlan").unwrap());
            let stats = plan.get_document("executionStats").unwrap();
            let stages = stats.get_document("executionStages").unwrap().clone();
            assert_eq!(names(&stages), winner);
            (winner, stats.get_i32("nReturned").unwrap(), stages)
        };
        let all = Verbosity::ExecutionStats;
        let mut update = UpdateStatement::new(
            raw(&doc! { "a": 3 }),
            bson::RawBson::Document(raw(&doc! { "$max": { "b": 50 } })),
        );
        let plan = lab.store.explain_update(&op(), &ns("c"), &update, all);
        let (winner, returned, stages) = stats(&plan.unwrap());
        assert_eq!((winner.as_str(), returned), ("UPDATE FETCH IXSCAN", 0));
        assert_eq!(stages.get_i32("nMatched").unwrap(), 1);
        update.multi = true;
        let plan = lab.store.explain_update(&op(), &ns("c"), &update, all);
        let (_, _, stages) = stats(&plan.unwrap());
        assert_eq!(stages.get_i32("nMatched").unwrap(), 10);
        // Documents of 50 and more are unchanged.
        assert_eq!(stages.get_i32("nWouldModify").unwrap(), 5);
        assert_eq!(stages.get_i32("nWouldUpsert").unwrap(), 0);
        let mut delete = DeleteStatement::new(raw(&doc! { "b": { "$lt": 7 } }));
        delete.multi = true;
        let plan = lab.store.explain_delete(&op(), &ns("c"), &delete, all);
        let (winner, _, stages) = stats(&plan.unwrap());
        assert!(winner.starts_with("DELETE"), "{winner}");
        assert_eq!(stages.get_i32("nWouldDelete").unwrap(), 7);
        let modify = FindAndModify {
            filter: raw(&doc! { "a": 3 }),
            update: Some(bson::RawBson::Document(raw(&doc! { "$set": { "b": 1 } }))),
            ..FindAndModify::default()
        };
        let store = &lab.store;
        let plan = store.explain_find_and_modify(&op(), &ns("c"), &modify, all);
        assert_eq!(stats(&plan.unwrap()).1, 1);
        // A write by one `_id` is not planned, except an upsert.
        let set = bson::RawBson::Document(raw(&doc! { "$set": { "b": 7000 } }));
        let mut one = UpdateStatement::new(raw(&doc! { "_id": 5 }), set);
        let plan = store.explain_update(&op(), &ns("c"), &one, all);
        let (winner, returned, stages) = stats(&plan.unwrap());
        assert_eq!((winner.as_str(), returned), ("EXPRESS_UPDATE", 0));
        assert_eq!(stages.get_i32("nWouldModify").unwrap(), 1);
        assert_eq!(stages.get_str("indexName").unwrap(), "_id_");
        one.upsert = true;
        let plan = store.explain_update(&op(), &ns("c"), &one, all);
        assert_eq!(stats(&plan.unwrap()).0, "UPDATE IDHACK");
        let delete = DeleteStatement::new(raw(&doc! { "_id": 5 }));
        let plan = store.explain_delete(&op(), &ns("c"), &delete, all);
        let (winner, _, stages) = stats(&plan.unwrap());
        assert_eq!(winner, "EXPRESS_DELETE");
        assert_eq!(stages.get_i32("nWouldDelete").unwrap(), 1);
        // The collection does not exist.
        update.upsert = true;
        let plan = store
            .explain_update(&op(), &ns("none"), &update, all)
            .unwrap();
        let (winner, _, stages) = stats(&plan);
        assert_eq!(winner, "UPDATE EOF");
        assert_eq!(stages.get_i32("nWouldUpsert").unwrap(), 1);
        update.update = bson::RawBson::Document(raw(&doc! { "$nonsense": { "b": 50 } }));
        let only = Verbosity::QueryPlanner;
        let refused = store.explain_update(&op(), &ns("c"), &update, only);
        assert_eq!(refused.unwrap_err().code.0, 9);
        assert_eq!(lab.all(&ns("c")), before);
        assert_eq!(lab.all(&ns("none")), []);
    });
}

#[test]
fn distinct_returns_values_in_ascending_order() {
    use bson::{Bson, bson};
    on_each(|lab| {
        let target = ns("c");
        lab.insert(
            &target,
            &[
                doc! { "_id": 1, "a": "b" },
                doc! { "_id": 2, "a": [7, true, "A"] },
                doc! { "_id": 3, "a": { "x": 1 } },
                doc! { "_id": 4, "a": 2.5 },
                doc! { "_id": 5, "a": null },
                doc! { "_id": 6, "a": 7_i64 },
                doc! { "_id": 7, "a": "C" },
            ],
        );
        let distinct = |key: &str, collation: Option<Document>| {
            let request = DistinctRequest {
                key: key.to_owned(),
                collation: collation.map(|collation| raw(&collation)),
                ..DistinctRequest::default()
            };
            lab.store.distinct(&op(), &target, &request).unwrap()
        };
        let wanted: Vec<Bson> = vec![
            Bson::Null,
            2.5.into(),
            7.into(),
            "A".into(),
            "C".into(),
            "b".into(),
            bson!({ "x": 1 }),
            true.into(),
        ];
        assert_eq!(distinct("a", None), wanted);
        // With a collation strings are in its order.
        let letters: Vec<Bson> = vec!["A".into(), "b".into(), "C".into()];
        let collated = distinct("a", Some(doc! { "locale": "en" }));
        assert_eq!(collated[3..6], letters[..]);
        // From a descending index the order is the same.
        lab.index("c", doc! { "key": { "_id": -1 }, "name": "down" });
        let ids: Vec<Bson> = (1..=7).map(Bson::Int32).collect();
        assert_eq!(distinct("_id", None), ids);
    });
}

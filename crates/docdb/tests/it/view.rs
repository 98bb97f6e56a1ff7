//! Views: reads run through the pipelines of their definitions.

use bson::{Bson, Document, doc};
use docdb::{
    CollectionOptions, CountRequest, DistinctRequest, FindRequest, InsertOptions, Verbosity, View,
};

use crate::lab::{Lab, ns, on_each, op, raw};

fn view(lab: &Lab, name: &str, on: &str, pipeline: &[Document]) -> query::Result<()> {
    let view = View::new(on, pipeline.iter().map(raw).collect());
    let options = CollectionOptions {
        view: Some(view),
        ..CollectionOptions::default()
    };
    lab.store.create(&op(), &ns(name), options)
}

fn setup(lab: &Lab) {
    let documents: Vec<Document> = (0..20)
        .map(|i| doc! { "_id": i, "a": i % 4, "hidden": i })
        .collect();
    lab.insert(&ns("c"), &documents);
    lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
    let even = [
        doc! { "$match": { "_id": { "$lt": 10 } } },
        doc! { "$project": { "hidden": 0 } },
    ];
    view(lab, "small", "c", &even).unwrap();
    let doubled = [doc! { "$addFields": { "b": { "$multiply": ["$a", 2] } } }];
    view(lab, "double", "small", &doubled).unwrap();
}

fn find(lab: &Lab, coll: &str, request: &FindRequest) -> Vec<Document> {
    let batch = lab.store.find(&op(), &ns(coll), request).unwrap();
    lab.drain(batch, 2).unwrap()
}

#[test]
fn views_are_found_counted_and_aggregated() {
    on_each(|lab| {
        setup(lab);
        let request = FindRequest {
            filter: raw(&doc! { "a": 1 }),
            sort: Some(raw(&doc! { "_id": -1 })),
            batch_size: Some(1),
            ..FindRequest::default()
        };
        let wanted = [9, 5, 1].map(|i| doc! { "_id": i, "a": 1 });
        assert_eq!(find(lab, "small", &request), wanted);
        let wanted = [9, 5, 1].map(|i| doc! { "_id": i, "a": 1, "b": 2 });
        assert_eq!(find(lab, "double", &request), wanted);
        let limited = FindRequest {
            skip: 1,
            limit: Some(1),
            projection: Some(raw(&doc! { "b": 1, "_id": 0 })),
            ..request
        };
        assert_eq!(find(lab, "double", &limited), [doc! { "b": 2 }]);
        let count = |filter: Document, skip, limit| {
            let request = CountRequest {
                filter: raw(&filter),
                skip,
                limit,
                hint: None,
                collation: None,
                variables: None,
            };
            lab.store.count(&op(), &ns("double"), &request).unwrap()
        };
        assert_eq!(count(doc! {}, 0, None), 10);
        assert_eq!(count(doc! { "b": 2 }, 1, Some(1)), 1);
        assert_eq!(count(doc! { "hidden": 1 }, 0, None), 0);
        let grouped = lab.aggregate(
            "double",
            &[
                doc! { "$group": { "_id": "$b", "n": { "$sum": 1 } } },
                doc! { "$sort": { "_id": 1 } },
            ],
        );
        let wanted = [(0, 3), (2, 3), (4, 2), (6, 2)].map(|(b, n)| doc! { "_id": b, "n": n });
        assert_eq!(grouped, wanted);
        let distinct = DistinctRequest {
            key: "b".to_owned(),
            filter: raw(&doc! { "a": { "$gt": 1 } }),
            hint: None,
            collation: None,
            variables: None,
        };
        let values = lab.store.distinct(&op(), &ns("double"), &distinct).unwrap();
        assert_eq!(values, [Bson::Int32(4), Bson::Int32(6)]);
    });
}

#[test]
fn views_join_and_are_joined() {
    on_each(|lab| {
        setup(lab);
        let joined = lab.aggregate(
            "c",
            &[
                doc! { "$match": { "_id": { "$in": [1, 11] } } },
                doc! { "$sort": { "_id": 1 } },
                doc! { "$lookup": {
                    "from": "double", "localField": "_id", "foreignField": "_id", "as": "v",
                } },
                doc! { "$project": { "v": 1 } },
            ],
        );
        let wanted = [
            doc! { "_id": 1, "v": [{ "_id": 1, "a": 1, "b": 2 }] },
            doc! { "_id": 11, "v": [] },
        ];
        assert_eq!(joined, wanted);
        let both = lab.aggregate(
            "small",
            &[
                doc! { "$unionWith": { "coll": "double", "pipeline": [{ "$limit": 3 }] } },
                doc! { "$count": "n" },
            ],
        );
        assert_eq!(both, [doc! { "n": 13 }]);
    });
}

#[test]
fn views_are_not_written_and_do_not_turn_in_circles() {
    on_each(|lab| {
        setup(lab);
        let document = raw(&doc! { "_id": 1 });
        let error = lab
            .store
            .insert(&op(), &ns("small"), &[&document], InsertOptions::default())
            .unwrap_err();
        assert_eq!(error.code.0, 166);
        let merge = [doc! { "$out": "small" }];
        assert_eq!(lab.try_aggregate("c", &merge).unwrap_err().code.0, 166);
        let circle = view(lab, "c1", "c2", &[]).and_then(|()| view(lab, "c2", "c1", &[]));
        assert_eq!(circle.unwrap_err().code.0, 5);
        let writing = view(lab, "w", "c", &[doc! { "$out": "x" }]);
        assert_eq!(writing.unwrap_err().code.0, 167);
        let turned = lab
            .store
            .coll_mod(&op(), &ns("small"), &raw(&doc! { "viewOn": "double" }));
        assert_eq!(turned.unwrap_err().code.0, 5);
        let after = lab.store.drop_collection(&op(), &ns("small"));
        assert!(after.is_ok());
        assert!(find(lab, "double", &FindRequest::default()).is_empty());
    });
}

#[test]
fn counts_of_views_are_explained_as_pipelines() {
    on_each(|lab| {
        setup(lab);
        let request = CountRequest {
            filter: raw(&doc! { "a": 1 }),
            skip: 0,
            limit: None,
            hint: None,
            collation: None,
            variables: None,
        };
        let plan = lab
            .store
            .explain_count(&op(), &ns("small"), &request, Verbosity::QueryPlanner)
            .unwrap();
        assert!(!plan.to_string().contains("EOF"), "{plan}");
    });
}

#[test]
fn views_are_read_backwards_and_by_hints() {
    on_each(|lab| {
        setup(lab);
        let ids = |request: &FindRequest| {
            let found = find(lab, "small", request);
            found
                .iter()
                .map(|d| d.get_i32("_id").unwrap())
                .collect::<Vec<_>>()
        };
        let natural = |direction: i32| FindRequest {
            sort: Some(raw(&doc! { "$natural": direction })),
            ..FindRequest::default()
        };
        assert_eq!(ids(&natural(1)), (0..10).collect::<Vec<_>>());
        assert_eq!(ids(&natural(-1)), (0..10).rev().collect::<Vec<_>>());
        let by_index = FindRequest {
            hint: Some(Bson::Document(doc! { "a": 1 })),
            ..FindRequest::default()
        };
        assert_eq!(ids(&by_index), [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]);
        let unknown = FindRequest {
            hint: Some(Bson::String("none".to_owned())),
            ..FindRequest::default()
        };
        let error = lab.store.find(&op(), &ns("small"), &unknown).unwrap_err();
        assert_eq!(error.code, query::Code::BAD_VALUE);
        let count = CountRequest {
            hint: Some(Bson::String("none".to_owned())),
            ..CountRequest::default()
        };
        let error = lab.store.count(&op(), &ns("small"), &count).unwrap_err();
        assert_eq!(error.code, query::Code::BAD_VALUE);
    });
}

/// A view with a collation.
fn collated(lab: &Lab, name: &str, on: &str, locale: &str) -> query::Result<()> {
    let options = doc! { "viewOn": on, "pipeline": [], "collation": { "locale": locale } };
    let options = CollectionOptions::parse(&options).unwrap();
    lab.store.create(&op(), &ns(name), options)
}

#[test]
fn the_views_of_a_view_have_its_collation() {
    on_each(|lab| {
        setup(lab);
        collated(lab, "fr", "c", "fr").unwrap();
        collated(lab, "of_fr", "fr", "fr").unwrap();
        for (on, locale) in [("fr", "en"), ("fr", "simple"), ("small", "fr")] {
            let error = collated(lab, "v", on, locale).unwrap_err();
            let message = format!("View test.v has conflicting collation with view test.{on}");
            assert_eq!((error.code.0, error.message.as_str()), (167, &*message));
        }
        let joins = [doc! { "$lookup": {
            "from": "fr", "localField": "a", "foreignField": "a", "as": "b",
        } }];
        assert_eq!(view(lab, "v", "c", &joins).unwrap_err().code.0, 167);
        // A view that is defined later than the views that use it.
        view(lab, "above", "below", &[]).unwrap();
        let error = collated(lab, "below", "c", "fr").unwrap_err();
        let message = "View test.below has a collation that does not match the collation of view \
                       test.above";
        assert_eq!((error.code.0, error.message.as_str()), (167, message));
        view(lab, "below", "c", &[]).unwrap();
        let turned = lab
            .store
            .coll_mod(&op(), &ns("below"), &raw(&doc! { "viewOn": "fr" }));
        assert_eq!(turned.unwrap_err().code.0, 167);
    });
}

#[test]
fn a_view_is_asked_in_its_own_collation_only() {
    on_each(|lab| {
        setup(lab);
        lab.insert(&ns("c"), &[doc! { "_id": 50, "s": "E" }]);
        collated(lab, "en", "c", "en").unwrap();
        let (own, other) = (doc! { "locale": "en" }, doc! { "locale": "fr" });
        let simple = doc! { "locale": "simple" };
        for (coll, collation, allowed) in [
            ("en", Some(&own), true),
            ("en", Some(&doc! {}), true),
            ("en", None, true),
            ("en", Some(&other), false),
            ("en", Some(&simple), false),
            ("small", Some(&simple), true),
            ("small", Some(&own), false),
        ] {
            let what = format!("{} {coll} {collation:?}", lab.engine());
            let collation = collation.map(raw);
            let found = FindRequest {
                collation: collation.clone(),
                ..FindRequest::default()
            };
            let counted = CountRequest {
                filter: raw(&doc! { "s": "E" }),
                collation: collation.clone(),
                ..CountRequest::default()
            };
            let distinct = DistinctRequest {
                key: "s".to_owned(),
                collation: collation.clone(),
                ..DistinctRequest::default()
            };
            let (store, op, ns) = (&lab.store, op(), ns(coll));
            let piped = docdb::AggregateRequest {
                collation,
                ..crate::lab::of(&[])
            };
            let level = Verbosity::QueryPlanner;
            let answers = [
                store.find(&op, &ns, &found).map(drop),
                store.count(&op, &ns, &counted).map(drop),
                store.distinct(&op, &ns, &distinct).map(drop),
                store.aggregate(&op, &ns, &piped).map(drop),
                store.explain_find(&op, &ns, &found, level).map(drop),
            ];
            for answer in answers {
                match answer {
                    Ok(()) => assert!(allowed, "{what}"),
                    Err(error) => {
                        assert!(!allowed, "{what}: {error}");
                        let wanted = "Cannot override a view's default collation";
                        assert_eq!((error.code.0, error.message.as_str()), (167, wanted));
                    }
                }
            }
        }
    });
}

#[test]
fn a_pipeline_joins_views_of_its_own_collation() {
    on_each(|lab| {
        setup(lab);
        collated(lab, "en", "c", "en").unwrap();
        let lookup = [doc! { "$lookup": {
            "from": "en", "localField": "_id", "foreignField": "_id", "as": "b",
        } }];
        let error = lab.try_aggregate("c", &lookup).unwrap_err();
        assert_eq!(error.code.0, 167, "{}", lab.engine());
        let request = docdb::AggregateRequest {
            collation: Some(raw(&doc! { "locale": "en" })),
            ..crate::lab::of(&lookup)
        };
        let batch = lab.store.aggregate(&op(), &ns("c"), &request).unwrap();
        assert_eq!(lab.drain(batch, 101).unwrap().len(), 20);
    });
}

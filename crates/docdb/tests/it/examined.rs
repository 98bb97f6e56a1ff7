//! The recorded statistics of operations: executed plans, keys and documents read.

use std::sync::Arc;

use bson::{Document, doc};
use docdb::{
    AggregateRequest, CountRequest, DeleteStatement, DistinctRequest, Examined, FindAndModify,
    FindRequest, GetMore, Op, UpdateStatement,
};

use crate::lab::{Lab, find, ns, on_each, op, raw};

fn setup(lab: &Lab) {
    let documents: Vec<Document> = (0..100)
        .map(|i| doc! { "_id": i, "a": i % 10, "b": i })
        .collect();
    lab.insert(&ns("c"), &documents);
    lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
    lab.index("c", doc! { "key": { "b": -1, "a": 1 }, "name": "b" });
}

/// Run an operation and check its plans and the numbers of keys and documents read.
fn check(what: &str, expected: (&str, u64, u64), body: impl FnOnce(&Op<'_>)) -> Arc<Examined> {
    let examined = Arc::new(Examined::default());
    let op = Op {
        examined: Some(Arc::clone(&examined)),
        ..op()
    };
    body(&op);
    let plans = examined.plans().unwrap_or_default();
    let found = (plans.as_str(), examined.keys(), examined.documents());
    assert_eq!(found, expected, "{what}");
    examined
}

#[test]
fn queries_say_what_they_have_read() {
    on_each(|lab| {
        setup(lab);
        let run = |request: &FindRequest, expected: (&str, u64, u64)| {
            check(&format!("{:?}", request.filter), expected, |op| {
                lab.store.find(op, &ns("c"), request).unwrap();
            })
        };
        let plain = run(&find(doc! { "c": 1 }), ("COLLSCAN", 0, 100));
        assert!(!plain.sorted() && !plain.used_disk());
        run(
            &find(doc! { "_id": 7 }),
            ("EXPRESS_IXSCAN { _id: 1 }", 1, 1),
        );
        let batch = FindRequest {
            batch_size: Some(5),
            ..find(doc! { "_id": 7 })
        };
        run(&batch, ("IDHACK", 1, 1));
        run(&find(doc! { "a": 3 }), ("IXSCAN { a: 1 }", 10, 10));
        let either = doc! { "$or": [{ "a": 3 }, { "b": { "$lt": 5 } }] };
        let both = "IXSCAN { a: 1 }, IXSCAN { b: -1, a: 1 }";
        run(&find(either), (both, 15, 15));
        let sorted = FindRequest {
            sort: Some(raw(&doc! { "d": 1 })),
            ..find(doc! { "a": 3 })
        };
        assert!(run(&sorted, ("IXSCAN { a: 1 }", 10, 10)).sorted());
        let nothing = FindRequest {
            batch_size: Some(0),
            ..find(doc! { "a": 3 })
        };
        run(&nothing, ("IXSCAN { a: 1 }", 0, 0));
        check("a collection that is not there", ("EOF", 0, 0), |op| {
            lab.store.find(op, &ns("none"), &find(doc! {})).unwrap();
        });
    });
}

#[test]
fn every_batch_says_what_it_has_read_itself() {
    on_each(|lab| {
        setup(lab);
        let mut id = 0;
        check("find", ("IXSCAN { a: 1 }", 4, 4), |op| {
            let request = FindRequest {
                batch_size: Some(4),
                ..find(doc! { "a": 3 })
            };
            id = lab.store.find(op, &ns("c"), &request).unwrap().id;
        });
        check("getMore", ("IXSCAN { a: 1 }", 6, 6), |op| {
            let more = GetMore {
                id,
                ns: ns("c"),
                batch_size: None,
                waits: false,
                waited: false,
            };
            assert_eq!(lab.store.get_more(op, &more).unwrap().documents.len(), 6);
        });
    });
}

#[test]
fn counts_and_values_say_what_they_have_read() {
    on_each(|lab| {
        setup(lab);
        let count = |filter: Document, expected: (&str, u64, u64)| {
            check("count", expected, |op| {
                let request = CountRequest {
                    filter: raw(&filter),
                    ..CountRequest::default()
                };
                lab.store.count(op, &ns("c"), &request).unwrap();
            });
        };
        count(doc! {}, ("RECORD_STORE_FAST_COUNT", 0, 0));
        count(doc! { "a": 3 }, ("COUNT_SCAN { a: 1 }", 10, 0));
        count(doc! { "c": 3 }, ("COLLSCAN", 0, 100));
        let distinct = |key: &str, expected: (&str, u64, u64)| {
            check("distinct", expected, |op| {
                let request = DistinctRequest {
                    key: key.to_owned(),
                    ..DistinctRequest::default()
                };
                lab.store.distinct(op, &ns("c"), &request).unwrap();
            })
        };
        let values = distinct("b", ("DISTINCT_SCAN { b: -1, a: 1 }", 100, 0));
        assert_eq!(values.documents(), 0);
        distinct("c", ("COLLSCAN", 0, 100));
        // An index with a truncated key does not contain the value.
        lab.index("c", doc! { "key": { "t": -1 }, "name": "t" });
        let long = "x".repeat(9_000);
        lab.insert(
            &ns("c"),
            &[
                doc! { "_id": 100, "t": "y" },
                doc! { "_id": 101, "t": long },
            ],
        );
        distinct("t", ("COLLSCAN", 0, 102));
    });
}

fn aggregate(pipeline: &[Document]) -> AggregateRequest {
    AggregateRequest {
        pipeline: pipeline.iter().map(raw).collect(),
        ..AggregateRequest::default()
    }
}

#[test]
fn pipelines_say_what_they_have_read() {
    on_each(|lab| {
        setup(lab);
        let run = |pipeline: &[Document], expected: (&str, u64, u64)| {
            check("aggregate", expected, |op| {
                let request = aggregate(pipeline);
                lab.store.aggregate(op, &ns("c"), &request).unwrap();
            })
        };
        let group = doc! { "$group": { "_id": "$b", "n": { "$sum": 1 } } };
        let matched = doc! { "$match": { "a": 3 } };
        let grouped = run(
            &[matched.clone(), group.clone()],
            ("IXSCAN { a: 1 }", 10, 10),
        );
        assert!(!grouped.sorted());
        let sort = doc! { "$sort": { "n": 1 } };
        let sorted = run(&[matched.clone(), group, sort], ("IXSCAN { a: 1 }", 10, 10));
        assert!(sorted.sorted());
        // Reads of a lookup are counted; its plan is not recorded.
        let lookup = doc! { "$lookup": {
            "from": "c", "localField": "b", "foreignField": "_id", "as": "found",
        } };
        run(&[matched, lookup], ("IXSCAN { a: 1 }", 20, 20));
        check("none", ("EOF", 0, 0), |op| {
            let request = aggregate(&[doc! { "$limit": 1 }]);
            lab.store.aggregate(op, &ns("none"), &request).unwrap();
        });
    });
}

#[test]
fn writes_say_what_they_have_read() {
    on_each(|lab| {
        setup(lab);
        let update = |filter: Document, multi: bool| UpdateStatement {
            multi,
            ..UpdateStatement::new(raw(&filter), raw(&doc! { "$set": { "x": 1 } }))
        };
        let plans = "EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE, IXSCAN { a: 1 }";
        check("updates", (plans, 12, 12), |op| {
            let statements = [
                update(doc! { "_id": 1 }, false),
                update(doc! { "_id": 2 }, false),
                update(doc! { "a": 3 }, true),
            ];
            let updated = lab.store.update(op, &ns("c"), &statements, true, false);
            assert_eq!(updated.unwrap().n, 12);
        });
        check("findAndModify", ("IXSCAN { a: 1 }", 1, 1), |op| {
            let asked = FindAndModify {
                filter: raw(&doc! { "a": 3 }),
                ..FindAndModify::default()
            };
            lab.store.find_and_modify(op, &ns("c"), &asked).unwrap();
        });
        check("delete", ("COLLSCAN", 0, 99), |op| {
            let statement = DeleteStatement {
                multi: true,
                ..DeleteStatement::new(raw(&doc! { "x": 1 }))
            };
            let deleted = lab.store.delete(op, &ns("c"), &[statement], true);
            assert_eq!(deleted.unwrap().n, 11);
        });
        check("nothing to delete from", ("EOF", 0, 0), |op| {
            let statement = DeleteStatement::new(raw(&doc! {}));
            lab.store
                .delete(op, &ns("none"), &[statement], true)
                .unwrap();
        });
        check("an insert has no plan", ("", 0, 0), |op| {
            let document = raw(&doc! { "_id": 1000 });
            let documents = [&*document];
            let options = docdb::InsertOptions::default();
            lab.store.insert(op, &ns("c"), &documents, options).unwrap();
        });
    });
}

//! Hints that name the clustered index, which is the collection itself.

use bson::{Bson, Document, doc};
use docdb::{CollectionOptions, CountRequest, FindAndModify, FindRequest, UpdateStatement};

use crate::lab::{Lab, find, ns, on_each, op, raw};
use crate::write::set;

fn clustered(lab: &Lab, coll: &str, name: Option<&str>) {
    let mut index = doc! { "key": { "_id": 1 }, "unique": true };
    if let Some(name) = name {
        index.insert("name", name);
    }
    let options = CollectionOptions::parse(&doc! { "clusteredIndex": index }).unwrap();
    lab.store.create(&op(), &ns(coll), options).unwrap();
    let all: Vec<Document> = (0..10).map(|i| doc! { "_id": i, "a": i % 2 }).collect();
    lab.insert(&ns(coll), &all);
    lab.index(coll, doc! { "key": { "a": 1 }, "name": "a" });
}

fn ids(lab: &Lab, coll: &str, request: &FindRequest) -> query::Result<Vec<i32>> {
    let batch = lab.store.find(&op(), &ns(coll), request)?;
    let all = lab.drain(batch, 101)?;
    Ok(all.iter().map(|d| d.get_i32("_id").unwrap()).collect())
}

#[test]
fn the_clustered_index_is_hinted_by_its_name_and_its_key() {
    on_each(|lab| {
        clustered(lab, "plain", None);
        clustered(lab, "named", Some("mine"));
        for (coll, name, other) in [("plain", "_id_", "mine"), ("named", "mine", "_id_")] {
            let what = format!("{} {coll}", lab.engine());
            for hint in [Bson::from(name), Bson::Document(doc! { "_id": 1 })] {
                let request = FindRequest {
                    hint: Some(hint.clone()),
                    ..find(doc! { "_id": { "$gt": 3 }, "a": 1 })
                };
                assert_eq!(ids(lab, coll, &request), Ok(vec![5, 7, 9]), "{what}");
                let backward = FindRequest {
                    sort: Some(raw(&doc! { "_id": -1 })),
                    ..request.clone()
                };
                assert_eq!(ids(lab, coll, &backward), Ok(vec![9, 7, 5]), "{what}");
                let between = FindRequest {
                    min: Some(doc! { "_id": 2 }),
                    max: Some(doc! { "_id": 6 }),
                    ..request
                };
                assert_eq!(ids(lab, coll, &between), Ok(vec![5]), "{what}");
                check_writes(lab, coll, &hint);
            }
            for hint in [
                Bson::from(other),
                Bson::Document(doc! { "_id": -1 }),
                Bson::Document(doc! { "_id": 1, "a": 1 }),
            ] {
                let request = FindRequest {
                    hint: Some(hint),
                    ..find(doc! {})
                };
                let refused = ids(lab, coll, &request).unwrap_err();
                assert_eq!(refused.code, query::Code::BAD_VALUE, "{what}");
            }
        }
    });
}

/// Counts, updates and `findAndModify` with a hint.
fn check_writes(lab: &Lab, coll: &str, hint: &Bson) {
    let filter = doc! { "_id": { "$lte": 4 }, "a": 0 };
    let count = CountRequest {
        filter: raw(&filter),
        hint: Some(hint.clone()),
        ..CountRequest::default()
    };
    assert_eq!(lab.store.count(&op(), &ns(coll), &count), Ok(3));
    let statement = UpdateStatement {
        multi: true,
        hint: Some(hint.clone()),
        ..set(filter.clone(), doc! { "$inc": { "x": 1 } })
    };
    let reply = lab
        .store
        .update(&op(), &ns(coll), &[statement], true, false)
        .unwrap();
    assert_eq!(reply.n, 3, "{} {coll}", lab.engine());
    let asked = FindAndModify {
        filter: raw(&filter),
        sort: Some(raw(&doc! { "_id": -1 })),
        update: Some(raw(&doc! { "$inc": { "x": 1 } }).into()),
        hint: Some(hint.clone()),
        ..FindAndModify::default()
    };
    let reply = lab.store.find_and_modify(&op(), &ns(coll), &asked);
    let first = reply.unwrap().value.unwrap();
    assert_eq!(first.get_i32("_id").unwrap(), 4, "{} {coll}", lab.engine());
}

/// An array sorts by its least or its greatest element, also where the key of that element lies
/// outside of the edges.
#[test]
fn arrays_between_edges_are_sorted_by_all_their_elements() {
    on_each(|lab| {
        let all = [
            doc! { "_id": 0, "a": [0, 10] },
            doc! { "_id": 1, "a": 5 },
            doc! { "_id": 2, "a": [4, 20] },
        ];
        lab.insert(&ns("c"), &all);
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        for (direction, wanted) in [(1, [0, 2, 1]), (-1, [2, 0, 1])] {
            let request = FindRequest {
                hint: Some(Bson::from("a")),
                min: Some(doc! { "a": 3 }),
                max: Some(doc! { "a": 15 }),
                sort: Some(raw(&doc! { "a": direction })),
                ..find(doc! {})
            };
            let found = ids(lab, "c", &request);
            assert_eq!(found, Ok(wanted.to_vec()), "{} {direction}", lab.engine());
        }
    });
}

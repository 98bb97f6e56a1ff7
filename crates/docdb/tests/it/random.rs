//! Random writes compared with a model, which is a list of documents, with indexes of all kinds and
//! restarts; and concurrent writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Bson, Document, doc};
use docdb::{DeleteStatement, InsertOptions, Store, UpdateStatement};
use stdx::Rng;

use crate::lab::{Lab, ns, on_each, op, raw};
use crate::write::{del, set};

/// Indexes of many kinds.
pub(crate) fn specs() -> Vec<Document> {
    vec![
        doc! { "key": { "a": 1, "b": -1 }, "name": "ab" },
        doc! { "key": { "l.x": 1 }, "name": "lx" },
        doc! { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true },
        doc! { "key": { "b": 1 }, "name": "p", "partialFilterExpression": { "a": { "$gt": 5 } } },
        doc! { "key": { "$**": 1 }, "name": "w" },
        doc! { "key": { "a": "hashed" }, "name": "h" },
    ]
}

fn value(rng: &mut Rng) -> Bson {
    match rng.below(7) {
        0 => Bson::Null,
        1 => Bson::Double(rng.unit() * 10.0),
        2 => Bson::String("ab\0c".chars().take(rng.index(5)).collect()),
        3 => Bson::Int64(i64::try_from(rng.below(10)).unwrap()),
        4 => Bson::Boolean(rng.chance(0.5)),
        _ => Bson::Int32(i32::try_from(rng.below(10)).unwrap()),
    }
}

fn fields(rng: &mut Rng) -> Document {
    let mut out = Document::new();
    for name in ["a", "b", "u"] {
        if rng.chance(0.6) {
            out.insert(name, value(rng));
        }
    }
    if rng.chance(0.5) {
        let items = (0..rng.index(4)).map(|_| Bson::Document(doc! { "x": value(rng) }));
        out.insert("l", items.collect::<Vec<_>>());
    }
    out
}

/// Apply `$set`: existing fields are overwritten, others appended in the order of their names.
fn merge(document: &mut Document, fields: &Document) {
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort();
    for name in names {
        document.insert(name, fields[name].clone());
    }
}

/// `entries`: E1.
#[test]
fn random_writes_agree_with_a_model() {
    let seed = 42;
    on_each(|lab| {
        let mut rng = Rng::new(seed);
        let mut model: BTreeMap<i32, Document> = BTreeMap::new();
        lab.store.create_indexes(&op(), &ns("c"), &specs()).unwrap();
        for step in 0..1500 {
            let id = i32::try_from(rng.below(60)).unwrap();
            let context = format!("seed {seed} step {step} on {}", lab.engine());
            match rng.below(10) {
                0..4 => {
                    let mut document = doc! { "_id": id };
                    document.extend(fields(&mut rng));
                    let reply = lab.insert(&ns("c"), std::slice::from_ref(&document));
                    if reply.n == 1 {
                        assert!(model.insert(id, document).is_none(), "{context}");
                    }
                }
                4..8 => update(lab, &mut rng, &mut model, id, &context),
                8 => {
                    let reply =
                        lab.store
                            .delete(&op(), &ns("c"), &[del(doc! { "_id": id }, false)], true);
                    let there = i64::from(model.remove(&id).is_some());
                    assert_eq!(reply.unwrap().n, there, "{context}");
                }
                _ if rng.chance(0.02) => lab.reopen_if_persistent(),
                _ => {}
            }
        }
        let mut found: Vec<Document> = lab.all(&ns("c"));
        found.sort_by_key(|d| d.get_i32("_id").unwrap());
        assert_eq!(
            found,
            model.into_values().collect::<Vec<_>>(),
            "seed {seed}"
        );
    });
}

fn update(lab: &Lab, rng: &mut Rng, model: &mut BTreeMap<i32, Document>, id: i32, context: &str) {
    let changed = fields(rng);
    let replace = changed.is_empty() || rng.chance(0.3);
    let spec = if replace {
        changed.clone()
    } else {
        doc! { "$set": changed.clone() }
    };
    let statement = set(doc! { "_id": id }, spec);
    let reply = lab
        .store
        .update(&op(), &ns("c"), &[statement], true, false)
        .unwrap();
    if !reply.errors.is_empty() {
        assert_eq!(reply.errors[0].error.code.0, 11000, "{context}");
        return;
    }
    assert_eq!(reply.n, i64::from(model.contains_key(&id)), "{context}");
    if let Some(document) = model.get_mut(&id) {
        if replace {
            *document = doc! { "_id": id };
            document.extend(changed);
        } else {
            merge(document, &changed);
        }
    }
}

#[test]
fn of_writers_of_one_unique_key_one_wins() {
    on_each(|lab| {
        lab.index("c", doc! { "key": { "u": 1 }, "name": "u", "unique": true });
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let store = Arc::clone(&lab.store);
                stdx::sync::spawn("writer", move || {
                    let one = |i: i32| insert(&store, doc! { "_id": i * 4 + thread, "u": i });
                    (0..100).map(one).sum::<i32>()
                })
                .unwrap()
            })
            .collect();
        let won: i32 = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(won, 100, "{}", lab.engine());
    });
}

fn insert(store: &Store, document: Document) -> i32 {
    let raw = raw(&document);
    store
        .insert(&op(), &ns("c"), &[&raw], InsertOptions::default())
        .unwrap()
        .n
}

#[test]
fn increments_of_many_writers_add_up() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0, "n": 0 }]);
        lab.index("c", doc! { "key": { "n": 1 }, "name": "n" });
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let store = Arc::clone(&lab.store);
                stdx::sync::spawn("writer", move || {
                    for _ in 0..50 {
                        let inc = set(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } });
                        store.update(&op(), &ns("c"), &[inc], true, false).unwrap();
                    }
                })
                .unwrap()
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(lab.all(&ns("c")), [doc! { "_id": 0, "n": 200 }]);
    });
}

#[test]
fn indexes_are_built_beneath_writers() {
    on_each(|lab| {
        let documents: Vec<Document> = (0..2000)
            .map(|i| doc! { "_id": i, "a": i % 7, "b": [i, i + 1] })
            .collect();
        lab.insert(&ns("c"), &documents);
        let writers: Vec<_> = (0..2)
            .map(|seed| {
                let store = Arc::clone(&lab.store);
                stdx::sync::spawn("writer", move || write_some(&store, seed)).unwrap()
            })
            .collect();
        for spec in specs() {
            lab.store.create_indexes(&op(), &ns("c"), &[spec]).unwrap();
        }
        writers.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(lab.store.list_indexes(&ns("c")).unwrap().len(), 7);
    });
}

fn write_some(store: &Store, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..300 {
        let id = i32::try_from(rng.below(2100)).unwrap();
        let number = i32::try_from(rng.below(20)).unwrap();
        match rng.below(3) {
            0 => drop(insert(store, doc! { "_id": id, "a": number, "b": [] })),
            1 => {
                let change: UpdateStatement = set(
                    doc! { "_id": id },
                    doc! { "$set": { "a": number, "b": number } },
                );
                store
                    .update(&op(), &ns("c"), &[change], true, false)
                    .unwrap();
            }
            _ => {
                let gone: DeleteStatement = del(doc! { "_id": id }, false);
                store.delete(&op(), &ns("c"), &[gone], true).unwrap();
            }
        }
    }
}

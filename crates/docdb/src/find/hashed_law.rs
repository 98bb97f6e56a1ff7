//! The law of hashed indexes: with any collation of the index and the query, a plan returns the
//! documents that a scan with the filter returns.

use bson::{Bson, Document, doc};
use stdx::Rng;

use super::law::seeds;
use super::tests::{Fixture, raw};
use super::{CountRequest, FindRequest};
use crate::{CollectionOptions, DeleteStatement, UpdateStatement};

/// Number of queries per fixture, not counting that of a delete.
const QUERIES: u64 = 8;

/// Collations under which some of the texts below are equal; `None` is byte order.
fn collations() -> Vec<Option<Document>> {
    let of = |locale: &str, strength: i32| Some(doc! { "locale": locale, "strength": strength });
    vec![
        None,
        of("en", 1),
        of("en", 2),
        of("en", 3),
        of("fr", 1),
        Some(doc! { "locale": "en", "numericOrdering": true }),
        Some(doc! { "locale": "simple" }),
    ]
}

fn scalar(rng: &mut Rng) -> Bson {
    let texts = ["e", "E", "\u{e9}", "\u{c9}", "", "1", "01", "ee"];
    match rng.below(5) {
        0 => Bson::Int32(1),
        1 => Bson::Double(1.0),
        2 => Bson::Null,
        _ => Bson::String(texts[rng.index(texts.len())].to_owned()),
    }
}

fn value(rng: &mut Rng) -> Bson {
    match rng.below(6) {
        0 => Bson::Document(doc! { "x": scalar(rng) }),
        _ => scalar(rng),
    }
}

fn filled(rng: &mut Rng, default: Option<&Document>, of_index: Option<&Document>) -> Fixture {
    let fixture = Fixture::new();
    let options = CollectionOptions {
        collation: default.cloned(),
        ..CollectionOptions::default()
    };
    let Fixture { store, op, ns, .. } = &fixture;
    store.create(op, ns, options).unwrap();
    for (number, key) in [
        doc! { "a": "hashed" },
        doc! { "a": "hashed", "b": 1 },
        doc! { "b": 1, "a": "hashed" },
        doc! { "b": 1, "a": "hashed", "c": -1 },
        doc! { "a.x": "hashed" },
        doc! { "_id": "hashed" },
    ]
    .into_iter()
    .enumerate()
    {
        let mut spec = doc! { "key": key, "name": format!("i{number}") };
        if let Some(collation) = of_index {
            spec.insert("collation", collation);
        }
        store.create_indexes(op, ns, &[spec]).unwrap();
    }
    let mut documents = Vec::new();
    for id in 0..40 {
        let mut document = doc! { "_id": id, "b": scalar(rng), "c": scalar(rng) };
        if rng.chance(0.9) {
            document.insert("a", value(rng));
        }
        documents.push(document);
    }
    fixture.insert(&documents);
    fixture
}

fn filter(rng: &mut Rng) -> Document {
    let mut filter = Document::new();
    let path = if rng.chance(0.2) { "a.x" } else { "a" };
    let test = match rng.below(3) {
        0 => Bson::Document(doc! { "$in": [value(rng), value(rng)] }),
        _ => value(rng),
    };
    if rng.chance(0.85) {
        filter.insert(path, test);
    }
    if rng.chance(0.5) {
        filter.insert("b", scalar(rng));
    }
    if rng.chance(0.3) {
        filter.insert("c", doc! { "$gte": scalar(rng) });
    }
    filter
}

fn ids(fixture: &Fixture, request: &FindRequest) -> Vec<i32> {
    let found = fixture.find(request);
    let mut ids: Vec<i32> = found.iter().map(|d| d.get_i32("_id").unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// Run one query with every hint, as a count, as an upsert and as a delete.
fn check(fixture: &Fixture, filter: &Document, collation: Option<&Document>, what: &str) -> usize {
    let collation = collation.map(raw);
    let request = |hint: Option<Bson>| FindRequest {
        filter: raw(filter),
        collation: collation.clone(),
        batch_size: Some(1000),
        hint,
        ..FindRequest::default()
    };
    let natural = request(Some(Bson::Document(doc! { "$natural": 1 })));
    let want = ids(fixture, &natural);
    let hints = (0..6).map(|number| Some(Bson::from(format!("i{number}"))));
    for hint in hints.chain([None]) {
        let got = ids(fixture, &request(hint.clone()));
        assert_eq!(got, want, "{what} {filter} by {hint:?}");
    }
    let Fixture { store, op, ns, .. } = fixture;
    let count = CountRequest {
        filter: raw(filter),
        collation: collation.clone(),
        ..CountRequest::default()
    };
    let count = store.count(op, ns, &count).unwrap();
    assert_eq!(count, want.len() as u64, "{what} {filter}");
    if !want.is_empty() {
        let change = raw(&doc! { "$set": { "seen": true } });
        let statement = UpdateStatement {
            upsert: true,
            collation: collation.clone(),
            ..UpdateStatement::new(raw(filter), change)
        };
        let reply = store.update(op, ns, &[statement], true, false).unwrap();
        assert!(reply.upserted.is_empty(), "{what} {filter}: a twin");
    }
    want.len()
}

#[test]
fn hashed_indexes_of_all_collations_answer_as_a_scan_does() {
    let (mut found, mut fixtures) = (0, 0);
    let pairs = || {
        let with = |of_index: Option<Document>| {
            let pair = move |of_query| (of_index.clone(), of_query);
            collations().into_iter().map(pair)
        };
        collations().into_iter().flat_map(with)
    };
    // Each round has a fixture for each pair, without and with a default collation.
    let each = 2 * pairs().count() as u64 * (QUERIES + 1);
    for round in seeds(0, 1, each) {
        let mut seed = round << 32;
        for (of_index, of_query) in pairs() {
            for default in [None, of_index.clone()] {
                fixtures += 1;
                seed += 1;
                let mut rng = Rng::new(seed);
                let fixture = filled(&mut rng, default.as_ref(), of_index.as_ref());
                let what = format!("ROMANESCO_SEED={round}: {of_index:?} {of_query:?} {default:?}");
                for _ in 0..QUERIES {
                    let filter = filter(&mut rng);
                    found += check(&fixture, &filter, of_query.as_ref(), &what);
                }
                let filter = filter(&mut rng);
                delete(&fixture, &filter, of_query.as_ref(), &what);
            }
        }
    }
    assert!(fixtures * 51 < found, "{found} documents found");
}

/// A delete must leave exactly the documents that do not match.
fn delete(fixture: &Fixture, filter: &Document, collation: Option<&Document>, what: &str) {
    let collation = collation.map(raw);
    let matching = FindRequest {
        filter: raw(filter),
        collation: collation.clone(),
        hint: Some(Bson::Document(doc! { "$natural": 1 })),
        ..FindRequest::default()
    };
    let gone = ids(fixture, &matching);
    let statement = DeleteStatement {
        multi: true,
        collation,
        ..DeleteStatement::new(raw(filter))
    };
    let Fixture { store, op, ns, .. } = fixture;
    let reply = store.delete(op, ns, &[statement], true).unwrap();
    assert_eq!(
        reply.n,
        i64::try_from(gone.len()).unwrap(),
        "{what} {filter}"
    );
    let left = ids(fixture, &FindRequest::default());
    assert_eq!(left.len() + gone.len(), 40, "{what} {filter}");
}

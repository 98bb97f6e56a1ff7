//! The law of pipelines: with any index, and whether or not the plan reads documents, a pipeline
//! and a projection return what they return over a scan; `$match` returns what `find` returns, also
//! with fields named twice.

use std::fmt::Write as _;

use bson::raw::CString;
use bson::{Bson, Document, RawArrayBuf, RawBson, RawDocumentBuf, doc};
use stdx::Rng;

use super::law::seeds;
use super::tests::{Fixture, raw};
use crate::aggregate::AggregateRequest;

const FIELDS: [&str; 3] = ["a", "b", "c"];

fn whole(rng: &mut Rng) -> i32 {
    i32::try_from(rng.below(5)).unwrap()
}

fn value(rng: &mut Rng, depth: u32) -> Bson {
    match rng.below(if depth == 0 { 4 } else { 8 }) {
        0 => Bson::Null,
        1 => Bson::Double(f64::from(whole(rng)) + 0.5),
        2 | 3 => Bson::Int32(whole(rng)),
        4 | 5 => {
            let mut inner = Document::new();
            for name in ["x", "y"] {
                if rng.chance(0.7) {
                    inner.insert(name, value(rng, depth - 1));
                }
            }
            Bson::Document(inner)
        }
        _ => Bson::Array((0..rng.index(3)).map(|_| value(rng, depth - 1)).collect()),
    }
}

/// Only one field holds arrays, so that indexes do not refuse parallel arrays.
fn document(rng: &mut Rng, id: i32, arrays: &str) -> Document {
    let mut document = doc! { "_id": id };
    for name in FIELDS {
        if rng.chance(0.8) {
            let value = match name == arrays {
                true => value(rng, 2),
                false if rng.chance(0.4) => Bson::Document(doc! { "x": value(rng, 0) }),
                false => value(rng, 0),
            };
            document.insert(name, value);
        }
    }
    document
}

fn path(rng: &mut Rng) -> String {
    let top = FIELDS[rng.index(FIELDS.len())];
    match rng.below(4) {
        0 => format!("{top}.x"),
        1 => format!("{top}.y"),
        _ => top.to_owned(),
    }
}

/// A path that may be deeper than that of any index.
fn target(rng: &mut Rng) -> String {
    match rng.below(3) {
        0 => path(rng),
        1 => format!("{}.new", path(rng)),
        _ => format!("{}.x.new", FIELDS[rng.index(FIELDS.len())]),
    }
}

fn expression(rng: &mut Rng) -> Bson {
    let field = |rng: &mut Rng| Bson::String(format!("${}", path(rng)));
    match rng.below(6) {
        0 => Bson::String("$_id".to_owned()),
        1 => Bson::Document(doc! { "$type": field(rng) }),
        2 => Bson::Document(doc! { "$ifNull": [field(rng), "none"] }),
        3 => Bson::Document(doc! { "v": field(rng), "w": "$_id" }),
        4 => Bson::Document(doc! { "$literal": 7 }),
        _ => field(rng),
    }
}

/// Fields to keep or to compute; no path is a prefix of another.
fn projection(rng: &mut Rng, computed_only: bool) -> Document {
    let mut spec = Document::new();
    for _ in 0..=rng.index(3) {
        let (path, computed) = match rng.chance(0.5) || computed_only {
            true => (target(rng), true),
            false => (path(rng), false),
        };
        let meets = |other: &String| {
            other == &path
                || other.starts_with(&format!("{path}."))
                || path.starts_with(&format!("{other}."))
        };
        if spec.keys().any(meets) {
            continue;
        }
        spec.insert(
            path,
            if computed {
                expression(rng)
            } else {
                Bson::Int32(1)
            },
        );
    }
    if !computed_only && rng.chance(0.4) {
        spec.insert("_id", 0);
    }
    spec
}

fn stage(rng: &mut Rng) -> Document {
    match rng.below(7) {
        0 => doc! { "$addFields": projection(rng, true) },
        1 => doc! { "$group": {
            "_id": expression(rng),
            "n": { "$sum": 1 },
            "least": { "$min": format!("${}", path(rng)) },
        } },
        2 => doc! { "$replaceRoot": { "newRoot": { "r": expression(rng), "s": expression(rng) } } },
        3 => doc! { "$unwind": {
            "path": format!("${}", path(rng)), "preserveNullAndEmptyArrays": rng.chance(0.5),
        } },
        4 => doc! { "$count": "n" },
        _ => doc! { "$project": projection(rng, false) },
    }
}

/// First stages that an index can serve: a range, or an order, of one of its fields or of another.
fn beginning(rng: &mut Rng) -> Vec<Document> {
    let field = if rng.chance(0.3) {
        "_id".to_owned()
    } else {
        path(rng)
    };
    let mut stages = Vec::new();
    if rng.chance(0.7) {
        stages.push(doc! { "$match": { &field: { "$gte": whole(rng) - 1 } } });
    }
    if stages.is_empty() || rng.chance(0.4) {
        stages.push(doc! { "$sort": { &field: 1, "_id": 1 } });
    }
    stages
}

fn filled(rng: &mut Rng) -> Fixture {
    let fixture = Fixture::new();
    let arrays = ["a", "b", "c", "none"][rng.index(4)];
    let documents: Vec<Document> = (0..30).map(|id| document(rng, id, arrays)).collect();
    fixture.insert(&documents);
    for number in 0..4 {
        let mut key = Document::new();
        for _ in 0..=rng.index(3) {
            key.insert(
                if rng.chance(0.2) {
                    "_id".to_owned()
                } else {
                    path(rng)
                },
                1,
            );
        }
        let spec = doc! { "key": key, "name": format!("i{number}") };
        // A unique index refuses duplicate keys.
        drop(
            fixture
                .store
                .create_indexes(&fixture.op, &fixture.ns, &[spec]),
        );
    }
    fixture
}

fn aggregate(fixture: &Fixture, pipeline: RawArrayBuf, hint: Option<&str>) -> Vec<Document> {
    let request = AggregateRequest {
        pipeline,
        hint: hint.map(|hint| match hint {
            "$natural" => Bson::Document(doc! { "$natural": 1 }),
            name => Bson::String(name.to_owned()),
        }),
        batch_size: Some(1000),
        ..AggregateRequest::default()
    };
    let found = fixture.store.aggregate(&fixture.op, &fixture.ns, &request);
    let found = found.unwrap().documents;
    found
        .iter()
        .map(|d| Document::try_from(d).unwrap())
        .collect()
}

/// Documents in a canonical order, with their fields sorted by name: plans may return either in a
/// different order.
fn canonical(documents: &[Document]) -> Vec<String> {
    fn show(value: &Bson, text: &mut String) {
        match value {
            Bson::Document(document) => {
                let mut names: Vec<&String> = document.keys().collect();
                names.sort();
                text.push('{');
                for name in names {
                    write!(text, "{name}: ").unwrap();
                    show(document.get(name).unwrap(), text);
                    text.push(',');
                }
                text.push('}');
            }
            Bson::Array(items) => {
                text.push('[');
                for item in items {
                    show(item, text);
                    text.push(',');
                }
                text.push(']');
            }
            other => write!(text, "{other:?}").unwrap(),
        }
    }
    let mut shown: Vec<String> = documents
        .iter()
        .map(|document| {
            let mut text = String::new();
            show(&Bson::Document(document.clone()), &mut text);
            text
        })
        .collect();
    shown.sort();
    shown
}

#[test]
fn pipelines_give_what_they_give_over_a_scan() {
    let seeds = seeds(0, 60, 30);
    let (mut tried, rounds) = (0, seeds.clone().count());
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let fixture = filled(&mut rng);
        let collection = fixture.store.collection(&fixture.ns).unwrap();
        let names: Vec<String> = collection
            .indexes()
            .iter()
            .map(|index| index.spec().name.clone())
            .collect();
        for _ in 0..30 {
            let mut stages = beginning(&mut rng);
            stages.extend((0..=rng.index(2)).map(|_| stage(&mut rng)));
            let pipeline = || stages.iter().map(raw).collect::<RawArrayBuf>();
            let want = canonical(&aggregate(&fixture, pipeline(), Some("$natural")));
            let got = canonical(&aggregate(&fixture, pipeline(), None));
            assert_eq!(got, want, "seed {seed}: {stages:?}");
            for name in &names {
                let got = canonical(&aggregate(&fixture, pipeline(), Some(name)));
                assert_eq!(got, want, "seed {seed}: {stages:?} by {name}");
                tried += 1;
            }
        }
    }
    assert!(rounds * 50 < tried, "{tried} plans tried");
}

#[test]
fn projections_of_find_give_what_they_give_over_a_scan() {
    for seed in seeds(0, 40, 40) {
        let mut rng = Rng::new(seed);
        let fixture = filled(&mut rng);
        for _ in 0..40 {
            let field = path(&mut rng);
            let mut projection = projection(&mut rng, false);
            let top = FIELDS[rng.index(FIELDS.len())];
            let free = projection.keys().all(|name| !name.starts_with(top));
            if free && rng.chance(0.3) {
                let of_arrays = match rng.chance(0.5) {
                    true => doc! { "$slice": 1 },
                    false => doc! { "$elemMatch": { "$gte": 0 } },
                };
                projection.insert(top, of_arrays);
            }
            let sort = rng.chance(0.4).then(|| raw(&doc! { path(&mut rng): 1 }));
            let request = |hint: Option<Document>| super::FindRequest {
                filter: raw(&doc! { &field: { "$gte": 0 } }),
                projection: Some(raw(&projection)),
                hint: hint.map(Bson::Document),
                sort: sort.clone(),
                batch_size: Some(1000),
                ..super::FindRequest::default()
            };
            let want = canonical(&fixture.find(&request(Some(doc! { "$natural": 1 }))));
            let got = canonical(&fixture.find(&request(None)));
            assert_eq!(got, want, "seed {seed}: {field} {projection}");
        }
    }
}

/// `{a: .., a: .., b: ..}`: conditions on few fields, so that some fields are named twice, at any
/// depth.
fn repeating(rng: &mut Rng, depth: u32) -> RawDocumentBuf {
    let mut filter = RawDocumentBuf::new();
    let mut append = |name: &str, value: RawBson| {
        filter.append(CString::try_from(name).unwrap(), value);
    };
    for _ in 0..=1 + rng.index(3) {
        let field = path(rng);
        match rng.below(if depth == 0 { 3 } else { 6 }) {
            0 => append(&field, RawBson::Int32(whole(rng))),
            1 | 2 => append(&field, RawBson::Document(operators(rng))),
            3 => {
                let mut inner = RawDocumentBuf::new();
                inner.append(CString::try_from("$not").unwrap(), operators(rng));
                append(&field, RawBson::Document(inner));
            }
            4 => {
                let mut inner = RawDocumentBuf::new();
                let elements = match rng.chance(0.5) {
                    true => operators(rng),
                    false => repeating(rng, 0),
                };
                inner.append(CString::try_from("$elemMatch").unwrap(), elements);
                append(&field, RawBson::Document(inner));
            }
            _ => {
                let clauses: RawArrayBuf = (0..=rng.index(2))
                    .map(|_| repeating(rng, depth - 1))
                    .collect();
                let name = ["$or", "$and", "$nor"][rng.index(3)];
                append(name, RawBson::Array(clauses));
            }
        }
    }
    filter
}

/// `{$gte: .., $gte: ..}`.
fn operators(rng: &mut Rng) -> RawDocumentBuf {
    let mut operators = RawDocumentBuf::new();
    for _ in 0..=1 + rng.index(2) {
        let name = ["$gte", "$gte", "$lt", "$ne"][rng.index(4)];
        operators.append(CString::try_from(name).unwrap(), whole(rng));
    }
    operators
}

#[test]
fn match_gives_what_find_gives_where_fields_are_named_twice() {
    let seeds = seeds(200, 40, 50);
    let (mut differing, mut found, rounds) = (0, 0, seeds.clone().count());
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let fixture = filled(&mut rng);
        for _ in 0..50 {
            let filter = repeating(&mut rng, 2);
            let request = |filter: &RawDocumentBuf| super::FindRequest {
                filter: filter.clone(),
                batch_size: Some(1000),
                ..super::FindRequest::default()
            };
            let want = canonical(&fixture.find(&request(&filter)));
            let mut stage = RawDocumentBuf::new();
            stage.append(CString::try_from("$match").unwrap(), &*filter);
            let pipeline: RawArrayBuf = std::iter::once(stage).collect();
            let got = canonical(&aggregate(&fixture, pipeline, None));
            assert_eq!(got, want, "seed {seed}: {filter:?}");
            found += want.len();
            // The filter would differ if it were parsed from a map, which keeps only the last of
            // two equal names.
            let tree = raw(&Document::try_from(&filter).unwrap());
            differing += usize::from(canonical(&fixture.find(&request(&tree))) != want);
        }
    }
    assert!(
        rounds * 2 < differing,
        "{differing} filters that a tree loses conditions of"
    );
    assert!(rounds * 25 < found, "{found} documents found");
}

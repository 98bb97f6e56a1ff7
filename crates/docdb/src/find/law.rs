//! The law of plans: every candidate returns the documents that a scan with the filter returns, in
//! the requested order.
//!
//! The number of queries of this law and of those beside it can be set with `ROMANESCO_QUERIES`,
//! the first seed with `ROMANESCO_SEED`.

use std::env;
use std::ops::Range;
use std::sync::Arc;

use bson::{Bson, Document, doc};
use query::filter::Filter;
use query::sort::Sort;
use stdx::Rng;

use super::build::build;
use super::choose::describe;
use super::prepare::Query;
use super::tests::{Fixture, raw};
use crate::exec::{Cx, Step};
use crate::plan::Candidate;
use crate::txn::{View, with_view};

const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

/// A number from the environment.
pub(super) fn number(name: &str, default: u64) -> u64 {
    let text = env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// The seeds of a law that makes `each` queries per seed: those from `first` on that `count` seeds
/// are, unless the environment asks for another number of queries or another first seed.
pub(super) fn seeds(first: u64, count: u64, each: u64) -> Range<u64> {
    let queries = number("ROMANESCO_QUERIES", count * each);
    let first = number("ROMANESCO_SEED", first);
    first..first + queries.div_ceil(each)
}

fn scalar(rng: &mut Rng) -> Bson {
    match rng.below(14) {
        0 => Bson::Null,
        1 => Bson::Boolean(rng.chance(0.5)),
        2 => Bson::Double(f64::NAN),
        3 => Bson::Double(f64::INFINITY),
        4 => Bson::Double(small(rng) + 0.5),
        5 => Bson::Double(small(rng)),
        6 => Bson::Int64(i64::from(whole(rng))),
        7 => Bson::String(["", "a", "ab", "abc", "b", "B", "\u{e9}"][rng.index(7)].to_owned()),
        8 => Bson::DateTime(bson::DateTime::from_millis(i64::from(whole(rng)))),
        9 => Bson::MinKey,
        10 => Bson::Decimal128(["1", "2.50", "NaN"][rng.index(3)].parse().unwrap()),
        _ => Bson::Int32(whole(rng)),
    }
}

fn whole(rng: &mut Rng) -> i32 {
    i32::try_from(rng.below(6)).unwrap() - 1
}

fn small(rng: &mut Rng) -> f64 {
    f64::from(whole(rng))
}

fn value(rng: &mut Rng, depth: u32) -> Bson {
    match rng.below(12) {
        0 | 1 if depth != 0 => {
            let count = rng.index(4);
            Bson::Array((0..count).map(|_| value(rng, depth - 1)).collect())
        }
        2 | 3 if depth != 0 => {
            let mut inner = Document::new();
            for name in ["x", "y"] {
                if rng.chance(0.7) {
                    inner.insert(name, value(rng, depth - 1));
                }
            }
            Bson::Document(inner)
        }
        _ => scalar(rng),
    }
}

/// Only some fields may hold arrays, so that indexes do not refuse parallel arrays.
fn document(rng: &mut Rng, id: i32, arrays: Option<&str>) -> Document {
    let mut document = doc! { "_id": id };
    for name in FIELDS {
        if rng.chance(0.75) {
            let value = if arrays == Some(name) {
                value(rng, 2)
            } else if rng.chance(0.2) {
                Bson::Document(doc! { "x": scalar(rng), "y": scalar(rng) })
            } else {
                scalar(rng)
            };
            document.insert(name, value);
        }
    }
    document
}

fn path(rng: &mut Rng) -> String {
    let top = FIELDS[rng.index(FIELDS.len())];
    match rng.below(5) {
        0 => format!("{top}.x"),
        1 => format!("{top}.y"),
        _ => top.to_owned(),
    }
}

fn test(rng: &mut Rng, depth: u32) -> Bson {
    let operand = if rng.chance(0.15) {
        value(rng, 1)
    } else {
        scalar(rng)
    };
    let list = |rng: &mut Rng| Bson::Array((0..rng.index(4)).map(|_| scalar(rng)).collect());
    match rng.below(15) {
        0 => Bson::Document(doc! { "$gt": operand }),
        1 => Bson::Document(doc! { "$gte": operand }),
        2 => Bson::Document(doc! { "$lt": operand }),
        3 => Bson::Document(doc! { "$lte": operand }),
        4 => Bson::Document(doc! { "$gte": scalar(rng), "$lt": scalar(rng) }),
        5 => Bson::Document(doc! { "$in": list(rng) }),
        6 => Bson::Document(doc! { "$nin": list(rng) }),
        7 => Bson::Document(doc! { "$ne": operand }),
        8 => Bson::Document(doc! { "$exists": rng.chance(0.5) }),
        9 => {
            Bson::Document(doc! { "$type": (["number", "string", "array", "null"][rng.index(4)]) })
        }
        10 if depth != 0 => {
            let inner = test(rng, 0);
            match inner {
                Bson::Document(inner) => Bson::Document(doc! { "$not": inner }),
                other => other,
            }
        }
        11 if depth != 0 => match test(rng, 0) {
            Bson::Document(inner) if inner.keys().any(|k| k.starts_with('$')) => {
                Bson::Document(doc! { "$elemMatch": inner })
            }
            _ => Bson::Document(doc! { "$elemMatch": { "x": test(rng, 0), "y": test(rng, 0) } }),
        },
        12 => Bson::Document(doc! { "$regex": (["^a", "^ab", "b", "^"][rng.index(4)]) }),
        13 => Bson::Document(doc! { "$size": whole(rng).max(0) }),
        _ => operand,
    }
}

fn filter(rng: &mut Rng, depth: u32) -> Document {
    let mut filter = Document::new();
    for _ in 0..=rng.index(3) {
        filter.insert(path(rng), test(rng, 1));
    }
    if depth != 0 && rng.chance(0.35) {
        let branches: Vec<Document> = (0..=rng.index(3)).map(|_| filter_of(rng, depth)).collect();
        let name = if rng.chance(0.85) { "$or" } else { "$nor" };
        filter.insert(name, branches);
        if rng.chance(0.5) {
            filter.remove(FIELDS[rng.index(FIELDS.len())]);
        }
    }
    filter
}

fn filter_of(rng: &mut Rng, depth: u32) -> Document {
    filter(rng, depth - 1)
}

fn index(rng: &mut Rng, number: usize) -> Document {
    let name = format!("i{number}");
    if rng.chance(0.1) {
        return doc! { "key": { "$**": 1 }, "name": name };
    }
    let mut key = Document::new();
    for _ in 0..=rng.index(3) {
        key.insert(path(rng), if rng.chance(0.6) { 1 } else { -1 });
    }
    let mut index = doc! { "name": name };
    if rng.chance(0.2) {
        index.insert("sparse", true);
    } else if rng.chance(0.2) {
        let test = if rng.chance(0.5) {
            doc! { "$exists": true }
        } else {
            doc! { "$gt": 0 }
        };
        let mut partial = Document::new();
        partial.insert(FIELDS[rng.index(4)], test);
        index.insert("partialFilterExpression", partial);
    }
    if rng.chance(0.15) {
        index.insert("collation", doc! { "locale": "en", "strength": 2 });
    }
    index.insert("key", key);
    index
}

/// The documents that a plan returns; releases the view of the store from time to time.
pub(super) fn run(
    collection: &Arc<crate::Collection>,
    query: &Query,
    candidate: &Candidate,
    view: &mut View<'_>,
    rng: &mut Rng,
) -> Vec<Document> {
    let mut executor = build(collection, candidate, &query.purpose).unwrap();
    let mut found = Vec::new();
    loop {
        let mut check = || Ok(());
        let mut cx = Cx::new(view.snapshot().unwrap(), &mut check);
        cx.set_budget(1 + rng.below(40));
        cx.rows_left = 1 + rng.index(20);
        let mut rows = rng.index(30);
        let paused = loop {
            match executor.next(&mut cx).unwrap() {
                Step::Row(document) => found.push(Document::try_from(&*document).unwrap()),
                Step::Pause => break true,
                Step::End => break false,
            }
            if rows == 0 {
                break true;
            }
            rows -= 1;
        };
        if !paused {
            return found;
        }
        executor.save();
        view.renew().unwrap();
    }
}

fn ids(documents: &[Document]) -> Vec<i32> {
    documents
        .iter()
        .map(|d| d.get_i32("_id").unwrap())
        .collect()
}

/// `plan::assign`: A1; `plan::bounds`: B1 and B2; `plan::scan`: S1 and S2.
#[test]
fn every_plan_gives_what_a_scan_and_the_filter_give() {
    let seeds = seeds(0, 30, 40);
    let (mut plans, rounds) = (0, seeds.clone().count());
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let fixture = Fixture::new();
        let arrays = [None, Some("a"), Some("b"), Some("c")][rng.index(4)];
        let documents: Vec<Document> = (0..60).map(|id| document(&mut rng, id, arrays)).collect();
        let collation = rng
            .chance(0.15)
            .then(|| doc! { "locale": "en", "strength": 2 });
        fixture.insert(&documents);
        for number in 0..4 {
            let spec = index(&mut rng, number);
            // Indexes refuse duplicate keys and parallel arrays.
            drop(
                fixture
                    .store
                    .create_indexes(&fixture.op, &fixture.ns, &[spec]),
            );
        }
        for _ in 0..40 {
            let spec = filter(&mut rng, 2);
            let raw_collation = collation.as_ref().map(raw);
            plans += check(
                &fixture,
                &documents,
                &spec,
                raw_collation.as_deref(),
                seed,
                &mut rng,
            );
        }
    }
    assert!(rounds * 34 < plans, "{plans} plans tried");
}

fn drawn_sort(rng: &mut Rng) -> Option<Sort> {
    if !rng.chance(0.6) {
        return None;
    }
    let mut sort = Document::new();
    sort.insert(path(rng), if rng.chance(0.5) { 1 } else { -1 });
    if rng.chance(0.3) {
        sort.insert(path(rng), 1);
    }
    Sort::parse(&raw(&sort)).ok()
}

/// Description of a failed plan.
pub(super) fn case(sort: Option<&Sort>, candidate: &Candidate) -> String {
    let scans = candidate.access.scans();
    format!(
        "sort {:?} by {} exact {} of {:?}",
        sort.map(Sort::to_document),
        describe(candidate),
        candidate.exact,
        scans
            .map(|s| (s.index.key.clone(), s.sets.clone()))
            .collect::<Vec<_>>(),
    )
}

/// Check all plans for one filter, with and without a sort.
fn check(
    fixture: &Fixture,
    documents: &[Document],
    spec: &Document,
    collation: Option<&bson::RawDocument>,
    seed: u64,
    rng: &mut Rng,
) -> usize {
    let collection = fixture.store.collection(&fixture.ns).unwrap();
    let Ok(mut query) = Query::plain(&fixture.op, &collection, &raw(spec), collation, None) else {
        return 0;
    };
    let sort = drawn_sort(rng);
    if let Some(sort) = &sort {
        query.set_parsed_sort(sort.clone());
    }
    let filter: &Filter = &query.purpose.filter;
    let expected: Vec<Document> = documents
        .iter()
        .filter(|document| filter.matches(&raw(document)).unwrap())
        .cloned()
        .collect();
    let collator = query.collated.collator.clone();
    let sortable = sort.as_ref().is_none_or(|sort| {
        expected
            .iter()
            .all(|d| sort.key(&raw(d), collator.as_deref()).is_ok())
    });
    if !sortable {
        return 0;
    }
    with_view(&fixture.store, &fixture.op, &mut |view| {
        let mut candidates = query.candidates().unwrap().candidates;
        candidates.push(Candidate {
            access: crate::plan::Access::Collection {
                backward: rng.chance(0.5),
                ranges: None,
            },
            exact: false,
            sorted: sort.is_none(),
            covered: false,
        });
        for candidate in &candidates {
            let found = run(&collection, &query, candidate, view, rng);
            let what = || format!("seed {seed}: {spec} {}", case(sort.as_ref(), candidate));
            let (mut got, want) = (ids(&found), ids(&expected));
            if let Some(sort) = &sort {
                let keys: Vec<_> = found
                    .iter()
                    .map(|d| sort.key(&raw(d), collator.as_deref()).unwrap())
                    .collect();
                assert!(keys.is_sorted(), "{}: {got:?}", what());
            }
            got.sort_unstable();
            assert_eq!(got, want, "{}", what());
        }
        Ok(candidates.len())
    })
    .unwrap()
}

/// `plan::cover`: C1.
#[test]
fn covered_plans_return_what_was_stored() {
    for seed in seeds(100, 15, 8) {
        let mut rng = Rng::new(seed);
        let fixture = Fixture::new();
        let documents: Vec<Document> = (0..60).map(|id| document(&mut rng, id, None)).collect();
        fixture.insert(&documents);
        let keys = [
            doc! { "a": 1, "b": -1 },
            doc! { "b.x": 1, "c": 1, "_id": 1 },
        ];
        for (number, key) in keys.iter().enumerate() {
            let spec = doc! { "key": key, "name": format!("i{number}") };
            fixture
                .store
                .create_indexes(&fixture.op, &fixture.ns, &[spec])
                .unwrap();
        }
        for projection in [
            doc! { "a": 1, "_id": 0 },
            doc! { "b": 1, "a": 1, "_id": 0 },
            doc! { "b.x": 1, "_id": 0 },
            doc! { "c": 1 },
        ] {
            let request = |hint: Option<&str>| super::FindRequest {
                filter: raw(
                    &doc! { "$or": [{ "a": { "$gte": 0 } }, { "b.x": { "$exists": true } }] },
                ),
                projection: Some(raw(&projection)),
                hint: hint.map(|hint| Bson::String(hint.to_owned())),
                ..super::FindRequest::default()
            };
            let plain = super::FindRequest {
                hint: Some(Bson::Document(doc! { "$natural": 1 })),
                ..request(None)
            };
            let sorted = |request: &super::FindRequest| {
                let mut shown: Vec<String> = fixture
                    .find(request)
                    .iter()
                    .map(|d| {
                        // In covered plans fields are in the order of the index.
                        let mut fields: Vec<String> =
                            d.iter().map(|(k, v)| format!("{k}: {v:?}")).collect();
                        fields.sort();
                        format!("{fields:?}")
                    })
                    .collect();
                shown.sort();
                shown
            };
            let want = sorted(&plain);
            for hint in ["i0", "i1"] {
                assert_eq!(
                    sorted(&request(Some(hint))),
                    want,
                    "seed {seed} {projection} {hint}"
                );
            }
        }
    }
}

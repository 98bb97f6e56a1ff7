//! Work on large documents outside of expressions: projections, filters, schemas, updates and
//! collations. Each case must look at the clock in proportion to its data, and end at the first
//! look that says so.

use bson::{Bson, Document, RawDocumentBuf, doc};

use query::collation::{Collation, Collator};
use query::expr::{Env, Expr, Scope, Variables};
use query::filter::Filter;
use query::meter::{Budget, LOOK_EVERY, Meter};
use query::projection::Projection;
use query::settings::Settings;
use query::sort::{Sort, SortKey};
use query::stage::Transform;
use query::update::{Position, Update};
use query::value::equivalence_key;
use query::{Code, Result, meter};

use super::{ALLOCATOR, ALONE, FURTHER, Stop, limited};

/// Number of elements of the arrays.
const COUNT: usize = 64 * 1024;

/// A case: what it does, and the work.
struct Case {
    what: String,
    /// Steps that the work has at least.
    steps: usize,
    run: Box<dyn Fn() -> Result<()>>,
}

fn case(what: &str, steps: usize, run: impl Fn() -> Result<()> + 'static) -> Case {
    Case {
        what: what.to_owned(),
        steps,
        run: Box::new(run),
    }
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// Arrays of each kind of element; each is the field `a`.
fn arrays() -> Vec<(&'static str, Document)> {
    let of = |element: Bson| doc! { "_id": 1, "a": vec![element; COUNT] };
    let empty = Bson::Array(Vec::new());
    vec![
        ("scalars", of(Bson::Int32(7))),
        ("documents", of(Bson::Document(doc! { "b": 1, "c": 2 }))),
        ("empty documents", of(Bson::Document(Document::new()))),
        ("empty arrays", of(empty)),
        (
            "an array in an array",
            doc! { "_id": 1, "a": [vec![Bson::Int32(7); COUNT]] },
        ),
    ]
}

fn projections() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, document) in arrays() {
        for spec in [doc! { "a.b": 0 }, doc! { "a.b": 1 }] {
            let bytes = raw(&document);
            let projection = Projection::parse(&raw(&spec), &Settings::default(), None).unwrap();
            let what = format!("the projection {spec} of {kind}");
            cases.push(case(&what, COUNT, move || {
                projection.apply(&bytes, None).map(drop)
            }));
        }
        for (name, spec) in [
            ("$unset", Bson::from("a.b")),
            ("$project", Bson::from(doc! { "a.b": 1 })),
            ("$project", Bson::from(doc! { "a.b": 0 })),
            ("$project", Bson::from(doc! { "a.b": { "$literal": 1 } })),
            ("$addFields", Bson::from(doc! { "a.b": "$$REMOVE" })),
        ] {
            let document = document.clone();
            let stage = Transform::parse(name, &spec, &Settings::default());
            let stage = stage.unwrap().unwrap();
            let what = format!("{name} {spec} of {kind}");
            cases.push(case(&what, COUNT, move || {
                stage
                    .apply(document.clone(), &Variables::default())
                    .map(drop)
            }));
        }
    }
    cases
}

fn filters() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, document) in arrays() {
        for filter in [
            doc! { "a.b": { "$type": "regex" } },
            doc! { "a.b": { "$ne": "no" } },
            doc! { "a.b": { "$exists": true, "$gt": "no" } },
            doc! { "a.b.c.d": { "$in": ["no"] } },
        ] {
            let bytes = raw(&document);
            let what = format!("the filter {filter} of {kind}");
            let filter = Filter::parse(&raw(&filter), &Settings::default()).unwrap();
            // An array in an array is not entered.
            let steps = if kind == "an array in an array" {
                0
            } else {
                COUNT
            };
            cases.push(case(&what, steps, move || filter.matches(&bytes).map(drop)));
        }
    }
    let document = raw(&doc! { "a": vec![Bson::Null; COUNT] });
    for filter in [
        doc! { "a": { "$size": i64::MAX } },
        doc! { "a": { "$elemMatch": { "b": 1 } } },
        doc! { "a": { "$elemMatch": { "$gt": 1 } } },
    ] {
        let document = document.clone();
        let what = format!("the filter {filter}");
        let filter = Filter::parse(&raw(&filter), &Settings::default()).unwrap();
        cases.push(case(&what, COUNT, move || {
            filter.matches(&document).map(drop)
        }));
    }
    cases
}

/// Runs a case with a watch that interrupts from look `after` on.
fn run(case: &Case, after: usize) -> (Result<()>, std::sync::Arc<Stop>) {
    let watch = Stop::after(after);
    let entered = Meter::default().with_watch(watch.clone()).enter();
    let outcome = (case.run)();
    drop(entered);
    (outcome, watch)
}

fn check(cases: fn() -> Vec<Case>) {
    let _alone = ALONE.lock();
    let cases = cases();
    let mut faults = Vec::new();
    for case in cases.iter().filter(|case| 0 < case.steps) {
        let what = &case.what;
        let (outcome, watch) = run(case, usize::MAX);
        if let Err(error) = outcome {
            faults.push(format!("{what}: {error}"));
        }
        let (looks, least) = (watch.looks(), case.steps / LOOK_EVERY - 1);
        if looks < least {
            faults.push(format!("{what}: {looks} looks of at least {least}"));
        }
        let (outcome, watch) = run(case, looks / 2);
        if outcome.err().map(|error| error.code) != Some(Code::INTERRUPTED) {
            faults.push(format!("{what} was not interrupted"));
        }
        if FURTHER < watch.further() {
            faults.push(format!("{what}: {} looks more", watch.further()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn projections_look_at_the_clock_in_large_arrays() {
    check(projections);
}

/// Lists of `$in`, which are sorted when a filter is parsed.
fn operands() -> Vec<Case> {
    let count = i32::try_from(COUNT).unwrap();
    let texts: Vec<String> = (0..count).map(|at| (at % 251).to_string()).collect();
    let ascending: Vec<i32> = (0..count).collect();
    let mut cases = Vec::new();
    for (what, list) in [
        ("numbers", doc! { "$in": ascending }),
        ("texts", doc! { "$in": &texts }),
        ("excluded texts", doc! { "$nin": texts }),
    ] {
        let filter = raw(&doc! { "a": list });
        cases.push(case(what, 2 * COUNT, move || {
            Filter::parse(&filter, &Settings::default()).map(drop)
        }));
    }
    cases
}

#[test]
fn lists_of_values_look_at_the_clock_when_they_are_sorted() {
    check(operands);
}

#[test]
fn filters_look_at_the_clock_in_large_arrays() {
    check(filters);
}

fn update(spec: &Document) -> Update {
    let spec = raw(spec);
    let spec = bson::RawBsonRef::Document(&spec);
    Update::parse(spec, &[], &Settings::default()).unwrap()
}

/// Updates of the array of numbers in `a`, of which none needs another copy of it.
fn in_place() -> Vec<Document> {
    let many: Vec<i32> = (0..100).collect();
    vec![
        doc! { "$addToSet": { "a": -1 } },
        doc! { "$addToSet": { "a": { "$each": [-1, -2, -1, 5] } } },
        doc! { "$pullAll": { "a": [1, 3, 5] } },
        doc! { "$pull": { "a": 7 } },
        doc! { "$pull": { "a": { "$gt": 100 } } },
        doc! { "$pull": { "a": { "$in": many } } },
        doc! { "$push": { "a": 5 } },
        doc! { "$push": { "a": { "$each": [5], "$position": 0, "$slice": -100 } } },
        doc! { "$pop": { "a": -1 } },
        doc! { "$set": { "a.5": "x" } },
        doc! { "$unset": { "a.$[]": 1 } },
        doc! { "$inc": { "a.$[]": 1 } },
    ]
}

/// `{_id, a: [numbers]}` in an order that a sort must change.
fn numbers() -> Document {
    let mut rng = stdx::Rng::new(3);
    let number = |_| Bson::Int32(i32::try_from(rng.below(1 << 12)).unwrap());
    let numbers: Vec<Bson> = (0..COUNT).map(number).collect();
    doc! { "_id": 1, "a": numbers }
}

fn updates() -> Vec<Case> {
    let many: Vec<i32> = (0..i32::try_from(COUNT).unwrap()).collect();
    let nested = doc! { "_id": 1, "a": vec![doc! { "b": [1, 2] }; COUNT] };
    let pipeline = Bson::Array(vec![Bson::Document(doc! { "$set": { "x": 1 } })]);
    let pipeline = bson::RawBson::try_from(pipeline).unwrap();
    let pipeline = Update::parse(pipeline.as_raw_bson_ref(), &[], &Settings::default()).unwrap();
    let small = doc! { "_id": 1, "a": [1] };
    let mut all: Vec<(Document, Document)> = in_place()
        .into_iter()
        .map(|spec| (spec, numbers()))
        .collect();
    all.extend([
        (
            doc! { "$push": { "a": { "$each": [5], "$sort": 1 } } },
            numbers(),
        ),
        (
            doc! { "$push": { "a": { "$each": [], "$sort": { "b": -1 } } } },
            nested.clone(),
        ),
        (doc! { "$set": { "a.$[].b.$[]": 1 } }, nested.clone()),
        (doc! { "$pull": { "a": { "b": { "$gt": 5 } } } }, nested),
        // The operand is large, and the array is not.
        (
            doc! { "$addToSet": { "a": { "$each": &many } } },
            small.clone(),
        ),
        (doc! { "$pullAll": { "a": &many } }, small.clone()),
        (doc! { "$push": { "a": { "$each": &many } } }, small),
    ]);
    let mut cases: Vec<Case> = all
        .into_iter()
        .map(|(spec, document)| {
            let what = spec.to_string().chars().take(70).collect::<String>();
            let update = update(&spec);
            case(&what, COUNT, move || {
                update.apply(&document, &Position::default()).map(drop)
            })
        })
        .collect();
    let document = numbers();
    cases.push(case("an update by a pipeline", COUNT, move || {
        pipeline.apply(&document, &Position::default()).map(drop)
    }));
    cases
}

#[test]
fn updates_look_at_the_clock_in_large_arrays() {
    check(updates);
}

#[test]
fn updates_hold_one_copy_of_an_array() {
    let _alone = ALONE.lock();
    let document = numbers();
    let array = COUNT * size_of::<Bson>();
    for spec in in_place() {
        let update = update(&spec);
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        let next = update.apply(&document, &Position::default());
        assert!(next.unwrap().is_some(), "{spec}");
        let took = ALLOCATOR.peak_usage().saturating_sub(before);
        // While the array grows by an element, its old place is in use too.
        assert!(took < array * 5 / 2, "{spec} took {took} bytes");
    }
}

#[test]
fn updates_that_grow_stay_within_the_memory_limit() {
    let _alone = ALONE.lock();
    let documents = doc! { "_id": 1, "a": vec![doc! {}; 3_000] };
    let text = "x".repeat(4_000);
    let many: Vec<String> = (0..30_000).map(|at| format!("{at:0200}")).collect();
    for (spec, document) in [
        (doc! { "$set": { "a.$[].b.c.d.e": 1 } }, documents.clone()),
        (doc! { "$set": { "a.$[].b": text } }, documents.clone()),
        (doc! { "$set": { "a.1000000": 1 } }, documents),
        (
            doc! { "$addToSet": { "a": { "$each": &many } } },
            doc! { "a": [] },
        ),
        (doc! { "$pullAll": { "a": &many } }, doc! { "a": [] }),
    ] {
        let update = update(&spec);
        let what = spec.to_string().chars().take(70).collect::<String>();
        let outcome = limited(&what, || update.apply(&document, &Position::default()));
        assert!(outcome.is_err(), "{what} was not refused");
    }
}

#[test]
fn documents_of_updates_count_in_the_common_budget() {
    let _alone = ALONE.lock();
    let document = numbers();
    let array = COUNT * size_of::<Bson>();
    let sort = doc! { "$push": { "a": { "$each": [], "$sort": 1 } } };
    for (spec, factor) in [(doc! { "$push": { "a": 5 } }, 2), (sort, 3)] {
        for (share, refused) in [(factor * 4 + 2, false), (factor * 4 - 1, true)] {
            let budget = Budget::new(array * share / 4);
            let entered = Meter::default().with_budget(Some(budget)).enter();
            let outcome = update(&spec).apply(&document, &Position::default());
            drop(entered);
            let code = outcome.err().map(|error| error.code);
            let wanted = refused.then_some(Code::EXCEEDED_MEMORY_LIMIT);
            assert_eq!(code, wanted, "{spec} with {share} quarters");
        }
    }
}

fn collator() -> Collator {
    let spec = raw(&doc! { "locale": "en" });
    Collator::new(Collation::parse(&spec).unwrap().unwrap()).unwrap()
}

/// Keys of a long string: the library makes each in one call, with a look before and after it.
fn keys() -> Vec<Case> {
    let text = "ab c".repeat(1 << 20);
    let steps = 3 * LOOK_EVERY;
    let value = Bson::String(text.clone());
    let sort = Sort::parse(&raw(&doc! { "a": 1 })).unwrap();
    let values = vec![value.clone()];
    vec![
        case("a sort key", steps, move || {
            collator().sort_key(&text).map(drop)
        }),
        case("a key of values", 2 * LOOK_EVERY, move || {
            // The key itself cannot fail.
            drop(equivalence_key(&value, Some(&collator())));
            meter::step()
        }),
        case("a key of a sort", steps, move || {
            SortKey::from_values(&sort, values.clone(), Some(&collator())).map(drop)
        }),
    ]
}

#[test]
fn sort_keys_of_collations_look_at_the_clock() {
    check(keys);
}

#[test]
fn sort_keys_of_collations_stay_within_the_memory_limit() {
    let _alone = ALONE.lock();
    let text = "x".repeat(4 << 20);
    let collator = collator();
    let outcome = limited("a sort key", || collator.sort_key(&text));
    assert_eq!(outcome.unwrap_err().code, Code::EXCEEDED_MEMORY_LIMIT);
}

/// `uniqueItems` and `items` of schemas, and `chars` of the trims.
fn lists() -> Vec<Case> {
    let mut cases = Vec::new();
    let distinct: Vec<i32> = (0..i32::try_from(COUNT).unwrap()).collect();
    let document = raw(&doc! { "a": distinct });
    for schema in [
        doc! { "uniqueItems": true },
        doc! { "items": {} },
        doc! { "items": { "bsonType": "int" } },
    ] {
        let what = format!("$jsonSchema {schema}");
        let schema = doc! { "$jsonSchema": { "properties": { "a": schema } } };
        let filter = Filter::parse(&raw(&schema), &Settings::default()).unwrap();
        let document = document.clone();
        cases.push(case(&what, COUNT, move || {
            assert!(filter.matches(&document)?, "it matches");
            Ok(())
        }));
    }
    let text = "x".repeat(COUNT);
    for name in ["$trim", "$ltrim", "$rtrim"] {
        for (input, chars) in [(text.as_str(), "yzx"), ("x", text.as_str())] {
            let document = doc! { "input": input, "chars": chars };
            let form = doc! { name: { "input": "$input", "chars": "$chars" } };
            let expr = Expr::parse(&Bson::Document(form), &Scope::new()).unwrap();
            let what = format!("{name} of {} by {}", input.len(), chars.len());
            cases.push(case(&what, COUNT, move || {
                let variables = Variables::default();
                expr.evaluate(&Env::new(&document, &variables)).map(drop)
            }));
        }
    }
    cases
}

#[test]
fn lists_look_at_the_clock_for_each_item() {
    check(lists);
}

#[test]
fn unique_items_stay_within_the_memory_limit() {
    let _alone = ALONE.lock();
    let schema = doc! { "$jsonSchema": { "properties": { "a": { "uniqueItems": true } } } };
    let filter = Filter::parse(&raw(&schema), &Settings::default()).unwrap();
    let items: Vec<i32> = (0..200_000).collect();
    let document = raw(&doc! { "a": items });
    let outcome = limited("uniqueItems", || filter.matches(&document));
    assert!(outcome.is_err(), "it was not refused");
}

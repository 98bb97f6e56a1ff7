//! Work on large documents outside of expressions: projections, filters, schemas, updates and
//! collations. Each case must look at the clock in proportion to its data, and end at the first
//! look that says so.

use bson::{Bson, Document, RawDocumentBuf, doc};
use query::Result;
use query::expr::Variables;
use query::filter::Filter;
use query::meter::{LOOK_EVERY, Meter};
use query::projection::Projection;
use query::settings::Settings;
use query::stage::Transform;

use super::{ALONE, FURTHER, Stop};
use query::Code;

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

fn check(cases: &[Case]) {
    let _alone = ALONE.lock();
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
    check(&projections());
}

#[test]
fn filters_look_at_the_clock_in_large_arrays() {
    check(&filters());
}

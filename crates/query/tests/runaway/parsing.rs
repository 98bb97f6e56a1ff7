//! What a client sends is parsed in memory that is bounded by its size, or refused: each form has
//! parts that a careless parser would copy for each other part.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawBsonRef, RawDocumentBuf, bson, doc};

use query::filter::Filter;
use query::meter::{Budget, Meter};
use query::settings::Settings;
use query::stage::Stage;
use query::update::Update;
use query::{Code, Error, Result};

use super::{ALLOCATOR, ALONE, FACTOR, LIMIT};

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn stage(name: &str, spec: Document) -> impl Fn() -> Result<()> {
    let (name, spec) = (name.to_owned(), raw(&spec));
    move || {
        let spec = RawBsonRef::Document(&spec);
        Stage::parse(&name, spec, &Settings::default()).map(drop)
    }
}

fn filter(filter: Document) -> impl Fn() -> Result<()> {
    let filter = raw(&filter);
    move || Filter::parse(&filter, &Settings::default()).map(drop)
}

fn update(update: Document) -> impl Fn() -> Result<()> {
    let update = raw(&update);
    move || {
        let update = RawBsonRef::Document(&update);
        Update::parse(update, &[], &Settings::default()).map(drop)
    }
}

fn named(count: i32, value: impl Fn(i32) -> Bson) -> Document {
    (0..count).map(|at| (format!("f{at}"), value(at))).collect()
}

type Form = (&'static str, Box<dyn Fn() -> Result<()>>);

fn forms() -> Vec<Form> {
    let boundaries: Vec<i32> = (0..2_000).collect();
    let long = bson!({"$concat": ["$a", "x".repeat(100_000)]});
    let deep = |at: i32| vec![format!("f{at}"); 150].join(".");
    let deep: Document = (0..400).map(|at| (deep(at), Bson::Int32(1))).collect();
    let mask = Binary {
        subtype: BinarySubtype::Generic,
        bytes: vec![0xFF; 1 << 20],
    };
    vec![
        (
            "$bucket",
            Box::new(stage(
                "$bucket",
                doc! {"groupBy": long, "boundaries": boundaries},
            )),
        ),
        ("deep paths", Box::new(update(doc! {"$set": deep}))),
        (
            "a long mask",
            Box::new(filter(doc! {"a": {"$bitsAllSet": mask}})),
        ),
    ]
}

/// Runs a form within a budget; returns the peak of the memory.
fn run(form: &dyn Fn() -> Result<()>) -> (Result<()>, usize) {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let budget = Budget::new(LIMIT);
    let meter = Meter::default().with_limit(LIMIT);
    let entered = meter.with_budget(Some(budget.clone())).enter();
    let outcome = form();
    drop(entered);
    assert_eq!(budget.usage().used, 0, "all is released");
    (outcome, ALLOCATOR.peak_usage().saturating_sub(before))
}

#[test]
fn parsing_takes_memory_in_proportion_to_the_text_or_is_refused() {
    let _alone = ALONE.lock();
    for (what, form) in forms() {
        let (outcome, took) = run(form.as_ref());
        assert!(took <= FACTOR * LIMIT, "{what} took {took} bytes");
        if let Err(Error { code, message, .. }) = outcome {
            assert_eq!(code, Code::EXCEEDED_MEMORY_LIMIT, "{what}: {message}");
        }
    }
}

/// As many names as a message has, wherever a client names something: each is found in a table.
#[test]
fn many_names_are_parsed() {
    let _alone = ALONE.lock();
    const MANY: i32 = 100_000;
    let many = || named(MANY, |_| Bson::Int32(1));
    let values: Vec<Document> = (0..MANY).map(|at| doc! {"x": at}).collect();
    let names: Vec<String> = (0..MANY).map(|at| format!("f{at}")).collect();
    let schema = |keyword: &str, value: Bson| {
        let mut inner = Document::new();
        inner.insert(keyword, value);
        filter(doc! {"$jsonSchema": {"properties": {"a": inner}}})
    };
    let lookup = doc! {"from": "c", "let": many(), "pipeline": [], "as": "x"};
    let forms: Vec<Form> = vec![
        ("$project", Box::new(stage("$project", many()))),
        ("$lookup", Box::new(stage("$lookup", lookup))),
        ("$pull", Box::new(update(doc! {"$pull": many()}))),
        ("enum", Box::new(schema("enum", values.into()))),
        ("required", Box::new(schema("required", names.into()))),
    ];
    for (what, form) in forms {
        form().unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    let sort = raw(&many());
    let error = query::sort::Sort::parse(&sort).unwrap_err();
    assert_eq!(error.code, Code(13_103), "{error}");
}

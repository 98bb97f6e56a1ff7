//! What a client sends is parsed in memory that is bounded by its size, or refused: each form has
//! parts that a careless parser would copy for each other part.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawBsonRef, RawDocumentBuf, bson, doc};

use query::filter::Filter;
use query::meter::{Budget, Meter, parsed_size, parsed_size_of};
use query::pipeline::Pipeline;
use query::projection::Projection;
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

/// Bytes that are in use while what was parsed is kept, beside those that regular expressions
/// reserve.
fn kept<T>(parse: impl FnOnce() -> Result<T>) -> usize {
    let before = ALLOCATOR.current_usage();
    let parsed = parse().unwrap();
    let took = ALLOCATOR.current_usage().saturating_sub(before);
    drop(parsed);
    took
}

/// Requests of many small parts, which take most memory for each of their bytes.
fn dense() -> Vec<Document> {
    let texts: Vec<String> = (0..20_000).map(|at| format!("text {at}")).collect();
    let numbers: Vec<i32> = (0..20_000).collect();
    let nulls = vec![Bson::Null; 20_000];
    let clauses: Vec<Document> = (0..5_000).map(|at| doc! {"a": at}).collect();
    let ranges: Vec<Document> = (0..5_000).map(|at| doc! {"a": {"$gt": at}}).collect();
    let elements: Vec<Document> = (0..2_000)
        .map(|at| doc! {"a": {"$elemMatch": {"b": at, "c": {"$not": {"$lt": at}}}}})
        .collect();
    let deep = |at: i32| doc! {(vec![format!("f{at}"); 90].join(".")): 1};
    let deep: Vec<Document> = (0..200).map(deep).collect();
    let paths: Vec<String> = (0..500)
        .map(|at| format!("$a{at}{}", ".b".repeat(50)))
        .collect();
    let calls: Vec<Bson> = (0..5_000).map(|at| bson!({"$add": ["$a", at]})).collect();
    vec![
        doc! {"a": {"$in": &texts}},
        doc! {"a": {"$nin": &numbers}},
        doc! {"a": {"$in": &nulls}},
        doc! {"a": {"$all": &texts}},
        doc! {"$or": &clauses},
        doc! {"$nor": &ranges},
        doc! {"$and": elements},
        doc! {"$or": deep},
        doc! {"$expr": {"$in": ["$a", &texts]}},
        doc! {"$expr": {"$setUnion": paths}},
        doc! {"$expr": {"$and": calls}},
        named(5_000, Bson::Int32),
        named(5_000, |at| bson!({"$exists": at % 2 == 0})),
    ]
}

/// P1, in the module `parsed` of the meter.
#[test]
fn what_is_parsed_takes_no_more_than_its_estimate() {
    let _alone = ALONE.lock();
    for filter in dense() {
        let (filter, text) = (raw(&filter), format!("{:.60}", filter.to_string()));
        let most = parsed_size(&filter).unwrap();
        let took = kept(|| Filter::parse(&filter, &Settings::default()));
        assert!(took <= most, "{text}: {took} bytes, P1: {most}");
        let stages = bson::rawbson!([{"$limit": 1}, {"$match": filter}]);
        let stages = stages.as_array().unwrap();
        let parsed = Pipeline::parse_raw(stages, &Settings::default()).unwrap();
        assert!(most <= parsed.bytes(), "{text}");
    }
    let fields = named(5_000, |_| Bson::Int32(1));
    let literals = named(2_000, |at| bson!({"$literal": [at, at]}));
    for projection in [fields, literals] {
        let projection = raw(&projection);
        let most = parsed_size(&projection).unwrap();
        let took = kept(|| Projection::parse(&projection, &Settings::default(), None));
        assert!(took <= most, "{took} bytes, P1: {most}");
    }
    let set = |at: i32| bson!({"$addFields": {format!("f{at}"): {"$substrCP": ["$a", 0, at]}}});
    let stages: Vec<Bson> = (0..900).map(set).collect();
    let stages = bson::RawArrayBuf::try_from(stages).unwrap();
    let most = parsed_size_of(&stages).unwrap();
    let took = kept(|| Pipeline::parse_raw(&stages, &Settings::default()));
    assert!(took <= most, "{took} bytes, P1: {most}");
}

/// P2: what is parsed is reserved until it is dropped, and so are regular expressions, of which a
/// short one may take much.
#[test]
fn what_is_parsed_is_reserved_while_it_is_kept() {
    let _alone = ALONE.lock();
    let budget = Budget::new(LIMIT);
    let entered = Meter::default().with_budget(Some(budget.clone())).enter();
    let parse = |filter: &Document| Filter::parse(&raw(filter), &Settings::default());
    let numbers: Vec<i32> = (0..1_000).collect();
    let large = parse(&doc! {"a": {"$in": numbers}}).unwrap();
    let other = parse(&doc! {"b": {"$regex": "x(a{1,20}){1,20}"}}).unwrap();
    let both = large.and(other);
    assert!(1_000 * size_of::<Bson>() < budget.usage().used, "P2");
    drop(both);
    assert_eq!(budget.usage().used, 0, "P2");
    let bomb = |at: i32| doc! {"a": {"$regex": format!("{at}(a{{1,900}}){{1,60}}")}};
    let bombs: Vec<Document> = (0..2_000).map(bomb).collect();
    let error = parse(&doc! {"$or": bombs}).unwrap_err();
    assert_eq!(error.code, Code::EXCEEDED_MEMORY_LIMIT, "{error}");
    assert_eq!(budget.usage().used, 0, "P2");
    drop(entered);
}

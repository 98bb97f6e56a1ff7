//! Numbers at the edges of their types in every place where the query language takes a number. An
//! error is a correct result; a panic would let a client stop the server.
//!
//! Every name of the vocabulary has a valid operand: either listed in [`super::samples`], or found
//! by trying plain arguments. The test replaces each value in the operand by each extreme value,
//! and each pair of values by pairs of the worst ones. Overflow checks of arithmetic are on in test
//! and release builds.

use std::collections::BTreeSet;

use bson::{Bson, DateTime, Document, RawDocumentBuf, Timestamp, doc};
use query::filter::{Details, Filter};
use query::pipeline::Pipeline;
use query::projection::Projection;
use query::settings::Settings;
use query::update::{Position, Update};
use query::{Result, vocabulary};

use super::fuzz::run;
use super::samples;

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

/// The values that are combined in pairs.
fn worst() -> Vec<Bson> {
    vec![
        Bson::Int32(i32::MIN),
        Bson::Int32(i32::MAX),
        Bson::Int64(i64::MIN),
        Bson::Int64(i64::MAX),
        Bson::DateTime(DateTime::MIN),
        Bson::DateTime(DateTime::MAX),
    ]
}

/// All extreme values.
fn extremes() -> Vec<Bson> {
    let mut all = worst();
    all.extend([0, -1].map(Bson::Int32));
    let whole = [
        i64::from(i32::MIN) - 1,
        i64::from(i32::MAX) + 1,
        1 << 53,
        -(1 << 53),
        1 << 40,
    ];
    all.extend(whole.map(Bson::Int64));
    let doubles = [
        f64::NAN,
        -1e308,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e308,
        -0.0,
        9_007_199_254_740_992.0,
        9_223_372_036_854_775_808.0,
        -9_223_372_036_854_775_808.0,
        2_147_483_648.0,
        5e-324,
    ];
    all.extend(doubles.map(Bson::Double));
    let decimals = [
        "9.999999999999999999999999999999999E+6144",
        "-9.999999999999999999999999999999999E+6144",
        "NaN",
        "Infinity",
        "-Infinity",
        "1E-6176",
        "9223372036854775808",
        "-9223372036854775809",
        "2147483648",
    ];
    all.extend(decimals.map(decimal));
    all.push(Bson::Timestamp(Timestamp {
        time: u32::MAX,
        increment: u32::MAX,
    }));
    all
}

/// Documents with extreme values in the fields `a` and `n`, dates in `t`, arrays in `l`.
fn documents() -> Vec<Document> {
    let plain = (0..4).map(|n| {
        let day = DateTime::from_millis(i64::from(n) * 86_400_000);
        doc! {"_id": n, "a": n, "n": n, "t": day, "l": [n, n + 1], "b": if n % 2 == 0 {
            Bson::Int32(n)
        } else {
            Bson::Null
        }}
    });
    plain.collect()
}

fn extreme_documents() -> Vec<Document> {
    let each = (0..).zip(extremes());
    each.map(|(n, value)| {
        let time = match &value {
            Bson::DateTime(time) => *time,
            _ => DateTime::from_millis(n),
        };
        doc! {"_id": value.clone(), "a": value.clone(), "n": n, "t": time, "l": [value.clone(), n],
        "b": value}
    })
    .collect()
}

/// Number of values in `value` that are neither documents nor arrays, at any depth; a scalar counts
/// itself.
fn leaves(value: &Bson) -> usize {
    match value {
        Bson::Document(inner) => inner.values().map(leaves).sum(),
        Bson::Array(inner) => inner.iter().map(leaves).sum(),
        _ => 1,
    }
}

/// `value` with one leaf replaced: the leaf number `at`, which counts down with each leaf before
/// it.
fn replace(value: &Bson, at: &mut usize, with: &Bson) -> Bson {
    match value {
        Bson::Document(inner) => {
            let each = inner.iter();
            Bson::Document(
                each.map(|(k, v)| (k.clone(), replace(v, at, with)))
                    .collect(),
            )
        }
        Bson::Array(inner) => Bson::Array(inner.iter().map(|v| replace(v, at, with)).collect()),
        leaf => {
            let here = *at == 0;
            *at = at.wrapping_sub(1);
            if here { with.clone() } else { leaf.clone() }
        }
    }
}

/// Prints the operand if the test panics.
struct Shown<'a>(&'a str, &'a Bson);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {}", self.0, self.1);
        }
    }
}

/// Calls `one` with every variant of a valid operand; returns the number of variants.
fn vary(name: &str, sound: &Bson, one: &dyn Fn(&Bson) -> Result<()>) -> usize {
    let attempt = |operand: &Bson| {
        let shown = Shown(name, operand);
        let _ = one(operand);
        drop(shown);
    };
    let count = leaves(sound);
    let mut tried = 0;
    for at in 0..count {
        for value in extremes() {
            attempt(&replace(sound, &mut at.clone(), &value));
            tried += 1;
        }
    }
    // Only the first five leaves are combined in pairs: operands with more have many similar
    // places.
    for first in 0..count.min(5) {
        for second in first + 1..count.min(5) {
            for one in worst() {
                let half = replace(sound, &mut first.clone(), &one);
                for other in worst() {
                    attempt(&replace(&half, &mut second.clone(), &other));
                    tried += 1;
                }
            }
        }
    }
    tried
}

fn pipeline(stage: Document, documents: Vec<Document>) -> Result<()> {
    let stages = [Bson::Document(stage)];
    run(Pipeline::parse(&stages, &Settings::default())?, documents)
}

/// Checks that every name has a valid sample.
fn complete(names: &[&str], found: &BTreeSet<&str>) {
    let missing: Vec<&&str> = names
        .iter()
        .filter(|name| !found.contains(**name))
        .collect();
    assert!(missing.is_empty(), "no sound operand for {missing:?}");
}

/// Plain arguments, for finding valid operands.
fn pool() -> Vec<Bson> {
    vec![
        Bson::Int32(3),
        Bson::from("abc"),
        Bson::from(vec![3, 1, 2]),
        Bson::DateTime(DateTime::from_millis(1_700_000_000_000)),
        Bson::Document(doc! {"k": "a", "v": 1}),
        Bson::Double(0.5),
        Bson::Timestamp(Timestamp {
            time: 1,
            increment: 2,
        }),
    ]
}

/// Valid operands made of plain arguments: at most two for each number of arguments.
fn plain_operands(name: &str, sound: &dyn Fn(&Bson) -> bool) -> Vec<Bson> {
    let mut rows: Vec<Vec<Bson>> = vec![Vec::new()];
    let mut found = Vec::new();
    for _ in 0..3 {
        rows = rows
            .iter()
            .flat_map(|row| {
                pool()
                    .into_iter()
                    .map(move |value| row.iter().cloned().chain([value]).collect())
            })
            .collect();
        let fits = rows.iter().map(|row| Bson::Array(row.clone()));
        found.extend(fits.filter(|operand| sound(operand)).take(2));
    }
    // Optional numbers after two or three arguments.
    if let Some(Bson::Array(longest)) = found.last().cloned()
        && 2 < longest.len()
    {
        let more = longest.into_iter().chain([Bson::Int32(3)]).collect();
        found.extend(Some(Bson::Array(more)).filter(|operand| sound(operand)));
    }
    if found.is_empty() {
        found.extend(pool().into_iter().filter(|operand| sound(operand)).take(2));
    }
    assert!(!name.is_empty());
    found
}

#[test]
fn expressions_take_extreme_numbers() {
    let one = |name: &str, operand: &Bson| {
        pipeline(
            doc! {"$project": {"x": {name: operand}}},
            vec![doc! {"a": 1}],
        )
    };
    let names = vocabulary::expressions();
    let (mut found, mut tried, mut wrong) = (BTreeSet::new(), 0, Vec::new());
    let written = samples::expressions();
    for (name, sample) in &written {
        if !names.contains(name) {
            continue;
        }
        if let Err(error) = one(name, sample)
            && *name != "$meta"
        {
            wrong.push(format!("{name}: {sample}: {error}"));
        }
        found.insert(*name);
        tried += vary(name, sample, &|operand| one(name, operand));
    }
    for name in &names {
        for operand in plain_operands(name, &|operand| one(name, operand).is_ok()) {
            found.insert(name);
            tried += vary(name, &operand, &|operand| one(name, operand));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    complete(&names, &found);
    assert!(50_000 < tried, "only {tried} operands were tried");
}

#[test]
fn accumulators_and_windows_take_extreme_numbers() {
    let group = |documents: Vec<Document>, name: &str, operand: &Bson| {
        pipeline(doc! {"$group": {"_id": 1, "x": {name: operand}}}, documents)
    };
    let window = |documents: Vec<Document>, by: &str, name: &str, operand: &Bson| {
        let output = doc! {"x": {name: operand}};
        pipeline(
            doc! {"$setWindowFields": {"sortBy": {by: 1}, "output": output}},
            documents,
        )
    };
    let bounded = |documents: Vec<Document>, name: &str, operand: &Bson| {
        let window = doc! {"documents": [-1, 1]};
        let output = doc! {"x": {name: operand, "window": window}};
        pipeline(
            doc! {"$setWindowFields": {"sortBy": {"t": 1}, "output": output}},
            documents,
        )
    };
    let mut names = vocabulary::accumulators();
    names.extend(vocabulary::window_functions());
    let mut found = BTreeSet::new();
    let mut check = |name: &'static str, sample: &Bson| {
        let sound = group(documents(), name, sample).is_ok()
            || window(documents(), "n", name, sample).is_ok()
            || window(documents(), "t", name, sample).is_ok()
            || bounded(documents(), name, sample).is_ok();
        if !sound {
            return;
        }
        found.insert(name);
        let _ = group(extreme_documents(), name, sample);
        let _ = bounded(extreme_documents(), name, sample);
        for by in ["n", "t", "a"] {
            let _ = window(extreme_documents(), by, name, sample);
        }
        vary(name, sample, &|operand| {
            let _ = group(documents(), name, operand);
            let _ = window(documents(), "t", name, operand);
            let _ = bounded(documents(), name, operand);
            window(documents(), "n", name, operand)
        });
    };
    for (name, sample) in &samples::accumulators() {
        if names.contains(name) {
            check(name, sample);
        }
    }
    for name in &names {
        for sample in [Bson::from("$a"), Bson::from("$l"), Bson::Int32(1)] {
            check(name, &sample);
        }
    }
    complete(&names, &found);
}

#[test]
fn stages_take_extreme_numbers() {
    let names = vocabulary::stages();
    let mut found = BTreeSet::new();
    for (name, sample) in &samples::stages() {
        if !names.contains(name) {
            continue;
        }
        // Some stages need a server, or must be first or last in a pipeline; their operands are
        // parsed anyway.
        let _ = pipeline(doc! {*name: sample}, documents());
        let _ = pipeline(doc! {*name: sample}, extreme_documents());
        found.insert(*name);
        vary(name, sample, &|operand| {
            pipeline(doc! {*name: operand}, documents())
        });
    }
    complete(&names, &found);
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

#[test]
fn filters_take_extreme_numbers() {
    let documents: Vec<RawDocumentBuf> = extreme_documents()
        .iter()
        .chain(&documents())
        .map(raw)
        .collect();
    let one = |spec: &Bson| {
        let Bson::Document(spec) = spec else {
            return Ok(());
        };
        let filter = Filter::parse(&raw(spec), &Settings::default())?;
        for document in &documents {
            filter.matches_at(document, &mut Details::default())?;
        }
        Ok(())
    };
    let names = vocabulary::filters();
    let mut found = BTreeSet::new();
    for (name, sample) in samples::filters() {
        let sample = Bson::Document(sample);
        if names.contains(&name) {
            one(&sample).unwrap_or_else(|e| panic!("{sample}: {e}"));
            found.insert(name);
        }
        vary(name, &sample, &one);
    }
    let known = ["$options"];
    found.extend(known);
    complete(&names, &found);
}

#[test]
fn updates_and_projections_take_extreme_numbers() {
    let inputs: Vec<Document> = extreme_documents().into_iter().chain(documents()).collect();
    let one = |spec: &Bson| {
        let Bson::Document(spec) = spec else {
            return Ok(());
        };
        let spec = raw(spec);
        let spec = bson::RawBsonRef::Document(&spec);
        let update = Update::parse(spec, &[], &Settings::default())?;
        for document in &inputs {
            // The update may refuse a value of another type.
            let _ = update.apply(document, &Position::default());
        }
        Ok(())
    };
    let names = vocabulary::updates();
    let mut found = BTreeSet::new();
    for (name, sample) in samples::updates() {
        let sample = Bson::Document(sample);
        one(&sample).unwrap_or_else(|e| panic!("{sample}: {e}"));
        found.insert(name);
        vary(name, &sample, &one);
    }
    complete(&names, &found);
    let project = |spec: &Bson| {
        let Bson::Document(spec) = spec else {
            return Ok(());
        };
        let everything = Filter::everything();
        let projection = Projection::parse(&raw(spec), &Settings::default(), Some(&everything))?;
        for document in &inputs {
            projection.apply(&raw(document), None)?;
        }
        Ok(())
    };
    for sample in [
        doc! {"l": {"$slice": 1}},
        doc! {"l": {"$slice": [1, 2]}},
        doc! {"l": {"$elemMatch": {"$gt": 1}}},
        doc! {"l": 1},
    ] {
        vary("projection", &Bson::Document(sample), &project);
    }
}

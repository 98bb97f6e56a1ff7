//! Forms of the accumulators and window functions.

use bson::{Bson, Document, bson, doc};
use query::vocabulary;

use super::Entry::{self, Bounded, Grows, Works};
use super::host::{Memory, documents, drain, open};
use super::{ALONE, complete, limited, stopped};

fn accumulators() -> Vec<(&'static str, Entry)> {
    let n = bson!({"n": 5_000, "input": "$t"});
    let ranked = bson!({"n": 5_000, "sortBy": {"t": 1}, "output": "$$ROOT"});
    let best = bson!({"sortBy": {"t": 1}, "output": "$t"});
    let quantile = bson!({"input": "$x", "method": "approximate", "p": [0.1, 0.9]});
    let median = bson!({"input": "$x", "method": "approximate"});
    let one = bson!(["$_id", "$t"]);
    let keyed = bson!({"$arrayToObject": [[[{"$concat": ["k", {"$toString": "$_id"}]}, "$t"]]]});
    let numbers = [
        "$sum",
        "$avg",
        "$min",
        "$max",
        "$first",
        "$last",
        "$stdDevPop",
        "$stdDevSamp",
    ];
    let mut all: Vec<(&'static str, Entry)> = numbers
        .into_iter()
        .map(|name| (name, Works(bson!("$x"))))
        .collect();
    all.extend([
        ("$count", Works(bson!({}))),
        ("$push", Grows(bson!("$t"))),
        ("$addToSet", Grows(bson!("$t"))),
        ("$concatArrays", Grows(bson!("$a"))),
        ("$setUnion", Grows(bson!({"$slice": [one, 5]}))),
        ("$mergeObjects", Grows(keyed)),
        ("$firstN", Grows(n.clone())),
        ("$lastN", Grows(n.clone())),
        ("$minN", Grows(n.clone())),
        ("$maxN", Grows(n)),
        ("$top", Works(best.clone())),
        ("$bottom", Works(best)),
        ("$topN", Grows(ranked.clone())),
        ("$bottomN", Grows(ranked)),
        ("$median", Works(median)),
        ("$percentile", Works(quantile)),
    ]);
    all
}

fn functions() -> Vec<(&'static str, Entry)> {
    let ranks = ["$rank", "$denseRank", "$documentNumber"];
    let mut all: Vec<(&'static str, Entry)> = ranks
        .into_iter()
        .map(|name| (name, Works(bson!({}))))
        .collect();
    let long = bson!({"$map": {"input": {"$range": [0, 40]}, "in": "$t"}});
    all.extend([
        ("$shift", Grows(bson!({"output": long.clone(), "by": 1}))),
        ("$locf", Grows(long)),
        ("$linearFill", Works(bson!("$v"))),
        ("$expMovingAvg", Works(bson!({"input": "$x", "N": 5}))),
        ("$derivative", Works(bson!({"input": "$x"}))),
        ("$integral", Works(bson!({"input": "$x"}))),
        ("$covariancePop", Works(bson!(["$x", "$x"]))),
        ("$covarianceSamp", Works(bson!(["$x", "$x"]))),
    ]);
    all
}

/// A pipeline of one stage that uses the function.
fn grouped(name: &str, operand: &Bson) -> Bson {
    bson!([{"$group": {"_id": null, "x": {name: operand.clone()}}}])
}

fn windowed(name: &str, operand: &Bson) -> Bson {
    let mut output: Document = doc! {name: operand.clone()};
    if matches!(
        name,
        "$derivative" | "$integral" | "$covariancePop" | "$covarianceSamp"
    ) {
        output.insert("window", doc! {"documents": ["unbounded", "current"]});
    }
    bson!([{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"y": output}}}])
}

/// All forms: accumulators in groups and in windows, window functions in windows only.
fn forms() -> Vec<(String, Bson)> {
    let mut forms = Vec::new();
    for (name, entry) in accumulators() {
        if let Grows(operand) | Works(operand) = entry {
            forms.push((format!("{name} of $group"), grouped(name, &operand)));
            forms.push((format!("{name} of windows"), windowed(name, &operand)));
        }
    }
    for (name, entry) in functions() {
        if let Grows(operand) | Works(operand) = entry {
            forms.push((name.to_owned(), windowed(name, &operand)));
        }
    }
    forms
}

#[test]
fn every_accumulator_and_function_has_its_entry() {
    complete(&vocabulary::accumulators(), &accumulators());
    complete(&vocabulary::window_functions(), &functions());
    let entries = accumulators().into_iter().chain(functions());
    for (name, entry) in entries {
        assert!(!matches!(entry, Bounded("")), "{name}");
    }
}

#[test]
fn accumulators_and_functions_stay_within_the_memory_limit() {
    let _alone = ALONE.lock();
    let documents = documents();
    let documents = documents.get(..3_000).unwrap();
    for (name, stages) in forms() {
        let rows = open(&stages, documents).unwrap();
        let mut host = Memory { disk: false };
        drop(limited(&name, || drain(rows, &mut host)));
    }
}

#[test]
fn accumulators_and_functions_end_when_interrupted() {
    let _alone = ALONE.lock();
    let documents = documents();
    for (name, stages) in forms() {
        let rows = open(&stages, &documents).unwrap();
        let mut host = Memory { disk: true };
        stopped(&name, || drain(rows, &mut host));
    }
}

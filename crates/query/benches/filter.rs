//! What does a filter cost per document? Nanoseconds on a document of about 300 bytes, whose fields
//! are those of the classic benchmark of inserts (a register, a customer, a price, filler).
//!
//! `cargo bench -p query --bench filter`. The best of several rounds on one thread; run it on a
//! machine that does nothing else.

use bson::{Document, RawDocumentBuf, doc, oid::ObjectId};
use query::filter::Filter;
use query::settings::Settings;
use stdx::Rng;

const ROUNDS: usize = 7;
const DOCUMENTS: usize = 20_000;

fn main() {
    // Test runners run benchmarks with `--test`, only to check that they start.
    let quick = std::env::args().any(|argument| argument == "--test");
    let (rounds, count) = if quick { (1, 100) } else { (ROUNDS, DOCUMENTS) };
    let documents = documents(count);
    let bytes: usize = documents
        .iter()
        .map(|document| document.as_bytes().len())
        .sum();
    println!("{} documents of {} bytes", count, bytes / count);
    println!("{:<34} {:>8} {:>10}", "filter", "ns/doc", "matching");
    for (name, filter) in filters() {
        let filter = RawDocumentBuf::try_from(&filter).expect("a filter of this file");
        let filter = Filter::parse(&filter, &Settings::default()).expect("a filter of this file");
        let mut best = f64::INFINITY;
        let mut matching = 0;
        for _ in 0..rounds {
            let start = stdx::time::now();
            matching = documents
                .iter()
                .filter(|document| filter.matches(document).expect("BSON made here"))
                .count();
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / count as f64);
        }
        println!("{name:<34} {best:>8.1} {matching:>10}");
    }
}

fn filters() -> Vec<(&'static str, Document)> {
    vec![
        ("equality, 2nd field", doc! {"dateandtime": 7_i64}),
        ("equality, last number", doc! {"price": 7.5}),
        ("equality, missing field", doc! {"nothing": 7}),
        ("equality, string at the end", doc! {"cf2": "x"}),
        ("range", doc! {"price": {"$gte": 100.0, "$lt": 300.0}}),
        (
            "$or of 3 ranges, iibench",
            doc! {"$or": [
                {"price": {"$gte": 100.0}, "customerid": {"$gte": 50_000}},
                {"price": {"$gte": 300.0}, "customerid": {"$gte": 20_000}},
                {"price": {"$gt": 490.0}},
            ]},
        ),
        (
            "$in of 100",
            doc! {"customerid": {"$in": (0..100).map(|n| n * 911).collect::<Vec<i32>>()}},
        ),
        ("pattern", doc! {"cf1": {"$regex": "^ab"}}),
        ("array of 4", doc! {"tags": 3}),
    ]
}

fn documents(count: usize) -> Vec<RawDocumentBuf> {
    let mut rng = Rng::new(1);
    (0..count)
        .map(|at| {
            let mut text = |length: usize| -> String {
                (0..length)
                    .map(|_| char::from(b'a' + u8::try_from(rng.below(26)).expect("below 26")))
                    .collect()
            };
            let (one, two) = (text(60), text(60));
            let mut number = |limit: u64| i32::try_from(rng.below(limit)).expect("a small limit");
            let document = doc! {
                "_id": ObjectId::from_bytes([u8::try_from(at % 251).expect("below 251"); 12]),
                "dateandtime": i64::from(number(1_000_000)),
                "cashregisterid": number(1000),
                "customerid": number(100_000),
                "price": f64::from(number(50_000)) / 100.0,
                "tags": [number(9), number(9), number(9), number(9)],
                "cf1": one,
                "cf2": two,
            };
            RawDocumentBuf::try_from(&document).expect("small and flat")
        })
        .collect()
}

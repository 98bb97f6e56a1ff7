//! Random filters on random documents, compared with the reference evaluation.

use bson::{Bson, Document, RawDocumentBuf, doc};
use stdx::Tape;

use super::naive;
use crate::filter::Filter;
use crate::settings::Settings;
use crate::value::random;

const SEEDS: u64 = 6000;

fn path(tape: &mut Tape) -> String {
    let mut path = random::name(tape).to_owned();
    while tape.byte().is_multiple_of(3) && path.len() < 7 && !tape.is_empty() {
        path.push('.');
        path.push_str(random::name(tape));
    }
    path
}

/// A value for an equality: not undefined, which is refused, and not a regular expression, which
/// would be matched.
fn plain(tape: &mut Tape) -> Bson {
    loop {
        match random::value(tape, 1) {
            Bson::Undefined | Bson::RegularExpression(_) => {}
            value => return value,
        }
    }
}

fn list(tape: &mut Tape) -> Bson {
    let length = tape.byte() % 4;
    Bson::Array((0..length).map(|_| plain(tape)).collect())
}

fn operators(tape: &mut Tape, depth: usize, nested: bool) -> Document {
    let simple = ["$eq", "$gt", "$gte", "$lt", "$lte"];
    let choices = if nested { 8 } else { 13 };
    match tape.byte() % choices {
        choice @ 0..=4 => doc! {simple[usize::from(choice)]: plain(tape)},
        5 => doc! {"$in": list(tape)},
        6 => doc! {"$size": i32::from(tape.byte() % 3)},
        7 => {
            let names = ["string", "array", "int", "object"];
            doc! {"$type": names[usize::from(tape.byte() % 4)]}
        }
        8 => doc! {"$ne": plain(tape)},
        9 => doc! {"$nin": list(tape)},
        10 => doc! {"$exists": tape.byte().is_multiple_of(2)},
        11 if depth > 0 => doc! {"$not": operators(tape, depth - 1, false)},
        11 => doc! {"$all": list(tape)},
        _ if depth > 0 && tape.byte().is_multiple_of(2) => {
            doc! {"$elemMatch": operators(tape, depth - 1, true)}
        }
        _ => doc! {"$elemMatch": filter(tape, 0, false)},
    }
}

fn filter(tape: &mut Tape, depth: usize, logical: bool) -> Document {
    let mut filter = Document::new();
    for _ in 0..1 + tape.byte() % 2 {
        if logical && depth > 0 && tape.byte().is_multiple_of(4) {
            let name = ["$and", "$or", "$nor"][usize::from(tape.byte() % 3)];
            let clauses = 1 + tape.byte() % 3;
            let clauses: Vec<Document> = (0..clauses)
                .map(|_| self::filter(tape, depth - 1, true))
                .collect();
            filter.insert(name, clauses);
        } else if tape.byte().is_multiple_of(4) {
            filter.insert(path(tape), plain(tape));
        } else {
            filter.insert(path(tape), operators(tape, depth, false));
        }
    }
    filter
}

#[test]
fn compiled_filters_agree_with_naive_ones() {
    let mut matched = 0;
    let mut asked = 0;
    for seed in 0..SEEDS {
        let mut tape = Tape::from_seed(seed, 400);
        let filter = filter(&mut tape, 2, true);
        let raw = RawDocumentBuf::try_from(&filter).unwrap();
        let compiled = Filter::parse(&raw, &Settings::default())
            .unwrap_or_else(|error| panic!("seed {seed}: {filter}: {error}"));
        let again = RawDocumentBuf::try_from(&compiled.to_document()).unwrap();
        let again = Filter::parse(&again, &Settings::default())
            .unwrap_or_else(|error| panic!("seed {seed}: {filter}: {error}"));
        for _ in 0..8 {
            let document = random::document(&mut tape, 2);
            let expected = naive::matches(&filter, &document);
            let raw = RawDocumentBuf::try_from(&document).unwrap();
            let found = compiled.matches(&raw).unwrap();
            assert_eq!(found, expected, "seed {seed}: {filter} on {document}");
            let found = again.matches(&raw).unwrap();
            assert_eq!(
                found, expected,
                "seed {seed}: normal form of {filter} on {document}"
            );
            if !expected {
                let why = compiled.explain_failure(&raw).unwrap();
                assert!(why.contains_key("operatorName"), "seed {seed}: {why}");
            }
            matched += u64::from(expected);
            asked += 1;
        }
    }
    // Both results must be frequent enough for a meaningful test.
    assert!(
        asked / 10 < matched && matched < asked * 9 / 10,
        "{matched} of {asked}"
    );
}

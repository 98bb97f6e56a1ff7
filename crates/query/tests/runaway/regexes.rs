//! Regular expressions for which PCRE2 alone would run for minutes or hours, in every operator that
//! matches.

use bson::{Bson, Document, bson, doc};
use query::expr::{Env, Expr, Scope, Variables};
use query::filter::Filter;
use query::meter::Meter;
use query::regex::Regex;
use query::settings::Settings;
use query::{Code, Result};

use super::{ALONE, FURTHER, Stop};

/// Number of checks before the watch interrupts: enough that it happens during the match.
const ALLOWED: usize = 4;

const PATTERNS: &[&str] = &[
    // Linear in the text for each start position.
    "(?:a|x)?a*[b-c]",
    "(?:a*)[b-c]",
    // Quadratic in the text for each start position.
    "a?a*a*[b-c]",
    "a*?a*?b",
    "(?:(?:a*+)b|a)*c",
    // More than quadratic, within groups, lookaheads and recursion.
    "(a*)*b",
    "(?=(?:a*+b|a)*c)a",
    "(?>(?:a*+b|a)*)c",
    "(?:a|aa)+$b",
    "(?:^|a)(?:a*)[bc]$",
    "(?<x>a(?&x)?a|a)b",
];

/// The patterns that only the watch can end.
const SURE: &[&str] = &["(?:a|x)?a*[b-c]", "a?a*a*[b-c]"];

/// Checks that a match ends when the watch interrupts it. Instead, PCRE2 may report earlier that no
/// match is possible, or that its stack is exhausted.
fn stops<T>(pattern: &str, what: &str, run: impl FnOnce() -> Result<T>) {
    let watch = Stop::after(ALLOWED);
    let entered = Meter::default().with_watch(watch.clone()).enter();
    let outcome = run().map(drop);
    drop(entered);
    match outcome {
        Err(error) if error.code == Code(51_156) && !SURE.contains(&pattern) => {}
        Err(error) => assert_eq!(
            error.code,
            Code::INTERRUPTED,
            "{what} of {pattern}: {error}"
        ),
        Ok(()) => {
            assert!(!SURE.contains(&pattern), "{what} of {pattern} ended");
            assert!(
                watch.looks() <= ALLOWED,
                "{what} of {pattern} was not stopped"
            );
        }
    }
    assert!(watch.further() <= FURTHER, "{what} of {pattern}");
}

fn text() -> String {
    "a".repeat(1 << 20)
}

#[test]
fn matches_end_when_their_operation_does() {
    let _alone = ALONE.lock();
    let text = text();
    for pattern in PATTERNS {
        for options in ["", "i", "ms", "x"] {
            let regex = Regex::new(pattern, options).unwrap();
            let what = format!("options '{options}'");
            stops(pattern, &what, || regex.is_match(&text));
            stops(pattern, &what, || regex.captures_at(&text, 1));
        }
    }
}

#[test]
fn all_that_matches_ends_when_its_operation_does() {
    let _alone = ALONE.lock();
    let document = doc! { "s": text(), "a": [text()] };
    let evaluate = |form: Bson| {
        let expr = Expr::parse(&form, &Scope::new()).unwrap();
        expr.evaluate(&Env::new(&document, &Variables::default()))
    };
    let raw = bson::RawDocumentBuf::try_from(&document).unwrap();
    let matches = |filter: Document| {
        let filter = bson::RawDocumentBuf::try_from(&filter).unwrap();
        let filter = Filter::parse(&filter, &Settings::default()).unwrap();
        filter.matches(&raw)
    };
    for pattern in PATTERNS {
        for name in ["$regexMatch", "$regexFind", "$regexFindAll"] {
            let form = bson!({ name: { "input": "$s", "regex": *pattern } });
            stops(pattern, name, || evaluate(form));
        }
        let regex = Bson::RegularExpression(bson::Regex {
            pattern: (*pattern).to_owned().try_into().unwrap(),
            options: String::new().try_into().unwrap(),
        });
        stops(pattern, "$regex", || {
            matches(doc! { "s": { "$regex": *pattern } })
        });
        stops(pattern, "$in", || {
            matches(doc! { "a": { "$in": [regex.clone()] } })
        });
        stops(pattern, "$not", || matches(doc! { "s": { "$not": regex } }));
        let schema = doc! { "properties": { "s": { "pattern": *pattern } } };
        stops(pattern, "$jsonSchema", || {
            matches(doc! { "$jsonSchema": schema })
        });
    }
}

#[test]
fn the_matches_of_a_long_text_take_time_in_its_length() {
    let _alone = ALONE.lock();
    let document = doc! { "s": text() };
    let form = bson!({ "$size": { "$regexFindAll": { "input": "$s", "regex": "a{1024}" } } });
    let expr = Expr::parse(&form, &Scope::new()).unwrap();
    let watch = Stop::after(usize::MAX);
    let entered = Meter::default().with_watch(watch.clone()).enter();
    let found = expr.evaluate(&Env::new(&document, &Variables::default()));
    drop(entered);
    assert_eq!(found.unwrap(), Some(Bson::Int32(1024)));
    // If each of the thousand matches counted the rest of the text, there would be 130 000 steps.
    assert!(watch.looks() < 64, "{} looks", watch.looks());
}

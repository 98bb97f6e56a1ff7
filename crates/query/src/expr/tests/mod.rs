//! Tables of expressions, documents and results, one file per family.

mod arithmetic;
mod array;
mod conditional;
mod convert;
mod date;
mod hashed;
mod object;
mod string;

use bson::{Bson, Document, bson, doc};

use super::{Env, Expr, Scope, System, Variables};
use crate::Result;

/// The value of an expression over a document.
fn evaluate(expr: impl Into<Bson>, document: &Document) -> Result<Option<Bson>> {
    let expr = Expr::parse(&expr.into(), &Scope::new())?;
    expr.evaluate(&Env::new(document, &Variables::default()))
}

/// Checks the value and its type; `None` for a missing value.
#[track_caller]
fn check(expr: impl Into<Bson>, document: Document, expected: impl Into<Option<Bson>>) {
    let expr = expr.into();
    let found = evaluate(expr.clone(), &document);
    assert_eq!(found, Ok(expected.into()), "{expr} over {document}");
}

/// Checks the code of an error, and a part of its message.
#[track_caller]
fn refuse(expr: impl Into<Bson>, document: Document, code: i32, part: &str) {
    let expr = expr.into();
    match evaluate(expr.clone(), &document) {
        Ok(value) => panic!("{expr} gives {value:?}"),
        Err(error) => {
            assert_eq!(error.code.0, code, "{expr}: {error}");
            assert!(error.message.contains(part), "{expr}: {error}");
        }
    }
}

#[test]
fn paths_reach_through_arrays() {
    let d = doc! { "a": { "b": 1 }, "c": [{ "d": 1 }, { "e": 2 }, 3, { "d": [4] }], "n": null };
    check("$a.b", d.clone(), Bson::Int32(1));
    check("$a.x", d.clone(), None);
    check("$c.d", d.clone(), bson::bson!([1, [4]]));
    check("$n", d.clone(), Bson::Null);
    check("$$ROOT.a", d.clone(), bson::bson!({ "b": 1 }));
    check("$$CURRENT.a.b", d.clone(), Bson::Int32(1));
    check("$$REMOVE", d, None);
}

#[test]
fn variables_of_the_system_are_there_or_refused() {
    let time = Bson::Timestamp(bson::Timestamp {
        time: 7,
        increment: 1,
    });
    let roles = bson::bson!([{ "_id": "test.read", "role": "read", "db": "test" }]);
    let mut variables = Variables::default();
    let value = |text: &str, variables: &Variables| {
        let scope = Scope::new().with_variables(variables);
        let expr = Expr::parse(&Bson::String(text.to_owned()), &scope)?;
        expr.evaluate(&Env::new(&Document::new(), variables))
    };
    for name in ["$$CLUSTER_TIME", "$$USER_ROLES.role"] {
        let error = value(name, &variables).unwrap_err();
        assert_eq!(error.code.0, 51_144, "{name}: {error}");
    }
    assert_eq!(value("$$SEARCH_META", &variables), Ok(None));
    variables.set_system(Some(std::sync::Arc::new(System {
        cluster_time: Some(time.clone()),
        user_roles: Some(std::sync::Arc::new(roles)),
    })));
    assert_eq!(value("$$CLUSTER_TIME", &variables), Ok(Some(time)));
    let names = bson::bson!(["read"]);
    assert_eq!(value("$$USER_ROLES.role", &variables), Ok(Some(names)));
}

#[test]
fn malformed_paths_are_refused() {
    let d = Document::new;
    refuse("$", d(), 16_872, "by itself");
    refuse("$a..b", d(), 15_998, "empty");
    refuse("$a.", d(), 40_353, "must not end");
    refuse("$a.$b", d(), 16_410, "may not start with '$'");
    refuse("$$nope", d(), 17_276, "Use of undefined variable: nope");
    refuse(
        doc! { "$foo": 1 },
        d(),
        168,
        "Unrecognized expression '$foo'",
    );
    refuse(doc! { "$add": 1, "b": 2 }, d(), 15_983, "exactly one field");
    refuse(doc! { "a.b": 1 }, d(), 16_412, "may not contain '.'");
}

#[test]
fn variables_bind_from_the_inside_out() {
    let expr = doc! { "$let": { "vars": { "x": 1, "y": "$a" }, "in": { "$let": {
    "vars": { "x": { "$add": ["$$x", "$$y"] } }, "in": ["$$x", "$$y"] } } } };
    check(expr, doc! { "a": 10 }, bson::bson!([11, 10]));
    let current = doc! { "$let": { "vars": { "CURRENT": "$a" }, "in": "$b" } };
    check(current, doc! { "a": { "b": 7 }, "b": 8 }, Bson::Int32(7));
    refuse(
        doc! { "$let": { "vars": { "X": 1 }, "in": 1 } },
        Document::new(),
        9,
        "starts with",
    );
}

#[test]
fn calls_of_constants_fail_before_there_are_documents() {
    let parse = |expr: Bson| {
        crate::expr::refuse_failing(|| Expr::parse(&expr, &crate::expr::Scope::new()))
            .map(|_| ())
            .map_err(|error| (error.code.0, error.message))
    };
    let fails = |expr: Bson| {
        let (_, message) = parse(expr.clone()).unwrap_err();
        let begins = message.starts_with("Failed to optimize pipeline :: caused by :: ");
        assert!(begins, "{expr}: {message}");
    };
    let bad = bson!({ "$toInt": "x" });
    fails(bad.clone());
    fails(bson!({ "$add": ["$a", bad.clone()] }));
    fails(bson!({ "$cond": [true, 1, bad.clone()] }));
    fails(bson!({ "$and": [false, bad.clone()] }));
    fails(bson!({ "$map": { "input": "$a", "in": bad.clone() } }));
    // MongoDB's optimizer does not evaluate these, so they are accepted.
    for expr in [
        bson!({ "$ifNull": [1, bad.clone()] }),
        bson!({ "$switch": { "branches": [{ "case": "$a", "then": bad.clone() }], "default": 1 } }),
        bson!({ "$literal": bad.clone() }),
        bson!({ "$toInt": "$a" }),
    ] {
        assert_eq!(parse(expr), Ok(()));
    }
    // Outside of `refuse_failing` no error is recorded; an error of parsing comes before a recorded
    // one.
    assert!(Expr::parse(&bad, &crate::expr::Scope::new()).is_ok());
    let (code, _) = parse(bson!([bad, { "$nonsense": 1 }])).unwrap_err();
    assert_eq!(code, 168);
}

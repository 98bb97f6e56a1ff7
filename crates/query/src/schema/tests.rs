//! Schemas on known documents, schemas that are refused, and the details of failures.

use bson::{Bson, Document, RawDocumentBuf, doc};

use super::Schema;

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn check(schema: Document, yes: &[Document], no: &[Document]) {
    let parsed = Schema::parse(&schema).unwrap();
    for document in yes {
        assert!(
            parsed.validates(&raw(document)).unwrap(),
            "{schema} on {document}"
        );
    }
    for document in no {
        assert!(
            !parsed.validates(&raw(document)).unwrap(),
            "{schema} on {document}"
        );
        let details = parsed.explain(&raw(document)).unwrap();
        let rules = details.get_array("schemaRulesNotSatisfied").unwrap();
        assert!(!rules.is_empty(), "{schema} on {document}");
    }
}

/// Checks a schema of the property `a`: it accepts the values `yes` and refuses the values `no`.
fn property(schema: Document, yes: &[Bson], no: &[Bson]) {
    let of = |values: &[Bson]| -> Vec<Document> {
        values
            .iter()
            .map(|value| doc! {"a": value.clone()})
            .collect()
    };
    check(doc! {"properties": {"a": schema}}, &of(yes), &of(no));
}

fn ints(values: &[i32]) -> Bson {
    Bson::Array(values.iter().map(|value| Bson::Int32(*value)).collect())
}

#[test]
fn types_and_enumerations() {
    property(
        doc! {"bsonType": "int"},
        &[1.into()],
        &["x".into(), 1.5.into()],
    );
    property(
        doc! {"bsonType": ["int", "null"]},
        &[1.into(), Bson::Null],
        &["x".into()],
    );
    property(
        doc! {"type": "number"},
        &[1.into(), 1.5.into()],
        &["x".into()],
    );
    property(doc! {"type": "boolean"}, &[true.into()], &[1.into()]);
    property(
        doc! {"enum": [1, "x"]},
        &[1.0.into(), "x".into()],
        &[2.into()],
    );
    check(
        doc! {"properties": {"a": {"bsonType": "int"}}},
        &[doc! {}],
        &[],
    );
}

#[test]
fn numbers_and_strings() {
    property(
        doc! {"minimum": 1},
        &[1.into(), "x".into()],
        &[0.into(), f64::NAN.into()],
    );
    property(
        doc! {"minimum": 1, "exclusiveMinimum": true},
        &[2.into()],
        &[1.into()],
    );
    property(
        doc! {"maximum": 1},
        &[1.into()],
        &[1.1.into(), f64::NAN.into()],
    );
    property(
        doc! {"maximum": 1, "exclusiveMaximum": true},
        &[0.into()],
        &[1.into()],
    );
    property(
        doc! {"multipleOf": 3},
        &[9.into(), 0.into()],
        &[10.into(), 9.5.into()],
    );
    property(
        doc! {"minLength": 2},
        &["\u{e4}\u{e4}".into(), 1.into()],
        &["x".into()],
    );
    property(doc! {"maxLength": 1}, &["\u{e4}".into()], &["xy".into()]);
    property(doc! {"pattern": "^a.c"}, &["abcd".into()], &["xabc".into()]);
}

#[test]
fn arrays() {
    property(
        doc! {"items": {"minimum": 1}},
        &[ints(&[1, 2])],
        &[ints(&[1, 0])],
    );
    let pair = doc! {"items": [{"minimum": 1}, {"maximum": 0}], "additionalItems": false};
    property(
        pair,
        &[ints(&[1, 0]), ints(&[1])],
        &[ints(&[1, 1]), ints(&[1, 0, 0])],
    );
    let rest = doc! {"items": [{}], "additionalItems": {"minimum": 5}};
    property(rest, &[ints(&[1, 5])], &[ints(&[1, 4])]);
    property(
        doc! {"minItems": 1, "maxItems": 2},
        &[ints(&[1])],
        &[ints(&[]), ints(&[1, 2, 3])],
    );
    let twice = Bson::Array(vec![Bson::Int32(1), Bson::Double(1.0)]);
    property(doc! {"uniqueItems": true}, &[ints(&[1, 2])], &[twice]);
}

#[test]
fn documents() {
    check(
        doc! {"required": ["a", "b"]},
        &[doc! {"a": 1, "b": 1}],
        &[doc! {"a": 1}],
    );
    check(
        doc! {"minProperties": 2},
        &[doc! {"a": 1, "b": 1}],
        &[doc! {"a": 1}],
    );
    check(
        doc! {"maxProperties": 1},
        &[doc! {"a": 1}],
        &[doc! {"a": 1, "b": 1}],
    );
    let closed = doc! {
        "properties": {"a": {}}, "patternProperties": {"^x": {"bsonType": "int"}},
        "additionalProperties": false,
    };
    check(
        closed,
        &[doc! {"a": 1, "xy": 1}],
        &[doc! {"b": 1}, doc! {"xy": "s"}],
    );
    let open = doc! {"properties": {"a": {}}, "additionalProperties": {"bsonType": "int"}};
    check(open, &[doc! {"a": "s", "b": 1}], &[doc! {"b": "s"}]);
    let depends = doc! {"dependencies": {"a": ["b"]}};
    check(
        depends,
        &[doc! {"a": 1, "b": 1}, doc! {"c": 1}],
        &[doc! {"a": 1}],
    );
    let depends = doc! {"dependencies": {"a": {"required": ["b"]}}};
    check(depends, &[doc! {"a": 1, "b": 1}], &[doc! {"a": 1}]);
}

#[test]
fn combinations() {
    property(
        doc! {"allOf": [{"minimum": 1}, {"maximum": 2}]},
        &[1.into()],
        &[3.into()],
    );
    property(
        doc! {"anyOf": [{"bsonType": "int"}, {"minLength": 1}]},
        &[1.into()],
        &["".into()],
    );
    property(
        doc! {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
        &[1.into()],
        &[2.into(), 0.into()],
    );
    property(
        doc! {"not": {"bsonType": "int"}},
        &["x".into()],
        &[1.into()],
    );
}

#[test]
fn what_is_no_schema_is_refused() {
    for (schema, code) in [
        (doc! {"foo": 1}, 9),
        (doc! {"$ref": "x"}, 9),
        (doc! {"type": "integer"}, 2),
        (doc! {"type": "foo"}, 2),
        (doc! {"bsonType": 1}, 14),
        (doc! {"type": "string", "bsonType": "string"}, 9),
        (doc! {"minimum": "x"}, 14),
        (doc! {"exclusiveMinimum": true}, 9),
        (doc! {"minimum": 1, "exclusiveMinimum": 2}, 14),
        (doc! {"minLength": -1}, 9),
        (doc! {"minLength": 1.5}, 9),
        (doc! {"multipleOf": 0}, 9),
        (doc! {"required": []}, 2),
        (doc! {"required": ["a", "a"]}, 9),
        (doc! {"required": [1]}, 14),
        (doc! {"properties": 1}, 14),
        (doc! {"properties": {"a": 1}}, 14),
        (doc! {"enum": []}, 9),
        (doc! {"enum": [1, 1.0]}, 9),
        (doc! {"allOf": []}, 2),
        (doc! {"pattern": "("}, 51091),
        (doc! {"title": 1}, 14),
        (doc! {"additionalProperties": 1}, 14),
    ] {
        let error = Schema::parse(&schema).unwrap_err();
        assert_eq!(error.code.0, code, "{schema}: {error}");
    }
    let mut deep = doc! {};
    for _ in 0..150 {
        deep = doc! {"not": deep};
    }
    assert_eq!(Schema::parse(&deep).unwrap_err().code.0, 2);
}

#[test]
fn failures_are_explained_as_in_the_manual() {
    let schema = doc! {
        "title": "Students",
        "required": ["name", "year"],
        "properties": {"year": {"bsonType": "int", "minimum": 2017, "description": "the year"}},
    };
    let parsed = Schema::parse(&schema).unwrap();
    let details = parsed.explain(&raw(&doc! {"year": 2016})).unwrap();
    let expected = doc! {
        "operatorName": "$jsonSchema",
        "title": "Students",
        "schemaRulesNotSatisfied": [
            {
                "operatorName": "required",
                "specifiedAs": {"required": ["name", "year"]},
                "missingProperties": ["name"],
            },
            {
                "operatorName": "properties",
                "propertiesNotSatisfied": [{
                    "propertyName": "year",
                    "description": "the year",
                    "details": [{
                        "operatorName": "minimum",
                        "specifiedAs": {"minimum": 2017},
                        "reason": "comparison failed",
                        "consideredValue": 2016,
                    }],
                }],
            },
        ],
    };
    assert_eq!(details, expected);
}

#[test]
fn the_order_of_fields_does_not_make_values_different() {
    let one = bson::bson!({"x": 1, "y": [{"p": 1, "q": 2}]});
    let other = bson::bson!({"y": [{"q": 2.0, "p": 1}], "x": 1});
    let third = bson::bson!({"x": 1, "y": [{"q": 2, "p": 3}]});
    property(
        doc! {"uniqueItems": true},
        &[bson::bson!([one.clone(), third.clone()])],
        &[bson::bson!([one.clone(), other.clone()])],
    );
    property(
        doc! {"enum": [one.clone(), 5]},
        &[one.clone(), other.clone(), Bson::Int64(5)],
        &[third],
    );
    let error = Schema::parse(&doc! {"enum": [one, other]}).unwrap_err();
    assert_eq!(error.code, crate::Code(9));
}

#[test]
fn nan_is_within_no_bounds_but_itself() {
    let nan = || Bson::Double(f64::NAN);
    for bound in ["minimum", "maximum"] {
        property(doc! {bound: nan()}, &[nan()], &[5.into(), (-5).into()]);
        property(doc! {bound: 5}, &[5.into()], &[nan()]);
        let exclusive = match bound {
            "minimum" => "exclusiveMinimum",
            _ => "exclusiveMaximum",
        };
        let schema = doc! {bound: nan(), exclusive: true};
        property(schema, &["text".into()], &[nan(), 5.into()]);
    }
}

#[test]
fn the_copies_of_nested_schemas_are_charged() {
    let mut schema = doc! {"description": "x".repeat(10_000)};
    for _ in 0..20 {
        schema = doc! {"properties": {"a": schema}};
    }
    let parse = |limit| {
        let _meter = crate::meter::Meter::default().with_limit(limit).enter();
        Schema::parse(&schema).map(|_| ())
    };
    assert_eq!(parse(1 << 20), Ok(()));
    let error = parse(100_000).unwrap_err();
    assert_eq!(error.code, crate::Code::EXCEEDED_MEMORY_LIMIT, "{error}");
}

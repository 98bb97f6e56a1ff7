//! Filters on known documents, and filters that are refused.

use bson::{Bson, Document, RawDocumentBuf, doc};

use super::{Details, Filter};
use crate::collation::Collation;
use crate::collation::Collator;
use crate::settings::Settings;
use crate::{Error, Result};

mod naive;
mod random;

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn parse(filter: &Document) -> Result<Filter> {
    Filter::parse(&raw(filter), &Settings::default())
}

/// Checks that the filter matches the documents `yes` and does not match the documents `no`.
fn check(filter: Document, yes: &[Document], no: &[Document]) {
    let parsed = parse(&filter).unwrap();
    for document in yes {
        assert!(
            parsed.matches(&raw(document)).unwrap(),
            "{filter} on {document}"
        );
    }
    for document in no {
        assert!(
            !parsed.matches(&raw(document)).unwrap(),
            "{filter} on {document}"
        );
    }
}

fn refused(filter: &Document) -> Error {
    match parse(filter) {
        Err(error) => error,
        Ok(_) => panic!("{filter} was accepted"),
    }
}

#[test]
fn equality_and_null() {
    check(doc! {}, &[doc! {}], &[]);
    check(
        doc! {"a": 1},
        &[doc! {"a": 1.0}, doc! {"a": [3, 1]}],
        &[doc! {"a": 2}, doc! {}],
    );
    check(
        doc! {"a": [1, 2]},
        &[doc! {"a": [1, 2]}, doc! {"a": [[1, 2]]}],
        &[doc! {"a": 1}],
    );
    check(
        doc! {"a": {"b": 1}},
        &[doc! {"a": {"b": 1}}],
        &[doc! {"a": {"b": 1, "c": 1}}],
    );
    let undefined = doc! {"a": Bson::Undefined};
    check(
        doc! {"a": Bson::Null},
        &[doc! {"a": Bson::Null}, doc! {}],
        &[doc! {"a": 0}, undefined],
    );
    check(
        doc! {"a.b": Bson::Null},
        &[doc! {"a": 1}, doc! {"a": [{}]}],
        &[doc! {"a": [1]}],
    );
    check(
        doc! {"a": {"$ne": Bson::Null}},
        &[doc! {"a": 1}],
        &[doc! {}],
    );
    check(
        doc! {"a": {"$ref": "x", "$id": 1}},
        &[doc! {"a": {"$ref": "x", "$id": 1}}],
        &[],
    );
}

#[test]
fn comparisons_keep_to_their_type() {
    check(
        doc! {"a": {"$gt": 5}},
        &[doc! {"a": 6_i64}],
        &[doc! {"a": 5}, doc! {"a": "x"}, doc! {}],
    );
    check(
        doc! {"a": {"$lt": "b"}},
        &[doc! {"a": "a"}],
        &[doc! {"a": 5}],
    );
    check(
        doc! {"a": {"$gt": 1, "$lt": 3}},
        &[doc! {"a": 2}, doc! {"a": [0, 9]}],
        &[doc! {"a": 3}],
    );
    check(
        doc! {"a": {"$gte": Bson::Null}},
        &[doc! {}, doc! {"a": Bson::Null}],
        &[doc! {"a": 1}],
    );
    check(
        doc! {"a": {"$gt": Bson::Null}},
        &[],
        &[doc! {}, doc! {"a": Bson::Null}],
    );
    check(
        doc! {"a": {"$gt": Bson::MinKey}},
        &[doc! {"a": 1}, doc! {}],
        &[doc! {"a": Bson::MinKey}],
    );
    check(
        doc! {"a": {"$lt": Bson::MaxKey}},
        &[doc! {"a": "x"}],
        &[doc! {"a": Bson::MaxKey}],
    );
    let nan = f64::NAN;
    check(doc! {"a": {"$lt": 5}}, &[], &[doc! {"a": nan}]);
    check(
        doc! {"a": {"$gte": nan}},
        &[doc! {"a": nan}],
        &[doc! {"a": 5}],
    );
    check(
        doc! {"a": {"$gt": [1]}},
        &[doc! {"a": [2]}],
        &[doc! {"a": [1]}, doc! {"a": 2}],
    );
}

#[test]
fn lists() {
    let list = doc! {"a": {"$in": [1, "x", Bson::Null]}};
    check(
        list,
        &[doc! {"a": 1.0}, doc! {"a": ["x"]}, doc! {}],
        &[doc! {"a": 2}],
    );
    check(doc! {"a": {"$in": []}}, &[], &[doc! {}, doc! {"a": 1}]);
    let decimal: bson::Decimal128 = "-3".parse().unwrap();
    check(
        doc! {"a": {"$in": [7, i64::MAX, -3, 1_i64 << 53, i64::MIN, 7_i64]}},
        &[
            doc! {"a": -3_i64},
            doc! {"a": -3.0},
            doc! {"a": decimal},
            doc! {"a": [1, [2], 7]},
            doc! {"a": i64::MAX},
            doc! {"a": i64::MIN},
            doc! {"a": 9_007_199_254_740_992.0},
        ],
        &[
            doc! {},
            doc! {"a": -4},
            doc! {"a": 7.5},
            doc! {"a": "7"},
            doc! {"a": [[7]]},
            doc! {"a": (1_i64 << 53) + 1},
            doc! {"a": 9_223_372_036_854_775_807.0},
        ],
    );
    check(
        doc! {"a": {"$nin": [1]}},
        &[doc! {}, doc! {"a": [2]}],
        &[doc! {"a": [2, 1]}],
    );
    let regex = Bson::RegularExpression(bson::Regex {
        pattern: "^x".to_owned().try_into().unwrap(),
        options: "i".to_owned().try_into().unwrap(),
    });
    check(
        doc! {"a": {"$in": [regex.clone()]}},
        &[doc! {"a": "Xy"}],
        &[doc! {"a": "yx"}],
    );
    check(
        doc! {"a": regex.clone()},
        &[doc! {"a": "xy"}, doc! {"a": regex}],
        &[doc! {"a": 1}],
    );
    check(
        doc! {"a": {"$all": [1, 2]}},
        &[doc! {"a": [2, 1, 0]}],
        &[doc! {"a": [1]}, doc! {"a": 1}],
    );
    check(doc! {"a": {"$all": [1]}}, &[doc! {"a": 1}], &[]);
    check(doc! {"a": {"$all": []}}, &[], &[doc! {"a": []}]);
    check(
        doc! {"a": {"$all": [[1]]}},
        &[doc! {"a": [1]}, doc! {"a": [[1]]}],
        &[doc! {"a": 1}],
    );
    let all = doc! {"a": {"$all": [{"$elemMatch": {"x": 1}}, {"$elemMatch": {"x": 2}}]}};
    check(
        all,
        &[doc! {"a": [{"x": 1}, {"x": 2}]}],
        &[doc! {"a": [{"x": 1}]}],
    );
}

#[test]
fn logic() {
    check(
        doc! {"$or": [{"a": 1}, {"b": 1}]},
        &[doc! {"b": 1}],
        &[doc! {"c": 1}],
    );
    check(
        doc! {"$nor": [{"a": 1}, {"b": 1}]},
        &[doc! {"c": 1}],
        &[doc! {"b": 1}],
    );
    check(
        doc! {"$and": [{"a": 1}, {"b": 1}]},
        &[doc! {"a": 1, "b": 1}],
        &[doc! {"b": 1}],
    );
    check(
        doc! {"a": {"$not": {"$gt": 5}}},
        &[doc! {"a": 5}, doc! {}],
        &[doc! {"a": [1, 6]}],
    );
    let between = doc! {"a": {"$not": {"$gt": 5, "$lt": 9}}};
    check(
        between,
        &[doc! {"a": 5}],
        &[doc! {"a": 6}, doc! {"a": [4, 10]}],
    );
    check(doc! {"$comment": "x", "a": 1}, &[doc! {"a": 1}], &[doc! {}]);
    check(doc! {"$alwaysFalse": 1}, &[], &[doc! {}]);
}

#[test]
fn elements() {
    let object = doc! {"a": {"$elemMatch": {"x": 1, "y": {"$gt": 1}}}};
    let apart = doc! {"a": [{"x": 1, "y": 1}, {"x": 2, "y": 2}]};
    check(
        object,
        &[doc! {"a": [{"x": 1, "y": 2}]}],
        &[apart, doc! {"a": {"x": 1, "y": 2}}],
    );
    let value = doc! {"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}};
    check(
        value,
        &[doc! {"a": [0, 2]}],
        &[doc! {"a": [0, 9]}, doc! {"a": 2}],
    );
    let nested = doc! {"a": {"$elemMatch": {"$elemMatch": {"$eq": 1}}}};
    check(nested, &[doc! {"a": [[1]]}], &[doc! {"a": [1]}]);
    let or = doc! {"a": {"$elemMatch": {"$or": [{"x": 1}, {"x": 2}]}}};
    check(or, &[doc! {"a": [{"x": 2}]}], &[doc! {"a": [{"x": 3}]}]);
    check(
        doc! {"a": {"$elemMatch": {"$not": {"$gt": 1}}}},
        &[doc! {"a": [1]}],
        &[doc! {"a": [2]}],
    );
    check(
        doc! {"a": {"$elemMatch": {"0": 1}}},
        &[doc! {"a": [[1]]}],
        &[doc! {"a": [[2]]}],
    );
    check(
        doc! {"a": {"$size": 2}},
        &[doc! {"a": [1, 2]}],
        &[doc! {"a": [1]}, doc! {"a": 2}],
    );
    check(
        doc! {"a.b": {"$size": 0}},
        &[doc! {"a": [{"b": []}]}],
        &[doc! {"a": []}],
    );
}

#[test]
fn types_bits_and_remainders() {
    check(
        doc! {"a": {"$exists": true}},
        &[doc! {"a": Bson::Null}, doc! {"a": []}],
        &[doc! {}],
    );
    check(
        doc! {"a.b": {"$exists": 0}},
        &[doc! {}, doc! {"a": [1]}],
        &[doc! {"a": {"b": 1}}],
    );
    check(
        doc! {"a": {"$type": "array"}},
        &[doc! {"a": []}],
        &[doc! {"a": 1}, doc! {}],
    );
    check(
        doc! {"a": {"$type": ["string", 16]}},
        &[doc! {"a": 1}, doc! {"a": ["x"]}],
        &[doc! {}],
    );
    check(
        doc! {"a": {"$type": "number"}},
        &[doc! {"a": 1.5}],
        &[doc! {"a": "1"}],
    );
    check(
        doc! {"a": {"$mod": [4, 1]}},
        &[doc! {"a": 5.9}, doc! {"a": [2, 9]}],
        &[doc! {"a": 4}],
    );
    check(
        doc! {"a": {"$mod": [4, -1]}},
        &[doc! {"a": -5}],
        &[doc! {"a": f64::NAN}],
    );
    check(
        doc! {"a": {"$bitsAllSet": [0, 2]}},
        &[doc! {"a": 5}, doc! {"a": 7.0}],
        &[doc! {"a": 4}],
    );
    check(
        doc! {"a": {"$bitsAnyClear": 6}},
        &[doc! {"a": 4}],
        &[doc! {"a": 6}, doc! {"a": 6.5}],
    );
    check(
        doc! {"a": {"$bitsAllSet": [200]}},
        &[doc! {"a": -1}],
        &[doc! {"a": 1}],
    );
    let bytes = Bson::Binary(bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: vec![0, 1],
    });
    check(
        doc! {"a": {"$bitsAnySet": [8]}},
        &[doc! {"a": bytes.clone()}],
        &[doc! {"a": 1}],
    );
    check(
        doc! {"a": {"$bitsAllClear": bytes}},
        &[doc! {"a": 255}],
        &[doc! {"a": 256}],
    );
}

#[test]
fn patterns() {
    check(
        doc! {"a": {"$regex": "^x", "$options": "i"}},
        &[doc! {"a": "Xy"}],
        &[doc! {"a": "y"}],
    );
    check(
        doc! {"a": {"$options": "i", "$regex": "^x"}},
        &[doc! {"a": "Xy"}],
        &[],
    );
    check(
        doc! {"a": {"$not": {"$regex": "x"}}},
        &[doc! {}, doc! {"a": 1}],
        &[doc! {"a": "x"}],
    );
}

#[test]
fn strings_compare_by_collation() {
    let mut collation = Collation::of_locale("en");
    collation.strength = 2;
    let settings = Settings {
        collator: Some(std::sync::Arc::new(Collator::new(collation).unwrap())),
        ..Settings::default()
    };
    for filter in [
        doc! {"a": "ABC"},
        doc! {"a": {"$in": ["x", "ABC"]}},
        doc! {"a": {"$gte": "ABC"}},
        doc! {"a": {"$elemMatch": {"$eq": "ABC"}}},
    ] {
        let filter = Filter::parse(&raw(&filter), &settings).unwrap();
        assert!(filter.matches(&raw(&doc! {"a": ["abc"]})).unwrap());
        assert!(!filter.matches(&raw(&doc! {"a": ["abb"]})).unwrap());
    }
}

#[test]
fn the_position_is_that_of_the_outermost_array() {
    for (filter, document, expected) in [
        (doc! {"a": 5}, doc! {"a": [3, 5]}, Some(1)),
        (
            doc! {"a.b": 2},
            doc! {"a": [{"b": [1]}, {"b": [0, 2]}]},
            Some(1),
        ),
        (
            doc! {"a": {"$elemMatch": {"b": 1}}},
            doc! {"a": [0, {"b": 1}]},
            Some(1),
        ),
        (
            doc! {"a": 5, "b": {"$gt": 1}},
            doc! {"a": 5, "b": [0, 0, 2]},
            Some(2),
        ),
        (doc! {"a": {"$size": 1}}, doc! {"a": [1]}, None),
        (doc! {"a": {"$ne": 5}}, doc! {"a": [1]}, None),
        (doc! {"a.1": 5}, doc! {"a": [3, 5]}, None),
        (
            doc! {"$or": [{"a": 9}, {"a": 5}]},
            doc! {"a": [3, 5]},
            Some(1),
        ),
    ] {
        let mut details = Details::default();
        let matched = parse(&filter)
            .unwrap()
            .matches_at(&raw(&document), &mut details);
        assert!(matched.unwrap(), "{filter}");
        assert_eq!(details.array_index, expected, "{filter}");
    }
}

#[test]
fn what_is_no_filter_is_refused() {
    for (filter, code) in [
        (doc! {"$foo": 1}, 2),
        (doc! {"a": {"$foo": 1}}, 2),
        (doc! {"a": {"$gt": 1, "b": 2}}, 2),
        (doc! {"$and": []}, 2),
        (doc! {"$or": 1}, 2),
        (doc! {"$or": [1]}, 2),
        (doc! {"a": {"$in": 1}}, 2),
        (doc! {"a": {"$in": [{"$gt": 1}]}}, 2),
        (doc! {"a": {"$not": 1}}, 2),
        (doc! {"a": {"$not": {}}}, 2),
        (doc! {"a": {"$size": -1}}, 2),
        (doc! {"a": {"$size": 1.5}}, 2),
        (doc! {"a": {"$mod": [0, 1]}}, 2),
        (doc! {"a": {"$mod": [1]}}, 2),
        (doc! {"a": {"$mod": [f64::NAN, 1]}}, 2),
        (doc! {"a": {"$type": "foo"}}, 2),
        (doc! {"a": {"$type": 99}}, 2),
        (doc! {"a": {"$type": Bson::Null}}, 14),
        (doc! {"a": {"$type": []}}, 9),
        (doc! {"a": {"$regex": 1}}, 2),
        (doc! {"a": {"$regex": "("}}, 51091),
        (doc! {"a": {"$options": "i"}}, 2),
        (doc! {"a": {"$all": 1}}, 2),
        (doc! {"a": {"$all": [1, {"$elemMatch": {"x": 1}}]}}, 2),
        (doc! {"a": {"$elemMatch": 1}}, 2),
        (doc! {"a": {"$elemMatch": {"$expr": 1}}}, 2),
        (doc! {"a": {"$bitsAllSet": "x"}}, 2),
        (doc! {"a": {"$bitsAllSet": [-1]}}, 2),
        (doc! {"a": {"$bitsAllSet": -1}}, 9),
        (doc! {"a": Bson::Undefined}, 2),
        (doc! {"$where": "1"}, 2),
        (doc! {"$text": {"$search": "x"}}, 27),
        (doc! {"a": {"$near": [0, 0]}}, 291),
    ] {
        let error = refused(&filter);
        assert_eq!(error.code.0, code, "{filter}: {error}");
    }
}

#[test]
fn deep_filters_are_refused_and_do_not_overflow() {
    let mut filter = doc! {"a": 1};
    for _ in 0..150 {
        filter = doc! {"$and": [filter]};
    }
    assert_eq!(refused(&filter).code.0, 2);
}

#[test]
fn the_normal_form_means_the_same() {
    let filter = doc! {"a": {"$gt": 1, "$nin": [3]}, "$or": [{"b": "x"}, {"c": {"$size": 2}}]};
    let expected = doc! {"$and": [
        {"a": {"$gt": 1}},
        {"a": {"$not": {"$in": [3]}}},
        {"$or": [{"b": {"$eq": "x"}}, {"c": {"$size": 2_i64}}]},
    ]};
    assert_eq!(parse(&filter).unwrap().to_document(), expected);
    assert_eq!(parse(&expected).unwrap().to_document(), expected);
}

#[test]
fn a_filter_is_shown_where_it_fits() {
    let filter = parse(&doc! {
        "a": {"$gt": 1, "$nin": [3, "x"], "$regex": "a.*b", "$options": "i"},
        "$or": [{"b": "x"}, {"c": {"$elemMatch": {"d": {"$bitsAllSet": [1, 50]}}}}],
        "$expr": {"$gt": ["$a", "$b"]},
        "$jsonSchema": {"required": ["a"]},
    });
    let filter = filter.unwrap();
    let (mut left, whole) = (usize::MAX, filter.to_document());
    assert_eq!(filter.to_document_within(&mut left), Some(whole.clone()));
    let bytes = usize::MAX - left;
    assert!(crate::meter::document_size(&whole) <= bytes, "R1: {bytes}");
    for less in 0..bytes {
        let mut left = less;
        assert_eq!(filter.to_document_within(&mut left), None, "R1: {less}");
    }
    assert_eq!(filter.to_document_within(&mut { bytes }), Some(whole));
}

#[test]
fn failures_are_explained() {
    let why = |filter: &Document, document: &Document| {
        parse(filter)
            .unwrap()
            .explain_failure(&raw(document))
            .unwrap()
    };
    let filter = doc! {"a": {"$gt": 5}};
    let expected = doc! {
        "operatorName": "$gt", "specifiedAs": {"a": {"$gt": 5}},
        "reason": "comparison failed", "consideredValue": 3,
    };
    assert_eq!(why(&filter, &doc! {"a": 3}), expected);
    let expected = doc! {
        "operatorName": "$gt", "specifiedAs": {"a": {"$gt": 5}}, "reason": "field was missing",
    };
    assert_eq!(why(&filter, &doc! {}), expected);
    let filter = doc! {"$and": [{"a": 1}, {"b": {"$exists": true}}]};
    let expected = doc! {
        "operatorName": "$and",
        "clausesNotSatisfied": [{"index": 1, "details": {
            "operatorName": "$exists", "specifiedAs": {"b": {"$exists": true}},
            "reason": "path does not exist",
        }}],
    };
    assert_eq!(why(&filter, &doc! {"a": 1}), expected);
    let expected = doc! {
        "operatorName": "$nin", "specifiedAs": {"a": {"$nin": [1]}},
        "reason": "matching value found in array", "consideredValue": 1,
    };
    assert_eq!(why(&doc! {"a": {"$nin": [1]}}, &doc! {"a": 1}), expected);
    let schema = doc! {"$jsonSchema": {"required": ["x"]}};
    let details = why(&schema, &doc! {"a": 1});
    assert_eq!(details.get_str("operatorName").unwrap(), "$jsonSchema");
}

#[test]
fn expressions_in_filters() {
    check(
        doc! {"$expr": {"$gt": ["$a", "$b"]}},
        &[doc! {"a": 2, "b": 1}],
        &[doc! {"a": 1, "b": 1}],
    );
}

#[test]
fn samples_take_their_share() {
    let document = RawDocumentBuf::try_from(&doc! {"a": 1}).unwrap();
    let share = |rate: Bson| {
        let filter = RawDocumentBuf::try_from(&doc! {"a": 1, "$sampleRate": rate}).unwrap();
        let filter = Filter::parse(&filter, &Settings::default()).unwrap();
        (0..1000)
            .filter(|_| filter.matches(&document).unwrap())
            .count()
    };
    assert_eq!(share(0.into()), 0);
    assert_eq!(share(1.0.into()), 1000);
    // With probability 1/2, the count is within 10 standard deviations of 500.
    let half = share(0.5.into());
    assert!((340..660).contains(&half), "{half}");
    for bad in [
        Bson::Double(1.1),
        Bson::Int32(-1),
        Bson::Double(f64::NAN),
        "x".into(),
    ] {
        let filter = RawDocumentBuf::try_from(&doc! {"$sampleRate": bad}).unwrap();
        assert!(Filter::parse(&filter, &Settings::default()).is_err());
    }
}

#[test]
fn fields_of_references_are_compared_without_a_path() {
    let reference = |id: i32, db: &str| doc! {"$ref": "c", "$id": id, "$db": db};
    let list = |reference: Document| doc! {"a": [reference]};
    let (one, two) = (reference(1, "x"), reference(2, "y"));
    for (condition, finds_one) in [
        (doc! {"$id": 1}, true),
        (doc! {"$db": "y"}, false),
        (doc! {"$ref": "c", "$id": 2}, false),
        (doc! {"$id": 1, "$db": "x"}, true),
        (doc! {"$or": [{"$id": 1}, {"$db": "z"}]}, true),
    ] {
        let (yes, no) = match finds_one {
            true => (list(one.clone()), list(two.clone())),
            false => (list(two.clone()), list(one.clone())),
        };
        check(doc! {"a": {"$elemMatch": condition}}, &[yes], &[no]);
    }
    check(doc! {"$id": 1}, &[doc! {"$id": 1}], &[doc! {"$id": 2}]);
    // The operand is compared as a value, even if it looks like operators.
    check(
        doc! {"$id": {"$gt": 0}},
        &[doc! {"$id": {"$gt": 0}}],
        &[doc! {"$id": 1}],
    );
}

#[test]
fn a_reference_has_a_collection_and_an_id() {
    for (filter, name) in [
        (doc! {"a": {"$ref": "c"}}, "$ref"),
        (doc! {"a": {"$id": 1}}, "$id"),
        (doc! {"a": {"$db": "d"}}, "$db"),
    ] {
        let error = refused(&filter);
        assert_eq!(error.code.0, 2, "{filter}");
        assert_eq!(error.message, format!("unknown operator: {name}"));
    }
    let reference = doc! {"$ref": "c", "$id": 1};
    let matching = doc! {"a": reference.clone()};
    for operator in ["$in", "$all"] {
        let filter = doc! {"a": {operator: [reference.clone()]}};
        check(filter, std::slice::from_ref(&matching), &[doc! {"a": 1}]);
        refused(&doc! {"a": {operator: [{"$ref": "c"}]}});
    }
    check(doc! {"a": {"$id": 1, "$ref": "c"}}, &[], &[matching]);
}

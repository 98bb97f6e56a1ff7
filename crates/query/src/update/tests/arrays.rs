//! Array operators, and which elements they change.

use bson::rawdoc;

use super::*;

#[test]
fn push_inserts_sorts_and_cuts() {
    check(bson!({"$push": {"a": 1}}), doc! {}, doc! {"a": [1]});
    check(
        bson!({"$push": {"a": [1]}}),
        doc! {"a": [0]},
        doc! {"a": [0, [1]]},
    );
    check(
        bson!({"$push": {"a": {"$each": [3, 4]}}}),
        doc! {"a": [1]},
        doc! {"a": [1, 3, 4]},
    );
    check(
        bson!({"$push": {"a": {"$each": [9], "$position": 1}}}),
        doc! {"a": [1, 2]},
        doc! {"a": [1, 9, 2]},
    );
    check(
        bson!({"$push": {"a": {"$each": [9], "$position": -1}}}),
        doc! {"a": [1, 2]},
        doc! {"a": [1, 9, 2]},
    );
    check(
        bson!({"$push": {"a": {"$each": [0], "$slice": -2}}}),
        doc! {"a": [1, 2]},
        doc! {"a": [2, 0]},
    );
    check(
        bson!({"$push": {"a": {"$each": [0], "$sort": 1, "$slice": 2}}}),
        doc! {"a": [2, 1]},
        doc! {"a": [0, 1]},
    );
    check(
        bson!({"$push": {"a": {"$each": [{"x": 1, "y": 2}], "$sort": {"x": 1, "y": -1}}}}),
        doc! {"a": [{"x": 2}, {"x": 1, "y": 1}, 5]},
        doc! {"a": [5, {"x": 1, "y": 2}, {"x": 1, "y": 1}, {"x": 2}]},
    );
    check(
        bson!({"$push": {"a": {"$each": []}}}),
        doc! {},
        doc! {"a": []},
    );
    unchanged(bson!({"$push": {"a": {"$each": []}}}), doc! {"a": [1]});
    fails(
        bson!({"$push": {"a": 1}}),
        doc! {"_id": 1, "a": 2},
        2,
        "The field 'a' must be an array but is of type int in document {_id: 1}",
    );
    fails(
        bson!({"$push": {"a": {"$each": 1}}}),
        doc! {},
        2,
        "must be an array but it was of type: int",
    );
    fails(
        bson!({"$push": {"a": {"$each": [], "$x": 1}}}),
        doc! {},
        2,
        "Unrecognized clause in $push: $x",
    );
    fails(
        bson!({"$push": {"a": {"$each": [], "$sort": 2}}}),
        doc! {},
        2,
        "either 1 or -1",
    );
    fails(
        bson!({"$push": {"a": {"$each": [], "$slice": "x"}}}),
        doc! {},
        2,
        "$slice must be an integer",
    );
}

#[test]
fn sets_grow_by_what_is_new() {
    check(
        bson!({"$addToSet": {"a": 2}}),
        doc! {"a": [1]},
        doc! {"a": [1, 2]},
    );
    unchanged(bson!({"$addToSet": {"a": 1.0}}), doc! {"a": [1]});
    check(
        bson!({"$addToSet": {"a": {"$each": [1, 3, 3]}}}),
        doc! {"a": [1]},
        doc! {"a": [1, 3]},
    );
    check(
        bson!({"$addToSet": {"a": {"$each": []}}}),
        doc! {},
        doc! {"a": []},
    );
    fails(
        bson!({"$addToSet": {"a": 1}}),
        doc! {"a": 5},
        2,
        "non-array type int",
    );
    fails(
        bson!({"$addToSet": {"a": {"$each": 1}}}),
        doc! {},
        14,
        "must be an array",
    );
}

#[test]
fn operators_that_create_nothing_want_a_path_that_could_be_created() {
    for (operator, operand) in [
        ("$pop", bson!(1)),
        ("$pull", bson!(1)),
        ("$pullAll", bson!([1])),
    ] {
        let update = |path: &str| bson!({ operator: { path: operand.clone() } });
        for document in [doc! {"a": 5}, doc! {"a": [1, {"b": [1]}]}] {
            fails(
                update("a.b"),
                document.clone(),
                28,
                "Cannot use the part (b) of (a.b) to",
            );
            unchanged(bson!({"$unset": {"a.b": ""}}), document);
        }
        unchanged(update("a.b"), doc! {"a": {}});
        unchanged(update("a.b.c"), doc! {});
        unchanged(update("a.7"), doc! {"a": [1]});
        fails(
            update("a.0.b"),
            doc! {"a": [1]},
            28,
            "to traverse the element ({0: 1})",
        );
    }
}

#[test]
fn elements_leave_arrays() {
    check(
        bson!({"$pop": {"a": 1}}),
        doc! {"a": [1, 2]},
        doc! {"a": [1]},
    );
    check(
        bson!({"$pop": {"a": -1}}),
        doc! {"a": [1, 2]},
        doc! {"a": [2]},
    );
    unchanged(bson!({"$pop": {"a": 1}}), doc! {"a": []});
    unchanged(bson!({"$pop": {"a": 1}}), doc! {});
    fails(
        bson!({"$pop": {"a": 2}}),
        doc! {},
        9,
        "$pop expects 1 or -1, found: 2",
    );
    fails(
        bson!({"$pop": {"a": 1}}),
        doc! {"a": 1},
        14,
        "non-array type 'int'",
    );
    check(
        bson!({"$pull": {"a": 1}}),
        doc! {"a": [1, 2, 1.0]},
        doc! {"a": [2]},
    );
    check(
        bson!({"$pull": {"a": {"$gte": 2}}}),
        doc! {"a": [1, 2, 3]},
        doc! {"a": [1]},
    );
    check(
        bson!({"$pull": {"a": {"$in": [1, 3]}}}),
        doc! {"a": [1, 2, 3]},
        doc! {"a": [2]},
    );
    check(
        bson!({"$pull": {"a": {"x": 1}}}),
        doc! {"a": [{"x": 1, "y": 2}, {"x": 2}, 1]},
        doc! {"a": [{"x": 2}, 1]},
    );
    check(
        bson!({"$pull": {"a": {"$or": [{"x": 1}, {"x": 2}]}}}),
        doc! {"a": [{"x": 1}, {"x": 2}, {"x": 3}]},
        doc! {"a": [{"x": 3}]},
    );
    check(
        bson!({"$pull": {"a": (bson::Regex { pattern: cstr("^b"), options: cstr("") })}}),
        doc! {"a": ["abc", "bcd"]},
        doc! {"a": ["abc"]},
    );
    unchanged(bson!({"$pull": {"a": 9}}), doc! {"a": [1]});
    unchanged(bson!({"$pull": {"a": 9}}), doc! {});
    fails(
        bson!({"$pull": {"a": 9}}),
        doc! {"a": 9},
        2,
        "Cannot apply $pull to a non-array value",
    );
    check(
        bson!({"$pullAll": {"a": [1, 3]}}),
        doc! {"a": [1, 2, 3]},
        doc! {"a": [2]},
    );
    fails(
        bson!({"$pullAll": {"a": 1}}),
        doc! {},
        2,
        "$pullAll requires an array argument but was given a int",
    );
}

#[test]
fn the_positional_operator_is_the_matched_element() {
    let update = parse(&bson!({"$set": {"a.$.x": 1}}), &[]).unwrap();
    assert!(update.needs_match());
    let document = doc! {"a": [{}, {"x": 0}]};
    let position = at().with_array_index(Some(1));
    let found = update.apply(&document, &position).unwrap().unwrap();
    assert_eq!(found, doc! {"a": [{}, {"x": 1}]});
    let message = "The positional operator did not find the match needed from the query.";
    assert_eq!(
        update.apply(&document, &at()),
        Err(Error::bad_value(message))
    );
    let update = parse(&bson!({"$set": {"a.$": 1, "a.1": 2}}), &[]).unwrap();
    assert_eq!(
        update.apply(&document, &position).unwrap_err().code,
        Code(40)
    );
}

#[test]
fn array_filters_choose_elements() {
    let case = |update: Bson, filters: &[Document], document: Document| {
        parse(&update, filters)?.apply(&document, &at())
    };
    assert_eq!(
        case(bson!({"$inc": {"a.$[]": 1}}), &[], doc! {"a": [1, 2]}),
        Ok(Some(doc! {"a": [2, 3]}))
    );
    assert_eq!(
        case(
            bson!({"$set": {"a.$[i]": 0}}),
            &[doc! {"i": {"$gt": 1}}],
            doc! {"a": [1, 2]}
        ),
        Ok(Some(doc! {"a": [1, 0]}))
    );
    assert_eq!(
        case(
            bson!({"$set": {"a.$[i].b.$[j].c": 0}}),
            &[doc! {"i.k": 1}, doc! {"j.m": {"$lt": 3}}],
            doc! {"a": [{"k": 1, "b": [{"m": 2}, {"m": 4}]}, {"k": 2, "b": [{"m": 2}]}]},
        ),
        Ok(Some(
            doc! {"a": [{"k": 1, "b": [{"m": 2, "c": 0}, {"m": 4}]}, {"k": 2, "b": [{"m": 2}]}]}
        ))
    );
    assert_eq!(
        case(
            bson!({"$inc": {"a.$[].$[]": 1}}),
            &[],
            doc! {"a": [[1, 2], [3]]}
        ),
        Ok(Some(doc! {"a": [[2, 3], [4]]}))
    );
    let refused = |update: Bson, filters: &[Document], code: i32, message: &str| {
        let error = case(update, filters, doc! {"a": [1], "s": 1}).unwrap_err();
        assert_eq!(error.code, Code(code), "{error}");
        assert!(error.message.contains(message), "{error}");
    };
    let zero = bson!({"$set": {"a.$[i]": 0}});
    refused(
        zero.clone(),
        &[],
        2,
        "No array filter found for identifier 'i' in path 'a.$[i]'",
    );
    refused(
        zero.clone(),
        &[doc! {"i": 1}, doc! {"j": 1}],
        9,
        "identifier 'j' was not used",
    );
    refused(
        zero.clone(),
        &[doc! {"i": 1}, doc! {"i": 2}],
        9,
        "same top-level field name i",
    );
    refused(
        zero.clone(),
        &[doc! {}],
        9,
        "without a top-level field name",
    );
    refused(
        zero.clone(),
        &[doc! {"I": 1}],
        2,
        "beginning with a lowercase letter, found 'I'",
    );
    refused(zero, &[doc! {"i": 1, "j": 1}], 9, "found 'i' and 'j'");
    refused(
        bson!({"$set": {"s.$[]": 0}}),
        &[],
        2,
        "Cannot apply array updates to non-array element s: 1",
    );
    refused(
        bson!({"$set": {"x.$[]": 0}}),
        &[],
        2,
        "The path 'x' must exist in the document",
    );
    refused(
        bson!({"$set": {"a.$[]": 0, "a.$[i]": 1}}),
        &[doc! {"i": 1}],
        40,
        "would create a conflict at 'a.0'",
    );
}

fn cstr(text: &str) -> bson::raw::CString {
    text.to_owned().try_into().unwrap()
}

#[test]
fn push_sorts_by_whole_arrays_and_indexes() {
    let sorted = |by: Document, from: Bson, to: Bson| {
        check(
            bson!({"$push": {"a": {"$each": [], "$sort": by}}}),
            doc! {"a": from},
            doc! {"a": to},
        );
    };
    // An array is compared as a whole, not by its least element.
    sorted(
        doc! {"b": 1},
        bson!([{"b": [5, 0]}, {"b": [1, 9]}]),
        bson!([{"b": [1, 9]}, {"b": [5, 0]}]),
    );
    // Without an index in the path, the fields of an array's elements are not found.
    sorted(
        doc! {"b.c": 1},
        bson!([{"b": {"c": 0}}, {"b": [{"c": 2}]}, {"b": [{"c": 1}]}]),
        bson!([{"b": [{"c": 2}]}, {"b": [{"c": 1}]}, {"b": {"c": 0}}]),
    );
    sorted(
        doc! {"b.0.c": -1},
        bson!([{"b": [{"c": 1}]}, 7, {"b": [{"c": 2}]}]),
        bson!([{"b": [{"c": 2}]}, {"b": [{"c": 1}]}, 7]),
    );
}

#[test]
fn every_condition_of_pull_on_one_field_counts() {
    let both = |name: &str| {
        let mut tests = RawDocumentBuf::new();
        for test in [rawdoc! {"$gte": 2}, rawdoc! {"$lt": 4}] {
            tests.append(bson::raw::CString::try_from(name).unwrap(), test);
        }
        tests
    };
    let pulled = |condition: RawDocumentBuf, element: fn(i32) -> Bson| {
        let update = rawdoc! {"$set": {"b": 1}, "$pull": {"c": 1, "a": condition}};
        let spec = bson::RawBsonRef::Document(&update);
        let update = Update::parse(spec, &[], &Settings::default()).unwrap();
        let document = doc! {"a": (1..6).map(element).collect::<Vec<_>>()};
        let next = update.apply(&document, &at()).unwrap().unwrap();
        let kept = (1..6).filter(|n| !(2..4).contains(n)).map(element);
        assert_eq!(next.get_array("a").unwrap(), &kept.collect::<Vec<_>>());
    };
    pulled(both("x"), |n| bson!({"x": n}));
    pulled(
        rawdoc! {"x": {"$elemMatch": {"y": {"$gte": 2}, "z": {"$lt": 4}}}},
        |n| bson!({"x": [{"y": n, "z": n}]}),
    );
    let mut matched = RawDocumentBuf::new();
    matched.append(bson::raw::cstr!("$elemMatch"), both("y"));
    pulled(matched, |n| bson!([{"y": n}]));
}

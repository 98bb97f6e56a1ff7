//! Updates as a whole: which forms are accepted, pipelines, upserts, paths, invalid bytes.

use super::*;

#[test]
fn operators_are_known_and_apart() {
    fails(
        bson!({"$foo": {"a": 1}}),
        doc! {},
        9,
        "Unknown modifier: $foo. Expected",
    );
    fails(
        bson!({"$set": 5}),
        doc! {},
        9,
        "Modifiers operate on fields but we found type int instead",
    );
    let conflict = "Updating the path 'a' would create a conflict at 'a'";
    fails(
        bson!({"$set": {"a": 1}, "$inc": {"a": 1}}),
        doc! {},
        40,
        conflict,
    );
    let conflict = "Updating the path 'a.b' would create a conflict at 'a'";
    fails(
        bson!({"$set": {"a": 1}, "$inc": {"a.b": 1}}),
        doc! {},
        40,
        conflict,
    );
    let conflict = "Updating the path 'a' would create a conflict at 'a'";
    fails(
        bson!({"$set": {"a.b": 1}, "$inc": {"a": 1}}),
        doc! {},
        40,
        conflict,
    );
    fails(
        bson!({"$rename": {"a": "b"}, "$set": {"b": 1}}),
        doc! {},
        40,
        "at 'b'",
    );
    fails(
        bson!({"$set": {"": 1}}),
        doc! {},
        56,
        "An empty update path is not valid.",
    );
    fails(
        bson!({"$set": {"a..b": 1}}),
        doc! {},
        56,
        "contains an empty field name",
    );
    fails(
        bson!({"$set": {"$": 1}}),
        doc! {},
        2,
        "in the first position",
    );
    fails(
        bson!({"$set": {"a.$.b.$": 1}}),
        doc! {},
        2,
        "Too many positional",
    );
}

#[test]
fn pipelines_compute() {
    check(
        bson!([{"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}]),
        doc! {"_id": 1, "a": 1},
        doc! {"_id": 1, "b": 2},
    );
    check(
        bson!([{"$replaceWith": {"x": "$a"}}]),
        doc! {"_id": 1, "a": 1},
        doc! {"_id": 1, "x": 1},
    );
    check(
        bson!([{"$project": {"a": 1}}]),
        doc! {"_id": 1, "a": 1, "b": 2},
        doc! {"_id": 1, "a": 1},
    );
    unchanged(bson!([{"$set": {"a": 1}}]), doc! {"_id": 1, "a": 1});
    fails(
        bson!([{"$set": {"_id": 2}}]),
        doc! {"_id": 1},
        66,
        "altered to _id: 2",
    );
    fails(
        bson!([{"$match": {"a": 1}}]),
        doc! {},
        72,
        "$match is not allowed to be used within an update",
    );
    fails(
        bson!([{"$foo": 1}]),
        doc! {},
        40_324,
        "Unrecognized pipeline stage name: '$foo'",
    );
    // Documents of an update have no sort key.
    let key = || bson!({"k": {"$meta": "sortKey"}});
    for stage in [bson!({"$set": key()}), bson!({"$replaceWith": key()})] {
        let message = "Unsupported argument to $meta";
        fails(bson!([stage]), doc! {}, 17_308, message);
    }
}

#[test]
fn upserts_begin_with_equalities() {
    let base = |filter: Document| {
        let raw = RawDocumentBuf::try_from(&filter).unwrap();
        upsert_base(&Filter::parse(&raw, &Settings::default()).unwrap())
    };
    let ok = |filter: Document, expected: Document| {
        assert_eq!(
            base(filter.clone()).map(|d| text(&d)),
            Ok(text(&expected)),
            "{filter}"
        );
    };
    ok(
        doc! {"a": 1, "_id": 2, "b": {"$gt": 1}},
        doc! {"_id": 2, "a": 1},
    );
    ok(
        doc! {"a.b": 1, "a.c": {"$eq": 2}},
        doc! {"a": {"b": 1, "c": 2}},
    );
    ok(
        doc! {"$and": [{"a": 1}, {"b": {"$in": [2]}}]},
        doc! {"a": 1, "b": 2},
    );
    ok(doc! {"$or": [{"a": 1}]}, doc! {"a": 1});
    ok(doc! {"$or": [{"a": 1}, {"a": 2}]}, doc! {});
    ok(doc! {"a": {"$in": [1, 2]}}, doc! {});
    assert_eq!(
        base(doc! {"a": 1, "$and": [{"a": 1}]}).unwrap_err().code,
        Code(54)
    );
    assert_eq!(base(doc! {"a": 1, "a.b": 1}).unwrap_err().code, Code(54));
}

#[test]
fn touched_paths_are_known() {
    let update = parse(&bson!({"$set": {"a.0.b": 1}, "$rename": {"x": "y"}}), &[]).unwrap();
    for (path, touched) in [
        ("a", true),
        ("a.b", true),
        ("a.b.c", true),
        ("a.c", false),
        ("x", true),
        ("y.z", true),
        ("z", false),
    ] {
        assert_eq!(update.touches(path), touched, "{path}");
    }
    assert!(parse(&bson!({"a": 1}), &[]).unwrap().touches("z"));
}

/// N1 of `encoded`: a name may occur twice where the update does not name it.
#[test]
fn a_repeated_name_is_kept_unless_the_update_names_it() {
    let encoded = |fields: &[(&str, i32)]| {
        let mut document = RawDocumentBuf::new();
        for (name, value) in fields {
            document.append(bson::raw::CString::try_from(*name).unwrap(), *value);
        }
        document
    };
    let update = parse(
        &bson!({"$set": {"b": 7}, "$unset": {"u": ""}, "$inc": {"n": 1}}),
        &[],
    );
    let update = update.unwrap();
    let applied = |fields: &[(&str, i32)]| update.apply_encoded(&encoded(fields), &at()).unwrap();
    let found = applied(&[("a", 1), ("b", 1), ("u", 1), ("a", 2), ("_id", 3)]);
    let kept = encoded(&[("a", 1), ("b", 7), ("a", 2), ("_id", 3), ("n", 1)]);
    assert_eq!(found, Some(kept), "N1");
    // Of a named one the last value is left, at the first place, as in the decoded document.
    let found = applied(&[("n", 1), ("a", 1), ("b", 1), ("a", 2), ("n", 5)]);
    assert_eq!(found, Some(encoded(&[("n", 6), ("a", 2), ("b", 7)])), "N1");
    let found = applied(&[("_id", 1), ("a", 1), ("b", 7), ("_id", 2), ("n", 5)]);
    let merged = encoded(&[("_id", 2), ("a", 1), ("b", 7), ("n", 6)]);
    assert_eq!(found, Some(merged), "N1");
}

/// An update of a megabyte: names are not searched for one by one.
#[test]
fn many_named_fields_are_updated_at_once() {
    let count = 50_000;
    let (mut document, mut set) = (doc! {"_id": 1}, doc! {});
    for field in 0..count {
        document.insert(format!("f{field:05}"), field);
        // Every second value is new, and every fourth field.
        let name = field + if field % 4 == 1 { count } else { 0 };
        set.insert(format!("f{name:05}"), field + field % 2);
    }
    let (first, last) = ("f00000".to_owned(), format!("f{:05}", count - 2));
    set.remove(&first);
    set.remove(&last);
    let update = bson!({"$set": set, "$unset": {first: "", last: ""}});
    let update = parse(&update, &[]).unwrap();
    let raw = |document: &Document| RawDocumentBuf::try_from(document).unwrap();
    let whole = update.apply(&document, &at()).unwrap().unwrap();
    let found = update.apply_encoded(&raw(&document), &at()).unwrap();
    assert!(found == Some(raw(&whole)), "N1");
}

#[test]
fn random_bytes_of_updates_fail_cleanly() {
    let operands = [
        bson!(1),
        bson!("x"),
        bson!({}),
        bson!([]),
        bson!({"$each": [1]}),
        bson!(null),
    ];
    let paths = [
        "a", "a.b", "a.$", "a.$[]", "a.$[x].b", "a.0", "_id", "", ".", "$", "a.b.c.d",
    ];
    let names = [
        "$set",
        "$unset",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$push",
        "$pull",
        "$pullAll",
        "$pop",
        "$addToSet",
        "$bit",
        "$rename",
        "$currentDate",
        "$setOnInsert",
    ];
    let documents = [
        doc! {},
        doc! {"a": 1},
        doc! {"a": [1, {"b": 2}]},
        doc! {"a": {"b": [1]}},
    ];
    for name in names {
        for path in paths {
            for operand in &operands {
                let update = bson!({ name: { path: operand.clone() } });
                for document in &documents {
                    // An update may fail, but must not panic; a result that is not `None` differs
                    // from the document.
                    if let Ok(Some(next)) = apply(update.clone(), document.clone()) {
                        assert!(!identical(&next, document), "{update} on {document}");
                    }
                }
            }
        }
    }
}

#[test]
fn dollar_names_are_refused_at_the_first_level_of_existing_documents_only() {
    let refused = "is not allowed in the context of an update's replacement document";
    for update in [
        bson!({"$set": {"$a": 2}}),
        bson!({"$set": {"$new": 1}}),
        bson!({"$set": {"$new.b": 1}}),
        bson!({"$inc": {"$a": 1}}),
        bson!({"$rename": {"b": "$new"}}),
        bson!({"a": 1, "$b": 2}),
    ] {
        fails(update, doc! {"$a": 1, "b": 1}, 52, refused);
    }
    // Names below the top level may begin with `$`; so may top-level names that are not changed.
    check(
        bson!({"$set": {"p.$each": 1}}),
        doc! {"p": {}},
        doc! {"p": {"$each": 1}},
    );
    check(
        bson!({"$set": {"p": {"$x": {"$y": 1}}}}),
        doc! {},
        doc! {"p": {"$x": {"$y": 1}}},
    );
    check(
        bson!({"$set": {"$a.b": 2}}),
        doc! {"$a": {"b": 1}},
        doc! {"$a": {"b": 2}},
    );
    check(
        bson!({"$rename": {"p.$x": "p.$y"}}),
        doc! {"p": {"$x": 1}},
        doc! {"p": {"$y": 1}},
    );
    check(
        bson!({"$unset": {"$a": ""}}),
        doc! {"$a": 1, "b": 1},
        doc! {"b": 1},
    );
    unchanged(bson!({"$set": {"$a": 1}}), doc! {"$a": 1});
    check(
        bson!([{"$replaceWith": {"$setField": {
            "field": {"$literal": "$a"}, "input": "$$ROOT", "value": 1,
        }}}]),
        doc! {"b": 1},
        doc! {"b": 1, "$a": 1},
    );
    // The fields of a reference to a document of another collection may begin with `$`.
    check(
        bson!({"a": 1, "$ref": "c", "$id": 1, "$db": "d"}),
        doc! {},
        doc! {"a": 1, "$ref": "c", "$id": 1, "$db": "d"},
    );
    let error = "must be followed by a $id field";
    fails(bson!({"a": 1, "$ref": "c"}), doc! {}, 55, error);
}

#[test]
fn the_insert_of_an_upsert_may_have_dollar_names() {
    for update in [
        bson!({"$set": {"$a": 1}}),
        bson!({"$setOnInsert": {"$a": 1}}),
        bson!({"a": 1, "$a": 1}),
    ] {
        let made = parse(&update, &[])
            .unwrap()
            .apply(&doc! {"_id": 1}, &at().inserting());
        let made = made.unwrap().unwrap();
        assert_eq!(made.get("$a"), Some(&Bson::Int32(1)), "{update}");
    }
}

#[test]
fn a_replacement_is_no_change_only_if_it_has_the_same_id() {
    let stored = || doc! {"_id": 1, "a": 1};
    check(bson!({"a": 1}), stored(), stored());
    check(bson!({"a": 1, "_id": 1}), stored(), stored());
    unchanged(bson!({"_id": 1, "a": 1}), stored());
    check(bson!([{"$unset": "_id"}]), stored(), stored());
    unchanged(bson!([{"$set": {"a": 1}}]), stored());
}

#[test]
fn expr_is_refused_in_pull_and_in_array_filters() {
    let expr = || bson!({"$eq": ["$b", 5]});
    let message = "$expr is not allowed in this context";
    for condition in [
        bson!({"$expr": expr()}),
        bson!({"b": 5, "$expr": expr()}),
        bson!({"$or": [{"b": 1}, {"$expr": expr()}]}),
        bson!({"b": {"$elemMatch": {"$expr": expr()}}}),
    ] {
        fails(bson!({"$pull": {"a": condition}}), doc! {}, 224, message);
    }
    let update = bson!({"$set": {"a.$[i].b": 6}});
    let error = parse(&update, &[doc! {"i.b": 5, "$expr": expr()}]).unwrap_err();
    assert_eq!(error.code, Code::QUERY_FEATURE_NOT_ALLOWED, "{error}");
}

#[test]
fn pull_compares_the_fields_of_references() {
    check(
        bson!({"$pull": {"a": {"$id": 1}}}),
        doc! {"a": [{"$ref": "c", "$id": 1}, {"$ref": "c", "$id": 2}]},
        doc! {"a": [{"$ref": "c", "$id": 2}]},
    );
}

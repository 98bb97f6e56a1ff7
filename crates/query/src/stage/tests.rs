//! Specifications that stages refuse, with their errors. The execution of stages is tested in
//! [`crate::execute`].

use bson::{Bson, bson, doc};

use crate::Code;
use crate::execute::harness::parse;
use crate::settings::Settings;
use crate::stage::{Granularity, Merge, MergeOutcome, Stage};

fn fails(stage: Bson, code: i32, message: &str) {
    match parse(&bson!([stage.clone()])) {
        Err(error) => {
            assert_eq!(error.code, Code(code), "{stage}: {error}");
            assert!(error.message.contains(message), "{stage}: {error}");
        }
        Ok(_) => panic!("{stage} was accepted"),
    }
}

#[test]
fn stages_are_known() {
    fails(
        bson!({"$foo": 1}),
        40_324,
        "Unrecognized pipeline stage name: '$foo'",
    );
    fails(
        bson!({"$match": {}, "$limit": 1}),
        40_323,
        "exactly one field",
    );
    fails(bson!(5), 14, "must be an object");
    fails(bson!({"$geoNear": {}}), 27, "2d");
    fails(bson!({"$vectorSearch": {}}), 31_082, "$vectorSearch");
}

#[test]
fn counts_are_whole() {
    fails(
        bson!({"$limit": "x"}),
        5_107_201,
        "Expected a number in: $limit: \"x\"",
    );
    fails(
        bson!({"$limit": -1}),
        5_107_201,
        "Expected a non-negative number in: $limit: -1",
    );
    fails(bson!({"$limit": 1.5}), 5_107_201, "Expected an integer");
    fails(bson!({"$limit": 0}), 15_958, "the limit must be positive");
    fails(
        bson!({"$skip": -1}),
        5_107_200,
        "Expected a non-negative number in: $skip: -1",
    );
    fails(bson!({"$sample": {"size": 0}}), 28_747, "positive");
    fails(bson!({"$sample": {}}), 28_749, "must specify a size");
    fails(bson!({"$sample": 5}), 28_745, "must be an object");
    assert!(parse(&bson!([{"$limit": 5.0}])).is_ok());
}

#[test]
fn group_needs_an_id_and_accumulators() {
    fails(
        bson!({"$group": 1}),
        15_947,
        "must be specified in an object",
    );
    fails(
        bson!({"$group": {"a": {"$sum": 1}}}),
        15_955,
        "must include an _id",
    );
    fails(
        bson!({"$group": {"_id": 1, "a": 1}}),
        40_234,
        "must be an accumulator object",
    );
    fails(
        bson!({"$group": {"_id": 1, "a": {"$foo": 1}}}),
        15_952,
        "unknown group operator '$foo'",
    );
    fails(
        bson!({"$group": {"_id": 1, "a.b": {"$sum": 1}}}),
        40_235,
        "cannot contain '.'",
    );
    fails(
        bson!({"$group": {"_id": 1, "$a": {"$sum": 1}}}),
        40_236,
        "operator name",
    );
    fails(
        bson!({"$group": {"_id": 1, "a": {"$sum": 1, "$avg": 1}}}),
        40_238,
        "one accumulator",
    );
}

#[test]
fn small_stages_check_their_operands() {
    fails(
        bson!({"$match": 1}),
        15_959,
        "must be an expression in an object",
    );
    fails(bson!({"$sort": {}}), 15_976, "at least one sort key");
    fails(bson!({"$sort": 1}), 15_973, "must be an object");
    fails(bson!({"$count": 1}), 40_156, "non-empty string");
    fails(bson!({"$count": ""}), 40_157, "non-empty string");
    fails(bson!({"$count": "$a"}), 40_158, "$-prefixed");
    fails(bson!({"$count": "a.b"}), 40_160, "'.'");
    fails(
        bson!({"$unwind": "a"}),
        28_818,
        "should be prefixed with a '$': a",
    );
    fails(
        bson!({"$unwind": 1}),
        15_981,
        "either a string or an object",
    );
    fails(bson!({"$unwind": {}}), 28_812, "no path specified");
    fails(
        bson!({"$unwind": {"path": "$a", "x": 1}}),
        28_811,
        "unrecognized option",
    );
    fails(
        bson!({"$unwind": {"path": "$a", "includeArrayIndex": "$x"}}),
        28_822,
        "prefixed",
    );
    fails(bson!({"$unset": []}), 31_119, "at least one field");
    fails(bson!({"$replaceRoot": {}}), 40_414, "newRoot");
    fails(
        bson!({"$replaceRoot": {"newRoot": "$a", "b": 1}}),
        40_415,
        "unknown field",
    );
    fails(bson!({"$project": {}}), 51_272, "at least one field");
    fails(bson!({"$project": 1}), 15_969, "must be an object");
    fails(bson!({"$addFields": 1}), 40_272, "must be an object");
    fails(bson!({"$sortByCount": "a"}), 40_148, "$-prefixed path");
    fails(bson!({"$indexStats": {"a": 1}}), 28_803, "empty object");
}

#[test]
fn buckets_have_boundaries() {
    let with = |boundaries: Bson| bson!({"$bucket": {"groupBy": "$a", "boundaries": boundaries}});
    fails(
        with(bson!([1])),
        40_192,
        "at least 2 values, but found 1 value(s)",
    );
    fails(
        with(bson!([1, "x"])),
        40_193,
        "conflicting types int and string",
    );
    fails(with(bson!([2, 1])), 40_194, "(2 is not less than 1)");
    fails(with(bson!(["$a", 1])), 40_191, "constant");
    fails(with(bson!(1)), 40_200, "must be an array");
    fails(bson!({"$bucket": {"groupBy": "$a"}}), 40_198, "requires");
    fails(
        bson!({"$bucket": {"groupBy": "a", "boundaries": [1, 2]}}),
        40_202,
        "groupBy",
    );
    fails(
        bson!({"$bucket": {"groupBy": "$a", "boundaries": [1, 3], "default": 2}}),
        40_199,
        "must be less than the lowest boundary",
    );
    fails(
        bson!({"$bucketAuto": {"groupBy": "$a"}}),
        40_246,
        "requires",
    );
    fails(
        bson!({"$bucketAuto": {"groupBy": "$a", "buckets": 0}}),
        40_243,
        "greater than 0",
    );
    fails(
        bson!({"$bucketAuto": {"groupBy": "$a", "buckets": 2, "granularity": "X"}}),
        40_257,
        "Unknown rounding granularity 'X'",
    );
    let stages = parse(&bson!([with(bson!([1, 2]))])).unwrap();
    let names: Vec<&str> = stages.stages().iter().map(Stage::name).collect();
    assert_eq!(names, ["$group", "$sort"]);
}

#[test]
fn preferred_numbers_surround_values() {
    let two = Granularity::PowersOfTwo;
    assert_eq!((two.down(5.0), two.up(5.0)), (4.0, 8.0));
    assert_eq!((two.down(8.0), two.up(8.0)), (4.0, 16.0));
    assert_eq!((two.down(0.3), two.up(0.3)), (0.25, 0.5));
    let steps = Granularity::Series(&[10.0, 20.0, 50.0]);
    assert_eq!((steps.down(7.0), steps.up(7.0)), (5.0, 10.0));
    assert_eq!((steps.down(10.0), steps.up(10.0)), (5.0, 20.0));
    assert_eq!((steps.down(120.0), steps.up(120.0)), (100.0, 200.0));
    assert_eq!((steps.down(0.0), steps.up(0.0)), (0.0, 0.0));
}

#[test]
fn joins_name_what_they_join() {
    fails(
        bson!({"$lookup": {"from": "b"}}),
        9,
        "requires either 'pipeline' or both",
    );
    fails(
        bson!({"$lookup": {"from": "b", "localField": "a", "foreignField": "b"}}),
        9,
        "must specify 'as' field for a $lookup",
    );
    fails(
        bson!({"$lookup": {"x": "b"}}),
        9,
        "unknown argument to $lookup: x",
    );
    fails(
        bson!({"$lookup": {"from": "b", "as": 5, "pipeline": []}}),
        9,
        "must be a string, is type int",
    );
    fails(
        bson!({"$lookup": {"as": "x", "pipeline": []}}),
        9,
        "must specify 'from' field",
    );
    fails(
        bson!({"$lookup": {"from": "b", "as": "x", "pipeline": [{"$foo": 1}]}}),
        40_324,
        "$foo",
    );
    fails(
        bson!({"$lookup": {"from": "b", "as": "x", "pipeline": [{"$out": "c"}]}}),
        51_047,
        "$out is not allowed within a $lookup's sub-pipeline",
    );
    fails(bson!({"$graphLookup": 1}), 40_327, "must be an object");
    fails(
        bson!({"$graphLookup": {"from": "b"}}),
        40_105,
        "requires 'from'",
    );
    fails(
        bson!({"$graphLookup": {"x": 1}}),
        40_104,
        "Unknown argument to $graphLookup: x",
    );
    fails(bson!({"$unionWith": 1}), 9, "must be an object or string");
    fails(bson!({"$facet": {}}), 40_169, "non-empty object");
    fails(
        bson!({"$facet": {"a": 1}}),
        40_170,
        "arguments to $facet must be arrays, a is type int",
    );
    fails(
        bson!({"$facet": {"a": [{"$out": "b"}]}}),
        40_600,
        "$out is not allowed",
    );
    fails(
        bson!({"$facet": {"a": [{"$facet": {"b": []}}]}}),
        40_600,
        "$facet is not allowed",
    );
}

/// What must not be in an inner pipeline is refused for that, not for its place.
#[test]
fn stages_that_must_not_be_nested_are_named() {
    let outer = |name: &str, inner: Bson| match name {
        "$lookup" => bson!({"$lookup": {"from": "b", "as": "x", "pipeline": inner}}),
        "$unionWith" => bson!({"$unionWith": {"coll": "b", "pipeline": inner}}),
        _ => bson!({"$facet": {"f": inner}}),
    };
    for (name, code) in [
        ("$lookup", 51_047),
        ("$unionWith", 31_441),
        ("$facet", 40_600),
    ] {
        for stage in [
            bson!({"$changeStream": {}}),
            bson!({"$out": "o"}),
            bson!({"$merge": "o"}),
        ] {
            let refused = stage.as_document().unwrap().keys().next().unwrap();
            let first = bson!([stage.clone(), {"$match": {}}]);
            let second = bson!([{"$match": {}}, stage.clone()]);
            for inner in [first, second] {
                fails(
                    outer(name, inner),
                    code,
                    &format!("{refused} is not allowed"),
                );
            }
        }
    }
}

#[test]
fn sources_are_first_and_writers_last() {
    let order = |stages: Bson, code: i32| assert_eq!(parse(&stages).unwrap_err().code, Code(code));
    order(bson!([{"$limit": 1}, {"$indexStats": {}}]), 40_602);
    order(bson!([{"$out": "a"}, {"$limit": 1}]), 40_601);
    order(bson!([{"$merge": "a"}, {"$limit": 1}]), 40_601);
}

#[test]
fn merges_decide_document_by_document() {
    let merge = |spec: Bson| Merge::parse(&spec, &Settings::default()).unwrap();
    let (old, new) = (doc! {"_id": 1, "a": 1, "b": 1}, doc! {"_id": 1, "b": 2});
    let resolve =
        |spec: Bson, existing: Option<&bson::Document>| merge(spec).resolve(existing, new.clone());
    let merged = doc! {"_id": 1, "a": 1, "b": 2};
    assert_eq!(
        resolve(bson!("t"), Some(&old)),
        Ok(MergeOutcome::Replace(merged))
    );
    assert_eq!(
        resolve(bson!("t"), None),
        Ok(MergeOutcome::Insert(new.clone()))
    );
    let spec = bson!({"into": "t", "whenMatched": "replace", "whenNotMatched": "discard"});
    assert_eq!(
        resolve(spec.clone(), Some(&old)),
        Ok(MergeOutcome::Replace(new.clone()))
    );
    assert_eq!(resolve(spec, None), Ok(MergeOutcome::Nothing));
    let spec = bson!({"into": "t", "whenMatched": "keepExisting", "whenNotMatched": "fail"});
    assert_eq!(resolve(spec.clone(), Some(&old)), Ok(MergeOutcome::Nothing));
    assert_eq!(resolve(spec, None).unwrap_err().code, Code(13_113));
    let spec = bson!({"into": "t", "whenMatched": "fail"});
    assert_eq!(resolve(spec, Some(&old)).unwrap_err().code, Code(11_000));
    let spec = bson!({
        "into": {"db": "d", "coll": "t"},
        "let": {"k": "$b"},
        "whenMatched": [{"$set": {"a": {"$add": ["$a", "$$new.b", "$$k"]}}}],
    });
    let summed = doc! {"_id": 1, "a": 5, "b": 1};
    assert_eq!(resolve(spec, Some(&old)), Ok(MergeOutcome::Replace(summed)));
    let key = merge(bson!({"into": "t", "on": ["b", "c"]})).key(&new);
    assert_eq!(key.unwrap_err().code, Code(51_132));
    let refused = |spec: Bson, code: i32| {
        let error = Merge::parse(&spec, &Settings::default()).unwrap_err();
        assert_eq!(error.code, Code(code), "{error}");
    };
    refused(bson!({"on": "a"}), 40_414);
    refused(bson!({"into": "t", "whenMatched": "x"}), 2);
    refused(bson!({"into": "t", "on": []}), 51_187);
    refused(
        bson!({"into": "t", "whenMatched": [{"$group": {"_id": 1}}]}),
        72,
    );
}

#[test]
fn merged_documents_are_no_operators() {
    let existing = doc! {"$inc": {"a": 1}, "_id": 1, "a": 1};
    let incoming = doc! {"$set": {"a": 5}, "_id": 1};
    for mode in ["replace", "merge"] {
        let spec = bson!({"into": "t", "whenMatched": mode});
        let merge = Merge::parse(&spec, &Settings::default()).unwrap();
        let error = merge
            .resolve(Some(&existing), incoming.clone())
            .unwrap_err();
        assert_eq!(error.code, Code::DOLLAR_PREFIXED_FIELD_NAME, "{mode}");
    }
}

#[test]
fn merges_refuse_what_they_do_not_know() {
    let refused = |spec: Bson, code: i32, name: &str, message: &str| {
        let error = Merge::parse(&spec, &Settings::default()).unwrap_err();
        assert_eq!(error.code, Code(code), "{spec}: {error}");
        assert_eq!(error.code.name(), name, "{spec}");
        assert!(error.message.contains(message), "{spec}: {error}");
    };
    let pipeline = |variables: Bson| bson!({"into": "t", "let": variables, "whenMatched": []});
    refused(
        bson!({"into": {"db": "d", "coll": "t", "x": 1}}),
        40_415,
        "IDLUnknownField",
        "BSON field 'into.x' is an unknown field.",
    );
    refused(
        bson!({"into": {"db": 1, "coll": "t"}}),
        14,
        "TypeMismatch",
        "BSON field 'into.db' is the wrong type 'int', expected type 'string'",
    );
    refused(
        bson!({"into": {"db": "d"}}),
        73,
        "InvalidNamespace",
        "Invalid $merge target namespace, d.",
    );
    refused(
        bson!({"on": "a"}),
        40_414,
        "IDLFailedToParse",
        "BSON field '$merge.into' is missing but a required field",
    );
    refused(
        pipeline(bson!({"new": "$a"})),
        51_273,
        "Location51273",
        "reserved 'new' variable",
    );
    refused(pipeline(bson!({"New": 1})), 9, "FailedToParse", "New");
    refused(
        bson!({"into": "t", "let": {}, "whenMatched": "keepExisting"}),
        51_199,
        "Location51199",
        "Cannot use 'let' variables with 'whenMatched: keepExisting' mode",
    );
    let spec = pipeline(bson!({"new": "$$ROOT", "k": 1}));
    assert!(Merge::parse(&spec, &Settings::default()).is_ok());
    let spec = bson!({"into": "t", "whenNotMatched": "fail"});
    let merge = Merge::parse(&spec, &Settings::default()).unwrap();
    let error = merge.resolve(None, doc! {"_id": 1}).unwrap_err();
    assert_eq!(error.code.name(), "MergeStageNoMatchingDocument");
}

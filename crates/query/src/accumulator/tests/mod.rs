//! Accumulators over small groups: as a whole, and in two parts that are merged.

use bson::{Bson, Document, bson, doc};

use super::Accumulator;
use crate::expr::{Env, Scope, Variables};

/// The result over a group; checks that it is the same for every division of the group in two
/// parts.
fn accumulate(name: &str, spec: impl Into<Bson>, group: &[Document]) -> Bson {
    let accumulator = Accumulator::parse(name, &spec.into(), &Scope::new()).unwrap();
    let vars = Variables::default();
    let key = doc! { "_id": 1 };
    let gather = |part: &[Document]| {
        let mut state = accumulator.start(&Env::new(&key, &vars)).unwrap();
        for document in part {
            accumulator
                .add(&mut state, &Env::new(document, &vars))
                .unwrap();
        }
        state
    };
    let whole = accumulator.finish(gather(group));
    for cut in 0..=group.len() {
        let (head, tail) = group.split_at(cut);
        let mut merged = gather(head);
        accumulator.merge(&mut merged, gather(tail)).unwrap();
        assert_eq!(accumulator.finish(merged), whole, "{name} cut at {cut}");
    }
    whole
}

fn group() -> Vec<Document> {
    vec![
        doc! { "x": 2, "s": "b" },
        doc! { "x": null, "s": "a" },
        doc! { "s": "c" },
        doc! { "x": 7.5, "s": "a" },
    ]
}

#[test]
fn numbers() {
    let g = group();
    assert_eq!(accumulate("$sum", "$x", &g), Bson::Double(9.5));
    assert_eq!(accumulate("$sum", 1, &g), Bson::Int32(4));
    assert_eq!(accumulate("$sum", "$s", &g), Bson::Int32(0));
    assert_eq!(accumulate("$count", doc! {}, &g), Bson::Int32(4));
    assert_eq!(accumulate("$avg", "$x", &g), Bson::Double(4.75));
    assert_eq!(accumulate("$avg", "$s", &g), Bson::Null);
    assert_eq!(accumulate("$min", "$x", &g), Bson::Int32(2));
    assert_eq!(accumulate("$max", "$s", &g), bson!("c"));
    assert_eq!(accumulate("$stdDevPop", "$x", &g), Bson::Double(2.75));
    assert_eq!(accumulate("$stdDevSamp", "$s", &g), Bson::Null);
}

#[test]
fn sums_are_exact() {
    let tenths: Vec<Document> = (0..10).map(|_| doc! { "x": 0.1 }).collect();
    assert_eq!(accumulate("$sum", "$x", &tenths), Bson::Double(1.0));
    let longs = [
        doc! { "x": i64::MAX },
        doc! { "x": 1_i64 },
        doc! { "x": -1_i64 },
    ];
    assert_eq!(accumulate("$sum", "$x", &longs), Bson::Int64(i64::MAX));
    assert_eq!(
        accumulate("$sum", "$x", longs.get(..2).unwrap()),
        Bson::Double(9_223_372_036_854_775_808.0)
    );
    let ints = [doc! { "x": i32::MAX }, doc! { "x": 1 }];
    assert_eq!(accumulate("$sum", "$x", &ints), Bson::Int64(2_147_483_648));
    let decimal: bson::Decimal128 = "0.1".parse().unwrap();
    let mixed = [doc! { "x": decimal }, doc! { "x": 2 }];
    let expected: bson::Decimal128 = "2.1".parse().unwrap();
    assert_eq!(accumulate("$sum", "$x", &mixed), Bson::Decimal128(expected));
}

#[test]
fn doubles_add_to_decimals_without_more_digits() {
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    let both = [doc! { "x": 1.0 }, doc! { "x": decimal("1.50") }];
    assert_eq!(accumulate("$sum", "$x", &both), decimal("2.50"));
    assert_eq!(accumulate("$avg", "$x", &both), decimal("1.25"));
    let infinite = [doc! { "x": f64::INFINITY }, doc! { "x": decimal("1") }];
    assert_eq!(accumulate("$sum", "$x", &infinite), decimal("Infinity"));
    // The sum starts as zero with the exponent 0, so the result has the exponent 0.
    let thousand = [doc! { "x": decimal("1E+3") }];
    assert_eq!(accumulate("$sum", "$x", &thousand), decimal("1000"));
}

#[test]
fn values() {
    let g = group();
    assert_eq!(accumulate("$first", "$x", &g), Bson::Int32(2));
    assert_eq!(accumulate("$last", "$x", &g), Bson::Double(7.5));
    assert_eq!(accumulate("$push", "$x", &g), bson!([2, null, 7.5]));
    assert_eq!(accumulate("$addToSet", "$s", &g), bson!(["b", "a", "c"]));
    assert_eq!(
        accumulate("$mergeObjects", "$$ROOT", &g),
        bson!({ "x": 7.5, "s": "a" })
    );
    assert_eq!(
        accumulate("$firstN", doc! { "n": 2, "input": "$s" }, &g),
        bson!(["b", "a"])
    );
    assert_eq!(
        accumulate("$lastN", doc! { "n": 3, "input": "$x" }, &g),
        bson!([null, null, 7.5])
    );
    assert_eq!(
        accumulate("$maxN", doc! { "n": 2, "input": "$s" }, &g),
        bson!(["c", "b"])
    );
    assert_eq!(
        accumulate("$minN", doc! { "n": 9, "input": "$x" }, &g),
        bson!([2, 7.5])
    );
}

#[test]
fn by_rank() {
    let g: Vec<Document> = [31, 33, 99, 1]
        .into_iter()
        .map(|score| doc! { "score": score })
        .collect();
    let spec = |n: i32| doc! { "n": n, "sortBy": { "score": -1 }, "output": "$score" };
    assert_eq!(accumulate("$topN", spec(2), &g), bson!([99, 33]));
    assert_eq!(accumulate("$bottomN", spec(3), &g), bson!([33, 31, 1]));
    let one = doc! { "sortBy": { "score": 1 }, "output": ["$score"] };
    assert_eq!(accumulate("$top", one.clone(), &g), bson!([1]));
    assert_eq!(accumulate("$bottom", one, &g), bson!([99]));
    let median = doc! { "input": "$score", "method": "approximate" };
    assert_eq!(accumulate("$median", median, &g), Bson::Double(31.0));
    let p = doc! { "input": "$score", "method": "continuous", "p": [0, 0.5, 1] };
    assert_eq!(accumulate("$percentile", p, &g), bson!([1.0, 32.0, 99.0]));
}

#[test]
fn malformed_specifications() {
    let refuse = |name: &str, spec: Bson, code: i32| {
        let error = Accumulator::parse(name, &spec, &Scope::new()).unwrap_err();
        assert_eq!(error.code.0, code, "{error}");
    };
    refuse("$foo", bson!(1), 15_952);
    refuse("$sum", bson!([1, 2]), 40_237);
    refuse("$count", bson!(1), 14);
    refuse("$firstN", bson!({ "n": 1 }), 5_787_907);
    refuse("$top", bson!({ "sortBy": { "a": 1 } }), 5_788_004);
    refuse("$median", bson!({ "input": 1 }), 40_414);
}

#[test]
fn percentiles_may_be_given_by_a_variable() {
    let mut variables = crate::expr::Variables::default();
    variables.set("ps", Some(bson!([0.5, 1.0])));
    let scope = Scope::new().with_variables(&variables);
    let spec = bson!({"input": "$x", "p": "$$ps", "method": "approximate"});
    assert!(Accumulator::parse("$percentile", &spec, &scope).is_ok());
    variables.set("ps", Some(bson!([2])));
    let scope = Scope::new().with_variables(&variables);
    let error = Accumulator::parse("$percentile", &spec, &scope).unwrap_err();
    assert_eq!(error.code.0, 7_750_301);
}

#[test]
fn an_empty_order_is_refused() {
    for (name, operand) in [
        ("$top", bson!({"sortBy": {}, "output": "$x"})),
        ("$bottomN", bson!({"sortBy": {}, "output": "$x", "n": 1})),
    ] {
        let error = Accumulator::parse(name, &operand, &Scope::new()).unwrap_err();
        assert_eq!(error.code.0, 15_976, "{name}");
    }
}

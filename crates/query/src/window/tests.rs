//! Stages over small inputs; moving windows are compared with windows computed from scratch.

use bson::{Bson, DateTime, Document, bson, doc};

use crate::execute::harness::{Memory, parse};
use crate::{Code, Result};

fn apply(stage: &str, spec: Document, input: &[Document]) -> Result<Vec<Document>> {
    Memory::default().run(parse(&bson!([{ stage: spec }]))?, input)
}

/// The values of the field `f`, null when missing, after `function` computed it over `input` in the
/// order of `x`.
#[track_caller]
fn column(function: Document, input: &[Document]) -> Bson {
    let spec = doc! { "sortBy": { "x": 1 }, "output": { "f": function } };
    let result = apply("$setWindowFields", spec, input).unwrap();
    result
        .into_iter()
        .map(|mut document| document.remove("f").unwrap_or(Bson::Null))
        .collect()
}

fn refuse(stage: &str, spec: Document, code: i32) {
    let error = apply(stage, spec.clone(), &[]).unwrap_err();
    assert_eq!(error.code.0, code, "{spec}: {error}");
}

fn numbers(values: &[i32]) -> Vec<Document> {
    values
        .iter()
        .map(|x| doc! { "x": x, "y": x * 10 })
        .collect()
}

#[test]
fn partitions_come_in_order() {
    let input = [
        doc! { "p": "b", "x": 2 },
        doc! { "p": "a", "x": 3 },
        doc! { "p": "b", "x": 1 },
    ];
    let spec = doc! { "partitionBy": "$p", "sortBy": { "x": 1 }, "output": {
        "s.t": { "$sum": "$x", "window": { "documents": ["unbounded", "current"] } },
        "n": { "$documentNumber": {} },
    } };
    let expected = vec![
        doc! { "p": "a", "x": 3, "s": { "t": 3 }, "n": 1 },
        doc! { "p": "b", "x": 1, "s": { "t": 1 }, "n": 1 },
        doc! { "p": "b", "x": 2, "s": { "t": 3 }, "n": 2 },
    ];
    assert_eq!(apply("$setWindowFields", spec, &input).unwrap(), expected);
}

#[test]
fn moving_windows_agree_with_windows_computed_anew() {
    let input = numbers(&[1, 2, 3, 5, 8, 13, 21]);
    for lower in -3..3_i32 {
        for upper in lower..4 {
            for operator in ["$sum", "$avg", "$min", "$max", "$first", "$last", "$push"] {
                let window = doc! { "documents": [lower, upper] };
                let moved = column(doc! { operator: "$y", "window": window }, &input);
                let anew: Bson = (0..7_i32)
                    .map(|at| {
                        let low = usize::try_from((at + lower).clamp(0, 7)).unwrap();
                        let high = usize::try_from((at + upper + 1).clamp(0, 7)).unwrap();
                        let part = input.get(low..high.max(low)).unwrap();
                        match column(doc! { operator: "$y" }, part) {
                            Bson::Array(values) => values.first().cloned(),
                            _ => None,
                        }
                        .unwrap_or_else(|| match operator {
                            "$sum" => Bson::Int32(0),
                            "$push" => bson!([]),
                            _ => Bson::Null,
                        })
                    })
                    .collect();
                assert_eq!(moved, anew, "{operator} from {lower} to {upper}");
            }
        }
    }
}

#[test]
fn ranges_follow_values() {
    let input = numbers(&[1, 2, 2, 5, 9]);
    let within = |lower: Bson, upper: Bson| {
        column(
            doc! { "$sum": 1, "window": { "range": [lower, upper] } },
            &input,
        )
    };
    assert_eq!(within(bson!(-1), bson!(0)), bson!([1, 3, 3, 1, 1]));
    assert_eq!(
        within(bson!("current"), bson!("current")),
        bson!([1, 2, 2, 1, 1])
    );
    assert_eq!(within(bson!("unbounded"), bson!(3)), bson!([3, 4, 4, 4, 5]));
    let days: Vec<Document> = [0, 1, 3]
        .into_iter()
        .map(|day| doc! { "x": DateTime::from_millis(day * 86_400_000) })
        .collect();
    let window = doc! { "range": [-1, 0], "unit": "day" };
    assert_eq!(
        column(doc! { "$count": {}, "window": window }, &days),
        bson!([1, 2, 1])
    );
}

#[test]
fn ranks_and_shifts() {
    let input = numbers(&[1, 2, 2, 5]);
    assert_eq!(column(doc! { "$rank": {} }, &input), bson!([1, 2, 2, 4]));
    assert_eq!(
        column(doc! { "$denseRank": {} }, &input),
        bson!([1, 2, 2, 3])
    );
    let shift = |by: i32| doc! { "$shift": { "output": "$y", "by": by, "default": "none" } };
    assert_eq!(column(shift(-1), &input), bson!(["none", 10, 20, 20]));
    assert_eq!(column(shift(2), &input), bson!([20, 50, "none", "none"]));
}

#[test]
fn series() {
    let input = numbers(&[0, 2, 4]);
    let slope = |op: &str| doc! { op: { "input": "$y" }, "window": { "documents": [-1, 0] } };
    assert_eq!(
        column(slope("$derivative"), &input),
        bson!([null, 10.0, 10.0])
    );
    assert_eq!(column(slope("$integral"), &input), bson!([0, 20.0, 60.0]));
    let average = doc! { "$expMovingAvg": { "input": "$y", "alpha": 0.5 } };
    assert_eq!(column(average, &input), bson!([0, 10.0, 25.0]));
    let covariance = doc! { "$covariancePop": ["$x", "$y"] };
    let expected = 80.0 / 3.0;
    match column(covariance, &input) {
        Bson::Array(values) => assert!(
            values
                .iter()
                .all(|value| (value.as_f64().unwrap() - expected).abs() < 1e-9)
        ),
        other => panic!("{other}"),
    }
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

#[test]
fn slopes_over_dates_keep_all_digits() {
    // Dates a second apart in 2024: a double of hours since 1970 has only five digits left for
    // their difference.
    let at = |seconds: i64| DateTime::from_millis(1_709_600_000_000 + seconds * 1000);
    let input = [
        doc! { "x": at(0), "y": 0 },
        doc! { "x": at(3), "y": 1 },
        doc! { "x": at(10), "y": 8 },
    ];
    let window = || doc! { "documents": [-1, 0] };
    let slope =
        |op: &str, unit: &str| doc! { op: { "input": "$y", "unit": unit }, "window": window() };
    assert_eq!(
        column(slope("$derivative", "second"), &input),
        bson!([null, 1.0 / 3000.0 * 1000.0, 7.0 / 7000.0 * 1000.0])
    );
    assert_eq!(
        column(slope("$derivative", "hour"), &input),
        bson!([null, 1.0 / 3000.0 * 3_600_000.0, 7.0 / 7000.0 * 3_600_000.0])
    );
    assert_eq!(
        column(slope("$integral", "second"), &input),
        bson!([0.0, 1.5, 31.5])
    );
    assert_eq!(
        column(slope("$integral", "hour"), &input),
        bson!([0.0, 1500.0 / 3_600_000.0, 31_500.0 / 3_600_000.0])
    );
}

#[test]
fn slopes_and_covariances_of_decimals_are_decimals() {
    let input = [
        doc! { "x": 1, "y": decimal("0.1"), "z": decimal("1") },
        doc! { "x": 2, "y": decimal("0.4"), "z": decimal("3") },
        doc! { "x": 3, "y": decimal("0.5"), "z": decimal("4") },
    ];
    let window = || doc! { "documents": [-1, 0] };
    let slope = |op: &str| doc! { op: { "input": "$y" }, "window": window() };
    let column = |function: Document| column(function, &input);
    assert_eq!(
        column(slope("$derivative")),
        bson!([null, decimal("0.3"), decimal("0.1")])
    );
    assert_eq!(
        column(slope("$integral")),
        bson!([0, decimal("0.25"), decimal("0.45")])
    );
    let covariance = |op: &str| doc! { op: ["$y", "$z"], "window": window() };
    assert_eq!(
        column(covariance("$covariancePop")),
        bson!([0.0, decimal("0.15"), decimal("0.025")])
    );
    assert_eq!(
        column(covariance("$covarianceSamp")),
        bson!([null, decimal("0.3"), decimal("0.05")])
    );
}

#[test]
fn slopes_refuse_what_is_no_number() {
    let run = |op: &str, unit: Option<&str>, input: &[Document]| {
        let mut operand = doc! { "input": "$y" };
        operand.extend(unit.map(|unit| ("unit".to_owned(), bson!(unit))));
        let function = doc! { op: operand, "window": { "documents": [-1, 0] } };
        let spec = doc! { "sortBy": { "x": 1 }, "output": { "f": function } };
        apply("$setWindowFields", spec, input).map_err(|error| error.code.0)
    };
    let dates = [doc! { "x": DateTime::from_millis(0), "y": 1 }];
    let plain = [doc! { "x": 1, "y": 1 }];
    let null = [doc! { "x": 1, "y": null }];
    let text = [doc! { "x": 1, "y": "a" }];
    assert_eq!(run("$derivative", Some("hour"), &plain), Err(5_624_900));
    assert_eq!(run("$derivative", None, &dates), Err(5_624_901));
    assert_eq!(run("$derivative", None, &[doc! { "y": 1 }]), Err(5_624_902));
    assert_eq!(run("$derivative", None, &null), Err(5_624_903));
    assert_eq!(run("$derivative", None, &text), Err(16_556));
    assert_eq!(run("$integral", None, &null), Err(5_423_900));
    assert_eq!(run("$integral", Some("hour"), &plain), Err(5_423_901));
    assert_eq!(run("$integral", None, &dates), Err(5_423_902));
}

#[test]
fn infinities_and_nan_have_their_covariances() {
    let covariance = |pairs: &[(f64, f64)]| {
        let input: Vec<Document> = pairs.iter().map(|(x, y)| doc! { "x": x, "y": y }).collect();
        let values = column(doc! { "$covariancePop": ["$x", "$y"] }, &input);
        values.as_array().unwrap().first().unwrap().as_f64()
    };
    let with = |x, y| covariance(&[(1.0, 2.0), (2.0, 5.0), (x, y)]);
    assert_eq!(with(f64::INFINITY, 1.0), Some(f64::INFINITY));
    assert_eq!(with(1.0, f64::NEG_INFINITY), Some(f64::NEG_INFINITY));
    assert!(with(f64::INFINITY, f64::NEG_INFINITY).unwrap().is_nan());
    assert!(with(f64::NAN, 1.0).unwrap().is_nan());
    assert_eq!(covariance(&[(f64::NAN, 1.0)]), None);
}

#[test]
fn an_array_of_one_is_an_array_to_window_functions() {
    let input = numbers(&[1, 2]);
    assert_eq!(column(doc! { "$sum": ["$y"] }, &input), bson!([0, 0]));
    assert_eq!(column(doc! { "$max": ["$y"] }, &input), bson!([[20], [20]]));
    assert_eq!(
        column(doc! { "$push": ["$y"] }, &input),
        bson!([[[10], [20]], [[10], [20]]])
    );
}

#[test]
fn gaps_are_filled() {
    let input = [
        doc! { "x": 0, "v": null },
        doc! { "x": 1, "v": 10 },
        doc! { "x": 2 },
        doc! { "x": 5, "v": 50 },
    ];
    assert_eq!(
        column(doc! { "$locf": "$v" }, &input),
        bson!([null, 10, 10, 50])
    );
    assert_eq!(
        column(doc! { "$linearFill": "$v" }, &input),
        bson!([null, 10, 20.0, 50])
    );
    let fill = doc! { "sortBy": { "x": 1 }, "output": {
    "v": { "method": "linear" }, "w": { "value": "none" } } };
    let result = apply("$fill", fill, &input).unwrap();
    assert_eq!(
        result.get(2),
        Some(&doc! { "x": 2, "v": 20.0, "w": "none" })
    );
    let value = doc! { "output": { "v": { "value": { "$add": ["$x", 1] } } } };
    let result = apply("$fill", value, &input).unwrap();
    assert_eq!(result.first(), Some(&doc! { "x": 0, "v": 1 }));
}

#[test]
fn densifying() {
    let input = [
        doc! { "p": "a", "x": 1 },
        doc! { "p": "a", "x": 4, "k": 1 },
        doc! { "p": "b", "x": 2 },
        doc! { "p": "b" },
    ];
    let densify = |bounds: Bson| {
        let spec = doc! { "field": "x", "partitionByFields": ["p"],
        "range": { "step": 2, "bounds": bounds } };
        let values = apply("$densify", spec, &input).unwrap();
        let pairs = values.into_iter().map(|document| {
            let name = document.get_str("p").unwrap().to_owned();
            (name, document.get("x").and_then(Bson::as_i32))
        });
        pairs.collect::<Vec<_>>()
    };
    let (a, b) = (|x| ("a".to_owned(), Some(x)), |x| ("b".to_owned(), Some(x)));
    let none = ("b".to_owned(), None);
    assert_eq!(
        densify(bson!("partition")),
        [a(1), a(3), a(4), none.clone(), b(2)]
    );
    assert_eq!(
        densify(bson!("full")),
        [a(1), a(3), a(4), none.clone(), b(1), b(2), b(3)]
    );
    assert_eq!(
        densify(bson!([0, 4])),
        [a(0), a(1), a(2), a(4), none, b(0), b(2)]
    );
    let hours = doc! { "field": "t", "range": { "step": 1, "unit": "hour", "bounds": "full" } };
    let hour = |hour: i64| doc! { "t": DateTime::from_millis(hour * 3_600_000) };
    let result = apply("$densify", hours, &[hour(0), hour(3)]).unwrap();
    assert_eq!(result, [hour(0), hour(1), hour(2), hour(3)]);
    let stuck = doc! { "field": "x", "range": { "step": 1, "bounds": [1e300, 1e301] } };
    let error = apply("$densify", stuck, &[doc! { "x": 1e300 }]).unwrap_err();
    assert_eq!(error.code.0, 5_897_900);
}

#[test]
fn malformed_specifications() {
    let set = |function: Document| doc! { "output": { "f": function } };
    refuse("$setWindowFields", doc! {}, 40_414);
    refuse("$setWindowFields", set(doc! { "$foo": 1 }), 9);
    refuse("$setWindowFields", set(doc! { "$rank": {} }), 5_371_602);
    refuse(
        "$setWindowFields",
        set(doc! { "$sum": 1, "window": { "documents": [0, 1] } }),
        5_339_901,
    );
    refuse(
        "$setWindowFields",
        set(doc! { "$sum": 1, "window": { "range": [0, 1] } }),
        5_339_902,
    );
    refuse(
        "$setWindowFields",
        set(doc! { "$locf": 1, "window": {} }),
        5_371_601,
    );
    refuse(
        "$fill",
        doc! { "output": { "a": { "method": "linear" } } },
        605_001,
    );
    refuse(
        "$densify",
        doc! { "field": "a", "range": { "step": 0, "bounds": "full" } },
        5_733_401,
    );
    refuse(
        "$densify",
        doc! { "field": "a", "range": { "step": 1, "bounds": "partition" } },
        5_733_408,
    );
}

#[test]
fn linear_fill_computes_in_the_types_of_its_values() {
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    let rows = |values: [Bson; 3]| -> Vec<Document> {
        let places = (1..).map(|x| doc! { "x": x });
        let rows = places.zip(values);
        rows.map(|(mut row, value)| {
            row.insert("v", value);
            row
        })
        .collect()
    };
    let fill = |input: &[Document]| column(doc! { "$linearFill": "$v" }, input);
    let exact = fill(&rows([decimal("0.1"), Bson::Null, decimal("0.3")]));
    assert_eq!(exact.as_array().unwrap()[1].to_string(), "0.2");
    let mixed = fill(&rows([bson!(1), Bson::Null, bson!(4)]));
    assert_eq!(mixed, bson!([1, 2.5, 4]));
    let long = fill(&rows([bson!(i64::MAX - 2), Bson::Null, bson!(i64::MAX)]));
    assert_eq!(
        long.as_array().unwrap()[1],
        Bson::Double(9.223_372_036_854_776e18)
    );
}

#[test]
fn linear_fill_refuses_mixed_types() {
    let date = Bson::DateTime(DateTime::from_millis(5));
    let fails = |input: &[Document], code: i32, part: &str| {
        let spec = doc! { "sortBy": { "x": 1 }, "output": { "f": { "$linearFill": "$v" } } };
        let error = apply("$setWindowFields", spec, input).unwrap_err();
        assert_eq!(error.code.0, code, "{error}");
        assert!(error.message.contains(part), "{error}");
    };
    let mixed = [doc! { "x": 1, "v": 1 }, doc! { "x": date, "v": 2 }];
    fails(&mixed, 14, "Conflicting sort value types");
    fails(
        &[doc! { "x": "a", "v": 1 }],
        14,
        "numeric or a date, but found string",
    );
    fails(
        &[doc! { "v": 1 }],
        14,
        "numeric or a date, but found missing",
    );
    fails(
        &[doc! { "x": 1, "v": "a" }],
        14,
        "numeric or nullish, but found string",
    );
    let twice = [doc! { "x": 1, "v": 1 }, doc! { "x": 1.0, "v": 2 }];
    fails(&twice, 6_050_106, "no repeated values");
}

#[test]
fn shift_refuses_distances_beyond_32_bits() {
    for by in [
        bson!(i64::from(i32::MAX) + 1),
        bson!(1e10),
        bson!(1.5),
        bson!("1"),
    ] {
        let shift = doc! { "$shift": { "output": "$y", "by": by } };
        let spec = doc! { "sortBy": { "x": 1 }, "output": { "f": shift } };
        refuse("$setWindowFields", spec, 9);
    }
}

#[test]
fn a_sort_without_keys_is_refused() {
    let sum = doc! { "sortBy": {}, "output": { "n": { "$sum": 1 } } };
    refuse("$setWindowFields", sum, 15_976);
    let fill = doc! { "sortBy": {}, "output": { "v": { "value": 1 } } };
    refuse("$fill", fill, 15_976);
}

/// Documents of a few hundred bytes in partitions `p`, with `x` in no order and sometimes null.
fn disordered(count: u64) -> Vec<Document> {
    let mut rng = stdx::Rng::new(5);
    let mut document = |id: u64| {
        let partition = match rng.below(12) {
            0 => Bson::Null,
            1 => Bson::Double(3.0),
            at => Bson::Int64(i64::try_from(at).unwrap()),
        };
        let y = match rng.below(3) {
            0 => Bson::Null,
            at => Bson::Int64(i64::try_from(at * id).unwrap()),
        };
        let x = i64::try_from(rng.below(count) * count + id).unwrap();
        let id = i64::try_from(id).unwrap();
        doc! { "_id": id, "p": partition, "x": x, "y": y, "text": "t".repeat(200) }
    };
    (0..count).map(&mut document).collect()
}

#[test]
fn what_is_sorted_on_disk_gives_what_is_sorted_in_memory() {
    let input = disordered(600);
    let window = doc! { "documents": [-2, 1] };
    let output = doc! {
        "sum": { "$sum": "$y", "window": window }, "n": { "$documentNumber": {} },
        "all": { "$sum": "$x" }, "first": { "$shift": { "output": "$_id", "by": -1 } },
    };
    let step = doc! { "step": 90_000, "bounds": "partition" };
    for (stage, spec) in [
        (
            "$setWindowFields",
            doc! { "partitionBy": "$p", "sortBy": { "x": 1 }, "output": output.clone() },
        ),
        (
            "$setWindowFields",
            doc! { "partitionBy": { "$mod": ["$x", 7] }, "sortBy": { "p": -1, "x": 1 },
            "output": output },
        ),
        (
            "$setWindowFields",
            doc! { "partitionBy": "$p", "output": { "n": { "$sum": 1 } } },
        ),
        (
            "$fill",
            doc! { "partitionBy": "$p", "sortBy": { "x": 1 },
            "output": { "y": { "method": "linear" }, "z": { "value": "$x" } } },
        ),
        (
            "$fill",
            doc! { "partitionByFields": ["p"], "sortBy": { "x": -1 },
            "output": { "y": { "method": "locf" } } },
        ),
        (
            "$densify",
            doc! { "field": "x", "partitionByFields": ["p"], "range": step },
        ),
    ] {
        let pipeline = || parse(&bson!([{ stage: spec.clone() }])).unwrap();
        let whole = Memory::default().run(pipeline(), &input).unwrap();
        assert!(whole.len() >= input.len());
        let mut memory = Memory {
            limit: Some(40_000),
            ..Memory::default()
        };
        assert_eq!(
            memory.run(pipeline(), &input).unwrap(),
            whole,
            "{stage} {spec}"
        );
        assert!(memory.spills > 1, "{stage}");
        memory.no_disk = true;
        let error = memory.run(pipeline(), &input).unwrap_err();
        let refused = Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED;
        assert_eq!(error.code, refused, "{stage}");
    }
}

#[test]
fn a_partition_stays_within_the_limit_and_rows_that_stand_alone_need_none() {
    let input = disordered(600);
    let mut memory = Memory {
        limit: Some(40_000),
        ..Memory::default()
    };
    let sum = doc! { "sortBy": { "x": 1 }, "output": { "n": { "$sum": 1 } } };
    let pipeline = parse(&bson!([{ "$setWindowFields": sum }])).unwrap();
    let error = memory.run(pipeline, &input).unwrap_err();
    assert_eq!(error.code, Code::EXCEEDED_MEMORY_LIMIT);
    memory.no_disk = true;
    let fill = doc! { "output": { "y": { "value": 0 } } };
    let rows = memory.run(parse(&bson!([{ "$fill": fill }])).unwrap(), &input);
    assert_eq!(rows.unwrap().len(), input.len());
}

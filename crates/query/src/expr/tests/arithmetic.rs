//! Arithmetic: promotion, overflow, dates, nulls.

use bson::{Bson, DateTime, bson, doc};

use super::{check, refuse};

#[test]
fn sums_promote() {
    let d = doc! { "i": i32::MAX, "l": i64::MAX, "f": 0.5, "n": null };
    check(
        doc! { "$add": ["$i", 1] },
        d.clone(),
        Bson::Int64(2_147_483_648),
    );
    check(
        doc! { "$add": ["$l", 1] },
        d.clone(),
        Bson::Double(9_223_372_036_854_775_808.0),
    );
    check(doc! { "$add": ["$f", 1] }, d.clone(), Bson::Double(1.5));
    check(doc! { "$add": ["$n", 1] }, d.clone(), Bson::Null);
    check(doc! { "$add": ["$x", 1] }, d.clone(), Bson::Null);
    check(doc! { "$add": [] }, d.clone(), Bson::Int32(0));
    refuse(
        doc! { "$add": ["$i", "x"] },
        d,
        16_554,
        "$add only supports numeric or date types, not string",
    );
}

#[test]
fn dates_move_by_milliseconds() {
    let date = |millis| Bson::DateTime(DateTime::from_millis(millis));
    let d = doc! { "d": date(1000), "e": date(400) };
    check(doc! { "$add": ["$d", 5] }, d.clone(), date(1005));
    check(doc! { "$subtract": ["$d", 1.6] }, d.clone(), date(998));
    check(
        doc! { "$subtract": ["$d", "$e"] },
        d.clone(),
        Bson::Int64(600),
    );
    refuse(
        doc! { "$add": ["$d", "$e"] },
        d.clone(),
        16_612,
        "only one date",
    );
    refuse(
        doc! { "$subtract": [1, "$e"] },
        d,
        16_556,
        "can't $subtract date from int",
    );
}

#[test]
fn quotients_and_remainders() {
    check(doc! { "$divide": [7, 2] }, doc! {}, Bson::Double(3.5));
    check(doc! { "$mod": [7, 2] }, doc! {}, Bson::Int32(1));
    check(doc! { "$mod": [-7.5, 2] }, doc! {}, Bson::Double(-1.5));
    check(doc! { "$divide": [null, 2] }, doc! {}, Bson::Null);
    refuse(
        doc! { "$divide": ["a", 2] },
        doc! {},
        16_609,
        "not string and int",
    );
    refuse(
        doc! { "$divide": [1, 0] },
        doc! {},
        2,
        "can't $divide by zero",
    );
    refuse(
        doc! { "$divide": [1] },
        doc! {},
        16_020,
        "takes exactly 2 arguments. 1 were passed in",
    );
}

#[test]
fn rounding() {
    check(doc! { "$round": [2.5] }, doc! {}, Bson::Double(2.0));
    check(doc! { "$round": [1234, -2] }, doc! {}, Bson::Int32(1200));
    check(doc! { "$trunc": [1.987, 2] }, doc! {}, Bson::Double(1.98));
    check(doc! { "$abs": -3 }, doc! {}, Bson::Int32(3));
    check(
        doc! { "$pow": [2, 40] },
        doc! {},
        Bson::Int64(1_099_511_627_776),
    );
    check(
        doc! { "$bitAnd": ["$a", 6] },
        doc! { "a": 3_i64 },
        Bson::Int64(2),
    );
    check(bson!({ "$bitNot": 0 }), doc! {}, Bson::Int32(-1));
    refuse(
        doc! { "$round": [1, 101] },
        doc! {},
        51_083,
        "value must be in [-20, 100]",
    );
    refuse(
        doc! { "$sin": f64::INFINITY },
        doc! {},
        50_989,
        "cannot apply $sin to inf",
    );
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

#[test]
fn decimals_with_fewer_digits_than_places_are_not_rounded() {
    for operator in ["$round", "$trunc"] {
        let to = |text: &str, place: i32| doc! { operator: [decimal(text), place] };
        let padded = decimal("1.298000000000000000000000000000000");
        check(to("1.298", 100), doc! {}, padded);
        check(
            to("1.298", 2),
            doc! {},
            decimal(if operator == "$round" { "1.30" } else { "1.29" }),
        );
        check(to("1.298", 20), doc! {}, decimal("1.29800000000000000000"));
        let large = decimal("1.000000000000000000000000000000000E+40");
        check(to("1E+40", 1), doc! {}, large);
        check(to("NaN", 50), doc! {}, decimal("NaN"));
        check(to("-Infinity", 50), doc! {}, decimal("-Infinity"));
    }
}

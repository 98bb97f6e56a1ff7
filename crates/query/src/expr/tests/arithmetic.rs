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
    let back = doc! { "$add": ["$i", 1, -1] };
    check(back, d.clone(), Bson::Int32(i32::MAX));
    // Added from left to right; digits lost by rounding do not come back.
    let rounded = doc! { "$add": [1e16, 1.0, -1e16] };
    check(rounded, d.clone(), Bson::Double(0.0));
    refuse(
        doc! { "$add": ["$i", "x"] },
        d,
        14,
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
        14,
        "can't $subtract date from int",
    );
}

#[test]
fn operands_of_the_wrong_type_are_mismatches() {
    let d = doc! { "t": "x", "d": DateTime::from_millis(1000) };
    for (expr, code, part) in [
        (doc! { "$add": ["$t", null] }, 14, "date types, not string"),
        (
            doc! { "$multiply": [2, "$t"] },
            14,
            "numeric types, not string",
        ),
        (
            doc! { "$multiply": ["$t", null] },
            14,
            "numeric types, not string",
        ),
        (
            doc! { "$subtract": [2, "$t"] },
            14,
            "$subtract string from int",
        ),
        (
            doc! { "$subtract": ["$d", "$t"] },
            14,
            "$subtract string from Date",
        ),
        (doc! { "$divide": ["$t", 2] }, 14, "not string and int"),
        (doc! { "$mod": ["$t", 2] }, 16_611, "not string and int"),
        (doc! { "$mod": [1, 0] }, 16_610, "can't $mod by zero"),
        (
            doc! { "$mod": [decimal("1"), 0] },
            5_733_415,
            "can't $mod by zero",
        ),
    ] {
        refuse(expr, d.clone(), code, part);
    }
    // A null or missing operand before the invalid one makes the result null.
    check(doc! { "$add": [null, "$t"] }, d.clone(), Bson::Null);
    check(doc! { "$multiply": ["$x", "$t"] }, d.clone(), Bson::Null);
    check(doc! { "$subtract": ["$t", "$x"] }, d, Bson::Null);
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
        14,
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

const PI: &str = "3.141592653589793238462643383279503";
const HALF_PI: &str = "1.570796326794896619231321691639751";
const LARGEST: &str = "9.999999999999999999999999999999999E+6144";
const BELOW_ONE: &str = "0.9999999999999999999999999999999999";
const ABOVE_ONE: &str = "1.000000000000000000000000000000001";

/// `trigonometry`: T1, T2 and T3.
#[test]
fn trigonometry_of_decimals_has_34_digits() {
    // Computed by mpmath with 120 digits, for large exponents with 6400.
    for (operator, argument, expected) in [
        ("$sin", "0.5", "0.4794255386042030002732879352155714"),
        ("$cos", "0.5", "0.8775825618903727161162815826038297"),
        ("$tan", "0.5", "0.5463024898437905132551794657802854"),
        ("$sin", "1E+30", "-0.09011690191213805803038642895298733"),
        ("$sin", "1E+6144", "0.9168078385445297016578219657016703"),
        ("$cos", LARGEST, "-0.8296453523350967216289114223081673"),
        ("$tan", "-1E+50", "-1.287099709502970364501353583635183"),
        ("$sin", PI, "-1.158028306006248941790250554076922E-34"),
        ("$cos", HALF_PI, "4.420985846996875529104874722961539E-34"),
        ("$tan", HALF_PI, "2261938930836633226244288822199802"),
        ("$sin", "-1E-30", "-1.000000000000000000000000000000000E-30"),
        ("$asin", "0.5", "0.5235987755982988730771072305465838"),
        ("$asin", "1", HALF_PI),
        ("$asin", BELOW_ONE, "1.570796326794896605089186067908801"),
        ("$acos", "-1", PI),
        ("$acos", "0", HALF_PI),
        ("$acos", "0.5", "1.047197551196597746154214461093168"),
        (
            "$acos",
            BELOW_ONE,
            "1.414213562373095048801688724209698E-17",
        ),
        ("$atan", "1", "0.7853981633974483096156608458198757"),
        ("$atan", "1E-20", "1.000000000000000000000000000000000E-20"),
        (
            "$atan",
            "-123456.789",
            "-1.570788226794823086377655759773266",
        ),
        ("$atan", "Infinity", HALF_PI),
        ("$sinh", "1", "1.175201193643801456882381850595601"),
        ("$sinh", "1E-10", "1.000000000000000000001666666666667E-10"),
        (
            "$sinh",
            "-1000",
            "-9.850355570085234969444396761216616E+433",
        ),
        ("$sinh", "-Infinity", "-Infinity"),
        ("$cosh", "1", "1.543080634815243778477905620757062"),
        ("$cosh", "0.001", "1.000000500000041666668055555580357"),
        ("$cosh", "-Infinity", "Infinity"),
        ("$tanh", "1", "0.7615941559557648881194582826047936"),
        ("$tanh", "0.001", "0.0009999996666667999999460317679012257"),
        ("$tanh", "Infinity", "1.000000000000000000000000000000000"),
        ("$asinh", "1", "0.8813735870195430252326093249797923"),
        (
            "$asinh",
            "-1E-15",
            "-9.999999999999999999999999999998333E-16",
        ),
        ("$asinh", "1E+6000", "13816.20370514483404941736596022764"),
        ("$acosh", "3", "1.762747174039086050465218649959585"),
        (
            "$acosh",
            ABOVE_ONE,
            "4.472135954999579392818347337462552E-17",
        ),
        ("$atanh", "0.5", "0.5493061443340548456976226184612629"),
        ("$atanh", "1E-8", "1.000000000000000033333333333333335E-8"),
        ("$atanh", BELOW_ONE, "39.49052017117874928301447079036328"),
        ("$atanh", "1", "Infinity"),
        ("$atanh", "-1", "-Infinity"),
        ("$degreesToRadians", "180", PI),
        (
            "$radiansToDegrees",
            "1",
            "57.29577951308232087679815481410517",
        ),
        ("$sin", "NaN", "NaN"),
        ("$sin", "-0", "-0"),
    ] {
        check(
            doc! { operator: decimal(argument) },
            doc! {},
            decimal(expected),
        );
    }
    let atan2 = |y: &str, x: &str| doc! { "$atan2": [decimal(y), decimal(x)] };
    for (y, x, expected) in [
        ("1", "1", "0.7853981633974483096156608458198757"),
        ("-1", "-1", "-2.356194490192344928846982537459627"),
        ("0", "-1", "3.141592653589793238462643383279503"),
        ("-2", "0", "-1.570796326794896619231321691639751"),
        (
            "Infinity",
            "-Infinity",
            "2.356194490192344928846982537459627",
        ),
        ("NaN", "1", "NaN"),
    ] {
        check(atan2(y, x), doc! {}, decimal(expected));
    }
    for (operator, argument) in [
        ("$asin", ABOVE_ONE),
        ("$acosh", BELOW_ONE),
        ("$cos", "-Infinity"),
    ] {
        let expr = doc! { operator: decimal(argument) };
        refuse(expr, doc! {}, 50_989, "cannot apply");
    }
}

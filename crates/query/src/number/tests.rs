//! Numbers: known results.

use std::cmp::Ordering;

use bson::Decimal128;

use super::{
    DecimalError, Number, canonical, compare, double_to_string, parse_decimal, parse_integer,
};

fn decimal(text: &str) -> Number {
    Number::Decimal(text.parse::<Decimal128>().unwrap())
}

fn double(number: f64) -> Number {
    Number::Double(number)
}

fn check_order(left: Number, right: Number, expected: Ordering) {
    assert_eq!(compare(left, right), expected, "{left} and {right}");
    assert_eq!(
        compare(right, left),
        expected.reverse(),
        "{right} and {left}"
    );
    assert_eq!(
        canonical(left) == canonical(right),
        expected == Ordering::Equal,
        "{left} and {right}"
    );
}

#[test]
fn numbers_compare_by_exact_value() {
    const BIG: i64 = 1 << 53;
    check_order(
        Number::Int64(BIG + 1),
        double(9_007_199_254_740_992.0),
        Ordering::Greater,
    );
    check_order(
        Number::Int64(BIG),
        double(9_007_199_254_740_992.0),
        Ordering::Equal,
    );
    check_order(
        Number::Int64(i64::MAX),
        double(9.223_372_036_854_776e18),
        Ordering::Less,
    );
    check_order(
        Number::Int64(i64::MIN),
        double(-9.223_372_036_854_776e18),
        Ordering::Equal,
    );
    check_order(Number::Int64(3), double(3.5), Ordering::Less);
    check_order(Number::Int64(-3), double(-3.5), Ordering::Greater);
    check_order(decimal("0.1"), double(0.1), Ordering::Less);
    check_order(decimal("0.5"), double(0.5), Ordering::Equal);
    check_order(decimal("1.10"), decimal("1.1"), Ordering::Equal);
    check_order(decimal("1E+3"), Number::Int32(1000), Ordering::Equal);
    check_order(decimal("1E+20"), double(1e20), Ordering::Equal);
    check_order(decimal("1E+6000"), double(f64::MAX), Ordering::Greater);
    check_order(decimal("1E-6000"), double(0.0), Ordering::Greater);
    check_order(decimal("-1E-6000"), double(-5e-324), Ordering::Greater);
    check_order(
        decimal("9223372036854775808"),
        Number::Int64(i64::MAX),
        Ordering::Greater,
    );
}

#[test]
fn special_numbers_have_their_place() {
    check_order(double(f64::NAN), double(-f64::NAN), Ordering::Equal);
    check_order(double(f64::NAN), decimal("NaN"), Ordering::Equal);
    check_order(double(f64::NAN), double(f64::NEG_INFINITY), Ordering::Less);
    check_order(decimal("NaN"), decimal("-Infinity"), Ordering::Less);
    check_order(decimal("NaN"), Number::Int32(-7), Ordering::Less);
    check_order(double(f64::INFINITY), decimal("Infinity"), Ordering::Equal);
    check_order(double(f64::INFINITY), decimal("9E+6111"), Ordering::Greater);
    check_order(double(-0.0), Number::Int32(0), Ordering::Equal);
    check_order(decimal("-0E+5"), double(0.0), Ordering::Equal);
    check_order(decimal("-0"), decimal("0.00"), Ordering::Equal);
}

#[test]
fn sums_promote() {
    let int = Number::Int32;
    assert_eq!(int(1).add(int(2)), int(3));
    assert_eq!(int(i32::MAX).add(int(1)), Number::Int64(1 << 31));
    assert_eq!(Number::Int64(1).add(int(2)), Number::Int64(3));
    assert_eq!(
        Number::Int64(i64::MAX).add(int(1)),
        double(9.223_372_036_854_776e18)
    );
    assert_eq!(Number::Int64(i64::MAX).checked_add(int(1)), None);
    assert_eq!(int(1).add(double(0.5)), double(1.5));
    assert_eq!(int(1).add(decimal("0.10")), decimal("1.10"));
    assert_eq!(
        double(0.1).add(decimal("0.2")),
        decimal("0.300000000000000")
    );
    assert_eq!(int(-7).multiply(decimal("1.5")), decimal("-10.5"));
    assert_eq!(int(65536).multiply(int(65536)), Number::Int64(1 << 32));
    assert_eq!(
        int(i32::MIN).subtract(int(1)),
        Number::Int64(i64::from(i32::MIN) - 1)
    );
}

#[test]
fn quotients_and_remainders() {
    let int = Number::Int32;
    assert_eq!(int(7).divide(int(2)).unwrap(), double(3.5));
    assert_eq!(
        decimal("1").divide(int(3)).unwrap(),
        decimal("0.3333333333333333333333333333333333")
    );
    assert!(int(7).divide(decimal("0")).is_err());
    assert_eq!(int(-7).modulo(int(2)).unwrap(), int(-1));
    assert_eq!(int(7).modulo(double(2.0)).unwrap(), int(1));
    assert_eq!(double(7.5).modulo(int(2)).unwrap(), double(1.5));
    assert_eq!(
        Number::Int64(i64::MIN).modulo(int(-1)).unwrap(),
        Number::Int64(0)
    );
    assert_eq!(decimal("7.5").modulo(int(2)).unwrap(), decimal("1.5"));
    assert_eq!(int(i32::MIN).abs().unwrap(), Number::Int64(1 << 31));
    assert!(Number::Int64(i64::MIN).abs().is_err());
    assert_eq!(decimal("-1.50").abs().unwrap(), decimal("1.50"));
}

#[test]
fn rounding_is_half_to_even() {
    assert_eq!(double(2.5).round(0).unwrap(), double(2.0));
    assert_eq!(double(-3.5).round(0).unwrap(), double(-4.0));
    assert_eq!(double(1.25).round(1).unwrap(), double(1.2));
    assert_eq!(double(1234.5678).round(2).unwrap(), double(1234.57));
    assert_eq!(double(1234.5678).trunc(2).unwrap(), double(1234.56));
    assert_eq!(double(1234.5678).round(-2).unwrap(), double(1200.0));
    assert_eq!(double(1e300).round(5).unwrap(), double(1e300));
    assert_eq!(Number::Int32(1250).round(-2).unwrap(), Number::Int32(1200));
    assert_eq!(Number::Int32(1250).round(2).unwrap(), Number::Int32(1250));
    assert_eq!(
        Number::Int32(i32::MAX).round(-1).unwrap(),
        Number::Int64(2_147_483_650)
    );
    assert!(Number::Int64(i64::MAX).round(-1).is_err());
    assert_eq!(decimal("2.5").round(0).unwrap(), decimal("2"));
    assert_eq!(decimal("2.345").trunc(2).unwrap(), decimal("2.34"));
    assert_eq!(decimal("-2.5").floor(), decimal("-3"));
    assert_eq!(decimal("-2.5").ceil(), decimal("-2"));
    assert_eq!(decimal("1E+40").ceil(), decimal("1E+40"));
}

#[test]
fn functions() {
    let int = Number::Int32;
    assert_eq!(int(2).pow(int(10)).unwrap(), int(1024));
    assert_eq!(int(2).pow(int(40)).unwrap(), Number::Int64(1 << 40));
    assert_eq!(int(2).pow(int(-1)).unwrap(), double(0.5));
    assert_eq!(int(10).pow(int(20)).unwrap(), double(1e20));
    assert!(int(0).pow(int(-1)).is_err());
    assert_eq!(
        decimal("1.1").pow(int(2)).unwrap(),
        decimal("1.210000000000000000000000000000000")
    );
    assert_eq!(int(9).sqrt().unwrap(), double(3.0));
    assert_eq!(decimal("9").sqrt().unwrap(), decimal("3"));
    assert!(int(-1).sqrt().is_err());
    assert_eq!(decimal("0").exp(), decimal("1"));
    assert_eq!(
        decimal("1").exp(),
        decimal("2.718281828459045235360287471352662")
    );
    assert_eq!(decimal("100").log10().unwrap(), decimal("2"));
    assert_eq!(int(100).log(int(10)).unwrap(), double(2.0));
    assert!(int(0).ln().is_err());
    assert!(int(5).log(int(1)).is_err());
}

#[test]
fn conversions() {
    assert_eq!(
        Number::Double(0.1).to_decimal().to_string(),
        "0.100000000000000"
    );
    assert_eq!(
        Number::Double(2.5).to_decimal().to_string(),
        "2.50000000000000"
    );
    assert_eq!(Number::Double(2.5).to_decimal_exact().to_string(), "2.5");
    assert_eq!(Number::Double(0.0).to_decimal().to_string(), "0");
    assert_eq!(double(2.9).to_i64_truncated(), Some(2));
    assert_eq!(double(-2.9).to_i32_truncated(), Some(-2));
    assert_eq!(double(1e19).to_i64_truncated(), None);
    assert_eq!(double(1e19).to_i64_clamped(), i64::MAX);
    assert_eq!(decimal("-12.7").to_i64_truncated(), Some(-12));
    assert_eq!(decimal("1E-6000").to_i64_truncated(), Some(0));
    assert_eq!(decimal("NaN").to_i64_truncated(), None);
    assert_eq!(decimal("12.0").to_i64_exact(), Some(12));
    assert_eq!(decimal("12.5").to_i64_exact(), None);
}

#[test]
fn texts() {
    for (number, text) in [
        (2.5, "2.5"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e20, "1e+20"),
        (1e15, "1000000000000000"),
        (1e-5, "1e-05"),
        (0.0001, "0.0001"),
        (-0.0, "-0"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(double_to_string(number), text);
    }
    assert_eq!(parse_integer("-12"), Some(-12));
    for bad in ["", "-", "1.0", " 1", "0x1", "99999999999999999999"] {
        assert_eq!(parse_integer(bad), None, "{bad}");
    }
    for good in ["1", "-1.50", "1E+3", "NaN", "-Infinity", ".5"] {
        assert!(parse_decimal(good).is_ok(), "{good}");
    }
    for bad in ["", "abc", "1e", "1\0", "NaN12", "sNaN"] {
        assert_eq!(parse_decimal(bad), Err(DecimalError::Syntax), "{bad}");
    }
}

#[test]
fn every_decimal_survives_the_other_encoding() {
    for text in [
        "0",
        "-0",
        "0E+6111",
        "-0E-6176",
        "1",
        "-1.5",
        "9999999999999999999999999999999999E+6111",
        "1E-6176",
        "Infinity",
        "-Infinity",
    ] {
        let number: Decimal128 = text.parse().unwrap();
        let back = super::decimal::from_dec(super::decimal::to_dec(number));
        assert_eq!(back, number, "{text}");
    }
}

#[test]
fn exact_decimal_powers_and_logarithms_have_the_digits_of_mongodb() {
    let int = Number::Int32;
    let power = |base: Number, exponent: Number| base.pow(exponent).unwrap().to_string();
    let eight = "8.000000000000000000000000000000000";
    assert_eq!(power(decimal("2"), decimal("3")), eight);
    assert_eq!(power(int(2), decimal("3")), eight);
    let quarter = "0.2500000000000000000000000000000000";
    assert_eq!(power(decimal("0.5"), int(2)), quarter);
    let hundred = "1267650600228229401496703205376.000";
    assert_eq!(power(decimal("2"), int(100)), hundred);
    assert_eq!(power(decimal("0"), int(2)), "0E-6176");
    assert_eq!(power(decimal("Infinity"), int(2)), "Infinity");
    let log = |value: &str, base: i32| decimal(value).log(int(base)).unwrap().to_string();
    assert_eq!(log("100", 10), "2");
    assert_eq!(log("1000", 10), "3.000000000000000000000000000000000");
    assert_eq!(log("32", 2), "5");
    let two = decimal("2").log10().unwrap().to_string();
    assert_eq!(two, "0.3010299956639811952137388947244930");
}

#[test]
fn the_logarithm_of_a_decimal_nan_is_a_double() {
    let (nan, ten) = (decimal("NaN"), Number::Int32(10));
    for found in [
        nan.ln(),
        nan.log10(),
        nan.log(ten),
        ten.log(nan),
        nan.log(nan),
    ] {
        let found = found.unwrap();
        assert!(
            matches!(found, Number::Double(number) if number.is_nan()),
            "{found}"
        );
    }
    assert_eq!(decimal("Infinity").ln().unwrap(), decimal("Infinity"));
}

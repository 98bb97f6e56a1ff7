//! Trigonometry: doubles by the system's functions, decimals to 34 digits.

use bson::Decimal128;

use super::args::{Args, fail};
use super::arithmetic::{one, two};
use super::env::Value;
use super::function::Function;
use crate::Result;
use crate::number::{Number, compare, trigonometry};

/// A function for doubles, and the same function for decimals.
type Pair = (fn(f64) -> f64, fn(Decimal128) -> Decimal128);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::exactly("$sin", 1, |args| bounded(args, SIN, OPEN)),
    Function::exactly("$cos", 1, |args| bounded(args, COS, OPEN)),
    Function::exactly("$tan", 1, |args| bounded(args, TAN, OPEN)),
    Function::exactly("$asin", 1, |args| bounded(args, ASIN, UNIT)),
    Function::exactly("$acos", 1, |args| bounded(args, ACOS, UNIT)),
    Function::exactly("$atan", 1, |args| bounded(args, ATAN, ANY)),
    Function::exactly("$sinh", 1, |args| bounded(args, SINH, ANY)),
    Function::exactly("$cosh", 1, |args| bounded(args, COSH, ANY)),
    Function::exactly("$tanh", 1, |args| bounded(args, TANH, ANY)),
    Function::exactly("$asinh", 1, |args| bounded(args, ASINH, ANY)),
    Function::exactly("$acosh", 1, |args| bounded(args, ACOSH, FROM_ONE)),
    Function::exactly("$atanh", 1, |args| bounded(args, ATANH, UNIT)),
    Function::exactly("$atan2", 2, atan2),
    Function::exactly("$degreesToRadians", 1, |args| {
        bounded(args, TO_RADIANS, ANY)
    }),
    Function::exactly("$radiansToDegrees", 1, |args| {
        bounded(args, TO_DEGREES, ANY)
    }),
];

const SIN: Pair = (f64::sin, trigonometry::sin);
const COS: Pair = (f64::cos, trigonometry::cos);
const TAN: Pair = (f64::tan, trigonometry::tan);
const ASIN: Pair = (f64::asin, trigonometry::asin);
const ACOS: Pair = (f64::acos, trigonometry::acos);
const ATAN: Pair = (f64::atan, trigonometry::atan);
const SINH: Pair = (f64::sinh, trigonometry::sinh);
const COSH: Pair = (f64::cosh, trigonometry::cosh);
const TANH: Pair = (f64::tanh, trigonometry::tanh);
const ASINH: Pair = (f64::asinh, trigonometry::asinh);
const ACOSH: Pair = (f64::acosh, trigonometry::acosh);
const ATANH: Pair = (f64::atanh, trigonometry::atanh);
const TO_RADIANS: Pair = (f64::to_radians, trigonometry::to_radians);
const TO_DEGREES: Pair = (f64::to_degrees, trigonometry::to_degrees);

/// The range of arguments that a function accepts, with its description for messages.
struct Domain {
    has: fn(Number) -> bool,
    text: &'static str,
}

const ANY: Domain = Domain {
    has: |_| true,
    text: "",
};
const OPEN: Domain = Domain {
    has: |number| !number.is_infinite(),
    text: "(-inf,inf)",
};
const UNIT: Domain = Domain {
    has: |number| {
        compare(number, Number::Int32(-1)).is_ge() && compare(number, Number::Int32(1)).is_le()
    },
    text: "[-1,1]",
};
const FROM_ONE: Domain = Domain {
    has: |number| compare(number, Number::Int32(1)).is_ge(),
    text: "[1,inf]",
};

fn bounded<'e>(
    args: &Args<'e>,
    (of_double, of_decimal): Pair,
    domain: Domain,
) -> Result<Value<'e>> {
    one(args, |number| {
        if !number.is_nan() && !(domain.has)(number) {
            return fail(
                50_989,
                format!(
                    "cannot apply {} to {}, value must be in {}",
                    args.name(),
                    text(number),
                    domain.text
                ),
            );
        }
        Ok(match number {
            Number::Decimal(number) => Number::Decimal(of_decimal(number)),
            other => Number::Double(of_double(other.to_f64())),
        })
    })
}

fn text(number: Number) -> String {
    let double = number.to_f64();
    match number {
        Number::Decimal(_) => number.to_string(),
        _ if double.is_infinite() => if double > 0.0 { "inf" } else { "-inf" }.to_owned(),
        _ => Number::Double(double).to_string(),
    }
}

fn atan2<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    two(args, 51_044, |y, x| {
        Ok(match (y, x) {
            (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
                Number::Decimal(trigonometry::atan2(y.to_decimal(), x.to_decimal()))
            }
            _ => Number::Double(y.to_f64().atan2(x.to_f64())),
        })
    })
}

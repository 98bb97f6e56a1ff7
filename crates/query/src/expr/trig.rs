//! Trigonometry. Decimals are computed as doubles and given back as decimals of 15 digits.

use super::args::{Args, fail};
use super::arithmetic::{one, two};
use super::env::Value;
use super::function::Function;
use crate::Result;
use crate::number::Number;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::exactly("$sin", 1, |args| bounded(args, f64::sin, OPEN)),
    Function::exactly("$cos", 1, |args| bounded(args, f64::cos, OPEN)),
    Function::exactly("$tan", 1, |args| bounded(args, f64::tan, OPEN)),
    Function::exactly("$asin", 1, |args| bounded(args, f64::asin, UNIT)),
    Function::exactly("$acos", 1, |args| bounded(args, f64::acos, UNIT)),
    Function::exactly("$atan", 1, |args| bounded(args, f64::atan, ANY)),
    Function::exactly("$sinh", 1, |args| bounded(args, f64::sinh, ANY)),
    Function::exactly("$cosh", 1, |args| bounded(args, f64::cosh, ANY)),
    Function::exactly("$tanh", 1, |args| bounded(args, f64::tanh, ANY)),
    Function::exactly("$asinh", 1, |args| bounded(args, f64::asinh, ANY)),
    Function::exactly("$acosh", 1, |args| bounded(args, f64::acosh, FROM_ONE)),
    Function::exactly("$atanh", 1, |args| bounded(args, f64::atanh, UNIT)),
    Function::exactly("$atan2", 2, atan2),
    Function::exactly("$degreesToRadians", 1, |args| {
        bounded(args, f64::to_radians, ANY)
    }),
    Function::exactly("$radiansToDegrees", 1, |args| {
        bounded(args, f64::to_degrees, ANY)
    }),
];

/// The arguments that a function accepts, and how a message says so.
struct Domain {
    has: fn(f64) -> bool,
    text: &'static str,
}

const ANY: Domain = Domain {
    has: |_| true,
    text: "",
};
const OPEN: Domain = Domain {
    has: f64::is_finite,
    text: "(-inf,inf)",
};
const UNIT: Domain = Domain {
    has: |number| (-1.0..=1.0).contains(&number),
    text: "[-1,1]",
};
const FROM_ONE: Domain = Domain {
    has: |number| number >= 1.0,
    text: "[1,inf]",
};

fn bounded<'e>(args: &Args<'e>, function: fn(f64) -> f64, domain: Domain) -> Result<Value<'e>> {
    one(args, |number| {
        let double = number.to_f64();
        if !double.is_nan() && !(domain.has)(double) {
            return fail(
                50_989,
                format!(
                    "cannot apply {} to {}, value must be in {}",
                    args.name(),
                    text(double),
                    domain.text
                ),
            );
        }
        Ok(like(number, function(double)))
    })
}

fn text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    Number::Double(number).to_string()
}

/// The result as a decimal when the argument was one.
fn like(argument: Number, result: f64) -> Number {
    match argument {
        Number::Decimal(_) => Number::Decimal(Number::Double(result).to_decimal()),
        _ => Number::Double(result),
    }
}

fn atan2<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    two(args, 51_044, |y, x| {
        let wide = if matches!(x, Number::Decimal(_)) {
            x
        } else {
            y
        };
        Ok(like(wide, y.to_f64().atan2(x.to_f64())))
    })
}

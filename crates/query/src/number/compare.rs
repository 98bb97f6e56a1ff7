//! The order of numbers by exact value, whatever their types.
//!
//! 2^53+1 as `long` is greater than 2^53 as `double`; 0.1 as decimal is not equal to 0.1 as double;
//! all zeros are equal; NaN is less than all numbers and equal to itself.

use std::cmp::Ordering;

use super::Number;
use super::convert::truncate;
use super::decimal::Parts;

/// 2^63 as a double: one more than the greatest `long`.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// The order of two numbers.
#[must_use]
pub fn compare(left: Number, right: Number) -> Ordering {
    match (left, right) {
        (Number::Int32(a), Number::Int32(b)) => a.cmp(&b),
        (Number::Int32(a), Number::Int64(b)) => i64::from(a).cmp(&b),
        (Number::Int64(a), Number::Int32(b)) => a.cmp(&i64::from(b)),
        (Number::Int64(a), Number::Int64(b)) => a.cmp(&b),
        (Number::Double(a), Number::Double(b)) => doubles(a, b),
        (Number::Int32(a), Number::Double(b)) => doubles(f64::from(a), b),
        (Number::Double(a), Number::Int32(b)) => doubles(a, f64::from(b)),
        (Number::Int64(a), Number::Double(b)) => integer_with_double(a, b),
        (Number::Double(a), Number::Int64(b)) => integer_with_double(b, a).reverse(),
        (Number::Decimal(a), Number::Double(b)) => decimal_with_double(Parts::of(a), b),
        (Number::Double(a), Number::Decimal(b)) => decimal_with_double(Parts::of(b), a).reverse(),
        (a, b) => decimals(parts(a), parts(b)),
    }
}

/// The parts of a decimal or of an integer.
fn parts(number: Number) -> Parts {
    match number {
        Number::Int32(number) => Parts::of_integer(i64::from(number)),
        Number::Int64(number) => Parts::of_integer(number),
        Number::Decimal(number) => Parts::of(number),
        Number::Double(_) => unreachable!("compare handles every pair with a double before"),
    }
}

fn doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
}

fn integer_with_double(left: i64, right: f64) -> Ordering {
    if right.is_nan() || right < -TWO_63 {
        return Ordering::Greater;
    }
    if right >= TWO_63 {
        return Ordering::Less;
    }
    let whole = truncate(right);
    left.cmp(&whole)
        .then_with(|| doubles(0.0, right - right.trunc()))
}

/// The order of two decimals.
pub(super) fn decimals(left: Parts, right: Parts) -> Ordering {
    let class = |parts: Parts| match parts {
        Parts::Nan => 0,
        Parts::Infinity { negative: true } => 1,
        Parts::Finite { coefficient: 0, .. } => 3,
        Parts::Finite { negative: true, .. } => 2,
        Parts::Finite { .. } => 4,
        Parts::Infinity { .. } => 5,
    };
    let order = class(left).cmp(&class(right));
    let (
        Ordering::Equal,
        Parts::Finite {
            negative,
            coefficient: a,
            exponent: i,
        },
        Parts::Finite {
            coefficient: b,
            exponent: j,
            ..
        },
    ) = (order, left, right)
    else {
        return order;
    };
    if a == 0 {
        return Ordering::Equal;
    }
    let magnitude = magnitudes(a, i, b, j);
    if negative {
        magnitude.reverse()
    } else {
        magnitude
    }
}

/// The order of `a * 10^i` and `b * 10^j`, both greater than zero.
fn magnitudes(a: u128, i: i32, b: u128, j: i32) -> Ordering {
    let digits = |number: u128| i32::try_from(number.ilog10()).expect("at most 38");
    let order = (digits(a) + i).cmp(&(digits(b) + j));
    if order != Ordering::Equal {
        return order;
    }
    // Both have the same magnitude, so the exponents differ by at most 33, and the product has at
    // most 34 digits.
    let scale = |by: i32| 10_u128.pow(by.unsigned_abs());
    if i >= j {
        (a * scale(i - j)).cmp(&b)
    } else {
        a.cmp(&(b * scale(j - i)))
    }
}

fn decimal_with_double(left: Parts, right: f64) -> Ordering {
    let (
        Parts::Finite {
            negative,
            coefficient,
            exponent,
        },
        true,
    ) = (left, right.is_finite())
    else {
        return doubles(left.to_f64_special(), right);
    };
    if coefficient == 0 || right == 0.0 {
        let sign = |zero: bool, negative: bool| match (zero, negative) {
            (true, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        return sign(coefficient == 0, negative).cmp(&sign(right == 0.0, right < 0.0));
    }
    // Rounding keeps the order, so if the rounded decimal differs from the double, the order is
    // known.
    match doubles(left.to_f64(), right) {
        Ordering::Equal => {
            let order = exact(coefficient, exponent, right.abs());
            if negative { order.reverse() } else { order }
        }
        order => order,
    }
}

impl Parts {
    /// NaN and infinities as doubles, and any finite number as zero: enough to compare it with a
    /// NaN or infinite double.
    fn to_f64_special(self) -> f64 {
        match self {
            Parts::Finite { .. } => 0.0,
            other => other.to_f64(),
        }
    }
}

/// The exact order of `coefficient * 10^exponent` and `double`, both greater than zero and equal
/// after rounding: both sides are multiplied until they are integers.
fn exact(coefficient: u128, exponent: i32, double: f64) -> Ordering {
    let bits = double.to_bits();
    let stored = i32::try_from((bits >> 52) & 0x7FF).expect("11 bits");
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, power) = if stored == 0 {
        (fraction, -1074)
    } else {
        (fraction | (1 << 52), stored - 1075)
    };
    let mut left = Natural::new(coefficient);
    let mut right = Natural::new(u128::from(mantissa));
    left.multiply(10, exponent.max(0));
    right.multiply(10, (-exponent).max(0));
    right.multiply(2, power.max(0));
    left.multiply(2, (-power).max(0));
    left.cmp(&right)
}

/// A natural number of any size: 32-bit digits, the lowest first; the last digit is not zero.
struct Natural(Vec<u32>);

impl Natural {
    fn new(number: u128) -> Natural {
        let mut digits = Vec::new();
        let mut rest = number;
        while rest > 0 {
            digits.push(u32::try_from(rest & 0xFFFF_FFFF).expect("32 bits"));
            rest >>= 32;
        }
        Natural(digits)
    }

    /// Multiplies the number by `factor` (at most 10) to the power of `times`.
    fn multiply(&mut self, factor: u32, times: i32) {
        let mut left = times.unsigned_abs();
        while left > 0 {
            let step = left.min(9);
            self.scale(factor.pow(step));
            left -= step;
        }
    }

    fn scale(&mut self, factor: u32) {
        let mut carry = 0_u64;
        for digit in &mut self.0 {
            let product = u64::from(*digit) * u64::from(factor) + carry;
            *digit = u32::try_from(product & 0xFFFF_FFFF).expect("32 bits");
            carry = product >> 32;
        }
        if carry > 0 {
            self.0.push(u32::try_from(carry).expect("below the factor"));
        }
    }

    fn cmp(&self, other: &Natural) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// The canonical form of a number, the same for all equal numbers; a hash table of values uses it
/// as the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Canonical {
    /// NaN as double or decimal.
    Nan,
    /// An infinity.
    Infinity {
        /// Whether it is the negative infinity.
        negative: bool,
    },
    /// A number that is an integer of 64 bits.
    Integer(i64),
    /// Any other number that a double represents exactly, as the bits of the double.
    Double(u64),
    /// A number that only a decimal represents exactly, without trailing zeros.
    Decimal {
        /// Whether the number is less than zero.
        negative: bool,
        /// Not divisible by ten.
        coefficient: u128,
        /// The power of ten.
        exponent: i32,
    },
}

/// The canonical form of `number`: equal for two numbers exactly when [`compare`] returns `Equal`.
#[must_use]
pub fn canonical(number: Number) -> Canonical {
    match number {
        Number::Int32(number) => Canonical::Integer(i64::from(number)),
        Number::Int64(number) => Canonical::Integer(number),
        Number::Double(number) => canonical_double(number),
        Number::Decimal(number) => canonical_decimal(Parts::of(number)),
    }
}

fn canonical_double(number: f64) -> Canonical {
    if number.is_nan() {
        return Canonical::Nan;
    }
    if number.is_infinite() {
        return Canonical::Infinity {
            negative: number < 0.0,
        };
    }
    if number.trunc() == number && (-TWO_63..TWO_63).contains(&number) {
        return Canonical::Integer(truncate(number));
    }
    Canonical::Double(number.to_bits())
}

fn canonical_decimal(parts: Parts) -> Canonical {
    if let Some(integer) = parts.to_i64() {
        return Canonical::Integer(integer);
    }
    match parts.reduced() {
        Parts::Nan => Canonical::Nan,
        Parts::Infinity { negative } => Canonical::Infinity { negative },
        Parts::Finite {
            negative,
            coefficient,
            exponent,
        } => {
            let double = parts.to_f64();
            if double.is_finite() && decimal_with_double(parts, double) == Ordering::Equal {
                return Canonical::Double(double.to_bits());
            }
            Canonical::Decimal {
                negative,
                coefficient,
                exponent,
            }
        }
    }
}

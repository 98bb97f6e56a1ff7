//! Sums, products and quotients, with MongoDB's rules of type promotion: the result is a decimal if
//! an operand is, else a double if an operand is; an `int` that overflows becomes a `long`, a
//! `long` that overflows becomes a double.

use bson::Decimal128;
use dec::Context;

use super::Number;
use super::convert::truncate;
use super::decimal::{from_dec, to_dec};
use crate::{Error, Result};

/// Two operands converted to a common type.
enum Pair {
    /// Two integers, and whether both are `int`.
    Integers(bool, i64, i64),
    Doubles(f64, f64),
    Decimals(Decimal128, Decimal128),
}

impl Pair {
    fn new(left: Number, right: Number) -> Pair {
        match (left, right) {
            (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
                Pair::Decimals(left.to_decimal(), right.to_decimal())
            }
            (Number::Double(_), _) | (_, Number::Double(_)) => {
                Pair::Doubles(left.to_f64(), right.to_f64())
            }
            (Number::Int32(a), Number::Int32(b)) => {
                Pair::Integers(true, i64::from(a), i64::from(b))
            }
            (Number::Int32(a), Number::Int64(b)) => Pair::Integers(false, i64::from(a), b),
            (Number::Int64(a), Number::Int32(b)) => Pair::Integers(false, a, i64::from(b)),
            (Number::Int64(a), Number::Int64(b)) => Pair::Integers(false, a, b),
        }
    }
}

/// An operation, as one function for each kind of pair.
struct Operation {
    integers: fn(i64, i64) -> Option<i64>,
    doubles: fn(f64, f64) -> f64,
    decimals:
        fn(&mut Context<dec::Decimal128>, dec::Decimal128, dec::Decimal128) -> dec::Decimal128,
}

impl Operation {
    /// The result; `None` when an integer result overflows 64 bits.
    fn apply(&self, left: Number, right: Number) -> Option<Number> {
        Some(match Pair::new(left, right) {
            Pair::Integers(narrow, a, b) => {
                let result = (self.integers)(a, b)?;
                if narrow {
                    Number::narrow(result)
                } else {
                    Number::Int64(result)
                }
            }
            Pair::Doubles(a, b) => Number::Double((self.doubles)(a, b)),
            Pair::Decimals(a, b) => {
                let mut context = Context::default();
                let result = (self.decimals)(&mut context, to_dec(a), to_dec(b));
                Number::Decimal(from_dec(result))
            }
        })
    }

    fn widening(&self, left: Number, right: Number) -> Number {
        self.apply(left, right)
            .unwrap_or_else(|| Number::Double((self.doubles)(left.to_f64(), right.to_f64())))
    }
}

const ADD: Operation = Operation {
    integers: i64::checked_add,
    doubles: |a, b| a + b,
    decimals: Context::<dec::Decimal128>::add,
};
const SUBTRACT: Operation = Operation {
    integers: i64::checked_sub,
    doubles: |a, b| a - b,
    decimals: Context::<dec::Decimal128>::sub,
};
const MULTIPLY: Operation = Operation {
    integers: i64::checked_mul,
    doubles: |a, b| a * b,
    decimals: Context::<dec::Decimal128>::mul,
};

impl Number {
    /// `self + other`.
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "promotes types, as no + does"
    )]
    pub fn add(self, other: Number) -> Number {
        ADD.widening(self, other)
    }

    /// `self + other`; `None` when an integer result overflows 64 bits, which `$inc` refuses.
    #[must_use]
    pub fn checked_add(self, other: Number) -> Option<Number> {
        ADD.apply(self, other)
    }

    /// `self - other`.
    #[must_use]
    pub fn subtract(self, other: Number) -> Number {
        SUBTRACT.widening(self, other)
    }

    /// `self * other`.
    #[must_use]
    pub fn multiply(self, other: Number) -> Number {
        MULTIPLY.widening(self, other)
    }

    /// `self * other`; `None` when an integer result overflows 64 bits, which `$mul` refuses.
    #[must_use]
    pub fn checked_multiply(self, other: Number) -> Option<Number> {
        MULTIPLY.apply(self, other)
    }

    /// `self / other`: a decimal or a double, never an integer.
    ///
    /// # Errors
    /// `BadValue` for a division by zero.
    pub fn divide(self, other: Number) -> Result<Number> {
        if other.is_zero() {
            return Err(Error::bad_value("can't $divide by zero"));
        }
        Ok(match Pair::new(self, other) {
            Pair::Decimals(a, b) => {
                let result = Context::<dec::Decimal128>::default().div(to_dec(a), to_dec(b));
                Number::Decimal(from_dec(result))
            }
            Pair::Doubles(a, b) => Number::Double(a / b),
            Pair::Integers(..) => Number::Double(self.to_f64() / other.to_f64()),
        })
    }

    /// The remainder of `self / other`, with the sign of `self`.
    ///
    /// # Errors
    /// 16610 for a division by zero, 5733415 if an operand is a decimal.
    pub fn modulo(self, other: Number) -> Result<Number> {
        if other.is_zero() {
            let code = match Pair::new(self, other) {
                Pair::Decimals(..) => 5_733_415,
                _ => 16610,
            };
            return Err(Error::location(code, "can't $mod by zero"));
        }
        Ok(match (self, other, Pair::new(self, other)) {
            (_, _, Pair::Decimals(a, b)) => Number::Decimal(remainder(a, b)),
            // An integer divided by a double with an integral value is an integer division.
            (Number::Int32(a), Number::Double(b), _) if is_int(b) => {
                Number::narrow(i64::from(a).wrapping_rem(truncate(b)))
            }
            (Number::Int64(a), Number::Double(b), _) if is_int(b) => {
                Number::Int64(a.wrapping_rem(truncate(b)))
            }
            (_, _, Pair::Doubles(a, b)) => Number::Double(a % b),
            (_, _, Pair::Integers(true, a, b)) => Number::narrow(a.wrapping_rem(b)),
            (_, _, Pair::Integers(false, a, b)) => Number::Int64(a.wrapping_rem(b)),
        })
    }

    /// `self` without its sign. An `int` may become a `long`.
    ///
    /// # Errors
    /// 28680 for the least `long`, whose absolute value does not fit a `long`.
    pub fn abs(self) -> Result<Number> {
        Ok(match self {
            Number::Int32(number) => Number::narrow(i64::from(number).abs()),
            Number::Int64(number) => Number::Int64(
                number
                    .checked_abs()
                    .ok_or_else(|| Error::location(28680, "can't take $abs of long long min"))?,
            ),
            Number::Double(number) => Number::Double(number.abs()),
            Number::Decimal(number) => {
                let mut bytes = number.bytes();
                if let Some(last) = bytes.last_mut() {
                    *last &= 0x7F;
                }
                Number::Decimal(Decimal128::from_bytes(bytes))
            }
        })
    }
}

/// Whether a double is an integer of 32 bits.
fn is_int(number: f64) -> bool {
    number.trunc() == number && number.abs() <= f64::from(i32::MAX)
}

fn remainder(left: Decimal128, right: Decimal128) -> Decimal128 {
    // `dec` returns NaN when the quotient has more than 34 digits.
    let mut context = Context::<dec::Decimal128>::default();
    let result = context.rem(to_dec(left), to_dec(right));
    from_dec(result)
}

//! One number of any numeric type.

use bson::{Bson, Decimal128, RawBsonRef};

/// A BSON number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// `int`.
    Int32(i32),
    /// `long`.
    Int64(i64),
    /// `double`.
    Double(f64),
    /// `decimal`.
    Decimal(Decimal128),
}

impl Number {
    /// The number in `value`, if it is a number.
    #[must_use]
    pub fn from_bson(value: &Bson) -> Option<Number> {
        match value {
            Bson::Int32(number) => Some(Number::Int32(*number)),
            Bson::Int64(number) => Some(Number::Int64(*number)),
            Bson::Double(number) => Some(Number::Double(*number)),
            Bson::Decimal128(number) => Some(Number::Decimal(*number)),
            _ => None,
        }
    }

    /// The number in `value`, if it is a number.
    #[must_use]
    pub fn from_raw(value: RawBsonRef<'_>) -> Option<Number> {
        match value {
            RawBsonRef::Int32(number) => Some(Number::Int32(number)),
            RawBsonRef::Int64(number) => Some(Number::Int64(number)),
            RawBsonRef::Double(number) => Some(Number::Double(number)),
            RawBsonRef::Decimal128(number) => Some(Number::Decimal(number)),
            _ => None,
        }
    }

    /// The number as a BSON value of the same type.
    #[must_use]
    pub fn to_bson(self) -> Bson {
        match self {
            Number::Int32(number) => Bson::Int32(number),
            Number::Int64(number) => Bson::Int64(number),
            Number::Double(number) => Bson::Double(number),
            Number::Decimal(number) => Bson::Decimal128(number),
        }
    }

    /// An integer: `int` when it fits, otherwise `long`.
    #[must_use]
    pub fn narrow(number: i64) -> Number {
        i32::try_from(number).map_or(Number::Int64(number), Number::Int32)
    }

    /// Whether it is an `int` or a `long`.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self, Number::Int32(_) | Number::Int64(_))
    }

    /// Whether it is not a number: a double or decimal NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        match self {
            Number::Int32(_) | Number::Int64(_) => false,
            Number::Double(number) => number.is_nan(),
            Number::Decimal(number) => super::decimal::Parts::of(number).is_nan(),
        }
    }

    /// Whether it is an infinity.
    #[must_use]
    pub fn is_infinite(self) -> bool {
        match self {
            Number::Int32(_) | Number::Int64(_) => false,
            Number::Double(number) => number.is_infinite(),
            Number::Decimal(number) => matches!(
                super::decimal::Parts::of(number),
                super::decimal::Parts::Infinity { .. }
            ),
        }
    }

    /// Whether it is a zero of either sign.
    #[must_use]
    pub fn is_zero(self) -> bool {
        match self {
            Number::Int32(number) => number == 0,
            Number::Int64(number) => number == 0,
            Number::Double(number) => number == 0.0,
            Number::Decimal(number) => super::decimal::Parts::of(number).is_zero(),
        }
    }

    /// Whether the number is less than zero; false for zeros and NaN.
    #[must_use]
    pub fn is_negative(self) -> bool {
        match self {
            Number::Int32(number) => number < 0,
            Number::Int64(number) => number < 0,
            Number::Double(number) => number < 0.0,
            Number::Decimal(number) => {
                let parts = super::decimal::Parts::of(number);
                !parts.is_zero() && !parts.is_nan() && parts.is_signed()
            }
        }
    }
}

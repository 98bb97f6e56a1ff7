//! Rounding: to whole numbers, and to a decimal place (`$round`, `$trunc`).

use dec::{Context, Rounding};

use super::Number;
use super::decimal::{self, Parts, from_dec, to_dec};
use crate::{Error, Result};

impl Number {
    /// The least integer that is not less than `self`. Integers stay as they are.
    #[must_use]
    pub fn ceil(self) -> Number {
        match self {
            Number::Double(number) => Number::Double(number.ceil()),
            Number::Decimal(number) => Number::Decimal(quantize(number, 0, Rounding::Ceiling)),
            integer => integer,
        }
    }

    /// The greatest integer that is not greater than `self`. Integers stay as they are.
    #[must_use]
    pub fn floor(self) -> Number {
        match self {
            Number::Double(number) => Number::Double(number.floor()),
            Number::Decimal(number) => Number::Decimal(quantize(number, 0, Rounding::Floor)),
            integer => integer,
        }
    }

    /// Rounded to `place` digits after the point (before it when negative), half to even.
    ///
    /// # Errors
    /// 51080 when the result does not fit its integer type.
    pub fn round(self, place: i32) -> Result<Number> {
        self.to_place(place, Rounding::HalfEven, "$round")
    }

    /// Truncated to `place` digits after the point (before it when negative).
    ///
    /// # Errors
    /// As [`Number::round`].
    pub fn trunc(self, place: i32) -> Result<Number> {
        self.to_place(place, Rounding::Down, "$trunc")
    }

    fn to_place(self, place: i32, rounding: Rounding, name: &str) -> Result<Number> {
        let exact = self.to_decimal_exact();
        Ok(match self {
            Number::Int32(_) | Number::Int64(_) if place >= 0 => self,
            Number::Int32(_) => Number::narrow(integer(quantize(exact, place, rounding), name)?),
            Number::Int64(_) => Number::Int64(integer(quantize(exact, place, rounding), name)?),
            Number::Decimal(number) => Number::Decimal(quantize(number, place, rounding)),
            Number::Double(number) if !number.is_finite() => self,
            Number::Double(number) if place == 0 => Number::Double(match rounding {
                Rounding::HalfEven => number.round_ties_even(),
                _ => number.trunc(),
            }),
            Number::Double(_) => {
                Number::Double(Parts::of(quantize(exact, place, rounding)).to_f64())
            }
        })
    }
}

/// `number` with `place` digits after the point. NaN and infinities stay as they are. If the result
/// would have more than 34 digits, the number is not rounded but gets trailing zeros up to 34
/// digits.
fn quantize(number: bson::Decimal128, place: i32, rounding: Rounding) -> bson::Decimal128 {
    let parts = Parts::of(number);
    let Parts::Finite { exponent, .. } = parts else {
        return number;
    };
    // A number without a fraction needs no rounding to an integer, however large it is.
    if place == 0 && exponent >= 0 {
        return number;
    }
    let one = Parts::Finite {
        negative: false,
        coefficient: 1,
        exponent: (-place).clamp(decimal::MIN_EXPONENT, decimal::MAX_EXPONENT),
    };
    let mut context = Context::<dec::Decimal128>::default();
    context.set_rounding(rounding);
    let rounded = from_dec(context.quantize(to_dec(number), to_dec(one.pack())));
    if Parts::of(rounded).is_nan() {
        return parts.padded().pack();
    }
    rounded
}

fn integer(rounded: bson::Decimal128, name: &str) -> Result<i64> {
    Parts::of(rounded).to_i64().ok_or_else(|| {
        Error::location(
            51080,
            format!("invalid conversion from Decimal128 result in {name}"),
        )
    })
}

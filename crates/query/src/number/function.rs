//! Powers, roots, exponentials and logarithms. Integers give doubles, decimals give decimals.

use bson::Decimal128;
use dec::{Context, Decimal};

use super::decimal::{Parts, from_dec, to_dec, wide_context};
use super::{Number, compare};
use crate::{Error, Result};

/// A decimal with digits to spare for the intermediate results of functions: 13 units of 3 digits.
type Wide = Decimal<13>;

/// Applies `function` to a decimal, with `dec`'s wide numbers, and rounds the result once.
fn wide(number: Decimal128, function: impl FnOnce(&mut Context<Wide>, &mut Wide)) -> Decimal128 {
    let mut context = wide_context();
    let mut value = Wide::from(to_dec(number));
    function(&mut context, &mut value);
    from_dec(Context::<dec::Decimal128>::default().from_decimal(&value))
}

impl Number {
    /// `self` to the power of `exponent`. Integers give an integer when the result is one of 64
    /// bits, and a double otherwise. A decimal result has all 34 digits, as in MongoDB.
    ///
    /// # Errors
    /// 28764 for zero to a negative power.
    pub fn pow(self, exponent: Number) -> Result<Number> {
        if self.is_zero() && exponent.is_negative() {
            return Err(Error::location(
                28764,
                "$pow cannot take a base of 0 and a negative exponent",
            ));
        }
        if matches!(self, Number::Decimal(_)) || matches!(exponent, Number::Decimal(_)) {
            let power = Wide::from(to_dec(exponent.to_decimal()));
            let result = wide(self.to_decimal(), |context, value| {
                context.pow(value, &power);
            });
            return Ok(Number::Decimal(Parts::of(result).padded().pack()));
        }
        if !self.is_integer() || !exponent.is_integer() {
            return Ok(Number::Double(self.to_f64().powf(exponent.to_f64())));
        }
        let narrow = matches!((self, exponent), (Number::Int32(_), Number::Int32(_)));
        let base = self.to_i64_clamped();
        let power = exponent.to_i64_clamped();
        Ok(match integer_power(base, power) {
            Some(result) if narrow => Number::narrow(result),
            Some(result) => Number::Int64(result),
            None => Number::Double(self.to_f64().powf(exponent.to_f64())),
        })
    }

    /// The square root: a decimal for a decimal, otherwise a double.
    ///
    /// # Errors
    /// 28714 for a number less than zero.
    pub fn sqrt(self) -> Result<Number> {
        if self.is_negative() {
            return Err(Error::location(
                28714,
                "$sqrt's argument must be greater than or equal to 0",
            ));
        }
        Ok(self.apply(f64::sqrt, |context, value| context.sqrt(value)))
    }

    /// e to the power of `self`.
    #[must_use]
    pub fn exp(self) -> Number {
        self.apply(f64::exp, |context, value| context.exp(value))
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// 28766 unless `self` is greater than zero (NaN of any type gives a double NaN, as in
    /// MongoDB).
    pub fn ln(self) -> Result<Number> {
        self.positive(28766, "$ln's argument must be a positive number, but is")?;
        if self.is_nan() {
            return Ok(Number::Double(f64::NAN));
        }
        Ok(self.apply(f64::ln, |context, value| context.ln(value)))
    }

    /// The logarithm to the base of ten.
    ///
    /// # Errors
    /// 28761 unless `self` is greater than zero (NaN of any type gives a double NaN, as in
    /// MongoDB).
    pub fn log10(self) -> Result<Number> {
        self.positive(28761, "$log10's argument must be a positive number, but is")?;
        if self.is_nan() {
            return Ok(Number::Double(f64::NAN));
        }
        Ok(self.apply(f64::log10, |context, value| context.log10(value)))
    }

    /// The logarithm to the base of `base`.
    ///
    /// # Errors
    /// 28758 unless `self` is above zero, 28759 unless `base` is above zero and not one.
    pub fn log(self, base: Number) -> Result<Number> {
        self.positive(28758, "$log's argument must be a positive number, but is")?;
        let text = "$log's base must be a positive number not equal to 1, but is";
        base.positive(28759, text)?;
        if compare(base, Number::Int32(1)).is_eq() {
            return Err(Error::location(28759, format!("{text} {base}")));
        }
        if self.is_nan() || base.is_nan() {
            return Ok(Number::Double(f64::NAN));
        }
        if matches!(self, Number::Decimal(_)) || matches!(base, Number::Decimal(_)) {
            let above = Number::Decimal(self.to_decimal()).ln()?;
            return above.divide(Number::Decimal(base.to_decimal()).ln()?);
        }
        Ok(Number::Double(self.to_f64().ln() / base.to_f64().ln()))
    }

    fn apply(self, double: fn(f64) -> f64, decimal: fn(&mut Context<Wide>, &mut Wide)) -> Number {
        match self {
            Number::Decimal(number) => Number::Decimal(wide(number, decimal)),
            other => Number::Double(double(other.to_f64())),
        }
    }

    fn positive(self, code: i32, text: &str) -> Result<()> {
        if self.is_zero() || self.is_negative() {
            return Err(Error::location(code, format!("{text} {self}")));
        }
        Ok(())
    }
}

/// `base` to the power of `power`, if the result is an integer of 64 bits.
fn integer_power(base: i64, power: i64) -> Option<i64> {
    match (base, power) {
        (1, _) | (_, 0) => Some(1),
        (-1, power) => Some(if power % 2 == 0 { 1 } else { -1 }),
        (0, _) => Some(0),
        (base, power) => base.checked_pow(u32::try_from(power).ok()?),
    }
}

//! Conversions between the types of numbers.

use bson::Decimal128;

use super::Number;
use super::decimal::Parts;

/// The integer part of a double; out of range the nearest `long`, zero for NaN.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, as documented"
)]
pub(crate) fn truncate(number: f64) -> i64 {
    number as i64
}

impl Number {
    /// As a double: the nearest one (ties to even).
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int32(number) => f64::from(number),
            Number::Int64(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(number) => Parts::of(number).to_f64(),
        }
    }

    /// As an integer of 64 bits, if the number is one exactly.
    #[must_use]
    pub fn to_i64_exact(self) -> Option<i64> {
        match super::canonical(self) {
            super::Canonical::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// As an integer of 32 bits; `None` if the number is not exactly such an integer.
    #[must_use]
    pub fn to_i32_exact(self) -> Option<i32> {
        i32::try_from(self.to_i64_exact()?).ok()
    }

    /// The integer part as an integer of 64 bits; `None` when out of range, infinite or NaN.
    #[must_use]
    pub fn to_i64_truncated(self) -> Option<i64> {
        match self {
            Number::Int32(number) => Some(i64::from(number)),
            Number::Int64(number) => Some(number),
            Number::Double(number) => Number::Double(number.trunc()).to_i64_exact(),
            Number::Decimal(number) => truncate_decimal(Parts::of(number)),
        }
    }

    /// The integer part as an integer of 32 bits; `None` when out of range, infinite or NaN.
    #[must_use]
    pub fn to_i32_truncated(self) -> Option<i32> {
        i32::try_from(self.to_i64_truncated()?).ok()
    }

    /// The integer part as an integer of 64 bits; out of range the nearest one, zero for NaN.
    #[must_use]
    pub fn to_i64_clamped(self) -> i64 {
        match self.to_i64_truncated() {
            Some(number) => number,
            None if self.is_nan() => 0,
            None if self.is_negative() => i64::MIN,
            None => i64::MAX,
        }
    }

    /// As a decimal, as arithmetic and `$toDecimal` convert: a double is rounded to 15 digits, so
    /// that 0.1 becomes 0.100000000000000.
    #[must_use]
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Double(number) => double_to_decimal(number),
            other => other.to_decimal_exact(),
        }
    }

    /// As the nearest decimal of up to 34 digits.
    #[must_use]
    pub fn to_decimal_exact(self) -> Decimal128 {
        match self {
            Number::Int32(number) => Parts::of_integer(i64::from(number)).pack(),
            Number::Int64(number) => Parts::of_integer(number).pack(),
            Number::Decimal(number) => number,
            Number::Double(number) if number.is_finite() => {
                // Rust prints the exact value of a double when asked for enough digits.
                let text = format!("{number:.33e}");
                Parts::from_scientific(&text).reduced_to_integer().pack()
            }
            Number::Double(number) => special(number),
        }
    }
}

fn truncate_decimal(parts: Parts) -> Option<i64> {
    let Parts::Finite {
        negative,
        coefficient,
        exponent,
    } = parts
    else {
        return None;
    };
    if exponent >= 0 {
        return parts.to_i64();
    }
    let whole = 10_u128
        .checked_pow(exponent.unsigned_abs())
        .map_or(0, |scale| coefficient / scale);
    let whole = i128::try_from(whole).ok()?;
    i64::try_from(if negative { -whole } else { whole }).ok()
}

fn special(number: f64) -> Decimal128 {
    if number.is_nan() {
        Parts::Nan.pack()
    } else {
        Parts::Infinity {
            negative: number < 0.0,
        }
        .pack()
    }
}

fn double_to_decimal(number: f64) -> Decimal128 {
    if !number.is_finite() {
        return special(number);
    }
    if number == 0.0 {
        return Parts::Finite {
            negative: number.is_sign_negative(),
            coefficient: 0,
            exponent: 0,
        }
        .pack();
    }
    Parts::from_scientific(&format!("{number:.14e}")).pack()
}

impl Parts {
    /// Parses the output of the format `{:e}`: a digit, a point, digits, `e`, an exponent; at most
    /// 34 digits.
    fn from_scientific(text: &str) -> Parts {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (digits, exponent) = text.split_once('e').expect("{:e} prints an exponent");
        let decimals = digits
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        let coefficient: String = digits.chars().filter(char::is_ascii_digit).collect();
        let exponent: i32 = exponent.parse().expect("{:e} prints an exponent");
        Parts::Finite {
            negative,
            coefficient: coefficient.parse().expect("at most 34 digits"),
            exponent: exponent - i32::try_from(decimals).expect("at most 33"),
        }
    }

    /// Removes trailing zeros after the decimal point.
    fn reduced_to_integer(self) -> Parts {
        let Parts::Finite {
            negative,
            mut coefficient,
            mut exponent,
        } = self
        else {
            return self;
        };
        while exponent < 0 && coefficient % 10 == 0 && coefficient != 0 {
            coefficient /= 10;
            exponent += 1;
        }
        if coefficient == 0 {
            exponent = 0;
        }
        Parts::Finite {
            negative,
            coefficient,
            exponent,
        }
    }
}

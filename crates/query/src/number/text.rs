//! Conversions of numbers to text and from text.

use std::fmt;

use bson::Decimal128;
use dec::Context;

use super::Number;
use super::decimal::from_dec;

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int32(number) => number.fmt(f),
            Number::Int64(number) => number.fmt(f),
            Number::Double(number) => f.write_str(&double_to_string(*number)),
            Number::Decimal(number) => number.fmt(f),
        }
    }
}

/// A double as MongoDB prints it (`%.16g`): 2.5, 1, 1e+20, NaN, Infinity.
#[must_use]
pub fn double_to_string(number: f64) -> String {
    const DIGITS: i32 = 16;
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        let text = if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        return text.to_owned();
    }
    let scientific = format!("{number:.15e}");
    let (digits, exponent) = scientific.split_once('e').expect("{:e} prints an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} prints an exponent");
    if (-4..DIGITS).contains(&exponent) {
        let places = usize::try_from(DIGITS - 1 - exponent).expect("not negative in this range");
        return without_zeros(&format!("{number:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let magnitude = exponent.unsigned_abs();
    format!("{}e{sign}{magnitude:02}", without_zeros(digits))
}

/// Removes trailing zeros of a fraction, and the point if no digit is left after it.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// Parses an integer in base ten with an optional sign; `None` for any other text, such as one with
/// spaces.
#[must_use]
pub fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Parses a double in base ten, or `NaN`, `Infinity`, `inf` in any case; `None` for any other text.
#[must_use]
pub fn parse_double(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Why a text is not a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalError {
    /// The text is not a number.
    Syntax,
    /// The number is beyond the range of decimals.
    Overflow,
    /// The number is not zero, but closer to zero than every decimal.
    Underflow,
}

/// Parses a decimal in the syntax of the BSON Decimal128 specification.
///
/// # Errors
/// When the text is not a number, or when the number does not fit a decimal.
pub fn parse_decimal(text: &str) -> Result<Decimal128, DecimalError> {
    // NaN must have no payload here.
    let letters = text.trim_start_matches(['+', '-']);
    let nan = letters
        .get(..3)
        .is_some_and(|head| head.eq_ignore_ascii_case("nan"));
    if nan && letters.len() > 3 {
        return Err(DecimalError::Syntax);
    }
    if letters.starts_with(['s', 'S']) || text.contains('\0') {
        return Err(DecimalError::Syntax);
    }
    let mut context = Context::<dec::Decimal128>::default();
    let number = context.parse(text).map_err(|_| DecimalError::Syntax)?;
    let status = context.status();
    if status.overflow() {
        return Err(DecimalError::Overflow);
    }
    if status.underflow() {
        return Err(DecimalError::Underflow);
    }
    Ok(from_dec(number))
}

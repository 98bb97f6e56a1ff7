//! Numbers as bytes in the order of their exact values.
//!
//! The type byte is a class, mirrored around zero (`0x30`):
//!
//! | class | magnitudes | body |
//! |---|---|---|
//! | +1 | below 1 | anchor: the bits of a double, times two, plus the flag of a tail (8 bytes) |
//! | +2..=+9 | 1 to below 2^63 | integral part, perhaps a fraction |
//! | +10 | 2^63 and more | anchor, as below 1 |
//! | +11 | infinity | |
//!
//! An integral part is written times two, plus the flag of a fraction, in as few bytes as it needs:
//! 1 to 8, which is the class. A fraction is its first 52 bits, then 4 bits of which the lowest is
//! the flag of a tail (7 bytes).
//!
//! The anchor is the largest double that does not exceed the magnitude. Where they differ, which
//! only decimals do, a tail follows: the decimal exponent (2 bytes) and the decimal digits, two in
//! a byte, plus one, ended by `00`: it orders all magnitudes of one anchor. Bodies of negative
//! numbers are inverted. NaN is below all.

use bson::Decimal128;

use super::kind;

const NAN: u8 = kind::NUMBER - 12;
const SMALL: u8 = 1;
/// The class of integral parts that take one byte.
const INT_1: u8 = 2;
const INT_8: u8 = 9;
const BIG: u8 = 10;
const INFINITE: u8 = 11;

/// 2^63: smaller integral parts have their own classes.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// The largest coefficient of a decimal: 34 nines. A larger coefficient means zero.
const COEFFICIENT_MAX: u128 = 10_u128.pow(34) - 1;
const EXPONENT_BIAS: i32 = 6176;

/// A decimal taken apart.
enum Parts {
    Nan,
    Infinite,
    /// Coefficient and exponent.
    Finite(u128, i32),
}

pub(super) fn append_i64(out: &mut Vec<u8>, value: i64) {
    if value == 0 {
        out.push(kind::NUMBER);
        return;
    }
    signed(out, value < 0, |out| {
        let magnitude = value.unsigned_abs();
        if magnitude >> 63 == 0 {
            integral(out, magnitude, false)
        } else {
            out.extend_from_slice(&(TWO_63.to_bits() << 1).to_be_bytes());
            BIG
        }
    });
}

pub(super) fn append_f64(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.push(NAN);
        return;
    }
    if value == 0.0 {
        out.push(kind::NUMBER);
        return;
    }
    signed(out, value < 0.0, |out| anchored(out, value.abs(), None));
}

/// Append the bytes of a decimal. Encodings that are not canonical mean zero, so this cannot fail.
pub(super) fn append_decimal(out: &mut Vec<u8>, value: &Decimal128) {
    let bits = u128::from_le_bytes(value.bytes());
    let negative = bits >> 127 == 1;
    match parts(bits) {
        Parts::Nan => out.push(NAN),
        Parts::Infinite => signed(out, negative, |_| INFINITE),
        Parts::Finite(0, _) => out.push(kind::NUMBER),
        Parts::Finite(coefficient, exponent) => {
            let number = Exact::new(coefficient, exponent);
            signed(out, negative, |out| {
                anchored(out, number.anchor(), Some(&number))
            });
        }
    }
}

/// Write the class byte, then the body that `body` writes; mirror both for a negative number.
fn signed(out: &mut Vec<u8>, negative: bool, body: impl FnOnce(&mut Vec<u8>) -> u8) {
    let at = out.len();
    out.push(0);
    let class = body(out);
    let written = out.get_mut(at..).expect("the class byte was pushed at it");
    if negative {
        for byte in written.iter_mut() {
            *byte = !*byte;
        }
    }
    if let Some(first) = written.first_mut() {
        *first = if negative {
            kind::NUMBER - class
        } else {
            kind::NUMBER + class
        };
    }
}

/// The class and body of an integral part.
fn integral(out: &mut Vec<u8>, magnitude: u64, fraction: bool) -> u8 {
    let value = (magnitude << 1) | u64::from(fraction);
    let skip = (value.leading_zeros() / 8).min(7);
    out.extend_from_slice(value.to_be_bytes().get(skip as usize..).unwrap_or_default());
    INT_8 - u8::try_from(skip).expect("at most 7")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each conversion is of an integral double in the range of u64"
)]
fn anchored(out: &mut Vec<u8>, anchor: f64, exact: Option<&Exact>) -> u8 {
    let inexact = exact.filter(|e| e.compare(anchor).is_ne());
    if anchor.is_infinite() {
        return INFINITE;
    }
    if !(1.0..TWO_63).contains(&anchor) {
        let bits = (anchor.to_bits() << 1) | u64::from(inexact.is_some());
        out.extend_from_slice(&bits.to_be_bytes());
        if let Some(exact) = inexact {
            exact.append_tail(out);
        }
        return if anchor < 1.0 { SMALL } else { BIG };
    }
    let whole = match exact {
        Some(exact) => exact.integral(),
        None => anchor.trunc() as u64,
    };
    let rest = if anchor < TWO_52 {
        (anchor.fract() * TWO_52) as u64
    } else {
        0
    };
    let fraction = match exact {
        Some(exact) => !exact.is_integral(),
        None => rest != 0,
    };
    let class = integral(out, whole, fraction);
    if fraction {
        let word = (rest << 4) | u64::from(inexact.is_some());
        out.extend_from_slice(word.to_be_bytes().get(1..).unwrap_or_default());
        if let Some(exact) = inexact {
            exact.append_tail(out);
        }
    }
    class
}

fn parts(bits: u128) -> Parts {
    let field = |shift: u32, mask: u128| (bits >> shift) & mask;
    match field(122, 0x1F) {
        0x1F => return Parts::Nan,
        0x1E => return Parts::Infinite,
        _ => {}
    }
    // In this form the coefficient exceeds the maximum: the decimal means zero.
    if field(125, 3) == 3 {
        return Parts::Finite(0, 0);
    }
    let exponent = i32::try_from(field(113, 0x3FFF)).expect("14 bits") - EXPONENT_BIAS;
    let coefficient = bits & ((1 << 113) - 1);
    if COEFFICIENT_MAX < coefficient {
        return Parts::Finite(0, 0);
    }
    Parts::Finite(coefficient, exponent)
}

/// A positive decimal without trailing zeros.
struct Exact {
    coefficient: u128,
    exponent: i32,
    /// The digits of the coefficient.
    digits: String,
}

impl Exact {
    fn new(mut coefficient: u128, mut exponent: i32) -> Exact {
        while coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        Exact {
            coefficient,
            exponent,
            digits: coefficient.to_string(),
        }
    }

    /// The exponent of the first digit.
    fn adjusted(&self) -> i32 {
        self.exponent + i32::try_from(self.digits.len()).expect("at most 34") - 1
    }

    fn is_integral(&self) -> bool {
        0 <= self.exponent
    }

    /// The integral part. Call it for magnitudes from 1 to below 2^63.
    fn integral(&self) -> u64 {
        let power = 10_u128.pow(self.exponent.unsigned_abs().min(38));
        let whole = if self.is_integral() {
            self.coefficient.saturating_mul(power)
        } else {
            self.coefficient / power
        };
        u64::try_from(whole).unwrap_or(u64::MAX >> 1)
    }

    /// The largest double that does not exceed this decimal.
    fn anchor(&self) -> f64 {
        let text = format!("{}e{}", self.digits, self.exponent);
        let nearest: f64 = text.parse().expect("digits and an exponent are a number");
        if nearest.is_infinite() {
            return f64::MAX;
        }
        if self.compare(nearest).is_lt() {
            nearest.next_down()
        } else {
            nearest
        }
    }

    /// Compare this decimal with a double that is not negative.
    fn compare(&self, double: f64) -> std::cmp::Ordering {
        if double == 0.0 {
            return std::cmp::Ordering::Greater;
        }
        if double.is_infinite() {
            return std::cmp::Ordering::Less;
        }
        // No double has more than 767 significant decimal digits: this is its exact value.
        let text = format!("{double:.767e}");
        let (mantissa, exponent) = text.split_once('e').expect("the format has an exponent");
        let exponent: i32 = exponent.parse().expect("the format's exponent");
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let digits = digits.trim_end_matches('0');
        (self.adjusted(), self.digits.as_str()).cmp(&(exponent, digits))
    }

    fn append_tail(&self, out: &mut Vec<u8>) {
        let exponent = u16::try_from(self.adjusted() + 8192).expect("exponents are below 6200");
        out.extend_from_slice(&exponent.to_be_bytes());
        for pair in self.digits.as_bytes().chunks(2) {
            let tens = pair.first().map_or(0, |d| d - b'0');
            let ones = pair.get(1).map_or(0, |d| d - b'0');
            out.push(tens * 10 + ones + 1);
        }
        out.push(0);
    }
}

/// The number in a component: exact for integers, the nearest double below for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decoded {
    /// An integer, with its sign.
    Integer(i64),
    /// Any other number. For a decimal with a tail this is the anchor.
    Double(f64),
}

/// Read the component of class byte `first` from `next`, which gives body bytes, already
/// un-inverted for a descending component.
#[expect(
    clippy::cast_precision_loss,
    reason = "integral parts with a fraction are below 2^52, the others are checked"
)]
pub(super) fn read<E>(
    first: u8,
    mut next: impl FnMut() -> Result<u8, E>,
) -> Result<Option<Decoded>, E> {
    if first == NAN {
        return Ok(Some(Decoded::Double(f64::NAN)));
    }
    if first == kind::NUMBER {
        return Ok(Some(Decoded::Integer(0)));
    }
    let negative = first < kind::NUMBER;
    let class = first.abs_diff(kind::NUMBER);
    let mut word = |bytes: u8| -> Result<u64, E> {
        let mut word = 0;
        for _ in 0..bytes {
            let byte = next()?;
            word = (word << 8) | u64::from(if negative { !byte } else { byte });
        }
        Ok(word)
    };
    let sign = |x: f64| if negative { -x } else { x };
    let decoded = match class {
        SMALL | BIG => {
            let bits = word(8)?;
            let anchor = f64::from_bits(bits >> 1);
            if bits & 1 == 1 {
                skip_tail(&mut word)?;
            }
            Decoded::Double(sign(anchor))
        }
        INT_1..=INT_8 => {
            let value = word(class - 1)?;
            let whole = value >> 1;
            if value & 1 == 0 {
                let whole = i64::try_from(whole).expect("63 bits");
                Decoded::Integer(if negative { -whole } else { whole })
            } else {
                let fraction = word(7)?;
                if fraction & 1 == 1 {
                    skip_tail(&mut word)?;
                }
                let rest = (fraction >> 4) as f64 / TWO_52;
                Decoded::Double(sign(whole as f64 + rest))
            }
        }
        INFINITE => Decoded::Double(sign(f64::INFINITY)),
        _ => return Ok(None),
    };
    Ok(Some(decoded))
}

fn skip_tail<E>(word: &mut impl FnMut(u8) -> Result<u64, E>) -> Result<(), E> {
    word(2)?;
    while word(1)? != 0 {}
    Ok(())
}

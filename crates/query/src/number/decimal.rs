//! The decimal of BSON: IEEE 754-2008 decimal128 in the binary integer encoding, 16 bytes little
//! endian.
//!
//! The crate `dec` does the arithmetic. Its numbers use the other encoding of the standard (densely
//! packed decimal), so they must be converted. A coefficient of more than 34 digits is not
//! canonical and is read as zero, as the standard requires.

use bson::Decimal128;
use dec::{Context, Decimal};

/// Exponents are in the range `-BIAS..=MAX_EXPONENT`.
const BIAS: i32 = 6176;
/// The greatest exponent.
pub const MAX_EXPONENT: i32 = 6111;
/// The least exponent.
pub const MIN_EXPONENT: i32 = -BIAS;
/// Maximum exponent of [`wide_context`]: `dec` refuses to compute its functions with a wider range.
const LARGEST_EXPONENT: isize = 999_999;
/// One more than the greatest coefficient: 10^34.
pub const COEFFICIENT_LIMIT: u128 = 10_u128.pow(34);

/// The parts of a decimal: `coefficient * 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Not a number.
    Nan,
    /// An infinity.
    Infinity {
        /// Whether it is the negative infinity.
        negative: bool,
    },
    /// A finite number.
    Finite {
        /// The sign; a zero has one, too.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// In the range -6176 to 6111.
        exponent: i32,
    },
}

impl Parts {
    /// The parts of `number`.
    #[must_use]
    pub fn of(number: Decimal128) -> Parts {
        let bits = u128::from_le_bytes(number.bytes());
        let negative = bits >> 127 == 1;
        let combination = (bits >> 122) & 0b1_1111;
        if combination == 0b1_1111 {
            return Parts::Nan;
        }
        if combination == 0b1_1110 {
            return Parts::Infinity { negative };
        }
        // The long form of a coefficient begins with 0b100, so it always has more than 34 digits.
        let long = combination >> 3 == 0b11;
        let (biased, coefficient) = if long {
            ((bits >> 111) & 0x3FFF, COEFFICIENT_LIMIT)
        } else {
            ((bits >> 113) & 0x3FFF, bits & ((1 << 113) - 1))
        };
        let exponent = i32::try_from(biased).expect("14 bits") - BIAS;
        Parts::Finite {
            negative,
            coefficient: if coefficient < COEFFICIENT_LIMIT {
                coefficient
            } else {
                0
            },
            exponent,
        }
    }

    /// The parts of an integer.
    #[must_use]
    pub fn of_integer(number: i64) -> Parts {
        Parts::Finite {
            negative: number < 0,
            coefficient: u128::from(number.unsigned_abs()),
            exponent: 0,
        }
    }

    /// Encodes the parts. The caller keeps coefficient and exponent in range; others give a wrong
    /// decimal.
    #[must_use]
    pub fn pack(self) -> Decimal128 {
        let (negative, rest) = match self {
            Parts::Nan => (false, 0b1_1111 << 122),
            Parts::Infinity { negative } => (negative, 0b1_1110 << 122),
            Parts::Finite {
                negative,
                coefficient,
                exponent,
            } => {
                debug_assert!(coefficient < COEFFICIENT_LIMIT);
                debug_assert!((MIN_EXPONENT..=MAX_EXPONENT).contains(&exponent));
                let biased = exponent.clamp(MIN_EXPONENT, MAX_EXPONENT) + BIAS;
                let biased = u128::try_from(biased).expect("not negative after the clamp");
                (negative, (biased << 113) | coefficient)
            }
        };
        Decimal128::from_bytes(((u128::from(negative) << 127) | rest).to_le_bytes())
    }

    /// Whether it is no number.
    #[must_use]
    pub fn is_nan(self) -> bool {
        self == Parts::Nan
    }

    /// Whether it is a zero of either sign.
    #[must_use]
    pub fn is_zero(self) -> bool {
        matches!(self, Parts::Finite { coefficient: 0, .. })
    }

    /// The sign bit; false for NaN.
    #[must_use]
    pub fn is_signed(self) -> bool {
        match self {
            Parts::Nan => false,
            Parts::Infinity { negative } | Parts::Finite { negative, .. } => negative,
        }
    }

    /// The same number without trailing zeros of the coefficient; zero becomes positive, `0 *
    /// 10^0`.
    #[must_use]
    pub fn reduced(self) -> Parts {
        let Parts::Finite {
            negative,
            mut coefficient,
            mut exponent,
        } = self
        else {
            return self;
        };
        if coefficient == 0 {
            return Parts::of_integer(0);
        }
        while coefficient % 10 == 0 {
            coefficient /= 10;
            exponent += 1;
        }
        Parts::Finite {
            negative,
            coefficient,
            exponent,
        }
    }

    /// The same number with as many trailing zeros as a coefficient can hold.
    #[must_use]
    pub fn padded(self) -> Parts {
        let Parts::Finite {
            negative,
            mut coefficient,
            mut exponent,
        } = self
        else {
            return self;
        };
        if coefficient == 0 {
            exponent = MIN_EXPONENT;
        }
        while exponent > MIN_EXPONENT && coefficient < COEFFICIENT_LIMIT / 10 {
            coefficient *= 10;
            exponent -= 1;
        }
        Parts::Finite {
            negative,
            coefficient,
            exponent,
        }
    }

    /// The number as an integer, if it is an integer of at most 64 bits.
    #[must_use]
    pub fn to_i64(self) -> Option<i64> {
        let Parts::Finite {
            negative,
            coefficient,
            exponent,
        } = self.reduced()
        else {
            return None;
        };
        let power = u32::try_from(exponent).ok()?;
        let magnitude = coefficient.checked_mul(10_u128.checked_pow(power)?)?;
        let magnitude = i128::try_from(magnitude).ok()?;
        i64::try_from(if negative { -magnitude } else { magnitude }).ok()
    }

    /// The nearest double (ties to even); numbers out of the range of doubles become infinities or
    /// zeros.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Parts::Nan => f64::NAN,
            Parts::Infinity { negative: true } => f64::NEG_INFINITY,
            Parts::Infinity { negative: false } => f64::INFINITY,
            Parts::Finite {
                negative,
                coefficient,
                exponent,
            } => {
                let sign = if negative { "-" } else { "" };
                format!("{sign}{coefficient}e{exponent}")
                    .parse()
                    .expect("digits, e, digits is the syntax of a double")
            }
        }
    }
}

/// The context of arithmetic with decimals of `N` units of 3 digits.
pub(super) fn wide_context<const N: usize>() -> Context<Decimal<N>> {
    let mut context = Context::<Decimal<N>>::default();
    context
        .set_max_exponent(LARGEST_EXPONENT)
        .expect("a limit that dec documents");
    context
        .set_min_exponent(-LARGEST_EXPONENT)
        .expect("a limit that dec documents");
    context
}

/// Converts a decimal for arithmetic by `dec`.
#[must_use]
pub fn to_dec(number: Decimal128) -> dec::Decimal128 {
    let mut context = Context::<dec::Decimal128>::default();
    match Parts::of(number) {
        Parts::Nan => dec::Decimal128::NAN,
        Parts::Infinity { negative } => {
            let text = if negative { "-Infinity" } else { "Infinity" };
            context.parse(text).expect("the name of an infinity")
        }
        Parts::Finite {
            negative,
            coefficient,
            exponent,
        } => {
            // `dec` sets the sign of a zero only when it parses text.
            if coefficient == 0 {
                let sign = if negative { "-" } else { "" };
                return context
                    .parse(format!("{sign}0E{exponent}"))
                    .expect("digits, E, digits is the syntax of a decimal");
            }
            let mut number = context.from_u128(coefficient);
            context.set_exponent(&mut number, exponent);
            if negative { -number } else { number }
        }
    }
}

/// Converts a result of `dec` to a BSON decimal.
#[must_use]
pub fn from_dec(number: dec::Decimal128) -> Decimal128 {
    let parts = if number.is_nan() {
        Parts::Nan
    } else if number.is_infinite() {
        Parts::Infinity {
            negative: number.is_signed(),
        }
    } else {
        Parts::Finite {
            negative: number.is_signed(),
            coefficient: number.coefficient().unsigned_abs(),
            exponent: number.exponent(),
        }
    };
    parts.pack()
}

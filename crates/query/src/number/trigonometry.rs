//! Trigonometry of decimals: 34 digits, computed with 90 and rounded once.
//!
//! T1: an argument of a periodic function is reduced to a quarter turn with as many digits of pi as
//!     its exponent requires, so that even the sine of the largest decimal has 34 correct digits.
//! T2: every series is summed until a term does not change the sum, at most [`TERMS`] terms.
//! T3: the caller excludes infinities and arguments outside the domain of a function, except where
//!     the function has a limit, which is the result.

use std::sync::LazyLock;

use bson::Decimal128;
use dec::{Context, Decimal};

use super::decimal::{Parts, from_dec, to_dec, wide_context};
use super::pi;

/// 90 digits: 34 of the result, 38 that are lost near a multiple of a quarter turn, 18 to spare.
type Wide = Decimal<30>;

/// Enough digits to reduce arguments below 10^40.
type Middle = Decimal<60>;

/// Enough digits to reduce all arguments: the largest is below 10^6145.
type Huge = Decimal<2100>;

/// The power of ten up to which [`Middle`] holds the quotient and 90 digits of the remainder.
const MIDDLE_POWER: i32 = 40;

/// Maximum number of terms of a series (T2). Arguments are below 1, for which 90 digits take fewer
/// than 100 terms.
const TERMS: u32 = 200;

static MIDDLE_TURN: LazyLock<Middle> = LazyLock::new(turn::<60>);
static HUGE_TURN: LazyLock<Huge> = LazyLock::new(turn::<2100>);
static PI: LazyLock<Wide> = LazyLock::new(|| {
    wide_context::<30>()
        .parse(pi::text(100))
        .expect("digits, a point and digits are the syntax of a decimal")
});

/// Two pi to all digits of the type.
fn turn<const N: usize>() -> Decimal<N> {
    let mut context = wide_context::<N>();
    let mut turn = context
        .parse(pi::text(N * 3))
        .expect("digits, a point and digits are the syntax of a decimal");
    let two = context.from_u32(2);
    context.mul(&mut turn, &two);
    turn
}

/// Arithmetic with 90 digits.
struct Calculator(Context<Wide>);

impl Calculator {
    fn new() -> Calculator {
        Calculator(wide_context::<30>())
    }

    fn whole(&mut self, number: u32) -> Wide {
        self.0.from_u32(number)
    }

    fn add(&mut self, mut left: Wide, right: &Wide) -> Wide {
        self.0.add(&mut left, right);
        left
    }

    fn subtract(&mut self, mut left: Wide, right: &Wide) -> Wide {
        self.0.sub(&mut left, right);
        left
    }

    fn multiply(&mut self, mut left: Wide, right: &Wide) -> Wide {
        self.0.mul(&mut left, right);
        left
    }

    fn divide(&mut self, mut left: Wide, right: &Wide) -> Wide {
        self.0.div(&mut left, right);
        left
    }

    fn root(&mut self, mut number: Wide) -> Wide {
        self.0.sqrt(&mut number);
        number
    }

    fn exponential(&mut self, mut number: Wide) -> Wide {
        self.0.exp(&mut number);
        number
    }

    fn logarithm(&mut self, mut number: Wide) -> Wide {
        self.0.ln(&mut number);
        number
    }

    fn magnitude(&mut self, mut number: Wide) -> Wide {
        self.0.abs(&mut number);
        number
    }

    /// `1 + left * right`.
    fn one_plus(&mut self, left: Wide, right: &Wide) -> Wide {
        let one = self.whole(1);
        let product = self.multiply(left, right);
        self.add(product, &one)
    }

    fn half(&mut self, number: Wide) -> Wide {
        let two = self.whole(2);
        self.divide(number, &two)
    }

    /// Whether the absolute value of `number` is less than 10 to the power of `power`.
    fn below(number: &Wide, power: i32) -> bool {
        number.is_zero() || exponent_of(number) < power
    }

    /// The sum of `first` and the following terms (T2): `next` computes each term from the previous
    /// term and its index.
    fn series(
        &mut self,
        first: Wide,
        mut term: Wide,
        mut next: impl FnMut(&mut Calculator, Wide, u32) -> (Wide, Wide),
    ) -> Wide {
        let mut sum = first;
        for number in 1..TERMS {
            let (power, value) = next(self, term, number);
            term = power;
            let before = sum;
            sum = self.add(sum, &value);
            if sum == before {
                break;
            }
        }
        sum
    }

    /// Sine or hyperbolic sine for an argument of at most 1: `x -+ x^3 / 3! + ..`.
    fn sine(&mut self, x: Wide, hyperbolic: bool) -> Wide {
        let square = self.signed_square(&x, hyperbolic);
        self.series(x, x, |own, term, number| {
            let divisor = own.whole(2 * number * (2 * number + 1));
            let power = own.multiply(term, &square);
            let power = own.divide(power, &divisor);
            (power, power)
        })
    }

    /// The cosine for an argument of at most 1: `1 - x^2 / 2! + ..`.
    fn cosine(&mut self, x: Wide) -> Wide {
        let square = self.signed_square(&x, false);
        let one = self.whole(1);
        self.series(one, one, |own, term, number| {
            let divisor = own.whole(2 * number * (2 * number - 1));
            let power = own.multiply(term, &square);
            let power = own.divide(power, &divisor);
            (power, power)
        })
    }

    /// The inverse tangent or hyperbolic tangent for an argument of at most 0.1: `x -+ x^3 / 3 +
    /// ..`.
    fn inverse_tangent(&mut self, x: Wide, hyperbolic: bool) -> Wide {
        let square = self.signed_square(&x, hyperbolic);
        self.series(x, x, |own, term, number| {
            let divisor = own.whole(2 * number + 1);
            let power = own.multiply(term, &square);
            let value = own.divide(power, &divisor);
            (power, value)
        })
    }

    fn signed_square(&mut self, x: &Wide, positive: bool) -> Wide {
        let square = self.multiply(*x, x);
        if positive { square } else { -square }
    }

    fn arctangent(&mut self, x: Wide) -> Wide {
        let one = self.whole(1);
        let size = self.magnitude(x);
        if one < size {
            let inverse = self.divide(one, &size);
            let rest = self.arctangent(inverse);
            let quarter = self.half(*PI);
            let angle = self.subtract(quarter, &rest);
            return if x.is_negative() { -angle } else { angle };
        }
        // Halving the angle four times brings a tangent of 1 below 0.1.
        let (mut tangent, mut doublings) = (x, 0);
        while !Calculator::below(&tangent, -1) && doublings < 4 {
            let squared = self.one_plus(tangent, &tangent);
            let root = self.root(squared);
            let divisor = self.add(root, &one);
            tangent = self.divide(tangent, &divisor);
            doublings += 1;
        }
        let angle = self.inverse_tangent(tangent, false);
        let factor = self.whole(1 << doublings);
        self.multiply(angle, &factor)
    }

    /// Half of the logarithm of `(1 + x) / (1 - x)`.
    fn hyperbolic_arctangent(&mut self, x: Wide) -> Wide {
        // The logarithm of a number close to 1 has few correct digits, so small arguments use the
        // series.
        if Calculator::below(&x, -5) {
            return self.inverse_tangent(x, true);
        }
        let one = self.whole(1);
        let above = self.add(one, &x);
        let below = self.subtract(one, &x);
        let ratio = self.divide(above, &below);
        let logarithm = self.logarithm(ratio);
        self.half(logarithm)
    }

    /// The square root of `(1 - x) (1 + x)`.
    fn leg(&mut self, x: Wide) -> Wide {
        let one = self.whole(1);
        let above = self.add(one, &x);
        let below = self.subtract(one, &x);
        let product = self.multiply(above, &below);
        self.root(product)
    }

    /// An angle as a number of quarter turns, 0 to 3, and the rest, at most half a quarter turn
    /// (T1).
    fn quarters(&mut self, x: Decimal128) -> (u32, Wide) {
        let power = match Parts::of(x) {
            Parts::Finite {
                coefficient,
                exponent,
                ..
            } if coefficient != 0 => exponent + i32::try_from(coefficient.ilog10()).unwrap_or(0),
            _ => 0,
        };
        let angle: Wide = if power < MIDDLE_POWER {
            self.remainder(x, &MIDDLE_TURN)
        } else {
            self.remainder(x, &HUGE_TURN)
        };
        let quarter = self.half(*PI);
        let mut turns = self.divide(angle, &quarter);
        self.0.round(&mut turns);
        let whole = self.multiply(turns, &quarter);
        let rest = self.subtract(angle, &whole);
        let turns = i32::try_from(turns).unwrap_or(0);
        (turns.rem_euclid(4).unsigned_abs(), rest)
    }

    fn remainder<const N: usize>(&mut self, x: Decimal128, turn: &Decimal<N>) -> Wide {
        let mut context = wide_context::<N>();
        let mut angle = Decimal::<N>::from(to_dec(x));
        context.rem(&mut angle, turn);
        self.0.to_width(angle)
    }
}

/// The exponent of the first digit, as a power of ten.
fn exponent_of(number: &Wide) -> i32 {
    let digits = i32::try_from(number.digits()).unwrap_or(i32::MAX);
    number.exponent().saturating_add(digits - 1)
}

fn rounded(number: &Wide) -> Decimal128 {
    from_dec(Context::<dec::Decimal128>::default().from_decimal(number))
}

fn wide(number: Decimal128) -> Wide {
    Wide::from(to_dec(number))
}

/// Computes an odd function of a finite argument; NaN and zeros are returned as they are.
fn odd(x: Decimal128, compute: impl FnOnce(&mut Calculator, Wide) -> Wide) -> Decimal128 {
    let parts = Parts::of(x);
    if parts.is_nan() || parts.is_zero() {
        return x;
    }
    rounded(&compute(&mut Calculator::new(), wide(x)))
}

/// As [`odd`], but infinities are returned as they are, too.
fn odd_unbounded(x: Decimal128, compute: impl FnOnce(&mut Calculator, Wide) -> Wide) -> Decimal128 {
    match Parts::of(x) {
        Parts::Infinity { .. } => x,
        _ => odd(x, compute),
    }
}

/// Computes a function for which NaN is returned as it is.
fn even(x: Decimal128, compute: impl FnOnce(&mut Calculator, Wide) -> Wide) -> Decimal128 {
    if Parts::of(x).is_nan() {
        return x;
    }
    rounded(&compute(&mut Calculator::new(), wide(x)))
}

/// The sine of `quarters` quarter turns plus `rest`.
fn sine_at(own: &mut Calculator, quarters: u32, rest: Wide) -> Wide {
    let value = match quarters % 2 {
        0 => own.sine(rest, false),
        _ => own.cosine(rest),
    };
    if quarters % 4 < 2 { value } else { -value }
}

/// The sine of a finite angle in radians.
pub(crate) fn sin(x: Decimal128) -> Decimal128 {
    odd(x, |own, _| {
        let (quarters, rest) = own.quarters(x);
        sine_at(own, quarters, rest)
    })
}

/// The cosine of a finite angle in radians.
pub(crate) fn cos(x: Decimal128) -> Decimal128 {
    even(x, |own, _| {
        let (quarters, rest) = own.quarters(x);
        sine_at(own, quarters + 1, rest)
    })
}

/// The tangent of a finite angle in radians.
pub(crate) fn tan(x: Decimal128) -> Decimal128 {
    odd(x, |own, _| {
        let (quarters, rest) = own.quarters(x);
        let sine = sine_at(own, quarters, rest);
        let cosine = sine_at(own, quarters + 1, rest);
        own.divide(sine, &cosine)
    })
}

/// The inverse sine of a number from -1 to 1.
pub(crate) fn asin(x: Decimal128) -> Decimal128 {
    odd(x, |own, x| {
        let leg = own.leg(x);
        if leg.is_zero() {
            let quarter = own.half(*PI);
            return if x.is_negative() { -quarter } else { quarter };
        }
        let tangent = own.divide(x, &leg);
        own.arctangent(tangent)
    })
}

/// The inverse cosine of a number from -1 to 1.
pub(crate) fn acos(x: Decimal128) -> Decimal128 {
    even(x, |own, x| {
        let one = own.whole(1);
        let above = own.add(one, &x);
        if above.is_zero() {
            return *PI;
        }
        let below = own.subtract(one, &x);
        let ratio = own.divide(below, &above);
        let tangent = own.root(ratio);
        let half = own.arctangent(tangent);
        let two = own.whole(2);
        own.multiply(half, &two)
    })
}

/// The inverse tangent.
pub(crate) fn atan(x: Decimal128) -> Decimal128 {
    odd(x, |own, x| {
        if x.is_infinite() {
            let quarter = own.half(*PI);
            return if x.is_negative() { -quarter } else { quarter };
        }
        own.arctangent(x)
    })
}

/// The angle of the point (`x`, `y`).
pub(crate) fn atan2(y: Decimal128, x: Decimal128) -> Decimal128 {
    let (up, right) = (Parts::of(y), Parts::of(x));
    if up.is_nan() || right.is_nan() {
        return Parts::Nan.pack();
    }
    let mut own = Calculator::new();
    let infinite = |parts: Parts| matches!(parts, Parts::Infinity { .. });
    // The angle between the x axis and the line to the point, by the absolute values of both
    // coordinates.
    let angle = match (infinite(up), infinite(right)) {
        (true, true) => {
            let four = own.whole(4);
            own.divide(*PI, &four)
        }
        (true, false) => own.half(*PI),
        (false, true) => Wide::zero(),
        (false, false) if up.is_zero() => Wide::zero(),
        (false, false) if right.is_zero() => own.half(*PI),
        (false, false) => {
            let ratio = own.divide(wide(y), &wide(x));
            let size = own.magnitude(ratio);
            own.arctangent(size)
        }
    };
    let angle = if right.is_signed() {
        own.subtract(*PI, &angle)
    } else {
        angle
    };
    rounded(&if up.is_signed() { -angle } else { angle })
}

/// The hyperbolic sine.
pub(crate) fn sinh(x: Decimal128) -> Decimal128 {
    odd_unbounded(x, |own, x| {
        if Calculator::below(&x, 0) {
            return own.sine(x, true);
        }
        let (up, down) = (own.exponential(x), own.exponential(-x));
        let twice = own.subtract(up, &down);
        own.half(twice)
    })
}

/// The hyperbolic cosine.
pub(crate) fn cosh(x: Decimal128) -> Decimal128 {
    even(x, |own, x| {
        let size = own.magnitude(x);
        if size.is_infinite() {
            return size;
        }
        let (up, down) = (own.exponential(size), own.exponential(-size));
        let twice = own.add(up, &down);
        own.half(twice)
    })
}

/// The hyperbolic tangent.
pub(crate) fn tanh(x: Decimal128) -> Decimal128 {
    odd(x, |own, x| {
        if Calculator::below(&x, 0) {
            let sine = own.sine(x, true);
            let squared = own.one_plus(sine, &sine);
            let cosine = own.root(squared);
            return own.divide(sine, &cosine);
        }
        let one = own.whole(1);
        let limit = own.whole(100);
        let size = own.magnitude(x);
        let size = if limit < size { limit } else { size };
        let twice = own.add(size, &size);
        let power = own.exponential(twice);
        let above = own.subtract(power, &one);
        let below = own.add(power, &one);
        let value = own.divide(above, &below);
        if x.is_negative() { -value } else { value }
    })
}

/// The inverse hyperbolic sine.
pub(crate) fn asinh(x: Decimal128) -> Decimal128 {
    odd_unbounded(x, |own, x| {
        let size = own.magnitude(x);
        let squared = own.one_plus(size, &size);
        let root = own.root(squared);
        let value = if Calculator::below(&x, 0) {
            let tangent = own.divide(size, &root);
            own.hyperbolic_arctangent(tangent)
        } else {
            let sum = own.add(size, &root);
            own.logarithm(sum)
        };
        if x.is_negative() { -value } else { value }
    })
}

/// The inverse hyperbolic cosine of a number of at least 1.
pub(crate) fn acosh(x: Decimal128) -> Decimal128 {
    even(x, |own, x| {
        if x.is_infinite() {
            return x;
        }
        let one = own.whole(1);
        let above = own.add(x, &one);
        let below = own.subtract(x, &one);
        let product = own.multiply(above, &below);
        let root = own.root(product);
        let sum = own.add(x, &root);
        own.logarithm(sum)
    })
}

/// The inverse hyperbolic tangent of a number from -1 to 1; infinite at both ends.
pub(crate) fn atanh(x: Decimal128) -> Decimal128 {
    odd(x, |own, x| {
        let one = own.whole(1);
        if own.magnitude(x) == one {
            let infinity = Wide::infinity();
            return if x.is_negative() { -infinity } else { infinity };
        }
        own.hyperbolic_arctangent(x)
    })
}

/// Degrees as radians: a product with pi / 180 to 34 digits.
pub(crate) fn to_radians(x: Decimal128) -> Decimal128 {
    times(x, "0.01745329251994329576923690768488613")
}

/// Radians as degrees: a product with 180 / pi to 34 digits.
pub(crate) fn to_degrees(x: Decimal128) -> Decimal128 {
    times(x, "57.29577951308232087679815481410517")
}

fn times(x: Decimal128, factor: &str) -> Decimal128 {
    let mut context = Context::<dec::Decimal128>::default();
    let factor = context
        .parse(factor)
        .expect("digits, a point and digits are the syntax of a decimal");
    from_dec(context.mul(to_dec(x), factor))
}

//! Sums of numbers without intermediate overflow, and without losing small numbers next to large
//! ones.
//!
//! Integers are summed in 128 bits, doubles as a pair of doubles (Neumaier's compensated sum),
//! decimals as decimals, and the three are joined at the end. So the result does not depend on the
//! order of integers, and 0.1 ten times is 1.

use bson::{Bson, Decimal128};

use crate::number::Number;

/// A sum of numbers of any type.
#[derive(Debug, Clone, Default)]
pub(crate) struct NumberSum {
    integers: i128,
    doubles: Compensated,
    decimals: Option<Decimal128>,
    has_long: bool,
    has_double: bool,
}

/// A sum of doubles with its rounding error.
#[derive(Debug, Clone, Copy, Default)]
struct Compensated {
    sum: f64,
    error: f64,
}

impl Compensated {
    fn add(&mut self, number: f64) {
        let sum = self.sum + number;
        if sum.is_finite() {
            self.error += if self.sum.abs() >= number.abs() {
                (self.sum - sum) + number
            } else {
                (number - sum) + self.sum
            };
        }
        self.sum = sum;
    }

    fn value(self) -> f64 {
        if self.sum.is_finite() {
            self.sum + self.error
        } else {
            self.sum
        }
    }
}

impl NumberSum {
    /// Adds one number.
    pub(crate) fn add(&mut self, number: Number) {
        match number {
            Number::Int32(number) => self.integers += i128::from(number),
            Number::Int64(number) => {
                self.has_long = true;
                self.integers += i128::from(number);
            }
            Number::Double(number) => {
                self.has_double = true;
                self.doubles.add(number);
            }
            Number::Decimal(number) => self.add_decimal(number),
        }
    }

    fn add_decimal(&mut self, number: Decimal128) {
        self.decimals = Some(match self.decimals {
            None => number,
            Some(sum) => Number::Decimal(sum)
                .add(Number::Decimal(number))
                .to_decimal(),
        });
    }

    /// Adds the numbers of `other`.
    pub(crate) fn merge(&mut self, other: &NumberSum) {
        self.integers += other.integers;
        self.doubles.add(other.doubles.sum);
        self.doubles.add(other.doubles.error);
        self.has_long |= other.has_long;
        self.has_double |= other.has_double;
        if let Some(decimals) = other.decimals {
            self.add_decimal(decimals);
        }
    }

    /// The sum, in the widest type of the numbers; an integer sum that does not fit a `long`
    /// becomes a double.
    pub(crate) fn value(&self) -> Bson {
        if self.decimals.is_some() {
            return Bson::Decimal128(self.decimal());
        }
        if self.has_double {
            return Bson::Double(self.double());
        }
        match i64::try_from(self.integers) {
            Ok(sum) if self.has_long => Bson::Int64(sum),
            Ok(sum) => Number::narrow(sum).to_bson(),
            Err(_) => Bson::Double(self.double()),
        }
    }

    /// The sum divided by `count`: a decimal if a decimal was added, otherwise a double.
    pub(crate) fn average(&self, count: i64) -> Bson {
        if self.decimals.is_some() {
            let sum = Number::Decimal(self.decimal());
            return sum
                .divide(Number::Int64(count))
                .map_or(Bson::Null, Number::to_bson);
        }
        Bson::Double(self.double() / count as f64)
    }

    fn double(&self) -> f64 {
        let mut sum = self.doubles;
        // Added in two parts, because a double has fewer digits than 128 bits.
        let high = self.integers as f64;
        sum.add(high);
        if high.abs() < 1e37 {
            sum.add((self.integers - truncated(high)) as f64);
        }
        sum.value()
    }

    /// The sum as a decimal: the decimals, and the other numbers to 34 digits but without trailing
    /// zeros (1.0 is added as `1`).
    fn decimal(&self) -> Decimal128 {
        let mut sum = Number::Decimal(self.decimals.unwrap_or(Number::Int32(0).to_decimal()));
        sum = sum.add(match i64::try_from(self.integers) {
            Ok(integers) => Number::Int64(integers),
            Err(_) => Number::Double(self.integers as f64),
        });
        if self.has_double {
            let parts = if self.doubles.sum.is_finite() {
                [self.doubles.sum, self.doubles.error]
            } else {
                [self.doubles.sum, 0.0]
            };
            for part in parts {
                let exact = Number::Double(part).to_decimal_exact();
                sum = sum.add(Number::Decimal(exact));
            }
        }
        sum.to_decimal()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the caller bounds it below 128 bits, and it is whole"
)]
fn truncated(number: f64) -> i128 {
    number as i128
}

//! `$derivative`, `$integral` and the covariances: arithmetic over pairs of values.
//!
//! Numbers keep their types: decimals give decimals. The difference of two dates is computed in
//! exact milliseconds, and the unit scales only the result: as a double of hours since 1970, a date
//! would have too few digits for the difference.

use std::ops::Range;

use bson::{Bson, Document};

use super::function::Slope;
use super::series::Series;
use crate::accumulator::NumberSum;
use crate::expr::Expr;
use crate::number::Number;
use crate::value::type_name;
use crate::{Error, Result};

/// The value of the sort field.
#[derive(Clone, Copy)]
enum Position {
    /// Milliseconds since 1970.
    Date(i64),
    Number(Number),
}

impl Position {
    fn of(slope: &Slope, document: &Document) -> Option<Position> {
        match slope.position.in_document(document).as_deref() {
            Some(Bson::DateTime(date)) => Some(Position::Date(date.timestamp_millis())),
            Some(other) => Number::from_bson(other).map(Position::Number),
            None => None,
        }
    }

    /// The distance from `earlier` to `self`; milliseconds for dates.
    fn since(self, earlier: Position) -> Result<Number> {
        match (self, earlier) {
            (Position::Date(to), Position::Date(from)) => match to.checked_sub(from) {
                Some(apart) => Ok(Number::Int64(apart)),
                None => Err(Error::new(
                    crate::Code::OVERFLOW,
                    "date subtraction overflow",
                )),
            },
            (Position::Number(to), Position::Number(from)) => Ok(to.subtract(from)),
            // Unreachable: the callers have checked that both are of one kind.
            _ => Ok(Number::Int32(0)),
        }
    }

    fn is_nan(self) -> bool {
        matches!(self, Position::Number(number) if number.is_nan())
    }
}

/// Length of the unit in milliseconds; `None` without a unit.
fn length(slope: &Slope) -> Option<Number> {
    let unit = slope.unit?;
    Some(Number::Int64(unit.millis().unwrap_or(1)))
}

impl Series<'_> {
    /// The slope between the first and the last document of a window, per unit if one is given.
    ///
    /// # Errors
    /// 5624900 to 5624902 for a position that is not a date although a unit is given, or not a
    /// number although none is, 5624903 for a null input, 16556 for an input that is not a number.
    pub(super) fn derivative(&self, slope: &Slope, window: Range<usize>) -> Result<Bson> {
        let documents = self.documents.get(window).unwrap_or(&[]);
        let (Some(first), Some(last)) = (documents.first(), documents.last()) else {
            return Ok(Bson::Null);
        };
        let (x0, x1) = (Position::of(slope, first), Position::of(slope, last));
        let run = match (x0, x1) {
            (Some(from @ Position::Date(_)), Some(to @ Position::Date(_)))
                if slope.unit.is_some() =>
            {
                to.since(from)?
            }
            _ if slope.unit.is_some() => {
                return Err(Error::location(
                    5_624_900,
                    "$derivative with 'unit' expects the sortBy field to be a Date",
                ));
            }
            (Some(Position::Date(_)), _) | (_, Some(Position::Date(_))) => {
                return Err(Error::location(
                    5_624_901,
                    "$derivative where the sortBy is a Date requires an 'unit'",
                ));
            }
            (Some(from), Some(to)) => to.since(from)?,
            _ => {
                return Err(Error::location(
                    5_624_902,
                    "$derivative (with no 'unit') expects the sortBy field to be numeric",
                ));
            }
        };
        let rise = self.rise(&slope.input, first, last)?;
        // The slope is undefined over a window of one document.
        if run.is_zero() {
            return Ok(Bson::Null);
        }
        let result = rise.divide(run)?;
        let scaled = length(slope).map_or(result, |millis| result.multiply(millis));
        Ok(scaled.to_bson())
    }

    fn rise(&self, input: &Expr, first: &Document, last: &Document) -> Result<Number> {
        let from = self.evaluate(input, first)?.unwrap_or(Bson::Null);
        let to = self.evaluate(input, last)?.unwrap_or(Bson::Null);
        let nullish = |value: &Bson| matches!(value, Bson::Null | Bson::Undefined);
        if nullish(&from) || nullish(&to) {
            return Err(Error::location(
                5_624_903,
                "$derivative input must not be null or missing",
            ));
        }
        match (&from, &to, Number::from_bson(&from), Number::from_bson(&to)) {
            (_, _, Some(from), Some(to)) => Ok(to.subtract(from)),
            (Bson::DateTime(from), Bson::DateTime(to), _, _) => {
                let (from, to) = (from.timestamp_millis(), to.timestamp_millis());
                Position::Date(to).since(Position::Date(from))
            }
            _ => Err(Error::location(
                16_556,
                format!(
                    "can't $subtract {} from {}",
                    type_name(&from),
                    type_name(&to)
                ),
            )),
        }
    }

    /// The area under the values of a window by the trapezoidal rule, per unit if one is given.
    ///
    /// # Errors
    /// 5423900 for a value that is not a number, 5423901 and 5423902 for a position that is not a
    /// date although a unit is given, or not a number although none is.
    pub(super) fn integral(&self, slope: &Slope, window: Range<usize>) -> Result<Bson> {
        let documents = self.documents.get(window).unwrap_or(&[]);
        let (mut area, mut last, mut nan) = (NumberSum::default(), None, false);
        for document in documents {
            let (position, value) = self.vertex(slope, document)?;
            let undefined = position.is_nan() || value.is_nan();
            nan |= undefined;
            if let Some((before, height)) = last
                && !nan
            {
                let width = position.since(before)?;
                let twice = value.add(height).multiply(width);
                area.add(twice.divide(Number::Double(2.0))?);
            }
            last = Some((position, value));
        }
        if nan {
            return Ok(Bson::Double(f64::NAN));
        }
        if last.is_none() {
            return Ok(Bson::Null);
        }
        match (Number::from_bson(&area.value()), length(slope)) {
            (Some(area), Some(millis)) => Ok(area.divide(millis)?.to_bson()),
            _ => Ok(area.value()),
        }
    }

    /// The position and the value of a document, for `$integral`.
    fn vertex(&self, slope: &Slope, document: &Document) -> Result<(Position, Number)> {
        let value = self.evaluate(&slope.input, document)?;
        let value = value.as_ref().and_then(Number::from_bson);
        let (Some(position), Some(value)) = (Position::of(slope, document), value) else {
            return Err(Error::location(
                5_423_900,
                "The input value of $integral window function must be a vector of 2 value, the \
                 first value must be numeric or date type and the second must be numeric.",
            ));
        };
        match (position, slope.unit) {
            (Position::Number(_), Some(_)) => Err(Error::location(
                5_423_901,
                "$integral with 'unit' expects the sortBy field to be a Date",
            )),
            (Position::Date(_), None) => Err(Error::location(
                5_423_902,
                "$integral (with no 'unit') expects the sortBy field to be numeric",
            )),
            _ => Ok((position, value)),
        }
    }

    /// The covariance of two expressions over a window, in one pass (Welford 1962). Documents in
    /// which one of the values is not a number are skipped.
    ///
    /// # Errors
    /// Errors of expressions.
    pub(super) fn covariance(
        &self,
        (x, y): (&Expr, &Expr),
        sample: bool,
        window: Range<usize>,
    ) -> Result<Bson> {
        let mut gathered = Covariance::default();
        for document in self.documents.get(window).unwrap_or(&[]) {
            let number = |expr| {
                let value = self.evaluate(expr, document)?;
                Ok::<_, Error>(value.as_ref().and_then(Number::from_bson))
            };
            if let (Some(x), Some(y)) = (number(x)?, number(y)?) {
                gathered.add(x, y);
            }
        }
        gathered.value(sample)
    }
}

/// The running state of a covariance. After the first decimal, means and products are decimals.
#[derive(Default)]
struct Covariance {
    /// Number of pairs of finite numbers.
    count: i64,
    x: NumberSum,
    y: NumberSum,
    products: NumberSum,
}

impl Covariance {
    fn add(&mut self, x: Number, y: Number) {
        let special = |number: Number| number.is_nan() || number.is_infinite();
        if special(x) || special(y) {
            self.products.add(extreme(x, y));
            return;
        }
        let before = self.mean(&self.x);
        self.count += 1;
        self.x.add(x);
        self.y.add(y);
        // The means over the first pair are the numbers of the pair.
        if let (Some(before), Some(mean)) = (before, self.mean(&self.y)) {
            let product = x.subtract(before).multiply(y.subtract(mean));
            self.products.add(product);
        }
    }

    fn mean(&self, sum: &NumberSum) -> Option<Number> {
        match self.count {
            0 => None,
            count => Number::from_bson(&sum.average(count)),
        }
    }

    fn value(&self, sample: bool) -> Result<Bson> {
        if self.count == 1 && !sample {
            return Ok(Bson::Double(0.0));
        }
        let divisor = self.count - i64::from(sample);
        match Number::from_bson(&self.products.value()) {
            Some(products) if divisor > 0 => {
                Ok(products.divide(Number::Double(divisor as f64))?.to_bson())
            }
            _ => Ok(Bson::Null),
        }
    }
}

/// What a pair with NaN or an infinity adds to the products: NaN if one number is NaN or the
/// infinities have different signs, otherwise the infinity.
fn extreme(x: Number, y: Number) -> Number {
    let infinite =
        |number: Number, negative: bool| number.is_infinite() && number.is_negative() == negative;
    let either = |negative| infinite(x, negative) || infinite(y, negative);
    let double = if x.is_nan() || y.is_nan() || (either(true) && either(false)) {
        f64::NAN
    } else if either(false) {
        f64::INFINITY
    } else {
        f64::NEG_INFINITY
    };
    match (x, y) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            Number::Decimal(Number::Double(double).to_decimal())
        }
        _ => Number::Double(double),
    }
}

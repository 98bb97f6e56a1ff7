//! Values of a window function over one partition: one value for each document.

use bson::{Bson, Document};

use super::function::Function;
use super::moving::Moving;
use super::partition::Partitioning;
use crate::expr::{Env, Expr, FieldPath, Variables};
use crate::number::{Number, compare};
use crate::value::type_name;
use crate::{Error, Result, meter};

/// A partition and what its evaluation needs.
pub(super) struct Series<'a> {
    pub(super) documents: &'a [Document],
    pub(super) by: &'a Partitioning,
    pub(super) vars: &'a Variables,
}

impl Series<'_> {
    /// The value of `function` for each document.
    pub(super) fn values(&self, function: &Function) -> Result<Vec<Bson>> {
        let count = self.documents.len();
        match function {
            Function::Accumulate(accumulator, window) => {
                let mut moving = Moving::new(accumulator, self.documents, self.vars)?;
                (0..count)
                    .map(|at| moving.over(window.places(self.documents, at)?))
                    .collect()
            }
            Function::Rank { dense } => self.ranks(*dense),
            Function::DocumentNumber => Ok((1..=count).map(number).collect()),
            Function::Shift {
                output,
                by,
                default,
            } => self.shifted(output, *by, default),
            Function::ExpMovingAvg { input, alpha } => self.moving_average(input, *alpha),
            Function::Derivative(slope, window) => (0..count)
                .map(|at| self.derivative(slope, window.places(self.documents, at)?))
                .collect(),
            Function::Integral(slope, window) => (0..count)
                .map(|at| self.integral(slope, window.places(self.documents, at)?))
                .collect(),
            Function::Covariance {
                x,
                y,
                sample,
                window,
            } => (0..count)
                .map(|at| self.covariance((x, y), *sample, window.places(self.documents, at)?))
                .collect(),
            Function::LinearFill { input, position } => self.linear_fill(input, position),
            Function::Locf(input) => self.carried(input),
        }
    }

    pub(super) fn evaluate(&self, expr: &Expr, document: &Document) -> Result<Option<Bson>> {
        meter::step()?;
        expr.evaluate(&Env::new(document, self.vars))
    }

    fn ranks(&self, dense: bool) -> Result<Vec<Bson>> {
        let (mut ranks, mut rank, mut last) = (Vec::new(), 0, None);
        for (at, document) in self.documents.iter().enumerate() {
            let key = self.by.sort_key(document)?;
            if at == 0 || key != last {
                rank = if dense { rank + 1 } else { at + 1 };
                last = key;
            }
            ranks.push(number(rank));
        }
        Ok(ranks)
    }

    fn shifted(&self, output: &Expr, by: i64, default: &Bson) -> Result<Vec<Bson>> {
        let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        (0..self.documents.len())
            .map(|at| {
                let from = if by < 0 {
                    at.checked_sub(distance)
                } else {
                    at.checked_add(distance)
                };
                match from.and_then(|from| self.documents.get(from)) {
                    Some(document) => {
                        let value = output.kept(&Env::new(document, self.vars))?;
                        Ok(value.unwrap_or(Bson::Null))
                    }
                    None => meter::copy("$shift", default),
                }
            })
            .collect()
    }

    /// The exponential moving average: each number has the weight `alpha`; the average of the
    /// numbers before it has the remaining weight. Values that are not numbers are skipped.
    fn moving_average(&self, input: &Expr, alpha: Number) -> Result<Vec<Bson>> {
        let mut average: Option<Number> = None;
        let mut averages = Vec::with_capacity(self.documents.len());
        for document in self.documents {
            let value = self.evaluate(input, document)?;
            if let Some(value) = value.as_ref().and_then(Number::from_bson) {
                average = Some(match average {
                    None => value,
                    Some(before) => {
                        let rest = Number::Int32(1).subtract(alpha);
                        value.multiply(alpha).add(before.multiply(rest))
                    }
                });
            }
            averages.push(average.map_or(Bson::Null, Number::to_bson));
        }
        Ok(averages)
    }

    fn carried(&self, input: &Expr) -> Result<Vec<Bson>> {
        let mut last = Bson::Null;
        let mut values = Vec::with_capacity(self.documents.len());
        for document in self.documents {
            if let Some(value) = self.evaluate(input, document)?
                && !matches!(value, Bson::Null | Bson::Undefined)
            {
                last = value;
            }
            values.push(meter::copy("$locf", &last)?);
        }
        Ok(values)
    }

    /// Interpolates nulls between two numbers; nulls before the first or after the last number
    /// stay.
    fn linear_fill(&self, input: &Expr, field: &FieldPath) -> Result<Vec<Bson>> {
        let mut values = Vec::with_capacity(self.documents.len());
        let mut positions: Vec<Abscissa> = Vec::with_capacity(self.documents.len());
        for document in self.documents {
            let value = self.evaluate(input, document)?.unwrap_or(Bson::Null);
            if !matches!(value, Bson::Null | Bson::Undefined) && Number::from_bson(&value).is_none()
            {
                let found = type_name(&value);
                return Err(Error::type_mismatch(format!(
                    "Value to be filled must be numeric or nullish, but found {found}"
                )));
            }
            let position = Abscissa::of(field.in_document(document).as_deref())?;
            if let Some(last) = positions.last() {
                last.check_next(position)?;
            }
            values.push(value);
            positions.push(position);
        }
        filled(values, &positions)
    }
}

/// The document's position on the axis of `$linearFill`: its value of the sort field.
#[derive(Debug, Clone, Copy)]
enum Abscissa {
    Number(Number),
    /// In milliseconds.
    Date(i64),
}

impl Abscissa {
    fn of(value: Option<&Bson>) -> Result<Abscissa> {
        if let Some(Bson::DateTime(date)) = value {
            return Ok(Abscissa::Date(date.timestamp_millis()));
        }
        if let Some(number) = value.and_then(Number::from_bson) {
            return Ok(Abscissa::Number(number));
        }
        let found = value.map_or("missing", type_name);
        Err(Error::type_mismatch(format!(
            "Value of the sortBy field must be numeric or a date, but found {found}"
        )))
    }

    /// Checks that `next` is of the same kind and not equal.
    fn check_next(self, next: Abscissa) -> Result<()> {
        let same = match (self, next) {
            (Abscissa::Number(left), Abscissa::Number(right)) => compare(left, right).is_eq(),
            (Abscissa::Date(left), Abscissa::Date(right)) => left == right,
            (last, _) => {
                let (before, found) = match last {
                    Abscissa::Number(_) => ("a number", "a date"),
                    Abscissa::Date(_) => ("a date", "a number"),
                };
                return Err(Error::type_mismatch(format!(
                    "Conflicting sort value types, previously received type {before}, but found \
                     {found}"
                )));
            }
        };
        if same {
            let message = "There can be no repeated values in the sort field";
            return Err(Error::location(6_050_106, message));
        }
        Ok(())
    }

    /// The distance from `origin`, which must be of the same kind.
    fn beyond(self, origin: Abscissa) -> Number {
        match (self, origin) {
            (Abscissa::Number(here), Abscissa::Number(origin)) => here.subtract(origin),
            (Abscissa::Date(here), Abscissa::Date(origin)) => {
                Number::Int64(here).subtract(Number::Int64(origin))
            }
            _ => Number::Double(f64::NAN),
        }
    }
}

fn filled(mut values: Vec<Bson>, positions: &[Abscissa]) -> Result<Vec<Bson>> {
    let known: Vec<(usize, Number, Abscissa)> = values
        .iter()
        .zip(positions)
        .enumerate()
        .filter_map(|(at, (value, position))| Some((at, Number::from_bson(value)?, *position)))
        .collect();
    for pair in known.windows(2) {
        let [(from, left, start), (to, right, end)] = pair else {
            continue;
        };
        let between = from + 1..*to;
        if between.is_empty() {
            continue;
        }
        let slope = right.subtract(*left).divide(end.beyond(*start))?;
        let gap = values.get_mut(between.clone()).unwrap_or_default();
        let places = positions.get(between).unwrap_or_default();
        for (value, position) in gap.iter_mut().zip(places) {
            *value = left.add(position.beyond(*start).multiply(slope)).to_bson();
        }
    }
    Ok(values)
}

fn number(count: usize) -> Bson {
    let count = i64::try_from(count).expect("as many as documents in memory");
    Number::narrow(count).to_bson()
}

//! The state of an accumulator: adding values, merging states, and the result.

use std::cmp::Ordering;

use bson::{Bson, Document};

use super::best::Extreme;
use super::gather::{Distinct, Edge};
use super::moments::Moments;
use super::number_sum::NumberSum;
use super::parse::{Accumulator, Kind, QuantileSpec, RankedSpec, check_n};
use super::quantile::quantile_of;
use super::ranked::Ranked;
use crate::expr::Env;
use crate::meter::size;
use crate::number::Number;
use crate::value::{compare_with, type_name};
use crate::{Error, Result, meter};

/// The state of one accumulator in one group.
#[derive(Debug, Clone)]
pub struct State {
    gathered: Gathered,
    memory: usize,
}

#[derive(Debug, Clone)]
enum Gathered {
    Sum(NumberSum),
    Average(NumberSum, i64),
    Extreme(Extreme),
    /// The first value; `None` before the first document.
    First(Option<Bson>),
    Last(Option<Bson>),
    Values(Vec<Bson>),
    Distinct(Box<Distinct>),
    Object(Document),
    Moments(Moments),
    Edge(Edge),
    Ranked(Ranked),
    Numbers(Vec<f64>),
}

impl Accumulator {
    /// The state of a new group. `env` is the environment in which `n` of `$firstN` and similar
    /// operators is evaluated: a document whose `_id` is the key of the group.
    pub fn start(&self, env: &Env<'_>) -> Result<State> {
        let limit = |n: &crate::expr::Expr| check_n(n.evaluate(env)?.as_ref());
        let gathered = match &self.kind {
            Kind::Sum(_) | Kind::Count => Gathered::Sum(NumberSum::default()),
            Kind::Average(_) => Gathered::Average(NumberSum::default(), 0),
            Kind::Least(_) | Kind::Greatest(_) => Gathered::Extreme(Extreme::default()),
            Kind::First(_) => Gathered::First(None),
            Kind::Last(_) => Gathered::Last(None),
            Kind::Push(_) | Kind::ConcatArrays(_) => Gathered::Values(Vec::new()),
            Kind::AddToSet(_) | Kind::SetUnion(_) => Gathered::Distinct(Box::default()),
            Kind::MergeObjects(_) => Gathered::Object(Document::new()),
            Kind::DeviationOfPopulation(_) | Kind::DeviationOfSample(_) => {
                Gathered::Moments(Moments::default())
            }
            Kind::Edge { n, last, .. } => Gathered::Edge(Edge::new(limit(n)?, *last)),
            Kind::Extremes { n, .. } => Gathered::Ranked(Ranked::new(limit(n)?)),
            Kind::Ranked(spec) => {
                Gathered::Ranked(Ranked::new(spec.n.as_ref().map_or(Ok(1), limit)?))
            }
            Kind::Quantile(_) => Gathered::Numbers(Vec::new()),
        };
        Ok(State {
            gathered,
            memory: 0,
        })
    }

    /// Adds a document.
    pub fn add(&self, state: &mut State, env: &Env<'_>) -> Result<()> {
        meter::step()?;
        let collator = self.collator.as_deref();
        match (&self.kind, &mut state.gathered) {
            (Kind::Count, Gathered::Sum(sum)) => sum.add(Number::Int32(1)),
            (Kind::Edge { input, .. }, Gathered::Edge(edge)) => {
                if edge.wants() {
                    let value = input.evaluate_or_null(env)?;
                    state.memory += size(&value);
                    let dropped = edge.add(value);
                    state.memory -= dropped.as_ref().map_or(0, size);
                }
            }
            (
                Kind::Extremes {
                    input, greatest, ..
                },
                Gathered::Ranked(ranked),
            ) => {
                let Some(value) = input.evaluate(env)?.filter(|value| !is_null(value)) else {
                    return Ok(());
                };
                ranked.add(
                    vec![value],
                    || Ok(Bson::Null),
                    |a, b| extremes(a, b, *greatest, collator),
                )?;
                state.memory = ranked.bytes();
            }
            (Kind::Ranked(spec), Gathered::Ranked(ranked)) => {
                let key = spec.order.key(env.root, collator);
                ranked.add(
                    key,
                    || spec.output.evaluate_or_null(env),
                    |a, b| self.ranked(spec, a, b),
                )?;
                state.memory = ranked.bytes();
            }
            (Kind::Quantile(spec), Gathered::Numbers(numbers)) => {
                let value = spec.input.evaluate(env)?;
                let number = value
                    .as_ref()
                    .and_then(Number::from_bson)
                    .map(Number::to_f64);
                // NaN has no rank among the numbers.
                numbers.extend(number.filter(|number| !number.is_nan()));
                state.memory = numbers.len() * 8;
            }
            _ => {
                if let Some(operand) = self.operand() {
                    let value = operand.evaluate(env)?;
                    self.add_value(state, value)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a value of the operand, for accumulators with one operand; `None` is a missing value.
    pub fn add_value(&self, state: &mut State, value: Option<Bson>) -> Result<()> {
        let collator = self.collator.as_deref();
        let memory = &mut state.memory;
        let number = value.as_ref().and_then(Number::from_bson);
        match (&mut state.gathered, value) {
            (Gathered::Sum(sum), _) => {
                if let Some(number) = number {
                    sum.add(number);
                }
            }
            (Gathered::Average(sum, count), _) => {
                if let Some(number) = number {
                    sum.add(number);
                    *count += 1;
                }
            }
            (Gathered::Moments(moments), _) => {
                if let Some(number) = number {
                    moments.add(number.to_f64());
                }
            }
            (Gathered::First(first), value) => {
                if first.is_none() {
                    let value = value.unwrap_or(Bson::Null);
                    *memory = size(&value);
                    *first = Some(value);
                }
            }
            (Gathered::Last(last), value) => {
                let value = value.unwrap_or(Bson::Null);
                *memory = size(&value);
                *last = Some(value);
            }
            (Gathered::Extreme(extreme), Some(value)) => {
                extreme.add(&value, self.wanted(), collator);
                *memory = extreme.value().map_or(0, size);
            }
            (_, None) => {}
            (_, Some(value)) => self.add_to_many(state, value)?,
        }
        Ok(())
    }

    fn add_to_many(&self, state: &mut State, value: Bson) -> Result<()> {
        let collator = self.collator.as_deref();
        let bytes = size(&value);
        match (&self.kind, &mut state.gathered) {
            (Kind::ConcatArrays(_), Gathered::Values(values)) => {
                if let Some(items) = array_operand(self, value)? {
                    values.extend(items);
                    state.memory += bytes;
                }
            }
            (Kind::SetUnion(_), Gathered::Distinct(distinct)) => {
                for item in array_operand(self, value)?.unwrap_or_default() {
                    meter::step()?;
                    let bytes = size(&item);
                    state.memory += 2 * bytes * usize::from(distinct.add(item, collator));
                }
            }
            (_, Gathered::Values(values)) => {
                values.push(value);
                state.memory += bytes;
            }
            (_, Gathered::Distinct(distinct)) => {
                state.memory += 2 * bytes * usize::from(distinct.add(value, collator));
            }
            (_, Gathered::Object(object)) => {
                merge_object(object, value)?;
                state.memory += bytes;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds `other`, a state of the same accumulator over later documents.
    pub fn merge(&self, state: &mut State, other: State) -> Result<()> {
        meter::step()?;
        let collator = self.collator.as_deref();
        state.memory += other.memory;
        match (&mut state.gathered, other.gathered) {
            (Gathered::Sum(mine), Gathered::Sum(other)) => mine.merge(&other),
            (Gathered::Average(mine, count), Gathered::Average(other, more)) => {
                mine.merge(&other);
                *count += more;
            }
            (Gathered::Extreme(mine), Gathered::Extreme(other)) => {
                mine.add(&other.finish(), self.wanted(), collator);
            }
            (Gathered::First(mine), Gathered::First(other)) => {
                *mine = mine.take().or(other);
            }
            (Gathered::Last(mine), Gathered::Last(other)) => {
                *mine = other.or(mine.take());
            }
            (Gathered::Values(mine), Gathered::Values(other)) => mine.extend(other),
            (Gathered::Distinct(mine), Gathered::Distinct(other)) => {
                for value in other.into_values() {
                    mine.add(value, collator);
                }
            }
            (Gathered::Object(mine), Gathered::Object(other)) => mine.extend(other),
            (Gathered::Moments(mine), Gathered::Moments(other)) => mine.merge(&other),
            (Gathered::Edge(mine), Gathered::Edge(other)) => {
                for value in other.into_values() {
                    let dropped = mine.add(value);
                    state.memory -= dropped.as_ref().map_or(0, size);
                }
            }
            (Gathered::Ranked(mine), Gathered::Ranked(other)) => match &self.kind {
                Kind::Extremes { greatest, .. } => {
                    mine.merge(other, |a, b| extremes(a, b, *greatest, collator))?;
                }
                Kind::Ranked(spec) => mine.merge(other, |a, b| self.ranked(spec, a, b))?,
                _ => {}
            },
            (Gathered::Numbers(mine), Gathered::Numbers(other)) => mine.extend(other),
            // The states belong to different accumulators: there is nothing to add.
            _ => {}
        }
        Ok(())
    }

    /// The result.
    pub fn finish(&self, state: State) -> Bson {
        match state.gathered {
            Gathered::Sum(sum) => sum.value(),
            Gathered::Average(_, 0) => Bson::Null,
            Gathered::Average(sum, count) => sum.average(count),
            Gathered::Extreme(extreme) => extreme.finish(),
            Gathered::First(value) | Gathered::Last(value) => value.unwrap_or(Bson::Null),
            Gathered::Values(values) => Bson::Array(values),
            Gathered::Distinct(distinct) => Bson::Array(distinct.into_values()),
            Gathered::Object(object) => Bson::Document(object),
            Gathered::Moments(moments) => match self.kind {
                Kind::DeviationOfSample(_) => moments.sample(),
                _ => moments.population(),
            },
            Gathered::Edge(edge) => Bson::Array(edge.into_values()),
            Gathered::Ranked(ranked) => self.finish_ranked(ranked),
            Gathered::Numbers(numbers) => match &self.kind {
                Kind::Quantile(spec) => finish_quantile(spec, numbers),
                _ => Bson::Null,
            },
        }
    }

    fn finish_ranked(&self, ranked: Ranked) -> Bson {
        match &self.kind {
            Kind::Ranked(spec) => {
                let mut values = ranked.into_values();
                if spec.n.is_none() {
                    return values.pop().unwrap_or(Bson::Null);
                }
                if spec.bottom {
                    values.reverse();
                }
                Bson::Array(values)
            }
            _ => Bson::Array(ranked.into_keys()),
        }
    }

    fn wanted(&self) -> Ordering {
        match self.kind {
            Kind::Least(_) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    fn ranked(&self, spec: &RankedSpec, left: &[Bson], right: &[Bson]) -> Ordering {
        let order = spec.order.compare(left, right, self.collator.as_deref());
        if spec.bottom { order.reverse() } else { order }
    }
}

impl State {
    /// Estimated bytes of the state, without the size of its struct.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }
}

fn extremes(
    left: &[Bson],
    right: &[Bson],
    greatest: bool,
    collator: Option<&crate::collation::Collator>,
) -> Ordering {
    let order = match (left.first(), right.first()) {
        (Some(left), Some(right)) => compare_with(left, right, collator),
        _ => Ordering::Equal,
    };
    if greatest { order.reverse() } else { order }
}

fn array_operand(accumulator: &Accumulator, value: Bson) -> Result<Option<Vec<Bson>>> {
    match value {
        Bson::Array(items) => Ok(Some(items)),
        Bson::Null | Bson::Undefined => Ok(None),
        other => Err(Error::type_mismatch(format!(
            "{} requires array inputs, but input {other} is of type {}",
            accumulator.name(),
            type_name(&other)
        ))),
    }
}

/// Sets the fields of `value` in `object`; null adds nothing.
pub(crate) fn merge_object(object: &mut Document, value: Bson) -> Result<()> {
    match value {
        Bson::Document(document) => {
            object.extend(document);
            Ok(())
        }
        Bson::Null | Bson::Undefined => Ok(()),
        other => Err(Error::location(
            40_400,
            format!(
                "$mergeObjects requires object inputs, but input {other} is of type {}",
                type_name(&other)
            ),
        )),
    }
}

fn finish_quantile(spec: &QuantileSpec, mut numbers: Vec<f64>) -> Bson {
    // At most 100 MB of numbers, which take about a second.
    numbers.sort_unstable_by(f64::total_cmp);
    let quantile = |p: f64| quantile_of(&numbers, p, spec.method);
    match &spec.p {
        None => quantile(0.5),
        Some(p) => Bson::Array(p.iter().map(|p| quantile(*p)).collect()),
    }
}

fn is_null(value: &Bson) -> bool {
    matches!(value, Bson::Null | Bson::Undefined)
}

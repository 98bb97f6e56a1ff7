//! `$densify`: inserts documents for values missing from a sequence.
//!
//! In each partition the steps start at the lower bound. Where no document has the value of a step,
//! a document is made with only that value and the fields of the partition key.

use std::cmp::Ordering;

use bson::{Bson, DateTime, Document, doc};

use super::fill::{field_names, fields_key};
use super::partition::{Partition, Partitioning};
use super::place::place;
use crate::expr::{FieldPath, Scope, Unit, Zone, add_units};
use crate::number::Number;
use crate::value::compare;
use crate::{Error, Result, Row, meter};

/// Maximum number of documents that one stage may make.
const MAX_MADE: usize = 500_000;

/// A parsed `$densify`.
#[derive(Debug, Clone)]
pub struct Densify {
    field: FieldPath,
    partition: Vec<FieldPath>,
    by: Partitioning,
    step: Number,
    unit: Option<Unit>,
    bounds: Bounds,
}

#[derive(Debug, Clone)]
enum Bounds {
    Full,
    Partition,
    /// From the first value (inclusive) to the second (exclusive).
    Explicit(Box<(Bson, Bson)>),
}

impl Densify {
    /// Parses `{field, partitionByFields, range: {step, unit, bounds}}`.
    pub fn parse(spec: &Bson, scope: &Scope) -> Result<Densify> {
        let Bson::Document(spec) = spec else {
            return Err(Error::parse(
                "The $densify stage specification must be an object",
            ));
        };
        let known = ["field", "partitionByFields", "range"];
        if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::location(
                40_415,
                format!("BSON field '$densify.{name}' is an unknown field."),
            ));
        }
        let (Some(Bson::String(name)), Some(Bson::Document(range))) =
            (spec.get("field"), spec.get("range"))
        else {
            return Err(Error::location(
                40_414,
                "$densify requires 'field', a string, and 'range', an object",
            ));
        };
        let partition = match spec.get("partitionByFields") {
            Some(fields) => field_names(fields, "$densify")?,
            None => Vec::new(),
        };
        let field = FieldPath::parse(name)?;
        let key = fields_key(&partition);
        let sort = Bson::Document(doc! { name.as_str(): 1 });
        let (step, unit) = step(range)?;
        let bounds = bounds(range, unit, !partition.is_empty())?;
        Ok(Densify {
            field,
            by: Partitioning::parse(Some(&key), Some(&sort), "$densify", scope)?
                .by_fields(partition.len()),
            partition,
            step,
            unit,
            bounds,
        })
    }

    /// How rows are partitioned and ordered.
    pub(super) fn partitioning(&self) -> &Partitioning {
        &self.by
    }

    /// Whether all partitions must be read before the first row is returned: with the bounds
    /// `full`, the range is that of all values.
    pub(super) fn needs_all(&self) -> bool {
        matches!(self.bounds, Bounds::Full)
    }

    /// The rows of a partition and the rows made for missing values, in the order of the field.
    /// `extent` is the least and the greatest value over all partitions; `made` counts the
    /// documents made in all partitions.
    pub(super) fn densify(
        &self,
        partition: Partition,
        extent: Option<&(Bson, Bson)>,
        made: &mut usize,
    ) -> Result<Vec<Row>> {
        let (limits, inclusive) = match &self.bounds {
            Bounds::Full => (extent.cloned(), true),
            Bounds::Partition => (self.extent(partition.documents.iter())?, true),
            Bounds::Explicit(limits) => (Some((**limits).clone()), false),
        };
        let Some((from, to)) = limits else {
            return Ok(partition.into_rows().collect());
        };
        let mut rows = Vec::new();
        self.fill(partition, &from, (&to, inclusive), &mut rows, made)?;
        Ok(rows)
    }

    /// The field's value; `None` when it is null or missing.
    fn value(&self, document: &Document) -> Result<Option<Bson>> {
        let value = self.field.in_document(document);
        match value.as_deref() {
            None | Some(Bson::Null | Bson::Undefined) => Ok(None),
            Some(value @ Bson::DateTime(_)) if self.unit.is_some() => Ok(Some(value.clone())),
            Some(value) if self.unit.is_none() && Number::from_bson(value).is_some() => {
                Ok(Some(value.clone()))
            }
            Some(Bson::DateTime(_)) => Err(Error::location(
                6_053_600,
                "Encountered date densify value in collection when step does not have a date unit.",
            )),
            Some(value) if Number::from_bson(value).is_some() => Err(Error::location(
                6_053_600,
                "Encountered numeric densify value in collection when step has a date unit.",
            )),
            Some(_) => Err(Error::location(
                5_733_201,
                "Densify field type must be numeric or a date",
            )),
        }
    }

    /// The least and the greatest value of the field.
    pub(super) fn extent<'d>(
        &self,
        documents: impl Iterator<Item = &'d Document>,
    ) -> Result<Option<(Bson, Bson)>> {
        let mut extent: Option<(Bson, Bson)> = None;
        for document in documents {
            meter::step()?;
            let Some(value) = self.value(document)? else {
                continue;
            };
            extent = Some(match extent {
                None => (value.clone(), value),
                Some((least, most)) if compare(&value, &least).is_lt() => (value, most),
                Some((least, most)) if compare(&value, &most).is_gt() => (least, value),
                Some(extent) => extent,
            });
        }
        Ok(extent)
    }

    /// Appends to `result` the rows of a partition and the rows made for missing values, in the
    /// order of the field.
    fn fill(
        &self,
        partition: Partition,
        from: &Bson,
        (to, inclusive): (&Bson, bool),
        result: &mut Vec<Row>,
        made: &mut usize,
    ) -> Result<()> {
        let example = partition.documents.first().cloned().unwrap_or_default();
        let within = |value: &Bson| match compare(value, to) {
            Ordering::Less => true,
            Ordering::Equal => inclusive,
            Ordering::Greater => false,
        };
        let mut count = 0;
        let most = partition.documents.len() + MAX_MADE;
        let mut next = Some(from.clone());
        for row in partition.into_rows() {
            meter::step()?;
            if let Some(value) = self.value(row.document()?)? {
                while let Some(step) = next.clone().filter(|step| within(step)) {
                    let order = compare(&step, &value);
                    if order.is_gt() {
                        break;
                    }
                    if order.is_lt() {
                        result.push(self.made(&example, step, made)?.into());
                    }
                    meter::step()?;
                    count += 1;
                    // A step too small to change the value would make this loop endless.
                    if usize::try_from(count).is_ok_and(|count| count > most) {
                        return Err(too_many(most));
                    }
                    next = self.step_from(from, count);
                }
            }
            result.push(row);
        }
        while let Some(step) = next.filter(|step| within(step)) {
            result.push(self.made(&example, step, made)?.into());
            count += 1;
            next = self.step_from(from, count);
        }
        Ok(())
    }

    fn made(&self, example: &Document, value: Bson, made: &mut usize) -> Result<Document> {
        *made += 1;
        if *made > MAX_MADE {
            return Err(too_many(*made));
        }
        let mut document = Document::new();
        for path in &self.partition {
            if let Some(value) = path.in_document(example) {
                let value = meter::copy("$densify", &value)?;
                place(&mut document, path, value)?;
            }
        }
        place(&mut document, &self.field, value)?;
        meter::step()?;
        meter::charge(
            "$densify",
            meter::document_size(&document) + size_of::<Row>(),
        )?;
        Ok(document)
    }

    /// The value `count` steps above `from`; `None` beyond the range of dates. It is computed from
    /// the start of the sequence, so that neither rounding errors nor the different lengths of
    /// months accumulate.
    fn step_from(&self, from: &Bson, count: i64) -> Option<Bson> {
        let distance = self.step.multiply(Number::Int64(count));
        match (from, self.unit) {
            (Bson::DateTime(date), Some(unit)) => {
                let amount = distance.to_i64_exact()?;
                let moved = add_units(date.timestamp_millis(), unit, amount, &Zone::Utc)?;
                Some(Bson::DateTime(DateTime::from_millis(moved)))
            }
            (from, _) => {
                let sum = Number::from_bson(from)?.add(distance);
                // `count` is a long, but the sum of two ints must be an int if it fits.
                let narrow = matches!((from, self.step), (Bson::Int32(_), Number::Int32(_)));
                Some(match sum {
                    Number::Int64(sum) if narrow => Number::narrow(sum).to_bson(),
                    sum => sum.to_bson(),
                })
            }
        }
    }
}

fn too_many(made: usize) -> Error {
    Error::location(
        5_897_900,
        format!("Generated {made} documents in $densify, which is over the limit of {MAX_MADE}"),
    )
}

fn step(range: &Document) -> Result<(Number, Option<Unit>)> {
    let known = ["step", "unit", "bounds"];
    if let Some(name) = range.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::location(
            40_415,
            format!("BSON field '$densify.range.{name}' is an unknown field."),
        ));
    }
    let Some(step) = range.get("step").and_then(Number::from_bson) else {
        return Err(Error::parse("'step' of $densify must be a number"));
    };
    if step.is_zero() || step.is_negative() || step.is_nan() {
        return Err(Error::location(
            5_733_401,
            "the step parameter in a range statement must be a strictly positive numeric value",
        ));
    }
    let unit = range
        .get("unit")
        .map(super::bounds::parse_unit)
        .transpose()?;
    if unit.is_some() && step.to_i64_exact().is_none() {
        return Err(Error::location(
            6_586_400,
            "The step parameter in a range statement must be a whole number when densifying a date \
             range",
        ));
    }
    Ok((step, unit))
}

fn bounds(range: &Document, unit: Option<Unit>, partitioned: bool) -> Result<Bounds> {
    match range.get("bounds") {
        Some(Bson::String(name)) if name == "full" => Ok(Bounds::Full),
        Some(Bson::String(name)) if name == "partition" && partitioned => Ok(Bounds::Partition),
        Some(Bson::String(name)) if name == "partition" => Err(Error::location(
            5_733_408,
            "one may not specify the bounds as 'partition' without specifying a non-empty array of \
             partitionByFields. You may have meant to specify 'full' bounds.",
        )),
        Some(Bson::Array(items)) => match items.as_slice() {
            [from, to] => explicit(from, to, unit),
            _ => Err(Error::location(
                5_733_403,
                "a bounding array in a range statement must have exactly two elements",
            )),
        },
        _ => Err(Error::location(
            5_946_802,
            "Bounds string must either be 'full' or 'partition', or an array of two values",
        )),
    }
}

fn explicit(from: &Bson, to: &Bson, unit: Option<Unit>) -> Result<Bounds> {
    let fits = |bound: &Bson| match unit {
        Some(_) => matches!(bound, Bson::DateTime(_)),
        None => Number::from_bson(bound).is_some(),
    };
    if !fits(from) || !fits(to) {
        return Err(Error::location(
            5_733_402,
            "a bounding array must contain either both dates, with a unit, or both numeric types",
        ));
    }
    if compare(from, to).is_gt() {
        return Err(Error::location(
            5_733_403,
            "the upper bound of a range must not be below its lower bound",
        ));
    }
    Ok(Bounds::Explicit(Box::new((from.clone(), to.clone()))))
}

//! `$bucket`, which is parsed into `$group` and `$sort`, and `$bucketAuto`.

use std::cmp::Ordering;

use bson::{Bson, doc};

use super::Stage;
use super::granularity::Granularity;
use super::group::{self, Group, accumulator};
use super::options::object;
use crate::accumulator::Accumulator;
use crate::expr::{Dependencies, Expr};
use crate::number::Number;
use crate::settings::Settings;
use crate::value::{compare_with, rank, type_name};
use crate::{Error, Result, show};

/// `$bucketAuto`: sorts documents by a value and divides them into buckets of about the same size.
#[derive(Debug, Clone)]
pub struct BucketAuto {
    /// The value by which documents are divided.
    pub group_by: Expr,
    /// Maximum number of buckets, at least 1.
    pub buckets: u32,
    /// The fields of a bucket's document other than `_id`.
    pub output: Vec<(String, Accumulator)>,
    /// The series of preferred numbers for bucket boundaries; `None` for the documents' own values.
    pub granularity: Option<Granularity>,
}

impl BucketAuto {
    /// Parses the specification.
    ///
    /// # Errors
    /// MongoDB's 40239 to 40261.
    pub fn parse(spec: &Bson, settings: &Settings) -> Result<BucketAuto> {
        let message = "The argument to $bucketAuto must be an object";
        let spec = object(spec, 40_240, message)?;
        let known = ["groupBy", "buckets", "output", "granularity"];
        if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::location(
                40_245,
                format!("Unrecognized option to $bucketAuto: {name}."),
            ));
        }
        let (Some(group_by), Some(buckets)) = (spec.get("groupBy"), spec.get("buckets")) else {
            return Err(Error::location(
                40_246,
                "$bucketAuto requires 'groupBy' and 'buckets' to be specified.",
            ));
        };
        check_group_by("$bucketAuto", group_by, 40_239)?;
        let output = group::output("$bucketAuto", spec)?;
        let granularity = spec
            .get("granularity")
            .map(Granularity::parse)
            .transpose()?;
        Ok(BucketAuto {
            group_by: Expr::parse(group_by, &settings.scope())?,
            buckets: bucket_count(buckets)?,
            output: output
                .iter()
                .map(|(name, value)| Ok((name.clone(), accumulator(name, value, settings)?)))
                .collect::<Result<_>>()?,
            granularity,
        })
    }

    /// Adds what the stage reads of its input documents.
    pub fn dependencies(&self, found: &mut Dependencies) {
        self.group_by.dependencies(found);
        for (_, accumulator) in &self.output {
            accumulator.dependencies(found);
        }
    }
}

fn bucket_count(spec: &Bson) -> Result<u32> {
    let Some(number) = Number::from_bson(spec) else {
        return Err(Error::location(
            40_241,
            format!(
                "The $bucketAuto 'buckets' field must be a numeric value, but found type: {}",
                type_name(spec)
            ),
        ));
    };
    let Some(number) = number.to_i32_exact() else {
        return Err(Error::location(
            40_242,
            format!(
                "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but \
                 found {}",
                show::value(spec)
            ),
        ));
    };
    match u32::try_from(number) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::location(
            40_243,
            format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {number}"),
        )),
    }
}

fn check_group_by(stage: &str, group_by: &Bson, code: i32) -> Result<()> {
    let valid = match group_by {
        Bson::String(path) => path.starts_with('$'),
        Bson::Document(expr) => expr.keys().next().is_some_and(|name| name.starts_with('$')),
        _ => false,
    };
    if valid {
        return Ok(());
    }
    Err(Error::location(
        code,
        format!(
            "The {stage} 'groupBy' field must be defined as a $-prefixed path or an expression, \
             but found: {}.",
            show::value(group_by)
        ),
    ))
}

/// `$bucket` as `$group` and `$sort`.
pub(super) fn bucket(spec: &Bson, settings: &Settings) -> Result<Vec<Stage>> {
    let message = "Argument to $bucket stage must be an object";
    let spec = object(spec, 40_201, message)?;
    let known = ["groupBy", "boundaries", "default", "output"];
    if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::location(
            40_197,
            format!("Unrecognized option to $bucket: {name}."),
        ));
    }
    let (Some(group_by), Some(boundaries)) = (spec.get("groupBy"), spec.get("boundaries")) else {
        return Err(Error::location(
            40_198,
            "$bucket requires 'groupBy' and 'boundaries' to be specified.",
        ));
    };
    check_group_by("$bucket", group_by, 40_202)?;
    let boundaries = parse_boundaries(boundaries, settings)?;
    let default = spec.get("default").map(constant_default).transpose()?;
    if let Some(default) = &default {
        check_default(default, &boundaries, settings)?;
    }
    let scope = settings.scope();
    let group_by = Expr::parse(group_by, &scope)?;
    // The key is replaced: a copy of its expression for each boundary would take too much memory.
    let mut group = doc! { "_id": null };
    let output = group::output("$bucket", spec)?;
    if output.contains_key("_id") {
        let message = "a group's _id may only be specified once";
        return Err(Error::location(15_948, message));
    }
    group.extend(output);
    let group = Group::parse(&Bson::Document(group), settings)?;
    Ok(vec![
        Stage::Group(Group {
            id: Expr::boundary(group_by, boundaries, default, &scope),
            ..group
        }),
        Stage::Sort(group::sort(&doc! { "_id": 1 })?, None),
    ])
}

fn constant(spec: &Bson) -> Option<Bson> {
    let expr = Expr::parse(spec, &crate::expr::Scope::new()).ok()?;
    expr.as_constant().cloned()
}

fn constant_default(spec: &Bson) -> Result<Bson> {
    constant(spec).ok_or_else(|| {
        Error::location(
            40_195,
            "The $bucket 'default' field must be a constant expression",
        )
    })
}

fn parse_boundaries(spec: &Bson, settings: &Settings) -> Result<Vec<Bson>> {
    let Bson::Array(specs) = spec else {
        return Err(Error::location(
            40_200,
            format!(
                "The $bucket 'boundaries' field must be an array, but found type: {}.",
                type_name(spec)
            ),
        ));
    };
    let mut values = Vec::with_capacity(specs.len());
    for spec in specs {
        values.push(constant(spec).ok_or_else(|| {
            Error::location(
                40_191,
                "The $bucket 'boundaries' field must be an array of constant values",
            )
        })?);
    }
    if values.len() < 2 {
        return Err(Error::location(
            40_192,
            format!(
                "The $bucket 'boundaries' field must have at least 2 values, but found {} \
                 value(s).",
                values.len()
            ),
        ));
    }
    for (at, (low, high)) in values.iter().zip(values.iter().skip(1)).enumerate() {
        if rank(low) != rank(high) {
            return Err(Error::location(
                40_193,
                format!(
                    "All values in the the 'boundaries' option to $bucket must have the same type. \
                     Found conflicting types {} and {}.",
                    type_name(low),
                    type_name(high)
                ),
            ));
        }
        if compare_with(low, high, settings.collator.as_deref()) != Ordering::Less {
            return Err(Error::location(
                40_194,
                format!(
                    "The 'boundaries' option to $bucket must be sorted, but elements {at} and {} \
                     are not in ascending order ({} is not less than {}).",
                    at + 1,
                    show::value(low),
                    show::value(high)
                ),
            ));
        }
    }
    Ok(values)
}

/// Checks that the default is not within the boundaries.
fn check_default(default: &Bson, boundaries: &[Bson], settings: &Settings) -> Result<()> {
    let collator = settings.collator.as_deref();
    let (Some(low), Some(high)) = (boundaries.first(), boundaries.last()) else {
        return Ok(());
    };
    let inside = compare_with(default, low, collator) != Ordering::Less
        && compare_with(default, high, collator) == Ordering::Less;
    if inside {
        return Err(Error::location(
            40_199,
            "The $bucket 'default' field must be less than the lowest boundary or greater than or \
             equal to the highest boundary.",
        ));
    }
    Ok(())
}

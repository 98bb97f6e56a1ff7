//! Parses the specification of a stage.

use bson::{Bson, RawBsonRef};

use super::bucket::{self, BucketAuto};
use super::group::{self, Group};
use super::options::count;
use super::{
    Facet, GraphLookup, Lookup, Merge, Out, Stage, Statistics, Transform, UnionWith, Unwind,
};
use crate::expr::{Expr, check_stage};
use crate::filter::Filter;
use crate::number::Number;
use crate::settings::Settings;
use crate::sort::Sort;
use crate::stage_name::unknown;
use crate::value::type_name;
use crate::window::WindowStage;
use crate::{Code, Error, Result};

impl Stage {
    /// Parses the stage `name` with its specification. A stage that is an abbreviation gives the
    /// stages it stands for.
    ///
    /// # Errors
    /// 40324 for an unknown stage name; errors of the stage.
    pub fn parse(name: &str, spec: RawBsonRef<'_>, settings: &Settings) -> Result<Vec<Stage>> {
        check_stage(name, spec)?;
        // Filters are parsed from bytes, in which a field may have several conditions.
        let stage = match name {
            "$match" => Stage::Match(filter(spec, settings)?),
            "$lookup" => Stage::Lookup(Box::new(Lookup::parse(spec, settings)?)),
            "$graphLookup" => Stage::GraphLookup(Box::new(GraphLookup::parse(spec, settings)?)),
            "$unionWith" => Stage::UnionWith(UnionWith::parse(spec, settings)?),
            "$facet" => Stage::Facet(Facet::parse(spec, settings)?),
            _ => return Stage::parse_tree(name, &Bson::try_from(spec)?, settings),
        };
        Ok(vec![stage])
    }

    /// Parses a stage without filters, from an owned value.
    fn parse_tree(name: &str, spec: &Bson, settings: &Settings) -> Result<Vec<Stage>> {
        if let Some(transform) = Transform::parse(name, spec, settings)? {
            return Ok(vec![Stage::Transform(transform)]);
        }
        if let Some(statistics) = Statistics::parse(name, spec)? {
            return Ok(vec![Stage::Statistics(statistics)]);
        }
        if let Some(window) = WindowStage::parse(name, spec, settings)? {
            return Ok(vec![Stage::Window(Box::new(window))]);
        }
        let stage = match name {
            "$sort" => Stage::Sort(sort(spec)?, None),
            "$limit" => Stage::Limit(limit(spec)?),
            "$skip" => Stage::Skip(count("$skip", 5_107_200, spec)?),
            "$group" => Stage::Group(Group::parse(spec, settings)?),
            "$count" => Stage::Count(count_field(spec)?),
            "$unwind" => Stage::Unwind(Unwind::parse(spec)?),
            "$bucket" => return bucket::bucket(spec, settings),
            "$bucketAuto" => Stage::BucketAuto(BucketAuto::parse(spec, settings)?),
            "$sortByCount" => return group::sort_by_count(spec, settings),
            "$sample" => Stage::Sample(sample(spec)?),
            "$documents" => Stage::Documents(Expr::parse(spec, &settings.scope())?),
            "$out" => Stage::Out(Out::parse(spec, settings)?),
            "$merge" => Stage::Merge(Box::new(Merge::parse(spec, settings)?)),
            "$changeStream" => match spec {
                Bson::Document(options) => Stage::ChangeStream(options.clone()),
                other => {
                    return Err(Error::location(
                        50_808,
                        format!(
                            "$changeStream stage expects a document as argument, found {}",
                            type_name(other)
                        ),
                    ));
                }
            },
            refused => return Err(refusal(refused)),
        };
        Ok(vec![stage])
    }
}

/// The error for a stage that needs a feature this server does not have.
fn refusal(name: &str) -> Error {
    match name {
        "$geoNear" => Error::new(
            Code::INDEX_NOT_FOUND,
            "$geoNear requires a 2d or 2dsphere index, but none were found",
        ),
        "$search" | "$searchMeta" | "$vectorSearch" => Error::location(
            31_082,
            "Using $search and $vectorSearch aggregation stages requires additional configuration",
        ),
        "$changeStreamSplitLargeEvent" => Error::new(
            Code::ILLEGAL_OPERATION,
            "$changeStreamSplitLargeEvent can only be used with $changeStream",
        ),
        other => unknown(other),
    }
}

fn filter(spec: RawBsonRef<'_>, settings: &Settings) -> Result<Filter> {
    let RawBsonRef::Document(spec) = spec else {
        return Err(Error::location(
            15_959,
            "the match filter must be an expression in an object",
        ));
    };
    Filter::parse(spec, settings)
}

fn sort(spec: &Bson) -> Result<Sort> {
    let Bson::Document(spec) = spec else {
        return Err(Error::location(
            15_973,
            "the $sort key specification must be an object",
        ));
    };
    Sort::parse_keys(spec)
}

fn limit(spec: &Bson) -> Result<u64> {
    match count("$limit", 5_107_201, spec)? {
        0 => Err(Error::location(15_958, "the limit must be positive")),
        limit => Ok(limit),
    }
}

fn count_field(spec: &Bson) -> Result<String> {
    let Bson::String(name) = spec else {
        return Err(Error::location(
            40_156,
            "the count field must be a non-empty string",
        ));
    };
    let refuse = |code, message: &str| Err(Error::location(code, message));
    if name.is_empty() {
        return refuse(40_157, "the count field must be a non-empty string");
    }
    if name.starts_with('$') {
        return refuse(40_158, "the count field cannot be a $-prefixed path");
    }
    if name.contains('\0') {
        return refuse(40_159, "the count field cannot contain a null byte");
    }
    if name.contains('.') {
        return refuse(40_160, "the count field cannot contain '.'");
    }
    Ok(name.clone())
}

fn sample(spec: &Bson) -> Result<u64> {
    let Bson::Document(spec) = spec else {
        return Err(Error::location(
            28_745,
            "the $sample stage specification must be an object",
        ));
    };
    let mut size = None;
    for (name, value) in spec {
        if name != "size" {
            return Err(Error::location(
                28_748,
                format!("unrecognized option to $sample: {name}"),
            ));
        }
        let Some(number) = Number::from_bson(value) else {
            return Err(Error::location(
                28_746,
                "size argument to $sample must be a number",
            ));
        };
        match u64::try_from(number.to_i64_clamped()) {
            Ok(number) if number > 0 => size = Some(number),
            _ => {
                return Err(Error::location(
                    28_747,
                    "size argument to $sample must be a positive integer",
                ));
            }
        }
    }
    size.ok_or_else(|| Error::location(28_749, "$sample stage must specify a size"))
}

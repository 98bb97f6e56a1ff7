//! Paths that a projection names twice. Trees of documents keep the last of two fields of one name,
//! so that this is checked on the bytes.

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::{Error, Result};

/// Nesting that is checked: documents of clients nest no deeper.
const MAX_DEPTH: usize = 200;

/// Checks that a specification of a projection names no path twice with one and the same text.
///
/// # Errors
/// 31250, as MongoDB for paths that collide.
pub(super) fn check(spec: &RawDocument) -> Result<()> {
    check_below(spec, "", 0)
}

/// Recursion is bounded by [`MAX_DEPTH`].
fn check_below(spec: &RawDocument, prefix: &str, depth: usize) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for (at, element) in spec.iter_elements().enumerate() {
        let element = element?;
        let name = element.key().as_str();
        if at == 0 && name.starts_with('$') {
            // An expression.
            return Ok(());
        }
        let path = match prefix {
            "" => name.to_owned(),
            _ => format!("{prefix}.{name}"),
        };
        if !seen.insert(name) {
            return Err(Error::location(31_250, format!("Path collision at {path}")));
        }
        if let RawBsonRef::Document(inner) = element.value()?
            && depth < MAX_DEPTH
        {
            check_below(inner, &path, depth + 1)?;
        }
    }
    Ok(())
}

/// Checks the `$project`, `$addFields` and `$set` in a stage of a pipeline, also in its pipelines.
///
/// # Errors
/// 31250, as MongoDB for paths that collide.
pub fn check_repeated_paths(stage: &RawDocument) -> Result<()> {
    check_stage(stage, 0)
}

/// Recursion is bounded by [`MAX_DEPTH`].
fn check_stage(stage: &RawDocument, depth: usize) -> Result<()> {
    let Some(first) = stage.iter_elements().next().transpose()? else {
        return Ok(());
    };
    let RawBsonRef::Document(spec) = first.value()? else {
        return Ok(());
    };
    let name = first.key().as_str();
    match name {
        "$project" | "$addFields" | "$set" => check(spec).map_err(|error| {
            let stage = if name == "$project" {
                name
            } else {
                "$addFields"
            };
            let message = format!("Invalid {stage} :: caused by :: {}", error.message);
            Error { message, ..error }
        }),
        "$facet" => spec
            .iter_elements()
            .try_for_each(|element| match element?.value()? {
                RawBsonRef::Array(stages) => check_stages(stages, depth),
                _ => Ok(()),
            }),
        "$lookup" | "$unionWith" => match spec.get("pipeline")? {
            Some(RawBsonRef::Array(stages)) => check_stages(stages, depth),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_stages(stages: &RawArray, depth: usize) -> Result<()> {
    if depth >= MAX_DEPTH {
        return Ok(());
    }
    for stage in stages {
        if let RawBsonRef::Document(stage) = stage? {
            check_stage(stage, depth + 1)?;
        }
    }
    Ok(())
}

//! Arguments of keywords, checked.

use std::collections::HashSet;

use bson::{Bson, Document};

use crate::number::Number;
use crate::value::type_name;
use crate::{Error, Result};

pub(super) fn wrong_type(name: &str, expected: &str) -> Error {
    Error::type_mismatch(format!("$jsonSchema keyword '{name}' must be {expected}"))
}

pub(super) fn document<'v>(name: &str, value: &'v Bson) -> Result<&'v Document> {
    value
        .as_document()
        .ok_or_else(|| wrong_type(name, "an object"))
}

pub(super) fn array<'v>(name: &str, value: &'v Bson) -> Result<&'v [Bson]> {
    match value {
        Bson::Array(items) => Ok(items),
        _ => Err(wrong_type(name, "an array")),
    }
}

pub(super) fn nonempty<'v>(name: &str, value: &'v Bson) -> Result<&'v [Bson]> {
    let items = array(name, value)?;
    if items.is_empty() {
        return Err(Error::bad_value(format!(
            "$jsonSchema keyword '{name}' must be a non-empty array"
        )));
    }
    Ok(items)
}

pub(super) fn text<'v>(name: &str, value: &'v Bson) -> Result<&'v str> {
    value.as_str().ok_or_else(|| wrong_type(name, "a string"))
}

pub(super) fn boolean(name: &str, value: &Bson) -> Result<bool> {
    value.as_bool().ok_or_else(|| wrong_type(name, "a boolean"))
}

pub(super) fn number(name: &str, value: &Bson) -> Result<Number> {
    Number::from_bson(value).ok_or_else(|| wrong_type(name, "a number"))
}

/// A whole number that is not negative.
pub(super) fn count(name: &str, value: &Bson) -> Result<usize> {
    let number = number(name, value)?;
    let whole = number.to_i64_exact().ok_or_else(|| {
        Error::parse(format!(
            "$jsonSchema keyword '{name}' must be a whole number: {number}"
        ))
    })?;
    usize::try_from(whole).map_err(|_| {
        Error::parse(format!(
            "$jsonSchema keyword '{name}' must not be negative: {number}"
        ))
    })
}

/// Names of properties, each once; at least one.
pub(super) fn names(name: &str, value: &Bson) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for item in nonempty(name, value)? {
        let Bson::String(item) = item else {
            return Err(Error::type_mismatch(format!(
                "$jsonSchema keyword '{name}' must be an array of strings, but found an element \
                 of type: {}",
                type_name(item)
            )));
        };
        if !seen.insert(item) {
            return Err(Error::parse(format!(
                "$jsonSchema keyword '{name}' array cannot contain duplicate values"
            )));
        }
        names.push(item.clone());
    }
    Ok(names)
}

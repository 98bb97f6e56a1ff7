//! `$addToSet`, `$pop` and `$pullAll`.

use std::collections::HashSet;

use bson::Bson;

use super::modifier::{Context, Outcome};
use crate::number::Number;
use crate::value::{equivalence_key, type_name};
use crate::{Error, Result, meter, show};

/// The operand of `$addToSet`.
#[derive(Debug, Clone)]
pub(super) struct AddToSet(Vec<Bson>);

impl AddToSet {
    pub(super) fn parse(operand: &Bson) -> Result<AddToSet> {
        let clauses = operand
            .as_document()
            .filter(|d| d.keys().next().is_some_and(|name| name == "$each"));
        let Some(clauses) = clauses else {
            return Ok(AddToSet(vec![operand.clone()]));
        };
        if clauses.len() > 1 {
            return Err(Error::bad_value(format!(
                "Found unexpected fields after $each in $addToSet: {}",
                show::document(clauses)
            )));
        }
        match clauses.get("$each") {
            Some(Bson::Array(values)) => Ok(AddToSet(values.clone())),
            other => Err(Error::type_mismatch(format!(
                "The argument to $each in $addToSet must be an array but it was of type {}",
                other.map_or("missing", type_name)
            ))),
        }
    }

    pub(super) fn apply(
        &self,
        path: &str,
        current: Option<&Bson>,
        cx: &Context<'_>,
    ) -> Result<Outcome> {
        let mut array = match current {
            None => Vec::new(),
            Some(Bson::Array(array)) => array.clone(),
            Some(other) => {
                return Err(Error::bad_value(format!(
                    "Cannot apply $addToSet to non-array field. Field named '{}' has non-array \
                     type {}",
                    path.rsplit('.').next().unwrap_or(path),
                    type_name(other)
                )));
            }
        };
        let before = array.len();
        let mut known: HashSet<Vec<u8>> = array
            .iter()
            .map(|value| equivalence_key(value, cx.collator))
            .collect();
        for value in &self.0 {
            if known.insert(equivalence_key(value, cx.collator)) {
                array.push(value.clone());
            }
        }
        Ok(if current.is_some() && array.len() == before {
            Outcome::Keep
        } else {
            Outcome::Set(Bson::Array(array))
        })
    }
}

/// The operand of `$pop`: the end from which it removes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pop {
    first: bool,
}

impl Pop {
    pub(super) fn parse(path: &str, operand: &Bson) -> Result<Pop> {
        let Some(number) = Number::from_bson(operand) else {
            return Err(Error::parse(format!(
                "Expected a number in: {}",
                show::field(path, operand)
            )));
        };
        match number.to_i64_exact() {
            Some(1) => Ok(Pop { first: false }),
            Some(-1) => Ok(Pop { first: true }),
            _ => Err(Error::parse(format!(
                "$pop expects 1 or -1, found: {}",
                show::value(operand)
            ))),
        }
    }

    pub(super) fn apply(self, path: &str, current: Option<&Bson>) -> Result<Outcome> {
        let mut array = match current {
            None => return Ok(Outcome::Keep),
            Some(Bson::Array(array)) => array.clone(),
            Some(other) => {
                return Err(Error::type_mismatch(format!(
                    "Path '{path}' contains an element of non-array type '{}'",
                    type_name(other)
                )));
            }
        };
        if array.is_empty() {
            return Ok(Outcome::Keep);
        }
        if self.first {
            array.remove(0);
        } else {
            array.pop();
        }
        Ok(Outcome::Set(Bson::Array(array)))
    }
}

/// The operand of `$pullAll`.
#[derive(Debug, Clone)]
pub(super) struct PullAll(Vec<Bson>);

impl PullAll {
    pub(super) fn parse(operand: &Bson) -> Result<PullAll> {
        match operand {
            Bson::Array(values) => Ok(PullAll(values.clone())),
            other => Err(Error::bad_value(format!(
                "$pullAll requires an array argument but was given a {}",
                type_name(other)
            ))),
        }
    }

    pub(super) fn apply(&self, current: Option<&Bson>, cx: &Context<'_>) -> Result<Outcome> {
        let unwanted: HashSet<Vec<u8>> = self
            .0
            .iter()
            .map(|value| equivalence_key(value, cx.collator))
            .collect();
        remove(current, |element| {
            Ok(unwanted.contains(&equivalence_key(element, cx.collator)))
        })
    }
}

/// Removes the elements of an array for which `unwanted` returns true.
pub(super) fn remove(
    current: Option<&Bson>,
    mut unwanted: impl FnMut(&Bson) -> Result<bool>,
) -> Result<Outcome> {
    let array = match current {
        None => return Ok(Outcome::Keep),
        Some(Bson::Array(array)) => array,
        Some(_) => return Err(Error::bad_value("Cannot apply $pull to a non-array value")),
    };
    let mut kept = Vec::with_capacity(array.len());
    for element in array {
        meter::step()?;
        if !unwanted(element)? {
            kept.push(element.clone());
        }
    }
    Ok(if kept.len() == array.len() {
        Outcome::Keep
    } else {
        Outcome::Set(Bson::Array(kept))
    })
}

//! `$addToSet`, `$pop` and `$pullAll`.

use std::collections::HashMap;

use bson::Bson;

use super::modifier::{Context, Outcome};
use crate::collation::Collator;
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
        current: Option<&mut Bson>,
        cx: &Context<'_>,
    ) -> Result<Outcome> {
        let exists = current.is_some();
        let mut created = Vec::new();
        let array = match current {
            None => &mut created,
            Some(Bson::Array(array)) => array,
            Some(other) => {
                return Err(Error::bad_value(format!(
                    "Cannot apply $addToSet to non-array field. Field named '{}' has non-array \
                     type {}",
                    path.rsplit('.').next().unwrap_or(path),
                    type_name(other)
                )));
            }
        };
        let mut missing = Keys::of(&self.0, cx.collator)?;
        for element in &*array {
            if missing.0.is_empty() {
                break;
            }
            missing.remove(element)?;
        }
        if exists && missing.0.is_empty() {
            return Ok(Outcome::Keep);
        }
        let mut added: Vec<usize> = missing.0.into_values().collect();
        added.sort_unstable();
        let values = added.into_iter().filter_map(|index| self.0.get(index));
        let values = meter::copies("An update", values)?;
        array.reserve_exact(values.len());
        array.extend(values);
        Ok(Outcome::Set(Bson::Array(std::mem::take(array))))
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

    pub(super) fn apply(self, path: &str, current: Option<&mut Bson>) -> Result<Outcome> {
        let array = match current {
            None => return Ok(Outcome::Keep),
            Some(Bson::Array(array)) => array,
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
        Ok(Outcome::Set(Bson::Array(std::mem::take(array))))
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

    pub(super) fn apply(&self, current: Option<&mut Bson>, cx: &Context<'_>) -> Result<Outcome> {
        let unwanted = Keys::of(&self.0, cx.collator)?;
        remove(current, |element| unwanted.contains(element))
    }
}

/// The keys of the values of an operand, each with the index of the first value that has it.
struct Keys<'c>(HashMap<Vec<u8>, usize>, Option<&'c Collator>);

/// Bytes of an entry of the table in addition to its key.
const ENTRY: usize = 64;

impl<'c> Keys<'c> {
    /// The keys; they are charged until the update has been applied.
    fn of(values: &[Bson], collator: Option<&'c Collator>) -> Result<Keys<'c>> {
        let mut keys = HashMap::new();
        for (index, value) in values.iter().enumerate() {
            let key = key(value, collator)?;
            meter::charge("An update", key.len() + ENTRY)?;
            keys.entry(key).or_insert(index);
        }
        Ok(Keys(keys, collator))
    }

    fn contains(&self, element: &Bson) -> Result<bool> {
        Ok(self.0.contains_key(&key(element, self.1)?))
    }

    fn remove(&mut self, element: &Bson) -> Result<()> {
        self.0.remove(&key(element, self.1)?);
        Ok(())
    }
}

/// The key of a value, whose size is counted first.
fn key(value: &Bson, collator: Option<&Collator>) -> Result<Vec<u8>> {
    meter::read(meter::size(value))?;
    Ok(equivalence_key(value, collator))
}

/// Removes the elements of an array for which `unwanted` returns true.
pub(super) fn remove(
    current: Option<&mut Bson>,
    mut unwanted: impl FnMut(&Bson) -> Result<bool>,
) -> Result<Outcome> {
    let array = match current {
        None => return Ok(Outcome::Keep),
        Some(Bson::Array(array)) => array,
        Some(_) => return Err(Error::bad_value("Cannot apply $pull to a non-array value")),
    };
    let before = array.len();
    let mut failed = Ok(());
    // After an error the update is given up, and with it this array.
    array.retain(|element| {
        let removed = failed
            .is_ok()
            .then(|| meter::step().and_then(|()| unwanted(element)));
        match removed {
            Some(Ok(removed)) => !removed,
            Some(Err(error)) => {
                failed = Err(error);
                true
            }
            None => true,
        }
    });
    failed?;
    Ok(if array.len() == before {
        Outcome::Keep
    } else {
        Outcome::Set(Bson::Array(std::mem::take(array)))
    })
}

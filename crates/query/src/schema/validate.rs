//! Validates values against a schema. Recursion is bounded by the depth of the schema.

use bson::{Bson, RawArray, RawBsonRef, RawDocument};

use super::rule::{Additional, Check, Dependency, Rule, Schema};
use super::unordered::unordered;
use crate::number::{Number, compare};
use crate::path::find;
use crate::value::{
    compare as compare_values, compare_mixed, equivalence_key, equivalence_key_raw,
};
use crate::{Result, meter};

impl Schema {
    /// Whether `document` is valid.
    ///
    /// # Errors
    /// Errors of patterns; `InvalidBSON` for invalid bytes.
    pub fn validates(&self, document: &RawDocument) -> Result<bool> {
        self.allows(RawBsonRef::Document(document))
    }

    pub(super) fn allows(&self, value: RawBsonRef<'_>) -> Result<bool> {
        for rule in &self.rules {
            if !rule.allows(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Rule {
    pub(super) fn allows(&self, value: RawBsonRef<'_>) -> Result<bool> {
        match &self.check {
            Check::Types(types) => return Ok(types.matches(value)),
            Check::Enum(list) => {
                meter::steps(list.len())?;
                let sorted = nested(value).transpose()?;
                let is = |item| match &sorted {
                    Some(sorted) => compare_values(sorted, item).is_eq(),
                    None => compare_mixed(value, item, None).is_eq(),
                };
                return Ok(list.iter().any(is));
            }
            Check::AllOf(schemas) => return Ok(passed(schemas, value)?.len() == schemas.len()),
            Check::AnyOf(schemas) => return Ok(!passed(schemas, value)?.is_empty()),
            Check::OneOf(schemas) => return Ok(passed(schemas, value)?.len() == 1),
            Check::Not(schema) => return Ok(!schema.allows(value)?),
            _ => {}
        }
        match value {
            RawBsonRef::Document(document) => self.allows_document(document),
            RawBsonRef::Array(array) => self.allows_array(array),
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) => self.allows_text(text),
            other => Ok(Number::from_raw(other).is_none_or(|number| self.allows_number(number))),
        }
    }

    fn allows_number(&self, number: Number) -> bool {
        match &self.check {
            // NaN satisfies only an inclusive bound that is itself NaN.
            Check::Minimum { limit, exclusive } | Check::Maximum { limit, exclusive }
                if number.is_nan() || limit.is_nan() =>
            {
                number.is_nan() && limit.is_nan() && !exclusive
            }
            Check::Minimum { limit, exclusive } => {
                let order = compare(number, *limit);
                order.is_gt() || (order.is_eq() && !exclusive)
            }
            Check::Maximum { limit, exclusive } => {
                let order = compare(number, *limit);
                order.is_lt() || (order.is_eq() && !exclusive)
            }
            Check::MultipleOf(divisor) => number.modulo(*divisor).is_ok_and(|rest| rest.is_zero()),
            _ => true,
        }
    }

    /// Lengths are in code points.
    fn allows_text(&self, text: &str) -> Result<bool> {
        match &self.check {
            Check::Length(bound) => Ok(bound.holds(text.chars().count())),
            Check::Pattern(regex) => regex.is_match(text),
            _ => Ok(true),
        }
    }

    fn allows_array(&self, array: &RawArray) -> Result<bool> {
        match &self.check {
            Check::ItemCount(bound) => Ok(bound.holds(array.iter_elements().count())),
            Check::UniqueItems => Ok(duplicate(array)?.is_none()),
            Check::Items(schema) => Ok(bad_item(array, 0, schema)?.is_none()),
            Check::ItemList(schemas) => {
                for (item, schema) in array.into_iter().zip(schemas) {
                    if !schema.allows(item?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Check::AdditionalItems { from, additional } => match additional {
                Additional::Allowed => Ok(true),
                Additional::Forbidden => Ok(array.iter_elements().count() <= *from),
                Additional::Like(schema) => Ok(bad_item(array, *from, schema)?.is_none()),
            },
            _ => Ok(true),
        }
    }

    fn allows_document(&self, document: &RawDocument) -> Result<bool> {
        match &self.check {
            Check::Required(names) => Ok(missing(document, names)?.is_empty()),
            Check::PropertyCount(bound) => Ok(bound.holds(document.iter_elements().count())),
            Check::Properties(list) => {
                for (name, schema) in list {
                    // A field is found by a walk.
                    meter::read(document.as_bytes().len())?;
                    if let Some(value) = find(document, name)?
                        && !schema.allows(value)?
                    {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Check::PatternProperties(list) => {
                for field in document {
                    let (name, value) = field?;
                    for (pattern, schema) in list {
                        if pattern.is_match(name.as_str())? && !schema.allows(value)? {
                            return Ok(false);
                        }
                    }
                }
                Ok(true)
            }
            Check::AdditionalProperties { additional, .. } => {
                for (_, value) in self.additional(document)? {
                    let allowed = match additional {
                        Additional::Allowed => true,
                        Additional::Forbidden => false,
                        Additional::Like(schema) => schema.allows(value)?,
                    };
                    if !allowed {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Check::Dependencies(list) => {
                for (name, dependency) in list {
                    meter::read(document.as_bytes().len())?;
                    if find(document, name)?.is_some() && !dependency.holds(document)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// The properties that neither `properties` nor `patternProperties` of this schema covers.
    pub(super) fn additional<'d>(
        &self,
        document: &'d RawDocument,
    ) -> Result<Vec<(&'d str, RawBsonRef<'d>)>> {
        let Check::AdditionalProperties {
            names, patterns, ..
        } = &self.check
        else {
            return Ok(Vec::new());
        };
        let mut others = Vec::new();
        for field in document {
            let (name, value) = field?;
            meter::steps(names.len())?;
            let mut known = names.iter().any(|known| known == name.as_str());
            for pattern in patterns {
                known = known || pattern.is_match(name.as_str())?;
            }
            if !known {
                others.push((name.as_str(), value));
            }
        }
        Ok(others)
    }
}

impl Dependency {
    pub(super) fn holds(&self, document: &RawDocument) -> Result<bool> {
        match self {
            Dependency::Properties(names) => Ok(missing(document, names)?.is_empty()),
            Dependency::Schema(schema) => schema.validates(document),
        }
    }
}

/// The positions of the schemas that accept `value`.
pub(super) fn passed(schemas: &[Schema], value: RawBsonRef<'_>) -> Result<Vec<usize>> {
    let mut passed = Vec::new();
    for (position, schema) in schemas.iter().enumerate() {
        if schema.allows(value)? {
            passed.push(position);
        }
    }
    Ok(passed)
}

/// Those of `names` that are not fields of `document`.
pub(super) fn missing(document: &RawDocument, names: &[String]) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for name in names {
        meter::read(document.as_bytes().len())?;
        if find(document, name)?.is_none() {
            missing.push(name.clone());
        }
    }
    Ok(missing)
}

/// The first item, from position `from` on, that `schema` refuses.
pub(super) fn bad_item<'a>(
    array: &'a RawArray,
    from: usize,
    schema: &Schema,
) -> Result<Option<(usize, RawBsonRef<'a>)>> {
    for (position, item) in array.into_iter().enumerate().skip(from) {
        meter::step()?;
        let item = item?;
        if !schema.allows(item)? {
            return Ok(Some((position, item)));
        }
    }
    Ok(None)
}

/// Bytes of an entry of a set of keys in addition to the key.
const ENTRY: usize = 64;

/// The first item that is equal to an earlier one.
pub(super) fn duplicate(array: &RawArray) -> Result<Option<RawBsonRef<'_>>> {
    let _scope = meter::scope();
    let mut seen = std::collections::HashSet::new();
    for item in array {
        let item = item?;
        meter::step()?;
        let mut key = Vec::new();
        match nested(item).transpose()? {
            Some(sorted) => key = equivalence_key(&sorted, None),
            None => equivalence_key_raw(item, None, &mut key),
        }
        meter::read(key.len())?;
        meter::charge("uniqueItems", key.len() + ENTRY)?;
        if !seen.insert(key) {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// A document or array with its fields sorted by name; `None` for other values.
fn nested(value: RawBsonRef<'_>) -> Option<Result<Bson>> {
    let has_fields = matches!(value, RawBsonRef::Document(_) | RawBsonRef::Array(_));
    has_fields.then(|| Ok(unordered(Bson::try_from(value)?)))
}

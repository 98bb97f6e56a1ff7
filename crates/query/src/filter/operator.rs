//! Operators on a field: `{$gt: 1, $lt: 5}` as a list of tests that must all hold.

use bson::{Bson, RawBsonRef, RawDocument};

use super::parse::Parser;
use super::{Bits, BitsKind, In, Test, Types, argument};
use crate::number::Number;
use crate::regex::Regex;
use crate::{Code, Error, Result};

/// Operators in the place of a field name.
const LOGICAL: [&str; 10] = [
    "$and",
    "$or",
    "$nor",
    "$where",
    "$expr",
    "$jsonSchema",
    "$sampleRate",
    "$comment",
    "$alwaysTrue",
    "$alwaysFalse",
];

/// The fields of a reference to a document in another collection.
const REFERENCE: [&str; 3] = ["$ref", "$id", "$db"];

/// Operators on a field.
const OF_FIELDS: [&str; 19] = [
    "$all",
    "$bitsAllClear",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$bitsAnySet",
    "$elemMatch",
    "$eq",
    "$exists",
    "$gt",
    "$gte",
    "$in",
    "$lt",
    "$lte",
    "$mod",
    "$ne",
    "$nin",
    "$not",
    "$regex",
    "$size",
];

/// The names of all supported operators; operators that are always refused are not included.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let logical = LOGICAL.into_iter().filter(|name| *name != "$where");
    logical.chain(OF_FIELDS).chain(["$options", "$type"])
}

/// Whether `name` is an operator in the place of a value, such as `$gt`, not `$and`.
pub(crate) fn is_of_fields(name: &str) -> bool {
    OF_FIELDS.contains(&name)
        || matches!(
            name,
            "$options" | "$type" | "$near" | "$nearSphere" | "$geoNear"
        )
}

/// Whether `document` consists of operators: the name of its first field begins with `$`, and it is
/// not a reference to a document in another collection, which has both `$ref` and `$id`.
pub(super) fn is_operators(document: &RawDocument) -> Result<bool> {
    let (mut reference, mut id) = (false, false);
    for (at, element) in document.iter_elements().enumerate() {
        let element = element?;
        let name = element.key().as_str();
        if at == 0 && !name.starts_with('$') {
            return Ok(false);
        }
        reference |= name == "$ref";
        id |= name == "$id";
        if reference && id {
            return Ok(false);
        }
    }
    Ok(!document.is_empty())
}

/// Whether the operand of `$elemMatch`, whose first name is `first`, applies to the element itself
/// and not to the fields of a document.
fn is_about_element(first: &str) -> bool {
    first.starts_with('$')
        && first != "$text"
        && !LOGICAL.contains(&first)
        && !REFERENCE.contains(&first)
}

impl Parser<'_> {
    /// The tests for `field: value`.
    pub(super) fn field_tests(&self, value: RawBsonRef<'_>) -> Result<Vec<Test>> {
        match value {
            RawBsonRef::Document(operators) if is_operators(operators)? => self.tests(operators),
            RawBsonRef::RegularExpression(regex) => {
                Ok(vec![Test::Regex(argument::regex_value(regex)?)])
            }
            value => Ok(vec![Test::Eq(comparable(value)?)]),
        }
    }

    /// The tests for a document of operators.
    pub(super) fn tests(&self, operators: &RawDocument) -> Result<Vec<Test>> {
        let mut tests = Vec::new();
        for element in operators {
            let (name, value) = element?;
            self.operator(name.as_str(), value, operators, &mut tests)?;
        }
        Ok(tests)
    }

    fn operator(
        &self,
        name: &str,
        value: RawBsonRef<'_>,
        operators: &RawDocument,
        tests: &mut Vec<Test>,
    ) -> Result<()> {
        tests.push(match name {
            "$eq" => Test::Eq(comparable(value)?),
            "$ne" => Test::Ne(negatable(value)?),
            "$gt" => Test::Gt(self.ordered(value)?),
            "$gte" => Test::Gte(self.ordered(value)?),
            "$lt" => Test::Lt(self.ordered(value)?),
            "$lte" => Test::Lte(self.ordered(value)?),
            "$in" => Test::In(self.list(name, value)?),
            "$nin" => Test::Not(vec![Test::In(self.list(name, value)?)]),
            "$exists" => Test::Exists(exists(value)),
            "$type" => Test::Type(Types::parse(value)?),
            "$mod" => argument::modulo(value)?,
            "$size" => argument::size(value)?,
            "$regex" => Test::Regex(argument::regex(value, operators)?),
            "$options" => {
                if operators.get("$regex")?.is_none() {
                    return Err(Error::bad_value("$options needs a $regex"));
                }
                return Ok(());
            }
            "$not" => Test::Not(self.negated(value)?),
            "$elemMatch" => self.elem_match(value)?,
            "$all" => return self.all(value, tests),
            "$bitsAllSet" => Test::Bits(Bits::parse(name, BitsKind::AllSet, value)?),
            "$bitsAllClear" => Test::Bits(Bits::parse(name, BitsKind::AllClear, value)?),
            "$bitsAnySet" => Test::Bits(Bits::parse(name, BitsKind::AnySet, value)?),
            "$bitsAnyClear" => Test::Bits(Bits::parse(name, BitsKind::AnyClear, value)?),
            "$near" | "$nearSphere" | "$geoNear" => {
                return Err(Error::new(
                    Code::NO_QUERY_EXECUTION_PLANS,
                    "error processing query: planner returned error :: caused by :: unable to \
                     find index for $geoNear query",
                ));
            }
            "$expr" => {
                return Err(Error::bad_value(
                    "$expr can only be applied to the top-level document",
                ));
            }
            other => return Err(Error::bad_value(format!("unknown operator: {other}"))),
        });
        Ok(())
    }

    fn ordered(&self, value: RawBsonRef<'_>) -> Result<Bson> {
        match value {
            RawBsonRef::RegularExpression(_) => Err(Error::bad_value(format!(
                "Can't have RegEx as arg to predicate over field '{}'.",
                self.field()
            ))),
            value => comparable(value),
        }
    }

    fn list(&self, name: &str, value: RawBsonRef<'_>) -> Result<In> {
        let RawBsonRef::Array(list) = value else {
            return Err(Error::bad_value(format!("{name} needs an array")));
        };
        let mut values = Vec::new();
        let mut regexes: Vec<Regex> = Vec::new();
        for item in list {
            match item? {
                RawBsonRef::Document(nested) if is_operators(nested)? => {
                    return Err(Error::bad_value(format!("cannot nest $ under {name}")));
                }
                RawBsonRef::RegularExpression(regex) => {
                    regexes.push(argument::regex_value(regex)?);
                }
                other => values.push(comparable(other)?),
            }
        }
        In::new(values, regexes, self.collator())
    }

    fn negated(&self, value: RawBsonRef<'_>) -> Result<Vec<Test>> {
        match value {
            RawBsonRef::RegularExpression(regex) => {
                Ok(vec![Test::Regex(argument::regex_value(regex)?)])
            }
            RawBsonRef::Document(operators) if operators.is_empty() => {
                Err(Error::bad_value("$not cannot be empty"))
            }
            RawBsonRef::Document(operators) => self.deeper()?.tests(operators),
            _ => Err(Error::bad_value("$not needs a regex or a document")),
        }
    }

    /// With operators, the condition applies to the element itself; otherwise, to the fields of an
    /// element that is a document.
    fn elem_match(&self, value: RawBsonRef<'_>) -> Result<Test> {
        let RawBsonRef::Document(inner) = value else {
            return Err(Error::bad_value("$elemMatch needs an Object"));
        };
        let first = inner.iter_elements().next().transpose()?;
        let of_element = first.is_some_and(|first| is_about_element(first.key().as_str()));
        let inside = self.deeper()?.below_top();
        if of_element && !mentions_reference(inner)? {
            return Ok(Test::ElemMatchValue(inside.tests(inner)?));
        }
        Ok(Test::ElemMatchObject(Box::new(inside.document(inner)?)))
    }

    fn all(&self, value: RawBsonRef<'_>, tests: &mut Vec<Test>) -> Result<()> {
        let RawBsonRef::Array(list) = value else {
            return Err(Error::bad_value("$all needs an array"));
        };
        if list.is_empty() {
            tests.push(Test::Never);
        }
        let mut elements: Option<bool> = None;
        for item in list {
            let item = item?;
            let nested = match item {
                RawBsonRef::Document(nested) if is_operators(nested)? => Some(nested),
                _ => None,
            };
            let matching = match nested {
                None => None,
                Some(nested) => nested.get("$elemMatch")?,
            };
            if elements.is_some_and(|before| before != matching.is_some()) {
                return Err(Error::bad_value(if matching.is_some() {
                    "no $ expressions in $all"
                } else {
                    "$all/$elemMatch has to be consistent"
                }));
            }
            elements = Some(matching.is_some());
            tests.push(match (item, matching) {
                (_, Some(inner)) => self.elem_match(inner)?,
                (_, None) if nested.is_some() => {
                    return Err(Error::bad_value("no $ expressions in $all"));
                }
                (RawBsonRef::RegularExpression(regex), _) => {
                    Test::Regex(argument::regex_value(regex)?)
                }
                (item, _) => Test::Eq(comparable(item)?),
            });
        }
        Ok(())
    }
}

/// Whether a document has one of the fields of a reference.
fn mentions_reference(document: &RawDocument) -> Result<bool> {
    for element in document.iter_elements() {
        if REFERENCE.contains(&element?.key().as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn exists(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Boolean(value) => value,
        RawBsonRef::Null | RawBsonRef::Undefined => false,
        other => Number::from_raw(other).is_none_or(|number| !number.is_zero()),
    }
}

fn comparable(value: RawBsonRef<'_>) -> Result<Bson> {
    match value {
        RawBsonRef::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        value => Ok(Bson::try_from(value)?),
    }
}

fn negatable(value: RawBsonRef<'_>) -> Result<Bson> {
    match value {
        RawBsonRef::RegularExpression(_) => {
            Err(Error::bad_value("Can't have regex as arg to $ne."))
        }
        value => comparable(value),
    }
}

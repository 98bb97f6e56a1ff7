//! The argument of `$type`: names, numbers and the alias `number`.

use bson::spec::ElementType;
use bson::{Bson, RawBsonRef};

use crate::kind::{name_of, type_number};
use crate::number::Number;
use crate::{Error, Result};

const ALL: [ElementType; 21] = [
    ElementType::Double,
    ElementType::String,
    ElementType::EmbeddedDocument,
    ElementType::Array,
    ElementType::Binary,
    ElementType::Undefined,
    ElementType::ObjectId,
    ElementType::Boolean,
    ElementType::DateTime,
    ElementType::Null,
    ElementType::RegularExpression,
    ElementType::DbPointer,
    ElementType::JavaScriptCode,
    ElementType::Symbol,
    ElementType::JavaScriptCodeWithScope,
    ElementType::Int32,
    ElementType::Timestamp,
    ElementType::Int64,
    ElementType::Decimal128,
    ElementType::MinKey,
    ElementType::MaxKey,
];

const NUMBERS: [ElementType; 4] = [
    ElementType::Double,
    ElementType::Int32,
    ElementType::Int64,
    ElementType::Decimal128,
];

/// A set of types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Types {
    types: Vec<ElementType>,
    /// Whether the set has the alias `number`, which is shown as such.
    number: bool,
}

impl Types {
    /// Whether `kind` is in the set.
    #[must_use]
    pub fn contains(&self, kind: ElementType) -> bool {
        self.types.contains(&kind) || (self.number && NUMBERS.contains(&kind))
    }

    /// The types of the set, with the four numeric types for the alias `number`.
    #[must_use]
    pub fn list(&self) -> Vec<ElementType> {
        ALL.into_iter()
            .filter(|kind| self.contains(*kind))
            .collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.types.is_empty() && !self.number
    }

    /// Adds a type by its name or the alias.
    pub(crate) fn add_name(&mut self, name: &str) -> Result<()> {
        if name == "number" {
            self.number = true;
            return Ok(());
        }
        let kind = ALL.into_iter().find(|kind| name_of(*kind) == name);
        let kind =
            kind.ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {name}")))?;
        self.add(kind);
        Ok(())
    }

    pub(crate) fn add(&mut self, kind: ElementType) {
        if !self.types.contains(&kind) {
            self.types.push(kind);
        }
    }

    /// Adds a type by name or number.
    pub(super) fn add_value(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        if let RawBsonRef::String(name) = value {
            return self.add_name(name);
        }
        let Some(number) = Number::from_raw(value) else {
            return Err(Error::type_mismatch(
                "type must be represented as a number or a string",
            ));
        };
        let known = |kind: &ElementType| Some(type_number(*kind)) == number.to_i32_exact();
        let kind = ALL.into_iter().find(known);
        let kind =
            kind.ok_or_else(|| Error::bad_value(format!("Invalid numerical type code: {number}")))?;
        self.add(kind);
        Ok(())
    }

    /// Parses the argument of `$type`.
    pub(super) fn parse(value: RawBsonRef<'_>) -> Result<Types> {
        let mut types = Types::default();
        if let RawBsonRef::Array(list) = value {
            for item in list {
                types.add_value(item?)?;
            }
        } else {
            types.add_value(value)?;
        }
        if types.is_empty() {
            return Err(Error::parse("$type must match at least one type"));
        }
        Ok(types)
    }

    /// Whether `value` is of a type in the set.
    #[must_use]
    pub fn matches(&self, value: RawBsonRef<'_>) -> bool {
        self.contains(value.element_type())
    }

    pub(crate) fn to_bson(&self) -> Bson {
        let mut list: Vec<Bson> = Vec::new();
        if self.number {
            list.push(Bson::from("number"));
        }
        list.extend(
            self.types
                .iter()
                .map(|kind| Bson::Int32(type_number(*kind))),
        );
        Bson::Array(list)
    }
}

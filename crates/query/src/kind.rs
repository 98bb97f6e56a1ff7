//! The types of values: their names, their numbers, and their place in the order of values.

use bson::spec::{BinarySubtype, ElementType};
use bson::{Bson, RawBsonRef, Uuid};

/// The place of `value`'s type in the order of values; types that compare by value share a place.
#[must_use]
pub fn rank(value: &Bson) -> u8 {
    rank_of(value.element_type())
}

/// As [`rank`], for a raw value.
#[must_use]
pub fn rank_raw(value: RawBsonRef<'_>) -> u8 {
    rank_of(value.element_type())
}

/// As in MongoDB's manual, "Comparison/Sort Order": undefined (and a missing value) comes before
/// null; string and symbol share a place.
pub(crate) fn rank_of(kind: ElementType) -> u8 {
    match kind {
        ElementType::MinKey => 0,
        ElementType::Undefined => 2,
        ElementType::Null => 5,
        ElementType::Double | ElementType::Int32 | ElementType::Int64 | ElementType::Decimal128 => {
            10
        }
        ElementType::String | ElementType::Symbol => 15,
        ElementType::EmbeddedDocument => 20,
        ElementType::Array => 25,
        ElementType::Binary => 30,
        ElementType::ObjectId => 35,
        ElementType::Boolean => 40,
        ElementType::DateTime => 45,
        ElementType::Timestamp => 47,
        ElementType::RegularExpression => 50,
        ElementType::DbPointer => 55,
        ElementType::JavaScriptCode => 60,
        ElementType::JavaScriptCodeWithScope => 65,
        ElementType::MaxKey => 127,
    }
}

/// The name of `value`'s type, as `$type` returns it.
#[must_use]
pub fn type_name(value: &Bson) -> &'static str {
    name_of(value.element_type())
}

/// As [`type_name`], for a raw value.
#[must_use]
pub fn type_name_raw(value: RawBsonRef<'_>) -> &'static str {
    name_of(value.element_type())
}

/// The UUID that a value is: binary data of its subtype with 16 bytes.
#[must_use]
pub fn uuid_raw(value: RawBsonRef<'_>) -> Option<Uuid> {
    let RawBsonRef::Binary(binary) = value else {
        return None;
    };
    let bytes = binary.bytes.try_into().ok()?;
    (binary.subtype == BinarySubtype::Uuid).then(|| Uuid::from_bytes(bytes))
}

pub(crate) fn name_of(kind: ElementType) -> &'static str {
    match kind {
        ElementType::MinKey => "minKey",
        ElementType::Undefined => "undefined",
        ElementType::Null => "null",
        ElementType::Double => "double",
        ElementType::Int32 => "int",
        ElementType::Int64 => "long",
        ElementType::Decimal128 => "decimal",
        ElementType::String => "string",
        ElementType::Symbol => "symbol",
        ElementType::EmbeddedDocument => "object",
        ElementType::Array => "array",
        ElementType::Binary => "binData",
        ElementType::ObjectId => "objectId",
        ElementType::Boolean => "bool",
        ElementType::DateTime => "date",
        ElementType::Timestamp => "timestamp",
        ElementType::RegularExpression => "regex",
        ElementType::DbPointer => "dbPointer",
        ElementType::JavaScriptCode => "javascript",
        ElementType::JavaScriptCodeWithScope => "javascriptWithScope",
        ElementType::MaxKey => "maxKey",
    }
}

/// The number of a type as `$type` accepts it: its number in BSON, with -1 for MinKey and 127 for
/// MaxKey.
#[must_use]
pub fn type_number(kind: ElementType) -> i32 {
    match kind {
        ElementType::MinKey => -1,
        ElementType::Double => 1,
        ElementType::String => 2,
        ElementType::EmbeddedDocument => 3,
        ElementType::Array => 4,
        ElementType::Binary => 5,
        ElementType::Undefined => 6,
        ElementType::ObjectId => 7,
        ElementType::Boolean => 8,
        ElementType::DateTime => 9,
        ElementType::Null => 10,
        ElementType::RegularExpression => 11,
        ElementType::DbPointer => 12,
        ElementType::JavaScriptCode => 13,
        ElementType::Symbol => 14,
        ElementType::JavaScriptCodeWithScope => 15,
        ElementType::Int32 => 16,
        ElementType::Timestamp => 17,
        ElementType::Int64 => 18,
        ElementType::Decimal128 => 19,
        ElementType::MaxKey => 127,
    }
}

/// Whether expressions treat `value` as true: all values except false, null, undefined and zeros.
#[must_use]
pub fn truthy(value: &Bson) -> bool {
    match value {
        Bson::Boolean(value) => *value,
        Bson::Null | Bson::Undefined => false,
        other => crate::number::Number::from_bson(other).is_none_or(|number| !number.is_zero()),
    }
}

/// As [`truthy`], for a raw value.
#[must_use]
pub fn truthy_raw(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Boolean(value) => value,
        RawBsonRef::Null | RawBsonRef::Undefined => false,
        other => crate::number::Number::from_raw(other).is_none_or(|number| !number.is_zero()),
    }
}

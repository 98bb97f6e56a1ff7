//! Documents in their stored form: validated, with `_id` first.

use std::borrow::Cow;

use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::spec::ElementType;
use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf};
use query::{Code, Error, Result};

use crate::limits::{DEPTH_MAX, DOCUMENT_MAX};

/// Findings of [`check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Position of `_id`.
    id: Place,
    /// Whether a top-level field is a zero timestamp, which the time of the insert replaces.
    zero_timestamp: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    Later,
    Nowhere,
}

/// Check a document, including nested values, as an insert does.
///
/// # Errors
/// `InvalidBSON`, `BSONObjectTooLarge`, `InvalidIdField`, `DollarPrefixedFieldName`, `Overflow` for
/// one that is nested too deeply.
pub fn check_document(document: &RawDocument) -> Result<()> {
    check(document).map(|_| ())
}

/// Check a document, including nested values, before it is inserted.
///
/// # Errors
/// `InvalidBSON`, `BSONObjectTooLarge`, `InvalidIdField`, `DollarPrefixedFieldName`, `Overflow` for
/// one that is nested too deeply.
pub(crate) fn check(document: &RawDocument) -> Result<Shape> {
    check_size(document)?;
    let mut shape = Shape {
        id: Place::Nowhere,
        zero_timestamp: false,
    };
    for (index, element) in document.iter_elements().enumerate() {
        let element = element?;
        let value = element.value()?;
        if element.key().as_str() == "_id" {
            if shape.id != Place::Nowhere {
                return Err(Error::bad_value(
                    "can't have multiple _id fields in one document",
                ));
            }
            shape.id = if index == 0 {
                Place::First
            } else {
                Place::Later
            };
            check_id(value)?;
        }
        match value {
            RawBsonRef::Timestamp(stamp) => {
                shape.zero_timestamp |= stamp.time == 0 && stamp.increment == 0;
            }
            other => check_value(other, 1)?,
        }
    }
    Ok(shape)
}

/// Check the size of a document that is to be stored.
///
/// # Errors
/// `BSONObjectTooLarge`.
pub(crate) fn check_size(document: &RawDocument) -> Result<()> {
    let size = document.as_bytes().len();
    if size <= DOCUMENT_MAX {
        return Ok(());
    }
    let message =
        format!("object to insert too large. size in bytes: {size}, max size: {DOCUMENT_MAX}");
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message))
}

/// Whether a value may be an `_id`.
///
/// # Errors
/// `InvalidIdField`, `DollarPrefixedFieldName`.
pub(crate) fn check_id(value: RawBsonRef<'_>) -> Result<()> {
    let bad = match value {
        RawBsonRef::Array(_) => "array",
        RawBsonRef::RegularExpression(_) => "regex",
        RawBsonRef::Undefined => "undefined",
        RawBsonRef::Document(document) => {
            for element in document.iter_elements() {
                let element = element?;
                let name = element.key().as_str();
                if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
                    let message = format!(
                        "_id fields may not contain '$'-prefixed fields: {name} is not valid for \
                         storage."
                    );
                    return Err(Error::new(Code::DOLLAR_PREFIXED_FIELD_NAME, message));
                }
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    let message = format!("The '_id' value cannot be of type {bad}");
    Err(Error::new(Code::INVALID_ID_FIELD, message))
}

fn check_value(value: RawBsonRef<'_>, depth: u32) -> Result<()> {
    let document = match value {
        RawBsonRef::Document(document) => document,
        RawBsonRef::Array(array) => {
            RawDocument::from_bytes(array.as_bytes()).map_err(Error::from)?
        }
        RawBsonRef::JavaScriptCodeWithScope(code) => code.scope,
        _ => return Ok(()),
    };
    if DEPTH_MAX <= depth {
        let message =
            format!("cannot insert document because it exceeds {DEPTH_MAX} levels of nesting");
        return Err(Error::new(Code::OVERFLOW, message));
    }
    for element in document.iter_elements() {
        check_value(element?.value()?, depth + 1)?;
    }
    Ok(())
}

/// The document in its stored form: with an `_id`, which is first, and without zero timestamps.
/// `stamp` provides the time that replaces those.
///
/// # Errors
/// Bytes that are not valid BSON.
pub(crate) fn normalise<'d>(
    document: &'d RawDocument,
    shape: Shape,
    stamp: &mut dyn FnMut() -> Option<bson::Timestamp>,
) -> Result<Cow<'d, RawDocument>> {
    let stamp = if shape.zero_timestamp { stamp() } else { None };
    if shape.id == Place::First && stamp.is_none() {
        return Ok(Cow::Borrowed(document));
    }
    let mut out = RawDocumentBuf::new();
    match shape.id {
        Place::Nowhere => out.append(cstr!("_id"), ObjectId::new()),
        Place::First | Place::Later => {
            if let Some(id) = document.get("_id")? {
                out.append(cstr!("_id"), id);
            }
        }
    }
    for element in document.iter_elements() {
        let element = element?;
        if element.key().as_str() == "_id" {
            continue;
        }
        let value = element.value()?;
        match (value, stamp) {
            (RawBsonRef::Timestamp(old), Some(new))
                if old.time == 0
                    && old.increment == 0
                    && element.element_type() == ElementType::Timestamp =>
            {
                out.append(element.key(), new);
            }
            _ => out.append(element.key(), value),
        }
    }
    // A generated `_id` may have made it larger.
    check_size(&out)?;
    Ok(Cow::Owned(out))
}

/// A document in the format of MongoDB's messages: `{ a: 1, b: "x" }`.
pub(crate) fn shell(document: &Document) -> String {
    if document.is_empty() {
        return "{}".to_owned();
    }
    let fields = document
        .iter()
        .map(|(name, value)| format!("{name}: {}", shown(value)));
    format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
}

/// `UUID("..")` for a UUID of the standard form, `BinData(subtype, HEX)` for other bytes.
fn shown_binary(binary: &bson::Binary) -> String {
    if binary.subtype == bson::spec::BinarySubtype::Uuid
        && let Ok(bytes) = <[u8; 16]>::try_from(binary.bytes.as_slice())
    {
        return format!("UUID(\"{}\")", bson::Uuid::from_bytes(bytes));
    }
    let hex: String = binary.bytes.iter().map(|b| format!("{b:02X}")).collect();
    format!("BinData({}, {hex})", u8::from(binary.subtype))
}

fn shown(value: &Bson) -> String {
    match value {
        Bson::Double(v) if v.is_finite() && v.fract() == 0.0 && v.abs() < 1e15 => format!("{v:.1}"),
        Bson::Double(v) => format!("{v}"),
        Bson::Document(inner) => shell(inner),
        Bson::Array(items) if items.is_empty() => "[]".to_owned(),
        Bson::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[ {} ]", items.join(", "))
        }
        Bson::ObjectId(id) => format!("ObjectId('{}')", id.to_hex()),
        Bson::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        Bson::Binary(binary) => shown_binary(binary),
        Bson::Undefined => "undefined".to_owned(),
        Bson::MinKey => "MinKey".to_owned(),
        Bson::MaxKey => "MaxKey".to_owned(),
        other => other.to_string(),
    }
}

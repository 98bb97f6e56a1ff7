//! One view of a value for both forms of BSON, raw and owned, so that each rule about values is
//! written once.
//!
//! Iterating a document stops at invalid raw bytes; nothing here fails or panics.

use bson::raw::{RawArrayIter, RawIter};
use bson::{Bson, Document, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::number::Number;

/// Maximum nesting that is compared; the wire protocol accepts no deeper document. Values below
/// this depth count as equal.
pub(super) const MAX_DEPTH: usize = 256;

/// A value, borrowed; types that compare by value are one variant.
pub(super) enum View<'a> {
    MinKey,
    Undefined,
    Null,
    Number(Number),
    Text(&'a str),
    Object(Fields<'a>),
    Array(Items<'a>),
    Binary(u8, &'a [u8]),
    ObjectId([u8; 12]),
    Boolean(bool),
    Date(i64),
    Timestamp(u32, u32),
    Regex(&'a str, &'a str),
    /// The bytes of the value.
    DbPointer(Vec<u8>),
    Code(&'a str),
    CodeWithScope(&'a str, Fields<'a>),
    MaxKey,
}

impl<'a> View<'a> {
    pub(super) fn raw(value: RawBsonRef<'a>) -> View<'a> {
        match value {
            RawBsonRef::Double(number) => View::Number(Number::Double(number)),
            RawBsonRef::Int32(number) => View::Number(Number::Int32(number)),
            RawBsonRef::Int64(number) => View::Number(Number::Int64(number)),
            RawBsonRef::Decimal128(number) => View::Number(Number::Decimal(number)),
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) => View::Text(text),
            RawBsonRef::Array(array) => View::Array(Items::Raw(array.into_iter())),
            RawBsonRef::Document(document) => View::Object(Fields::raw(document)),
            RawBsonRef::Boolean(value) => View::Boolean(value),
            RawBsonRef::Null => View::Null,
            RawBsonRef::Undefined => View::Undefined,
            RawBsonRef::RegularExpression(regex) => {
                View::Regex(regex.pattern.as_str(), regex.options.as_str())
            }
            RawBsonRef::JavaScriptCode(code) => View::Code(code),
            RawBsonRef::JavaScriptCodeWithScope(code) => {
                View::CodeWithScope(code.code, Fields::raw(code.scope))
            }
            RawBsonRef::Timestamp(stamp) => View::Timestamp(stamp.time, stamp.increment),
            RawBsonRef::Binary(binary) => View::Binary(binary.subtype.into(), binary.bytes),
            RawBsonRef::ObjectId(id) => View::ObjectId(id.bytes()),
            RawBsonRef::DateTime(date) => View::Date(date.timestamp_millis()),
            RawBsonRef::DbPointer(_) => View::DbPointer(encoded(value)),
            RawBsonRef::MaxKey => View::MaxKey,
            RawBsonRef::MinKey => View::MinKey,
        }
    }

    pub(super) fn owned(value: &'a Bson) -> View<'a> {
        match value {
            Bson::Double(number) => View::Number(Number::Double(*number)),
            Bson::Int32(number) => View::Number(Number::Int32(*number)),
            Bson::Int64(number) => View::Number(Number::Int64(*number)),
            Bson::Decimal128(number) => View::Number(Number::Decimal(*number)),
            Bson::String(text) | Bson::Symbol(text) => View::Text(text),
            Bson::Array(array) => View::Array(Items::Owned(array.iter())),
            Bson::Document(document) => View::Object(Fields::owned(document)),
            Bson::Boolean(value) => View::Boolean(*value),
            Bson::Null => View::Null,
            Bson::Undefined => View::Undefined,
            Bson::RegularExpression(regex) => {
                View::Regex(regex.pattern.as_str(), regex.options.as_str())
            }
            Bson::JavaScriptCode(code) => View::Code(code),
            Bson::JavaScriptCodeWithScope(code) => {
                View::CodeWithScope(&code.code, Fields::owned(&code.scope))
            }
            Bson::Timestamp(stamp) => View::Timestamp(stamp.time, stamp.increment),
            Bson::Binary(binary) => View::Binary(binary.subtype.into(), &binary.bytes),
            Bson::ObjectId(id) => View::ObjectId(id.bytes()),
            Bson::DateTime(date) => View::Date(date.timestamp_millis()),
            Bson::DbPointer(pointer) => {
                View::DbPointer(encoded(RawBson::from(pointer.clone()).as_raw_bson_ref()))
            }
            Bson::MaxKey => View::MaxKey,
            Bson::MinKey => View::MinKey,
        }
    }

    /// The place of the type in the order of values, as [`super::rank`].
    pub(super) fn rank(&self) -> u8 {
        use bson::spec::ElementType as Type;
        crate::kind::rank_of(match self {
            View::MinKey => Type::MinKey,
            View::Undefined => Type::Undefined,
            View::Null => Type::Null,
            View::Number(_) => Type::Double,
            View::Text(_) => Type::String,
            View::Object(_) => Type::EmbeddedDocument,
            View::Array(_) => Type::Array,
            View::Binary(..) => Type::Binary,
            View::ObjectId(_) => Type::ObjectId,
            View::Boolean(_) => Type::Boolean,
            View::Date(_) => Type::DateTime,
            View::Timestamp(..) => Type::Timestamp,
            View::Regex(..) => Type::RegularExpression,
            View::DbPointer(_) => Type::DbPointer,
            View::Code(_) => Type::JavaScriptCode,
            View::CodeWithScope(..) => Type::JavaScriptCodeWithScope,
            View::MaxKey => Type::MaxKey,
        })
    }
}

/// The bytes of a value in BSON, also of one whose type the crate `bson` gives no access to.
#[must_use]
pub fn encoded(value: RawBsonRef<'_>) -> Vec<u8> {
    let mut holder = RawDocumentBuf::new();
    holder.append(bson::raw::cstr!(""), value);
    // Cut off the length of the document, the type and the empty name before the value, and the
    // zero byte after it.
    let bytes = holder.as_bytes();
    let end = bytes.len().saturating_sub(1);
    bytes.get(6..end).unwrap_or_default().to_vec()
}

/// The fields of a document.
pub(super) enum Fields<'a> {
    Raw(RawIter<'a>),
    Owned(<&'a Document as IntoIterator>::IntoIter),
}

impl<'a> Fields<'a> {
    pub(super) fn raw(document: &'a RawDocument) -> Fields<'a> {
        Fields::Raw(document.iter_elements())
    }

    pub(super) fn owned(document: &'a Document) -> Fields<'a> {
        Fields::Owned(document.iter())
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, View<'a>);

    fn next(&mut self) -> Option<(&'a str, View<'a>)> {
        match self {
            Fields::Raw(fields) => {
                let field = fields.next()?.ok()?;
                Some((field.key().as_str(), View::raw(field.value().ok()?)))
            }
            Fields::Owned(fields) => {
                let (name, value) = fields.next()?;
                Some((name, View::owned(value)))
            }
        }
    }
}

/// The elements of an array.
pub(super) enum Items<'a> {
    Raw(RawArrayIter<'a>),
    Owned(std::slice::Iter<'a, Bson>),
}

impl<'a> Iterator for Items<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        match self {
            Items::Raw(items) => Some(View::raw(items.next()?.ok()?)),
            Items::Owned(items) => Some(View::owned(items.next()?)),
        }
    }
}

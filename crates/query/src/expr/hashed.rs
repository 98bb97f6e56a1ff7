//! `$toHashedIndexKey`: the hash of a value as MongoDB computes it for hashed indexes.
//!
//! The hash is the first eight bytes, little endian, of the MD5 of a seed (zero) and the value. A
//! value contributes the number of its type, its name if it is a field, and its BSON bytes; numbers
//! of all types are first truncated to 64-bit integers, so that 2 and 2.5 have the same hash.
//! Hashed indexes of this server use another hash, which is never visible to clients.

use bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use md5::{Digest, Md5};

use super::args::{Args, computed};
use super::env::Value;
use super::function::Function;
use crate::number::Number;
use crate::{Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[Function::exactly(
    "$toHashedIndexKey",
    1,
    to_hashed_index_key,
)];

/// Two to the power of 63: for numbers from here on, MongoDB's conversion overflows to the least
/// integer.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

fn to_hashed_index_key<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    computed(Bson::Int64(hash(value.as_deref().unwrap_or(&Bson::Null))?))
}

fn hash(value: &Bson) -> Result<i64> {
    // Charged for the copy, the document around it, and its bytes.
    let size = meter::size(value);
    meter::read(size)?;
    meter::charge("$toHashedIndexKey", 3 * size)?;
    let holder = RawDocumentBuf::try_from(&doc! { "v": value.clone() })?;
    let mut md5 = Md5::new();
    md5.update(0_i32.to_le_bytes());
    if let Some(value) = holder.get("v")? {
        add(&mut md5, value, None)?;
    }
    let digest = md5.finalize();
    let first = digest.first_chunk::<8>();
    let first = first.ok_or_else(|| Error::bad_value("an MD5 digest has 16 bytes"))?;
    Ok(i64::from_le_bytes(*first))
}

/// Adds a value to the hash. Recursion is bounded by the nesting of documents.
fn add(md5: &mut Md5, value: RawBsonRef<'_>, name: Option<&str>) -> Result<()> {
    md5.update(type_order(value).to_le_bytes());
    if let Some(name) = name {
        md5.update(name.as_bytes());
        md5.update([0]);
    }
    if let Some(number) = Number::from_raw(value) {
        let integer = match number {
            Number::Double(double) if double.to_bits() == TWO_63.to_bits() => i64::MIN,
            other => other.to_i64_clamped(),
        };
        md5.update(integer.to_le_bytes());
        return Ok(());
    }
    match value {
        RawBsonRef::Document(document) => return add_fields(md5, document),
        RawBsonRef::Array(array) => {
            return add_fields(md5, RawDocument::from_bytes(array.as_bytes())?);
        }
        RawBsonRef::JavaScriptCodeWithScope(code) => {
            md5.update(code.code.as_bytes());
            md5.update([0]);
            return add_fields(md5, code.scope);
        }
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) => add_text(md5, text),
        RawBsonRef::JavaScriptCode(code) => add_text(md5, code),
        RawBsonRef::Binary(binary) => {
            md5.update(length(binary.bytes.len()));
            md5.update([u8::from(binary.subtype)]);
            md5.update(binary.bytes);
        }
        RawBsonRef::ObjectId(id) => md5.update(id.bytes()),
        RawBsonRef::Boolean(truth) => md5.update([u8::from(truth)]),
        RawBsonRef::DateTime(date) => md5.update(date.timestamp_millis().to_le_bytes()),
        RawBsonRef::Timestamp(stamp) => {
            md5.update(stamp.increment.to_le_bytes());
            md5.update(stamp.time.to_le_bytes());
        }
        RawBsonRef::RegularExpression(regex) => {
            md5.update(regex.pattern.as_str().as_bytes());
            md5.update([0]);
            md5.update(regex.options.as_str().as_bytes());
            md5.update([0]);
        }
        // Types without bytes; and DBPointer, which is deprecated and whose bytes `bson` does not
        // expose.
        _ => {}
    }
    Ok(())
}

fn add_fields(md5: &mut Md5, document: &RawDocument) -> Result<()> {
    for element in document {
        let (name, value) = element?;
        add(md5, value, Some(name.as_str()))?;
    }
    // Marks the end of a document.
    md5.update(0_i32.to_le_bytes());
    Ok(())
}

fn add_text(md5: &mut Md5, text: &str) {
    md5.update(length(text.len().saturating_add(1)));
    md5.update(text.as_bytes());
    md5.update([0]);
}

fn length(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).unwrap_or(i32::MAX).to_le_bytes()
}

/// MongoDB's number for the type of a value, by its place in the order of types.
fn type_order(value: RawBsonRef<'_>) -> i32 {
    match value {
        RawBsonRef::MinKey => -1,
        RawBsonRef::MaxKey => 127,
        RawBsonRef::Undefined => 0,
        RawBsonRef::Null => 5,
        RawBsonRef::Int32(_)
        | RawBsonRef::Int64(_)
        | RawBsonRef::Double(_)
        | RawBsonRef::Decimal128(_) => 10,
        RawBsonRef::String(_) | RawBsonRef::Symbol(_) => 15,
        RawBsonRef::Document(_) => 20,
        RawBsonRef::Array(_) => 25,
        RawBsonRef::Binary(_) => 30,
        RawBsonRef::ObjectId(_) => 35,
        RawBsonRef::Boolean(_) => 40,
        RawBsonRef::DateTime(_) => 45,
        RawBsonRef::Timestamp(_) => 47,
        RawBsonRef::RegularExpression(_) => 50,
        RawBsonRef::DbPointer(_) => 55,
        RawBsonRef::JavaScriptCode(_) => 60,
        RawBsonRef::JavaScriptCodeWithScope(_) => 65,
    }
}

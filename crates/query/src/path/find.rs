//! Finds one field in a raw document: the innermost loop of every filter.
//!
//! Fields before the wanted one are skipped by their lengths; their names are not checked for UTF-8
//! and their values are not parsed. This takes half the time of `bson`'s own iteration, which is
//! used only for values of rare types.

use bson::oid::ObjectId;
use bson::{DateTime, Decimal128, RawBsonRef, RawDocument, Timestamp};

use crate::{Code, Error, Result};

/// The value of the first field called `name`.
///
/// # Errors
/// `InvalidBSON` for invalid bytes in the part that was read.
pub fn find<'a>(document: &'a RawDocument, name: &str) -> Result<Option<RawBsonRef<'a>>> {
    let wanted = name.as_bytes();
    // The fields start after the length of the document; a zero byte ends them.
    let bytes = document.as_bytes();
    let mut rest = bytes.get(4..).unwrap_or_default();
    while let Some((&kind, field)) = rest.split_first() {
        if kind == 0 {
            return Ok(None);
        }
        let here = field
            .strip_prefix(wanted)
            .and_then(|behind| behind.strip_prefix(&[0]));
        if let Some(value) = here {
            return match scalar(kind, value) {
                Some(value) => Ok(Some(value)),
                None => find_slowly(document, name),
            };
        }
        let Some(end) = field.iter().position(|byte| *byte == 0) else {
            break;
        };
        let value = field.get(end + 1..).unwrap_or_default();
        rest = match size(kind, value).and_then(|size| value.get(size..)) {
            Some(rest) => rest,
            None => return find_slowly(document, name),
        };
    }
    Err(Error::new(Code::INVALID_BSON, "document without an end"))
}

/// Finds the field with `bson`'s own iteration and returns its errors.
#[cold]
fn find_slowly<'a>(document: &'a RawDocument, name: &str) -> Result<Option<RawBsonRef<'a>>> {
    for element in document.iter_elements() {
        let element = element?;
        if element.key().as_str() == name {
            return Ok(Some(element.value()?));
        }
    }
    Ok(None)
}

/// The size of the value of type `kind` at the start of `bytes`; `None` for a regular expression,
/// which has no length field, and for invalid BSON.
fn size(kind: u8, bytes: &[u8]) -> Option<usize> {
    let length = || usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok();
    match kind {
        // Undefined, null, MaxKey, MinKey.
        0x06 | 0x0A | 0x7F | 0xFF => Some(0),
        0x08 => Some(1),
        0x10 => Some(4),
        // Double, date, timestamp, long.
        0x01 | 0x09 | 0x11 | 0x12 => Some(8),
        0x07 => Some(12),
        0x13 => Some(16),
        // String, code, symbol: a length, which counts the final zero, and then the text.
        0x02 | 0x0D | 0x0E => length()?.checked_add(4),
        // Document, array, code with scope: the length counts the whole value.
        0x03 | 0x04 | 0x0F => length().filter(|length| *length >= 4),
        0x05 => length()?.checked_add(5),
        0x0C => length()?.checked_add(16),
        _ => None,
    }
}

/// The value of type `kind` at the start of `bytes`; `None` for rare types and for invalid BSON.
fn scalar(kind: u8, bytes: &[u8]) -> Option<RawBsonRef<'_>> {
    let eight = || bytes.first_chunk::<8>().copied();
    Some(match kind {
        0x01 => RawBsonRef::Double(f64::from_le_bytes(eight()?)),
        0x02 => {
            let length = usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
            let text = bytes.get(4..length.checked_add(4)?)?;
            let (&[0], text) = text.split_last_chunk::<1>().map(|(a, b)| (b, a))? else {
                return None;
            };
            RawBsonRef::String(std::str::from_utf8(text).ok()?)
        }
        0x03 => {
            let length = usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
            RawBsonRef::Document(RawDocument::from_bytes(bytes.get(..length)?).ok()?)
        }
        0x07 => RawBsonRef::ObjectId(ObjectId::from_bytes(*bytes.first_chunk()?)),
        0x08 => match bytes.first()? {
            0 => RawBsonRef::Boolean(false),
            1 => RawBsonRef::Boolean(true),
            _ => return None,
        },
        0x09 => RawBsonRef::DateTime(DateTime::from_millis(i64::from_le_bytes(eight()?))),
        0x0A => RawBsonRef::Null,
        0x10 => RawBsonRef::Int32(i32::from_le_bytes(*bytes.first_chunk()?)),
        0x11 => {
            let [increment, time] = [bytes.first_chunk::<4>()?, bytes.get(4..)?.first_chunk()?];
            RawBsonRef::Timestamp(Timestamp {
                time: u32::from_le_bytes(*time),
                increment: u32::from_le_bytes(*increment),
            })
        }
        0x12 => RawBsonRef::Int64(i64::from_le_bytes(eight()?)),
        0x13 => RawBsonRef::Decimal128(Decimal128::from_bytes(*bytes.first_chunk()?)),
        _ => return None,
    })
}

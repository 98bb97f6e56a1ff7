//! Estimates of the memory that values use.

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument};

use crate::{Code, Error, Result};

/// Bytes of a document's entry in addition to its value and the bytes of its name: the string, its
/// hash, its place in the index, and the overhead of the allocator.
const ENTRY: usize = 64;
/// Bytes that the allocator adds to each allocation.
const BUFFER: usize = 16;

/// Bytes of the tables of a new document, even of one field.
pub(crate) const NEW_DOCUMENT: usize = 512;

/// Estimated bytes of a value, including its allocations.
#[must_use]
pub fn size(value: &Bson) -> usize {
    let inner = match value {
        Bson::String(text) | Bson::Symbol(text) | Bson::JavaScriptCode(text) => BUFFER + text.len(),
        Bson::Binary(binary) => BUFFER + binary.bytes.len(),
        Bson::Array(values) => BUFFER + values.iter().map(self::size).sum::<usize>(),
        Bson::Document(inner) => document_size(inner),
        Bson::RegularExpression(regex) => {
            regex.pattern.as_str().len() + regex.options.as_str().len()
        }
        Bson::JavaScriptCodeWithScope(code) => code.code.len() + document_size(&code.scope),
        _ => 0,
    };
    size_of::<Bson>() + inner
}

/// Estimated bytes of an entry with this name, without its value.
pub(crate) fn entry(name: &str) -> usize {
    ENTRY + name.len()
}

/// Estimated bytes of the entries of a document, without the document's own struct.
#[must_use]
pub fn document_size(document: &Document) -> usize {
    document
        .iter()
        .map(|(name, value)| entry(name) + size(value))
        .sum()
}

/// Maximum nesting that is followed: messages are not nested deeper.
const DEPTH_MAX: usize = 256;

/// Estimated bytes that a raw document would take as an owned document; it is not decoded for this.
///
/// # Errors
/// `InvalidBSON` for invalid bytes; errors of [`super::step`].
pub fn decoded_size(document: &RawDocument) -> Result<usize> {
    Ok(document.as_bytes().len() + of_fields(document, 0)?)
}

fn of_fields(document: &RawDocument, depth: usize) -> Result<usize> {
    let mut bytes = 0_usize;
    for element in document.iter_elements() {
        bytes = bytes.saturating_add(ENTRY + of_value(element?.value()?, depth)?);
    }
    Ok(bytes)
}

fn of_items(array: &RawArray, depth: usize) -> Result<usize> {
    let mut bytes = 0_usize;
    for item in array {
        bytes = bytes.saturating_add(of_value(item?, depth)?);
    }
    Ok(bytes)
}

fn of_value(value: RawBsonRef<'_>, depth: usize) -> Result<usize> {
    super::step()?;
    if DEPTH_MAX < depth {
        return Err(Error::new(Code::OVERFLOW, "the document nests too deep"));
    }
    let inner = match value {
        RawBsonRef::Document(document) => of_fields(document, depth + 1)?,
        RawBsonRef::Array(array) => of_items(array, depth + 1)?,
        _ => 0,
    };
    Ok(size_of::<Bson>() + BUFFER + inner)
}

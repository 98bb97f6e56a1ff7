//! How much memory values take, about.

use bson::{Bson, Document};

/// Bytes of an entry of a document beside its value and the letters of its name: the name's string,
/// its hash and its place in the index, and what the allocator adds.
const ENTRY: usize = 64;
/// Bytes that the allocator adds to a buffer of its own.
const BUFFER: usize = 16;

/// About how many bytes a value takes.
pub(crate) fn size(value: &Bson) -> usize {
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

/// About how many bytes an entry of this name takes beside its value.
pub(crate) fn entry(name: &str) -> usize {
    ENTRY + name.len()
}

/// About how many bytes a document takes beside its own struct.
pub(crate) fn document_size(document: &Document) -> usize {
    document
        .iter()
        .map(|(name, value)| entry(name) + size(value))
        .sum()
}

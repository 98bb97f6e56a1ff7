//! The memory of what parsers make of a request: filters, projections, pipelines.
//!
//! P1: what is parsed takes at most the bytes of [`parsed_size`], except for compiled regular
//!     expressions, which reserve their own memory.
//! P2: the reservation is as old as what is parsed: who keeps one keeps the other.

use std::cell::Cell;
use std::sync::Arc;

use bson::{RawArray, RawBsonRef, RawDocument};

use super::{FREE, Held};
use crate::Result;

/// Bytes of a field: its name, its place in a list or a table, and the node or value made of it.
const FIELD: usize = 384;
/// Bytes of an item of an array.
const ITEM: usize = 224;
/// Bytes of a document or an array, in addition to its fields or items.
const NESTED: usize = 320;
/// Bytes of a text or the name of a field: copies of it as values, in addition to their characters.
const TEXT: usize = 192;
/// Bytes of a name in a path, in addition to its text.
const NAME: usize = 96;
/// Factor for bytes of text and binary data.
const COPIES: usize = 2;
/// Maximum nesting that is followed: messages are not nested deeper, and parsers refuse less.
const DEPTH_MAX: usize = 256;
/// Requests of fewer bytes are parsed in less than the memory that needs no reservation.
const SMALL: usize = 512;

/// Estimated bytes of what a parser makes of a filter, a projection or a stage (P1).
///
/// # Errors
/// `InvalidBSON` for invalid bytes; errors of [`super::step`].
pub fn parsed_size(document: &RawDocument) -> Result<usize> {
    Ok(COPIES * document.as_bytes().len() + of_fields(document, 0)?)
}

/// As [`parsed_size`], of a pipeline.
///
/// # Errors
/// As [`parsed_size`].
pub fn parsed_size_of(array: &RawArray) -> Result<usize> {
    Ok(COPIES * array.as_bytes().len() + of_items(array, 0)?)
}

/// The part of `bytes` that a reservation for them leaves out.
#[must_use]
pub fn unreserved(bytes: usize) -> usize {
    if bytes <= FREE { bytes } else { 0 }
}

thread_local! {
    /// Whether this thread parses something whose memory is reserved as a whole.
    static PARSING: Cell<bool> = const { Cell::new(false) };
}

/// While it exists, this thread parses something whose memory is reserved as a whole; what is
/// nested in it makes no reservations of its own.
pub(crate) struct Parsing {
    before: bool,
}

impl Parsing {
    pub(crate) fn begin() -> Parsing {
        let before = PARSING.replace(true);
        Parsing { before }
    }
}

impl Drop for Parsing {
    fn drop(&mut self) {
        PARSING.set(self.before);
    }
}

/// Reserves the memory of what is about to be parsed (P2). Nothing is returned for what is small,
/// or nested in something that is parsed.
///
/// # Errors
/// `ExceededMemoryLimit` when the budget refuses it; as [`parsed_size`].
pub(crate) fn hold_parsed(name: &str, document: &RawDocument) -> Result<Option<Arc<Held>>> {
    if document.as_bytes().len() <= SMALL || PARSING.get() {
        return Ok(None);
    }
    let mut held = Held::new();
    held.require(name, parsed_size(document)?)?;
    Ok(Some(Arc::new(held)))
}

fn of_fields(document: &RawDocument, depth: usize) -> Result<usize> {
    let mut bytes = 0_usize;
    for element in document.iter_elements() {
        let element = element?;
        let name = path(element.key().as_str());
        let value = of_value(element.value()?, depth)?;
        bytes = bytes.saturating_add(FIELD + name + value);
    }
    Ok(bytes)
}

fn of_items(array: &RawArray, depth: usize) -> Result<usize> {
    let mut bytes = 0_usize;
    for item in array {
        bytes = bytes.saturating_add(ITEM + of_value(item?, depth)?);
    }
    Ok(bytes)
}

/// Bytes of a value in addition to its field or item.
fn of_value(value: RawBsonRef<'_>, depth: usize) -> Result<usize> {
    super::step()?;
    if DEPTH_MAX < depth {
        return Ok(0);
    }
    Ok(match value {
        RawBsonRef::Document(document) => NESTED + of_fields(document, depth + 1)?,
        RawBsonRef::Array(array) => NESTED + of_items(array, depth + 1)?,
        RawBsonRef::String(text) if text.starts_with('$') => TEXT + path(text),
        RawBsonRef::String(_) => TEXT,
        _ => 0,
    })
}

/// Bytes of the names of a path.
fn path(text: &str) -> usize {
    NAME * text.bytes().filter(|&byte| byte == b'.').count()
}

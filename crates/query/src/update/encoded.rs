//! Applies operators to an encoded document: decodes the fields that the operators name and
//! `_id`, and copies the bytes of all others.
//!
//! N1. The result is the same as that of [`Update::apply`] on the whole document. Where fields that
//!     are not named could matter, the whole document is decoded.

use bson::{Bson, Document, RawDocument, RawDocumentBuf};

use super::spec::{Kind, Operators};
use super::{Position, Update, apply, identical, identical_values};
use crate::{Code, Error, Result};

/// Bytes of a document before its first field: its length.
const HEAD: usize = 4;

/// Bytes by which a document may grow before its memory is allocated again.
const ROOM: usize = 64;

/// The bytes of a field, and whether its value is decoded.
struct Field<'d> {
    name: &'d str,
    bytes: &'d [u8],
    is_named: bool,
}

/// A document whose named fields are decoded.
struct Parted<'d> {
    fields: Vec<Field<'d>>,
    named: Document,
}

impl Update {
    /// As [`Update::apply`], on an encoded document.
    ///
    /// # Errors
    /// As [`Update::apply`]; those of a document that cannot be decoded.
    pub fn apply_encoded(
        &self,
        current: &RawDocument,
        at: &Position,
    ) -> Result<Option<RawDocumentBuf>> {
        if let Kind::Operators(operators) = &self.kind
            && let Some(parted) = Parted::of(current, operators)?
        {
            let next = apply::operators(operators, &parted.named, at, &self.settings)?;
            let Some(next) = next.filter(|next| !identical(next, &parted.named)) else {
                return Ok(None);
            };
            if parted.keeps_order(&next) {
                return parted.join(next).map(Some);
            }
        }
        let next = self.apply(&Document::try_from(current)?, at)?;
        let encoded = next.map(|next| RawDocumentBuf::try_from(&next));
        Ok(encoded.transpose()?)
    }
}

impl<'d> Parted<'d> {
    /// Part a document; `None` if a name that begins with `$` is written, which must be checked
    /// with its neighbours, or if a field occurs twice.
    fn of(document: &'d RawDocument, operators: &Operators) -> Result<Option<Parted<'d>>> {
        let paths = operators.paths.iter();
        let first = paths.filter_map(|path| path.split('.').next());
        let names: Vec<&str> = first.collect();
        if names.iter().any(|name| name.starts_with('$')) {
            return Ok(None);
        }
        let bytes = document.as_bytes();
        let (mut fields, mut named, mut start) = (Vec::new(), Document::new(), HEAD);
        for element in document.iter_elements() {
            let element = element?;
            let name = element.key().as_str();
            // A byte for the type, the name, and its end.
            let end = start + 1 + name.len() + 1 + element.size();
            let Some(field) = bytes.get(start..end) else {
                return Ok(None);
            };
            start = end;
            let is_named = name == "_id" || names.contains(&name);
            if is_named
                && named
                    .insert(name, Bson::try_from(element.value()?)?)
                    .is_some()
            {
                return Ok(None);
            }
            fields.push(Field {
                name,
                bytes: field,
                is_named,
            });
        }
        let whole = start + 1 == bytes.len();
        Ok(whole.then_some(Parted { fields, named }))
    }

    /// Whether the named fields that remain have kept their order, and new ones follow them.
    fn keeps_order(&self, next: &Document) -> bool {
        let mut after = next.keys();
        let mut remain = self.named.keys().filter(|name| next.contains_key(*name));
        remain.all(|name| after.next() == Some(name))
    }

    /// The document with the next values of the named fields.
    fn join(&self, mut next: Document) -> Result<RawDocumentBuf> {
        let room: usize = self.fields.iter().map(|field| field.bytes.len()).sum();
        let mut bytes = Vec::with_capacity(room + ROOM);
        bytes.extend_from_slice(&[0; HEAD]);
        for field in &self.fields {
            if !field.is_named {
                bytes.extend_from_slice(field.bytes);
                continue;
            }
            match next.remove(field.name) {
                None => {}
                Some(value) if self.has(field.name, &value) => {
                    bytes.extend_from_slice(field.bytes);
                }
                Some(value) => append(&mut bytes, field.name, value)?,
            }
        }
        for (name, value) in next {
            append(&mut bytes, &name, value)?;
        }
        bytes.push(0);
        let length = i32::try_from(bytes.len()).map_err(|_| too_large())?;
        if let Some(head) = bytes.first_chunk_mut() {
            *head = length.to_le_bytes();
        }
        Ok(RawDocumentBuf::from_bytes(bytes)?)
    }

    /// Whether the value of a field before the update encodes to the same bytes.
    fn has(&self, name: &str, value: &Bson) -> bool {
        let before = self.named.get(name);
        before.is_some_and(|before| identical_values(before, value))
    }
}

/// Append a field.
fn append(bytes: &mut Vec<u8>, name: &str, value: Bson) -> Result<()> {
    let mut alone = Document::new();
    alone.insert(name, value);
    let alone = RawDocumentBuf::try_from(&alone)?;
    // Without the length and the end of the document.
    let field = alone.as_bytes().get(HEAD..alone.as_bytes().len() - 1);
    bytes.extend_from_slice(field.unwrap_or_default());
    Ok(())
}

fn too_large() -> Error {
    let message = "the document after the update is too large to be encoded";
    Error::new(Code::BSON_OBJECT_TOO_LARGE, message)
}

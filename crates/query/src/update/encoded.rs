//! Applies operators to an encoded document: decodes the fields that the operators name and
//! `_id`, and copies the bytes of all others.
//!
//! - N1. The named fields are those that [`Update::apply`] leads to on the whole document, in its
//!   order; the others keep their bytes. Where the others could matter, or where a named field
//!   occurs twice, the whole document is decoded. Decoding merges two fields of one name: only a
//!   document without repeated names has the same result both ways.

use bson::{Bson, Document, RawDocument, RawDocumentBuf};

use super::field::Fields;
use super::spec::{Kind, Operators};
use super::writer::Writer;
use super::{Position, Update, apply, identical_values};
use crate::Result;

/// Bytes by which a document may grow before its memory is allocated again.
const ROOM: usize = 64;

/// A document whose named fields are decoded.
struct Parted<'d> {
    document: &'d RawDocument,
    /// The named fields, in the order of the document.
    named: Document,
}

impl Update {
    /// As [`Update::apply`], on an encoded document. A field that the operators do not name keeps
    /// its bytes, even if it occurs twice.
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
            return match apply::operators(operators, &parted.named, at, &self.settings)? {
                Some(next) => parted.join(next),
                None => Ok(None),
            };
        }
        let next = self.apply(&Document::try_from(current)?, at)?;
        let encoded = next.map(|next| RawDocumentBuf::try_from(&next));
        Ok(encoded.transpose()?)
    }
}

impl<'d> Parted<'d> {
    /// Part a document; `None` if a name that begins with `$` is written, which must be checked
    /// with its neighbours, or if a named field occurs twice.
    fn of(document: &'d RawDocument, operators: &Operators) -> Result<Option<Parted<'d>>> {
        let names = &operators.names;
        if names.iter().any(|name| name.starts_with('$')) {
            return Ok(None);
        }
        let mut named = Document::new();
        for element in document.iter_elements() {
            let element = element?;
            let name = element.key().as_str();
            if names.binary_search_by(|known| (**known).cmp(name)).is_err() {
                continue;
            }
            let value = Bson::try_from(element.value()?)?;
            if named.insert(name, value).is_some() {
                return Ok(None);
            }
        }
        Ok(Some(Parted { document, named }))
    }

    /// The document with the next values of the named fields; `None` if they encode to the same
    /// bytes.
    fn join(&self, next: Document) -> Result<Option<RawDocumentBuf>> {
        let room = self.document.as_bytes().len() + ROOM;
        let (mut writer, outer) = Writer::with_room(room);
        let mut before = self.named.iter().peekable();
        let mut after = next.into_iter().peekable();
        let mut is_changed = false;
        for field in Fields::of(self.document) {
            let field = field?;
            let Some((name, old)) = before.next_if(|(name, _)| *name == field.name) else {
                writer.element(field.element)?;
                continue;
            };
            match after.next_if(|(next, _)| next == name) {
                Some((_, new)) if identical_values(old, &new) => writer.element(field.element)?,
                Some((name, new)) => {
                    is_changed = true;
                    append(&mut writer, name, new)?;
                }
                None => is_changed = true,
            }
        }
        assert!(before.next().is_none(), "N1: each named field is passed");
        for (name, new) in after {
            let is_new = !self.named.contains_key(&name);
            assert!(is_new, "N1: named fields keep their order");
            is_changed = true;
            append(&mut writer, name, new)?;
        }
        if is_changed {
            return writer.into_document(outer).map(Some);
        }
        Ok(None)
    }
}

/// Append a field.
fn append(writer: &mut Writer, name: String, value: Bson) -> Result<()> {
    let mut alone = Document::new();
    alone.insert(name, value);
    let alone = RawDocumentBuf::try_from(&alone)?;
    for field in Fields::of(&alone) {
        writer.element(field?.element)?;
    }
    Ok(())
}

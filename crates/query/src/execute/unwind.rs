//! `$unwind`.

use std::sync::Arc;

use bson::{Bson, Document};

use super::{Host, Rows};
use crate::expr::FieldPath;
use crate::stage::Unwind;
use crate::{Result, Row, meter};

/// `$unwind`.
pub(super) struct UnwindRows {
    input: Box<dyn Rows>,
    unwind: Unwind,
    current: Option<Current>,
}

/// The sort key of a row; every row made from it has the same key.
type Key = Option<Arc<[Bson]>>;

/// The document whose array is being returned element by element.
struct Current {
    document: Document,
    key: Key,
    elements: std::iter::Enumerate<std::vec::IntoIter<Bson>>,
}

impl UnwindRows {
    pub(super) fn new(input: Box<dyn Rows>, unwind: Unwind) -> UnwindRows {
        UnwindRows {
            input,
            unwind,
            current: None,
        }
    }

    fn begin(&mut self, mut document: Document, key: Key) -> Option<Row> {
        match take(&mut document, &self.unwind.path) {
            Some(Bson::Array(elements)) if !elements.is_empty() => {
                self.current = Some(Current {
                    document,
                    key,
                    elements: elements.into_iter().enumerate(),
                });
                None
            }
            Some(Bson::Array(_)) => {
                remove(&mut document, &self.unwind.path);
                self.alone(document, key)
            }
            Some(Bson::Null | Bson::Undefined) => {
                put(&mut document, &self.unwind.path, Bson::Null);
                self.alone(document, key)
            }
            None => self.alone(document, key),
            Some(value) => {
                put(&mut document, &self.unwind.path, value);
                self.index(&mut document, Bson::Null);
                Some(Row::from_document(document).with_sort_key(key))
            }
        }
    }

    /// The result for a document without elements; `None` unless such documents are preserved.
    fn alone(&self, mut document: Document, key: Key) -> Option<Row> {
        if !self.unwind.preserve {
            return None;
        }
        self.index(&mut document, Bson::Null);
        Some(Row::from_document(document).with_sort_key(key))
    }

    fn index(&self, document: &mut Document, index: Bson) {
        if let Some(path) = &self.unwind.index {
            put(document, path, index);
        }
    }
}

impl Rows for UnwindRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some((at, element)) = current.elements.next() {
                    meter::read(meter::document_size(&current.document))?;
                    let mut document = if current.elements.len() == 0 {
                        std::mem::take(&mut current.document)
                    } else {
                        current.document.clone()
                    };
                    put(&mut document, &self.unwind.path, element);
                    let key = current.key.clone();
                    let index = i64::try_from(at).unwrap_or(i64::MAX);
                    self.index(&mut document, Bson::Int64(index));
                    return Ok(Some(Row::from_document(document).with_sort_key(key)));
                }
                self.current = None;
            }
            host.check()?;
            let Some(row) = self.input.next(host)? else {
                return Ok(None);
            };
            let key = row.sort_key();
            if let Some(row) = self.begin(row.into_document()?, key) {
                return Ok(Some(row));
            }
        }
    }
}

/// Takes the value at a path out of the document and leaves null, so that the field keeps its
/// position. Arrays on the path are not entered.
fn take(document: &mut Document, path: &FieldPath) -> Option<Bson> {
    let (last, names) = path.names().split_last()?;
    let mut document = document;
    for name in names {
        document = document.get_mut(&**name)?.as_document_mut()?;
    }
    document
        .get_mut(&**last)
        .map(|value| std::mem::replace(value, Bson::Null))
}

/// Removes the value at a path.
pub(super) fn remove(document: &mut Document, path: &FieldPath) {
    let Some((last, names)) = path.names().split_last() else {
        return;
    };
    let mut document = document;
    for name in names {
        let inner = document.get_mut(&**name).and_then(Bson::as_document_mut);
        match inner {
            Some(inner) => document = inner,
            None => return,
        }
    }
    document.remove(&**last);
}

/// Sets the value at a path, replacing any value that blocks the path.
pub(super) fn put(document: &mut Document, path: &FieldPath, value: Bson) {
    let Some((last, names)) = path.names().split_last() else {
        return;
    };
    let mut document = document;
    for name in names {
        let slot = document
            .entry(&**name)
            .or_insert_with(|| Bson::Document(Document::new()));
        if !matches!(slot, Bson::Document(_)) {
            *slot = Bson::Document(Document::new());
        }
        match slot {
            Bson::Document(inner) => document = inner,
            _ => return,
        }
    }
    document.insert(&**last, value);
}

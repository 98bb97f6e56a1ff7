//! The fields of an encoded document, as slices of its bytes.

use bson::RawDocument;
use bson::raw::RawIter;
use bson::spec::ElementType;

use crate::path::array_index;
use crate::{Code, Error, Result};

/// A field of an encoded document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) kind: ElementType,
    pub(super) name: &'a str,
    /// The type byte, the name and the value.
    pub(super) element: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Field<'a> {
    /// The value, if it is a document.
    pub(super) fn document(&self) -> Result<Option<&'a RawDocument>> {
        match self.kind {
            ElementType::EmbeddedDocument => Ok(Some(RawDocument::from_bytes(self.value)?)),
            _ => Ok(None),
        }
    }

    /// The value, if it is an array: its elements are the fields of a document.
    pub(super) fn array(&self) -> Result<Option<&'a RawDocument>> {
        match self.kind {
            ElementType::Array => Ok(Some(RawDocument::from_bytes(self.value)?)),
            _ => Ok(None),
        }
    }

    /// Whether both values have the same type and bytes.
    pub(super) fn same_value(&self, other: &Field<'_>) -> bool {
        self.kind == other.kind && self.value == other.value
    }

    /// Whether the name is `index`, as the names in arrays are.
    pub(super) fn is_element(&self, index: usize) -> bool {
        array_index(self.name) == Some(index)
    }
}

/// Iterates over the fields of an encoded document.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    /// The position of the next field in the bytes.
    at: usize,
    elements: RawIter<'a>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(document: &'a RawDocument) -> Fields<'a> {
        Fields {
            bytes: document.as_bytes(),
            at: size_of::<i32>(),
            elements: document.iter_elements(),
        }
    }

    /// The next field, `None` after the last one.
    ///
    /// # Errors
    /// `InvalidBSON`.
    pub(super) fn advance(&mut self) -> Result<Option<Field<'a>>> {
        self.next().transpose()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>>;

    fn next(&mut self) -> Option<Result<Field<'a>>> {
        let element = match self.elements.next()? {
            Ok(element) => element,
            Err(error) => return Some(Err(error.into())),
        };
        let name = element.key().as_str();
        // The type byte, the name, and the zero that ends the name.
        let head = name.len() + 2;
        let whole = self.bytes.get(self.at..).unwrap_or_default();
        let whole = whole.get(..head + element.size());
        self.at += head + element.size();
        let field = whole.and_then(|element_bytes| {
            Some(Field {
                kind: element.element_type(),
                name,
                element: element_bytes,
                value: element_bytes.get(head..)?,
            })
        });
        let cut = || Error::new(Code::INVALID_BSON, "a field exceeds its document");
        Some(field.ok_or_else(cut))
    }
}

//! Paths of expressions: `a.b` leads through documents, and also through the documents of an array;
//! then the value is the array of the found values. Unlike in paths of filters, a number is a field
//! name, not an index, and arrays directly in arrays are not entered.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bson::{Bson, Document};

use super::env::Value;
use crate::{Error, Result, meter};

/// A path of field names, cheap to clone. The empty path leads to the value itself.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldPath {
    names: Arc<[Box<str>]>,
}

impl FieldPath {
    /// Parses `a.b.c`, without a leading dollar. Names must not be empty or begin with a dollar.
    pub fn parse(text: &str) -> Result<FieldPath> {
        if text.is_empty() {
            return Err(Error::location(
                40_352,
                "FieldPath cannot be constructed with empty string",
            ));
        }
        if text.ends_with('.') {
            return Err(Error::location(
                40_353,
                "FieldPath must not end with a '.'.",
            ));
        }
        let names: Vec<Box<str>> = text
            .split('.')
            .map(|name| check_name(name).map(|()| Box::from(name)))
            .collect::<Result<_>>()?;
        if names.len() > MAX_NAMES {
            return Err(Error::new(
                crate::Code::OVERFLOW,
                format!("FieldPath is too long, it has {} names", names.len()),
            ));
        }
        Ok(FieldPath {
            names: names.into(),
        })
    }

    /// The empty path, which leads to the value itself.
    #[must_use]
    pub fn empty() -> FieldPath {
        FieldPath {
            names: Arc::from([]),
        }
    }

    /// Whether the path is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names, from the outermost to the innermost.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The value of a document at this path; an array if the path goes through an array.
    pub(crate) fn in_document<'e>(&self, document: &'e Document) -> Value<'e> {
        through_document(&self.names, document)
    }

    /// The value at this path within `value`.
    pub(crate) fn in_value<'e>(&self, value: &'e Bson) -> Value<'e> {
        through_value(&self.names, value)
    }
}

/// Maximum number of names: the maximum nesting of documents.
const MAX_NAMES: usize = 200;

/// Checks one name of a path or of an object literal.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::location(
            15_998,
            "FieldPath field names may not be empty strings.",
        ));
    }
    if name.starts_with('$') {
        return Err(Error::location(
            16_410,
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        ));
    }
    if name.contains('\0') {
        return Err(Error::location(
            16_411,
            "FieldPath field names may not contain '\\0'.",
        ));
    }
    Ok(())
}

fn through_value<'e>(names: &[Box<str>], value: &'e Bson) -> Value<'e> {
    if names.is_empty() {
        return Some(Cow::Borrowed(value));
    }
    match value {
        Bson::Document(document) => through_document(names, document),
        Bson::Array(items) => {
            meter::count(items.len());
            let found = items
                .iter()
                .filter_map(|item| through_document(names, item.as_document()?))
                .map(Cow::into_owned)
                .collect();
            Some(Cow::Owned(Bson::Array(found)))
        }
        _ => None,
    }
}

fn through_document<'e>(names: &[Box<str>], document: &'e Document) -> Value<'e> {
    let (first, rest) = names.split_first()?;
    through_value(rest, document.get(&**first)?)
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

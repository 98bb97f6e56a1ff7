//! Finding one field in a raw document.

use bson::{RawBsonRef, RawDocument};

use crate::Result;

/// The value of the first field called `name`.
///
/// # Errors
/// `InvalidBSON` for bytes that are none, as far as they were read.
pub fn find<'a>(document: &'a RawDocument, name: &str) -> Result<Option<RawBsonRef<'a>>> {
    for element in document.iter_elements() {
        let element = element?;
        if element.key().as_str() == name {
            return Ok(Some(element.value()?));
        }
    }
    Ok(None)
}

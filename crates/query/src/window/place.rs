//! Sets a value at a path of a document, as `$addFields` does: missing objects on the path are
//! created, and the value is set in every element of an array on the path.

use bson::{Bson, Document};

use crate::expr::FieldPath;
use crate::{Result, meter};

/// Sets the value at `path`, a path of at least one name.
///
/// # Errors
/// `ExceededMemoryLimit` when the copies of the value for the elements of arrays take too much
/// memory.
pub(super) fn place(document: &mut Document, path: &FieldPath, value: Bson) -> Result<()> {
    put(document, path.names(), value)
}

fn put(document: &mut Document, names: &[Box<str>], value: Bson) -> Result<()> {
    let Some((name, rest)) = names.split_first() else {
        return Ok(());
    };
    meter::step()?;
    if rest.is_empty() {
        document.insert(&**name, value);
        return Ok(());
    }
    match document.get_mut(&**name) {
        Some(inner) => put_into(inner, rest, value),
        None => {
            let mut made = Document::new();
            put(&mut made, rest, value)?;
            document.insert(&**name, made);
            Ok(())
        }
    }
}

fn put_into(inner: &mut Bson, names: &[Box<str>], value: Bson) -> Result<()> {
    match inner {
        Bson::Document(document) => put(document, names, value),
        Bson::Array(items) => {
            for item in items {
                put_into(item, names, meter::copy("An array of documents", &value)?)?;
            }
            Ok(())
        }
        other => {
            let mut made = Document::new();
            put(&mut made, names, value)?;
            *other = Bson::Document(made);
            Ok(())
        }
    }
}

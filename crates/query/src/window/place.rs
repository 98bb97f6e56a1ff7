//! Putting a value at a path of a document, as `$addFields` does: objects are made on the way, and
//! every element of an array is entered.

use bson::{Bson, Document};

use crate::expr::FieldPath;

/// Sets the value at `path`, a path of at least one name.
pub(super) fn place(document: &mut Document, path: &FieldPath, value: Bson) {
    put(document, path.names(), value);
}

fn put(document: &mut Document, names: &[Box<str>], value: Bson) {
    let Some((name, rest)) = names.split_first() else {
        return;
    };
    if rest.is_empty() {
        document.insert(&**name, value);
        return;
    }
    match document.get_mut(&**name) {
        Some(inner) => put_into(inner, rest, value),
        None => {
            let mut made = Document::new();
            put(&mut made, rest, value);
            document.insert(&**name, made);
        }
    }
}

fn put_into(inner: &mut Bson, names: &[Box<str>], value: Bson) {
    match inner {
        Bson::Document(document) => put(document, names, value),
        Bson::Array(items) => {
            for item in items {
                put_into(item, names, value.clone());
            }
        }
        other => {
            let mut made = Document::new();
            put(&mut made, names, value);
            *other = Bson::Document(made);
        }
    }
}

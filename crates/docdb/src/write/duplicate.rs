//! The error of a key that is there already, as MongoDB words it.

use bson::{Bson, Document, doc};
use query::{Code, Error};

use crate::collection::Collection;
use crate::index::{Index, Key};
use crate::key::decode;

/// The error of a key that is there already.
pub(crate) fn duplicate(collection: &Collection, index: &Index, key: Key<'_>) -> Error {
    let mut values = Document::new();
    let decoded = match index.maker().collation() {
        None => decode(key.bytes, key.type_bits, index.directions()).ok(),
        Some(_) => None,
    };
    let names = index.spec().key.keys();
    match decoded {
        Some((decoded, _)) => {
            for (name, value) in names.zip(decoded) {
                values.insert(name, Bson::try_from(value).unwrap_or(Bson::Null));
            }
        }
        // A key that was cut, or strings that became sort keys, cannot be shown.
        None => values.extend(names.map(|name| (name.clone(), Bson::Null))),
    }
    let collation = match &index.spec().collation {
        Some(collation) => format!(" collation: {}", shell(collation)),
        None => String::new(),
    };
    let message = format!(
        "E11000 duplicate key error collection: {} index: {}{collation} dup key: {}",
        collection.ns(),
        index.name(),
        shell(&values)
    );
    Error::new(Code::DUPLICATE_KEY, message).with_details(doc! {
        "keyPattern": index.spec().key.clone(),
        "keyValue": values,
    })
}

/// A document as MongoDB's messages show it: `{ a: 1, b: "x" }`.
pub(crate) fn shell(document: &Document) -> String {
    if document.is_empty() {
        return "{}".to_owned();
    }
    let fields = document
        .iter()
        .map(|(name, value)| format!("{name}: {}", shown(value)));
    format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
}

/// `UUID("..")` for a UUID of the standard form, `BinData(subtype, HEX)` for other bytes.
fn shown_binary(binary: &bson::Binary) -> String {
    if binary.subtype == bson::spec::BinarySubtype::Uuid
        && let Ok(bytes) = <[u8; 16]>::try_from(binary.bytes.as_slice())
    {
        return format!("UUID(\"{}\")", bson::Uuid::from_bytes(bytes));
    }
    let hex: String = binary.bytes.iter().map(|b| format!("{b:02X}")).collect();
    format!("BinData({}, {hex})", u8::from(binary.subtype))
}

fn shown(value: &Bson) -> String {
    match value {
        Bson::Double(v) if v.is_finite() && v.fract() == 0.0 && v.abs() < 1e15 => format!("{v:.1}"),
        Bson::Double(v) => format!("{v}"),
        Bson::Document(inner) => shell(inner),
        Bson::Array(items) if items.is_empty() => "[]".to_owned(),
        Bson::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[ {} ]", items.join(", "))
        }
        Bson::ObjectId(id) => format!("ObjectId('{}')", id.to_hex()),
        Bson::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        Bson::Binary(binary) => shown_binary(binary),
        Bson::Undefined => "undefined".to_owned(),
        Bson::MinKey => "MinKey".to_owned(),
        Bson::MaxKey => "MaxKey".to_owned(),
        other => other.to_string(),
    }
}

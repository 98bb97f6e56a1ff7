//! Values as text for messages: `{ a: 1, b: "x" }`, as MongoDB prints them.

use std::fmt::Write;

use bson::{Binary, Bson, Document, spec::BinarySubtype};

/// A document: `{ a: 1 }`, or `{}`.
#[must_use]
pub fn document(document: &Document) -> String {
    let mut text = String::new();
    write_document(&mut text, document);
    text
}

/// A value: `1`, `"x"`, `[ 1, 2 ]`.
#[must_use]
pub fn value(value: &Bson) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// A field with its name: `a: 1`.
#[must_use]
pub fn field(name: &str, value: &Bson) -> String {
    let mut text = format!("{name}: ");
    write_value(&mut text, value);
    text
}

fn write_document(text: &mut String, document: &Document) {
    if document.is_empty() {
        text.push_str("{}");
        return;
    }
    text.push_str("{ ");
    for (at, (name, value)) in document.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
        text.push_str(": ");
        write_value(text, value);
    }
    text.push_str(" }");
}

fn write_array(text: &mut String, values: &[Bson]) {
    if values.is_empty() {
        text.push_str("[]");
        return;
    }
    text.push_str("[ ");
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        write_value(text, value);
    }
    text.push_str(" ]");
}

fn write_value(text: &mut String, value: &Bson) {
    match value {
        Bson::Document(inner) => write_document(text, inner),
        Bson::Array(values) => write_array(text, values),
        Bson::Binary(binary) => write_binary(text, binary),
        other => text.push_str(&scalar(other)),
    }
}

fn scalar(value: &Bson) -> String {
    match value {
        Bson::Double(number) => double(*number),
        Bson::String(string) | Bson::Symbol(string) => format!("\"{string}\""),
        Bson::Boolean(flag) => flag.to_string(),
        Bson::Null => String::from("null"),
        Bson::Undefined => String::from("undefined"),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        Bson::Decimal128(number) => number.to_string(),
        Bson::ObjectId(id) => format!("ObjectId('{}')", id.to_hex()),
        Bson::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        Bson::Timestamp(stamp) => format!("Timestamp({}, {})", stamp.time, stamp.increment),
        Bson::RegularExpression(regex) => format!("/{}/{}", regex.pattern, regex.options),
        Bson::MinKey => String::from("MinKey"),
        Bson::MaxKey => String::from("MaxKey"),
        Bson::JavaScriptCode(code) => code.clone(),
        Bson::JavaScriptCodeWithScope(code) => {
            format!("CodeWScope( {}, {})", code.code, document(&code.scope))
        }
        other => other.to_string(),
    }
}

fn double(number: f64) -> String {
    if number.is_finite() && number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.1}");
    }
    if number.is_nan() {
        return String::from("nan");
    }
    if number.is_infinite() {
        return String::from(if number > 0.0 { "inf" } else { "-inf" });
    }
    number.to_string()
}

fn write_binary(text: &mut String, binary: &Binary) {
    if binary.subtype == BinarySubtype::Uuid
        && let Ok(uuid) = binary.to_uuid()
    {
        text.push_str(&format!("UUID(\"{uuid}\")"));
        return;
    }
    text.push_str(&format!("BinData({}, ", u8::from(binary.subtype)));
    for byte in &binary.bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
    }
    text.push(')');
}

#[cfg(test)]
mod tests {
    use bson::doc;

    #[test]
    fn documents_read_as_in_the_shell() {
        let document = doc! { "a": 1, "b": [1.0, "x"], "c": {}, "d": { "e": null }, "f": [] };
        let expected = r#"{ a: 1, b: [ 1.0, "x" ], c: {}, d: { e: null }, f: [] }"#;
        assert_eq!(super::document(&document), expected);
    }
}

//! Documents truncated so that they fit into a log line.
//!
//! - D1. The JSON text of what is returned is bounded, whatever the document: long strings, binary
//!   values, names, many elements, deep nesting. The bound is the one given to [`Brief::new`], plus
//!   [`SHOWN_VALUE`] and the brackets of [`SHOWN_DEPTH`] levels.
//! - D2. Only the part of the document that is shown is read.

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument};

use crate::limits::{SHOWN_DEPTH, SHOWN_NAME, SHOWN_VALUE};

/// Marks the place where text was truncated.
const CUT: &str = "...";

/// Maximum bytes of the text of a value that is never truncated: that of a decimal128.
const SCALAR: usize = 80;

/// The text budget of one document.
pub(crate) struct Brief {
    left: usize,
    cut: bool,
}

impl Brief {
    /// At most `bytes` of text.
    pub(crate) fn new(bytes: usize) -> Brief {
        Brief {
            left: bytes,
            cut: false,
        }
    }

    /// Whether anything was truncated.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether there is room; if not, the rest is truncated.
    pub(crate) fn has_room(&mut self) -> bool {
        self.cut |= self.left == 0;
        self.left > 0
    }

    fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    fn text(&mut self, text: &str, most: usize) -> String {
        let (shown, whole) = beginning(text, most.min(self.left));
        self.take(escaped(shown).saturating_add(3));
        match whole {
            true => shown.to_owned(),
            false => {
                self.cut = true;
                format!("{shown}{CUT}")
            }
        }
    }

    /// A field name.
    pub(crate) fn name(&mut self, name: &str) -> String {
        self.text(name, SHOWN_NAME)
    }

    /// A value at nesting level `depth`: 1 for a field of the outermost document.
    pub(crate) fn value(&mut self, value: RawBsonRef<'_>, depth: usize) -> Bson {
        match value {
            RawBsonRef::String(text) => self.text(text, SHOWN_VALUE).into(),
            RawBsonRef::Document(_) | RawBsonRef::Array(_) if SHOWN_DEPTH <= depth => {
                self.cut = true;
                self.take(CUT.len());
                CUT.into()
            }
            RawBsonRef::Document(document) => self.document(document, depth).into(),
            RawBsonRef::Array(array) => self.array(array, depth).into(),
            RawBsonRef::Int32(_) | RawBsonRef::Boolean(_) | RawBsonRef::Null => {
                self.take(12);
                Bson::try_from(value).unwrap_or(Bson::Null)
            }
            other => self.other(other),
        }
    }

    /// Values that are not strings but may contain text.
    fn other(&mut self, value: RawBsonRef<'_>) -> Bson {
        let long = match value {
            RawBsonRef::Binary(binary) => binary.bytes.len(),
            RawBsonRef::Symbol(text) | RawBsonRef::JavaScriptCode(text) => text.len(),
            RawBsonRef::JavaScriptCodeWithScope(code) => {
                let scope = code.scope.as_bytes().len();
                code.code.len().saturating_add(scope)
            }
            RawBsonRef::RegularExpression(regex) => {
                let options = regex.options.as_str().len();
                regex.pattern.as_str().len().saturating_add(options)
            }
            RawBsonRef::DbPointer(_) => SHOWN_VALUE,
            _ => 0,
        };
        if SHOWN_VALUE / 6 <= long {
            let what = crate::arguments::type_name(value);
            self.cut = true;
            let shown = format!("{what} of {long} bytes");
            self.take(shown.len());
            return shown.into();
        }
        // An escaped byte takes at most six.
        self.take(SCALAR.saturating_add(long.saturating_mul(6)));
        Bson::try_from(value).unwrap_or(Bson::Null)
    }

    fn array(&mut self, array: &RawArray, depth: usize) -> Vec<Bson> {
        let mut shown = Vec::new();
        self.take(2);
        for value in array {
            if !self.has_room() {
                shown.push(CUT.into());
                break;
            }
            // The decoder of messages has validated the elements.
            let Ok(value) = value else { break };
            shown.push(self.value(value, depth.saturating_add(1)));
        }
        shown
    }

    /// A document at nesting level `depth`: 0 for the outermost one.
    pub(crate) fn document(&mut self, document: &RawDocument, depth: usize) -> Document {
        let mut shown = Document::new();
        self.take(2);
        for field in document {
            if !self.has_room() {
                shown.insert(CUT, CUT);
                break;
            }
            // As above.
            let Ok((name, value)) = field else { break };
            let name = self.name(name.as_str());
            shown.insert(name, self.value(value, depth.saturating_add(1)));
        }
        shown
    }
}

/// Text, truncated to a number of bytes.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match beginning(text, most) {
        (whole, true) => whole.to_owned(),
        (shown, false) => format!("{shown}{CUT}"),
    }
}

/// The first bytes of a text, at most `most`, and whether they are the whole text.
fn beginning(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, true);
    }
    let end = text.floor_char_boundary(most);
    (text.get(..end).unwrap_or_default(), false)
}

/// Bytes of a text when escaped in JSON.
fn escaped(text: &str) -> usize {
    let longer = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(longer).sum()
}

#[cfg(test)]
mod tests {
    use bson::spec::BinarySubtype;
    use bson::{Binary, RawDocumentBuf, bson, doc};

    use super::*;

    fn brief(document: &Document, bytes: usize) -> (Document, bool, usize) {
        let raw = RawDocumentBuf::try_from(document).unwrap();
        let mut brief = Brief::new(bytes);
        let shown = brief.document(&raw, 0);
        let json = serde_json::Value::from(Bson::Document(shown.clone())).to_string();
        (shown, brief.is_cut(), json.len())
    }

    #[test]
    fn what_is_short_is_shown_whole() {
        let document = doc! {
            "find": "c", "filter": {"a": [1, 2.5, null, {"b": {"$gt": 7_i64}}]},
            "id": bson::oid::ObjectId::from_bytes([7; 12]), "at": bson::DateTime::from_millis(0),
        };
        let (shown, cut, _) = brief(&document, 10_000);
        assert_eq!((shown, cut), (document, false));
    }

    fn binary(bytes: usize) -> Bson {
        Bson::Binary(Binary {
            subtype: BinarySubtype::Generic,
            bytes: vec![0; bytes],
        })
    }

    fn nested(levels: usize) -> Document {
        (0..levels).fold(doc! {}, |inner, level| match level % 2 {
            0 => doc! {"a": inner},
            _ => doc! {"a": [inner, "x"]},
        })
    }

    /// D1: the size of the text is bounded.
    #[test]
    fn everything_that_can_be_long_is_cut() {
        let many = |count: u32| (0..count).map(|n| (format!("f{n}"), bson!(i64::from(n))));
        let strings: Vec<Bson> = (0..300).map(|_| "\u{1}".repeat(5_000).into()).collect();
        let ids: Vec<Bson> = (0..100_000).map(|_| bson!({"id": binary(16)})).collect();
        let regex = bson::Regex {
            pattern: bson::raw::CString::try_from("\n".repeat(90_000)).unwrap(),
            options: bson::raw::CString::try_from(String::new()).unwrap(),
        };
        for (what, document) in [
            ("a string", doc! {"a": "x".repeat(1 << 20)}),
            ("escaped strings", doc! {"a": strings}),
            ("a name", doc! {"x".repeat(1 << 20): 1}),
            (
                "names",
                (0..3_000)
                    .map(|n| (format!("{n:09}\u{2}"), bson!(1)))
                    .collect(),
            ),
            ("binary data", doc! {"a": binary(1 << 20)}),
            ("sessions", doc! {"endSessions": ids}),
            ("a regular expression", doc! {"a": regex}),
            (
                "code",
                doc! {"a": Bson::JavaScriptCode("x".repeat(1 << 20))},
            ),
            ("a symbol", doc! {"a": Bson::Symbol("x".repeat(1 << 20))}),
            ("fields", many(100_000).collect()),
            (
                "nested fields",
                doc! {"a": {"b": many(100_000).collect::<Document>()}},
            ),
            ("levels", nested(150)),
            ("an array", doc! {"a": vec![Bson::Null; 500_000]}),
        ] {
            let (shown, cut, length) = brief(&document, 10_000);
            assert!(cut, "{what}");
            assert!(length < 10_000 + 6 * SHOWN_VALUE, "{what}: {length}");
            let first = document.keys().next().unwrap();
            assert!(
                shown.keys().next().unwrap().starts_with(&first[..1]),
                "{what}"
            );
        }
    }
}

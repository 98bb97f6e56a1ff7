//! From values to key strings.

use bson::{Bson, RawArray, RawBson, RawBsonRef, RawDocument};
use query::Error;
use query::value::encoded;

use super::{Collate, END, directed, kind, null, number, tag};

/// A key being built, and its type bits. It can be cleared and used again; its memory is kept.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    bits: Vec<u8>,
    /// The length of `bits` without trailing trivial tags.
    bits_used: usize,
}

impl Encoder {
    /// An empty key.
    #[must_use]
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// Forget the key; keep the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bits.clear();
        self.bits_used = 0;
    }

    /// Append a component. `descending` inverts it. Without a `collation`, strings are in byte
    /// order.
    ///
    /// # Errors
    /// Bytes inside of a document or array that are no BSON.
    pub fn append(
        &mut self,
        value: RawBsonRef<'_>,
        descending: bool,
        collation: Option<&dyn Collate>,
    ) -> Result<(), Error> {
        let at = self.bytes.len();
        self.component(value, collation)?;
        if descending {
            self.invert_from(at);
        }
        Ok(())
    }

    /// [`Encoder::append`] for an owned value.
    ///
    /// # Errors
    /// A value that cannot be written as BSON.
    pub fn append_bson(
        &mut self,
        value: &Bson,
        descending: bool,
        collation: Option<&dyn Collate>,
    ) -> Result<(), Error> {
        let raw = RawBson::try_from(value.clone())?;
        self.append(raw.as_raw_bson_ref(), descending, collation)
    }

    /// Append the component that an index stores for an empty array.
    pub fn append_undefined(&mut self, descending: bool) {
        self.bytes.push(directed(kind::UNDEFINED, descending));
    }

    /// Append the component that an index stores for a missing field.
    pub fn append_null(&mut self, descending: bool) {
        self.bytes.push(null(descending));
    }

    /// Append an encoded component with its type bits.
    pub fn append_encoded(&mut self, bytes: &[u8], bits: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if !bits.is_empty() {
            self.bits.extend_from_slice(bits);
            self.bits_used = self.bits.len();
        }
    }

    /// End the components: append [`END`].
    pub fn end(&mut self) {
        self.bytes.push(END);
    }

    /// The key so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The type bits so far.
    #[must_use]
    pub fn type_bits(&self) -> &[u8] {
        self.bits.get(..self.bits_used).unwrap_or_default()
    }

    /// The bytes alone.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn invert_from(&mut self, at: usize) {
        for byte in self.bytes.iter_mut().skip(at) {
            *byte = !*byte;
        }
    }

    #[inline]
    fn tag(&mut self, tag: u8) {
        self.bits.push(tag);
        if tag != tag::TRIVIAL {
            self.bits_used = self.bits.len();
        }
    }

    fn component(
        &mut self,
        value: RawBsonRef<'_>,
        collation: Option<&dyn Collate>,
    ) -> Result<(), Error> {
        match value {
            RawBsonRef::Int32(v) => {
                self.tag(tag::TRIVIAL);
                number::append_i64(&mut self.bytes, i64::from(v));
            }
            RawBsonRef::Int64(v) => self.int64(v),
            RawBsonRef::Double(v) => self.double(v),
            RawBsonRef::Decimal128(v) => {
                self.tag(tag::DECIMAL);
                self.bits.extend_from_slice(&v.bytes());
                self.bits_used = self.bits.len();
                number::append_decimal(&mut self.bytes, &v);
            }
            RawBsonRef::String(v) => {
                self.tag(tag::TRIVIAL);
                self.string(kind::STRING, v, collation)?;
            }
            RawBsonRef::Symbol(v) => {
                self.tag(tag::SYMBOL);
                self.string(kind::STRING, v, collation)?;
            }
            RawBsonRef::Document(v) => self.document(v, collation)?,
            RawBsonRef::Array(v) => self.array(v, collation)?,
            other => self.plain(other, collation)?,
        }
        Ok(())
    }

    fn int64(&mut self, value: i64) {
        let small = i32::try_from(value).is_ok() || value == i64::MIN;
        self.tag(if small { tag::INT64 } else { tag::TRIVIAL });
        number::append_i64(&mut self.bytes, value);
    }

    fn double(&mut self, value: f64) {
        // An integral double below 2^63 would read as an integer.
        let integral = value.fract() == 0.0 && value.abs() < 9_223_372_036_854_775_808.0;
        self.tag(if value == 0.0 && value.is_sign_negative() {
            tag::NEGATIVE_ZERO
        } else if integral {
            tag::DOUBLE
        } else {
            tag::TRIVIAL
        });
        number::append_f64(&mut self.bytes, value);
    }

    /// Encode the types that have neither parts nor type bits (and code with scope).
    fn plain(
        &mut self,
        value: RawBsonRef<'_>,
        collation: Option<&dyn Collate>,
    ) -> Result<(), Error> {
        let out = &mut self.bytes;
        match value {
            RawBsonRef::MinKey => out.push(kind::MIN_KEY),
            RawBsonRef::MaxKey => out.push(kind::MAX_KEY),
            RawBsonRef::Undefined => out.push(kind::UNDEFINED),
            RawBsonRef::Boolean(false) => out.push(kind::FALSE),
            RawBsonRef::Boolean(true) => out.push(kind::TRUE),
            RawBsonRef::ObjectId(id) => {
                out.push(kind::OBJECT_ID);
                out.extend_from_slice(&id.bytes());
            }
            RawBsonRef::DateTime(date) => {
                out.push(kind::DATE);
                let flipped = date.timestamp_millis() ^ i64::MIN;
                out.extend_from_slice(&flipped.to_be_bytes());
            }
            RawBsonRef::Timestamp(stamp) => {
                out.push(kind::TIMESTAMP);
                out.extend_from_slice(&stamp.time.to_be_bytes());
                out.extend_from_slice(&stamp.increment.to_be_bytes());
            }
            RawBsonRef::Binary(binary) => {
                out.push(kind::BINARY);
                out.extend_from_slice(&length(binary.bytes));
                out.push(binary.subtype.into());
                out.extend_from_slice(binary.bytes);
            }
            RawBsonRef::RegularExpression(regex) => {
                out.push(kind::REGEX);
                out.extend_from_slice(regex.pattern.as_str().as_bytes());
                out.push(0);
                out.extend_from_slice(regex.options.as_str().as_bytes());
                out.push(0);
            }
            RawBsonRef::JavaScriptCode(code) => self.string(kind::CODE, code, None)?,
            RawBsonRef::JavaScriptCodeWithScope(code) => {
                self.string(kind::CODE_WITH_SCOPE, code.code, None)?;
                self.document(code.scope, collation)?;
            }
            RawBsonRef::DbPointer(_) => pointer(out, value),
            _ => out.push(kind::NULL),
        }
        Ok(())
    }

    fn string(
        &mut self,
        kind: u8,
        text: &str,
        collation: Option<&dyn Collate>,
    ) -> Result<(), Error> {
        self.bytes.push(kind);
        match collation {
            None => escape(&mut self.bytes, text.as_bytes()),
            Some(collation) => escape(&mut self.bytes, &collation.sort_key(text)?),
        }
        Ok(())
    }

    fn document(
        &mut self,
        document: &RawDocument,
        collation: Option<&dyn Collate>,
    ) -> Result<(), Error> {
        self.bytes.push(kind::OBJECT);
        for element in document.iter_elements() {
            let element = element?;
            let value = element.value()?;
            self.bytes.push(rank(&value));
            self.bytes
                .extend_from_slice(element.key().as_str().as_bytes());
            self.bytes.push(0);
            self.component(value, collation)?;
        }
        self.bytes.push(0);
        Ok(())
    }

    fn array(&mut self, array: &RawArray, collation: Option<&dyn Collate>) -> Result<(), Error> {
        self.bytes.push(kind::ARRAY);
        for value in array {
            self.component(value?, collation)?;
        }
        self.bytes.push(0);
        Ok(())
    }
}

/// Append text with its zeros as `00 FF`, and the zero that ends it.
pub(crate) fn escape(out: &mut Vec<u8>, text: &[u8]) {
    for (index, part) in text.split(|byte| *byte == 0).enumerate() {
        if 0 < index {
            out.extend_from_slice(&[0, 0xFF]);
        }
        out.extend_from_slice(part);
    }
    out.push(0);
}

/// Encode a DBPointer: the bytes of BSON, but with the length of the namespace in big-endian order.
fn pointer(out: &mut Vec<u8>, value: RawBsonRef<'_>) {
    out.push(kind::DB_POINTER);
    let body = encoded(value);
    let (length, rest) = body.split_at(body.len().min(4));
    out.extend(length.iter().rev());
    out.extend_from_slice(rest);
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len())
        .expect("BSON counts in 32 bits")
        .to_be_bytes()
}

/// The type of a field's value, which objects compare before the field's name.
fn rank(value: &RawBsonRef<'_>) -> u8 {
    match value {
        RawBsonRef::MinKey => kind::MIN_KEY,
        RawBsonRef::Undefined => kind::UNDEFINED,
        RawBsonRef::Null => kind::NULL,
        RawBsonRef::Int32(_)
        | RawBsonRef::Int64(_)
        | RawBsonRef::Double(_)
        | RawBsonRef::Decimal128(_) => kind::NUMBER,
        RawBsonRef::String(_) | RawBsonRef::Symbol(_) => kind::STRING,
        RawBsonRef::Document(_) => kind::OBJECT,
        RawBsonRef::Array(_) => kind::ARRAY,
        RawBsonRef::Binary(_) => kind::BINARY,
        RawBsonRef::ObjectId(_) => kind::OBJECT_ID,
        RawBsonRef::Boolean(_) => kind::FALSE,
        RawBsonRef::DateTime(_) => kind::DATE,
        RawBsonRef::Timestamp(_) => kind::TIMESTAMP,
        RawBsonRef::RegularExpression(_) => kind::REGEX,
        RawBsonRef::DbPointer(_) => kind::DB_POINTER,
        RawBsonRef::JavaScriptCode(_) => kind::CODE,
        RawBsonRef::JavaScriptCodeWithScope(_) => kind::CODE_WITH_SCOPE,
        RawBsonRef::MaxKey => kind::MAX_KEY,
    }
}

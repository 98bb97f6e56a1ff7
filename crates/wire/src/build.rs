//! Writes a message: one document, field by field, after space that is reserved for the message
//! header.
//!
//! A document is copied only once, from its memory into the outgoing bytes, so that a reply of 16
//! MiB is cheap. Names of fields are constants, or the caller has checked them. A zero byte would
//! end a name early: debug builds assert that there is none, release builds cut the name at it.
//!
//! - B1. `open` has the position of each unfinished document; the first one is the body.

use bson::oid::ObjectId;
use bson::{Bson, DateTime, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp};

use crate::header::{Header, OpCode};
use crate::limits::HEADER;
use crate::message::Flags;

/// Bytes before the body: the header, the flags and the kind of the section.
const HEAD: usize = HEADER + 5;

/// The numbers and flags in the head of a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts {
    /// The number of this message.
    pub request_id: i32,
    /// The number of the request to which this message replies, or 0.
    pub response_to: i32,
    /// The flags of this message.
    pub flags: u32,
}

/// A message under construction.
#[derive(Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    open: Vec<usize>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// A builder with an empty body.
    #[must_use]
    pub fn new() -> Builder {
        Builder::with_capacity(256)
    }

    /// A builder with an empty body and room for `size` bytes.
    #[must_use]
    pub fn with_capacity(size: usize) -> Builder {
        let mut bytes = Vec::with_capacity(size.saturating_add(HEAD).saturating_add(64));
        bytes.resize(HEAD, 0);
        let mut builder = Builder {
            bytes,
            open: Vec::with_capacity(4),
        };
        builder.begin();
        builder
    }

    /// Size of the body so far, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len().saturating_sub(HEAD)
    }

    fn begin(&mut self) {
        self.open.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn name(&mut self, kind: u8, name: &str) {
        debug_assert!(!name.contains('\0'), "a name with a zero byte: {name:?}");
        self.bytes.push(kind);
        let text = name.split('\0').next().unwrap_or_default();
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    /// Start a document; end it with [`Builder::close`].
    pub fn open_document(&mut self, name: &str) -> &mut Builder {
        self.name(3, name);
        self.begin();
        self
    }

    /// Start an array, whose elements are named by their index; end it with [`Builder::close`].
    pub fn open_array(&mut self, name: &str) -> &mut Builder {
        self.name(4, name);
        self.begin();
        self
    }

    /// End the innermost open document or array.
    ///
    /// # Panics
    /// If none is open. The body itself is ended by the call that returns the message.
    pub fn close(&mut self) -> &mut Builder {
        assert!(self.open.len() > 1, "B1: every close has its open");
        self.end();
        self
    }

    fn end(&mut self) {
        self.bytes.push(0);
        let start = self.open.pop().expect("B1: a document is open");
        let length = i32::try_from(self.bytes.len().saturating_sub(start))
            .expect("a message is far below 2 GiB");
        if let Some(place) = self.bytes.get_mut(start..start.saturating_add(4)) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    /// A double.
    pub fn double(&mut self, name: &str, value: f64) -> &mut Builder {
        self.name(1, name);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A string.
    pub fn string(&mut self, name: &str, value: &str) -> &mut Builder {
        self.name(2, name);
        let length = i32::try_from(value.len().saturating_add(1)).expect("far below 2 GiB");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
        self
    }

    /// A document.
    pub fn document(&mut self, name: &str, value: &RawDocument) -> &mut Builder {
        self.name(3, name);
        self.bytes.extend_from_slice(value.as_bytes());
        self
    }

    /// An array of documents.
    pub fn documents<'a>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = &'a RawDocument>,
    ) -> &mut Builder {
        self.open_array(name);
        for (i, value) in values.into_iter().enumerate() {
            self.bytes.push(3);
            self.place(i);
            self.bytes.extend_from_slice(value.as_bytes());
        }
        self.close()
    }

    /// Write the name of the `i`th element of an array, without allocating a string.
    fn place(&mut self, i: usize) {
        use std::io::Write as _;
        write!(self.bytes, "{i}").expect("a vector takes what is written");
        self.bytes.push(0);
    }

    /// An array of strings.
    pub fn strings<'a>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> &mut Builder {
        self.open_array(name);
        for (i, value) in values.into_iter().enumerate() {
            self.string(&i.to_string(), value);
        }
        self.close()
    }

    /// A boolean.
    pub fn boolean(&mut self, name: &str, value: bool) -> &mut Builder {
        self.name(8, name);
        self.bytes.push(u8::from(value));
        self
    }

    /// An ObjectId.
    pub fn object_id(&mut self, name: &str, value: ObjectId) -> &mut Builder {
        self.name(7, name);
        self.bytes.extend_from_slice(&value.bytes());
        self
    }

    /// A date.
    pub fn date(&mut self, name: &str, value: DateTime) -> &mut Builder {
        self.name(9, name);
        self.bytes
            .extend_from_slice(&value.timestamp_millis().to_le_bytes());
        self
    }

    /// A 32-bit integer.
    pub fn int(&mut self, name: &str, value: i32) -> &mut Builder {
        self.name(0x10, name);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A timestamp.
    pub fn timestamp(&mut self, name: &str, value: Timestamp) -> &mut Builder {
        self.name(0x11, name);
        self.bytes.extend_from_slice(&value.increment.to_le_bytes());
        self.bytes.extend_from_slice(&value.time.to_le_bytes());
        self
    }

    /// A 64-bit integer.
    pub fn long(&mut self, name: &str, value: i64) -> &mut Builder {
        self.name(0x12, name);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Any value.
    pub fn value(&mut self, name: &str, value: &Bson) -> &mut Builder {
        match value {
            Bson::Double(value) => self.double(name, *value),
            Bson::String(value) => self.string(name, value),
            Bson::Boolean(value) => self.boolean(name, *value),
            Bson::Int32(value) => self.int(name, *value),
            Bson::Int64(value) => self.long(name, *value),
            Bson::DateTime(value) => self.date(name, *value),
            Bson::Timestamp(value) => self.timestamp(name, *value),
            Bson::ObjectId(value) => self.object_id(name, *value),
            other => {
                if let Ok(value) = bson::RawBson::try_from(other.clone()) {
                    self.raw(name, value.as_raw_bson_ref());
                }
                self
            }
        }
    }

    /// Any value, raw.
    pub fn raw(&mut self, name: &str, value: RawBsonRef<'_>) -> &mut Builder {
        if let RawBsonRef::Document(value) = value {
            return self.document(name, value);
        }
        if let Ok(name) = bson::raw::CString::try_from(name) {
            let mut one = RawDocumentBuf::new();
            one.append(name, value);
            self.fields(&one);
        }
        self
    }

    /// Append the fields of a document.
    pub fn fields(&mut self, document: &RawDocument) -> &mut Builder {
        let bytes = document.as_bytes();
        let inner = bytes.get(4..bytes.len().saturating_sub(1));
        self.bytes.extend_from_slice(inner.unwrap_or_default());
        self
    }

    /// Read the body written so far.
    ///
    /// # Panics
    /// If a document or array is still open.
    pub fn look<T>(&mut self, look: impl FnOnce(&RawDocument) -> T) -> T {
        assert_eq!(self.open.len(), 1, "B1: every open has its close");
        self.end();
        let body = self.bytes.get(HEAD..).unwrap_or_default();
        let body = RawDocument::from_bytes(body);
        let seen = look(body.expect("what was built has its length and its end"));
        // Remove the end of the body again, because more fields may follow.
        self.bytes.pop();
        self.open.push(HEAD);
        seen
    }

    /// Returns the message.
    ///
    /// # Panics
    /// If a document or array is still open.
    #[must_use]
    pub fn finish(mut self, parts: Parts) -> Vec<u8> {
        assert_eq!(self.open.len(), 1, "B1: every open has its close");
        self.end();
        head(&mut self.bytes, parts);
        self.bytes
    }

    /// Returns the body without the head of the message.
    ///
    /// # Panics
    /// If a document or array is still open.
    #[must_use]
    pub fn into_document(mut self) -> RawDocumentBuf {
        assert_eq!(self.open.len(), 1, "B1: every open has its close");
        self.end();
        self.bytes.drain(..HEAD);
        RawDocumentBuf::from_bytes(self.bytes).expect("what was built has its length and its end")
    }
}

/// Write header and flags into the space reserved for them.
fn head(bytes: &mut [u8], parts: Parts) {
    let header = Header {
        length: bytes.len(),
        request_id: parts.request_id,
        response_to: parts.response_to,
        op_code: OpCode::Message,
    };
    if let Some((place, flags)) = bytes.split_at_mut_checked(HEADER) {
        place.copy_from_slice(&header.encode());
        if let Some(place) = flags.get_mut(..4) {
            place.copy_from_slice(&parts.flags.to_le_bytes());
        }
    }
}

/// A message with a body and document sequences, as a client sends it. With [`Flags::CHECKSUM`] the
/// checksum is appended.
#[must_use]
pub fn encode(parts: Parts, body: &RawDocument, sequences: &[(&str, &[&RawDocument])]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    bytes.extend_from_slice(body.as_bytes());
    for (name, documents) in sequences {
        bytes.push(1);
        let start = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        for document in *documents {
            bytes.extend_from_slice(document.as_bytes());
        }
        let size = i32::try_from(bytes.len().saturating_sub(start)).expect("far below 2 GiB");
        if let Some(place) = bytes.get_mut(start..start.saturating_add(4)) {
            place.copy_from_slice(&size.to_le_bytes());
        }
    }
    if Flags(parts.flags).has(Flags::CHECKSUM) {
        bytes.extend_from_slice(&[0; 4]);
        head(&mut bytes, parts);
        let end = bytes.len().saturating_sub(4);
        let sum = crc32c::crc32c(bytes.get(..end).unwrap_or_default());
        if let Some(place) = bytes.get_mut(end..) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    } else {
        head(&mut bytes, parts);
    }
    bytes
}

//! Resume tokens: positions in a change stream, in MongoDB's layout.
//!
//! A token is a document `{_data: HEX}`. The bytes behind the hexadecimal digits are a key string:
//!
//! | component | value |
//! |---|---|
//! | timestamp | the time of the oplog entry |
//! | integer | the version of the layout, 2; tokens of version 1 are read |
//! | integer | 128 for an event, 0 for a high-water mark |
//! | integer | the index of the operation in its transaction |
//! | boolean | whether the event is an `invalidate` |
//! | binary | the UUID of the collection; null for none |
//! | object | what identifies the event; missing in a high-water mark |
//! | integer | the number of the fragment of a large event; missing for a whole one |
//!
//! A high-water mark stands before all events of its time. An `invalidate` has the token of the
//! event that caused it, but for the boolean. An event is identified by
//! `{operationType, documentKey}` or `{operationType, operationDescription}`.
//!
//! Tools read the time from the first nine bytes, and compare `_data` of two tokens as text.
//!
//! - T1. Tokens compare as their bytes do: by time, then by the components in order.
//! - T2. Parsing the document of a token gives the token, and a document that parses has the
//!   `_data` of its token, but for the case of the digits.
//! - T3. Bytes of a client are decoded into a result.
//!
//! MongoDB adds `_typeBits`, from which it restores the types of the numbers in a document key. The
//! server compares tokens with those of the events it reads again, and needs no values from them:
//! it writes no `_typeBits`, and ignores those of clients.

use std::cmp::Ordering;

use bson::raw::cstr;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, Uuid};
use query::{Error, Result};

mod keystring;
#[cfg(test)]
mod tests;

use keystring::{Reader, Writer};

/// The version that is written.
const VERSION: i64 = 2;
/// The type of a high-water mark.
const MARK: i64 = 0;
/// The type of an event.
const EVENT: i64 = 128;
/// Length of the digits of a token: a document key is part of a document, and each of its bytes
/// takes at most four digits, because zeros are escaped.
const DIGITS_MAX: usize = 4 * crate::limits::DOCUMENT_MAX + 4_096;

/// A position in a change stream.
#[derive(Clone, Debug)]
pub struct Token {
    bytes: Vec<u8>,
    /// The bytes before the number of the fragment, or before the end.
    whole: usize,
    time: Timestamp,
    event: Option<Event>,
}

/// The event that a token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The index of the operation in its transaction, or in its group of inserts.
    pub index: i64,
    /// Whether it is an `invalidate`.
    pub invalidate: bool,
    /// The UUID of the collection.
    pub uuid: Option<Uuid>,
    /// The number of the fragment of a large event.
    pub fragment: Option<i64>,
}

impl Token {
    /// The position before all events of `time`.
    #[must_use]
    pub fn mark(time: Timestamp) -> Token {
        let mut writer = head(time, MARK);
        writer.integer(0);
        writer.boolean(false);
        writer.null();
        Token::finish(writer, time, None)
    }

    /// The position of an event of `time`. `identifier` is `{operationType, documentKey}` or
    /// `{operationType, operationDescription}`.
    ///
    /// # Errors
    /// `InvalidBSON`.
    pub fn event(time: Timestamp, event: Event, identifier: &RawDocument) -> Result<Token> {
        let mut writer = head(time, EVENT);
        writer.integer(event.index);
        writer.boolean(event.invalidate);
        match event.uuid {
            Some(uuid) => writer.uuid(uuid),
            None => writer.null(),
        }
        writer.value(RawBsonRef::Document(identifier))?;
        Ok(Token::finish(writer, time, Some(event)))
    }

    /// The token of an event or mark, whose other components are written.
    fn finish(mut writer: Writer, time: Timestamp, event: Option<Event>) -> Token {
        let whole = writer.len();
        if let Some(fragment) = event.as_ref().and_then(|event| event.fragment) {
            writer.integer(fragment);
        }
        Token {
            bytes: writer.finish(),
            whole,
            time,
            event,
        }
    }

    /// The position of a fragment of the event that the token stands for; that of the whole event
    /// for none. A mark stays one.
    #[must_use]
    pub fn with_fragment(&self, fragment: Option<i64>) -> Token {
        let whole = self.bytes.get(..self.whole).unwrap_or_default();
        let event = self.event.clone().map(|event| Event { fragment, ..event });
        Token::finish(Writer::resume(whole), self.time, event)
    }

    /// The token in a document of a client.
    ///
    /// # Errors
    /// `FailedToParse` and MongoDB's codes for a token that is invalid or of another version.
    pub fn parse(document: &RawDocument) -> Result<Token> {
        let Some(RawBsonRef::String(digits)) = document.get("_data")? else {
            let message = "Bad resume token: _data of missing or of wrong type";
            return Err(Error::location(40_647, message));
        };
        if digits.is_empty() {
            return Err(Error::location(40_649, "invalid empty resume token"));
        }
        if DIGITS_MAX < digits.len() {
            return Err(Error::parse("the resume token is too long"));
        }
        let bytes = from_hex(digits);
        let bytes = bytes.ok_or_else(|| {
            Error::parse("resume token string was not a valid hex string: it has other characters")
        })?;
        Token::from_bytes(bytes)
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Token> {
        let mut reader = Reader::new(&bytes);
        let time = reader.timestamp().ok_or_else(malformed)?;
        let version = reader.integer().ok_or_else(malformed)?;
        if version != 1 && version != VERSION {
            let message = "Invalid Resume Token: only supports version 1 or 2";
            return Err(Error::location(50_795, message));
        }
        let kind = reader.integer().ok_or_else(malformed)?;
        let index = reader.integer().ok_or_else(malformed)?;
        if index < 0 {
            let message = "Invalid Resume Token: txnOpIndex should be non-negative";
            return Err(Error::location(50_794, message));
        }
        let invalidate = reader.boolean().ok_or_else(malformed)?;
        let mut whole = bytes.len().saturating_sub(1);
        let event = match kind {
            // Version 1 leaves the UUID out.
            MARK => {
                if !reader.at_end() {
                    reader.null().ok_or_else(malformed)?;
                }
                None
            }
            EVENT => Some(Event {
                index,
                invalidate,
                uuid: reader.uuid_or_null().ok_or_else(malformed)?,
                fragment: {
                    reader.pass_value().ok_or_else(malformed)?;
                    whole = bytes.len() - reader.left();
                    reader.integer()
                },
            }),
            _ => return Err(malformed()),
        };
        if !reader.at_end() {
            return Err(malformed());
        }
        Ok(Token {
            bytes,
            whole,
            time,
            event,
        })
    }

    /// `{_data: HEX}`.
    #[must_use]
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut digits = String::with_capacity(2 * self.bytes.len());
        for byte in &self.bytes {
            digits.push(hex_digit(byte >> 4));
            digits.push(hex_digit(byte & 0x0F));
        }
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("_data"), digits);
        document
    }

    /// The time of the oplog entry.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The event that it stands for; `None` for a high-water mark.
    #[must_use]
    pub fn stands_for(&self) -> Option<&Event> {
        self.event.as_ref()
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Token {}

impl PartialOrd for Token {
    fn partial_cmp(&self, other: &Token) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Token {
    fn cmp(&self, other: &Token) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

fn head(time: Timestamp, kind: i64) -> Writer {
    let mut writer = Writer::new();
    writer.timestamp(time);
    writer.integer(VERSION);
    writer.integer(kind);
    writer
}

/// The upper-case digit of half a byte.
fn hex_digit(half: u8) -> char {
    char::from(half + if half < 10 { b'0' } else { b'A' - 10 })
}

/// The bytes of hexadecimal digits of either case.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

fn malformed() -> Error {
    Error::location(
        50_811,
        "KeyString format error: the resume token is invalid",
    )
}

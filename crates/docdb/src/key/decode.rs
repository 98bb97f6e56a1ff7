//! From key strings back to values.

use bson::raw::{CString, RawJavaScriptCodeWithScope};
use bson::spec::BinarySubtype;
use bson::{
    Binary, DateTime, Decimal128, RawArrayBuf, RawBson, RawDocumentBuf, Regex, Timestamp,
    oid::ObjectId,
};

use super::number::{self, Decoded};
use super::{END, kind, tag};

/// Bytes that are not a valid key string: the index is corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a key of an index")]
pub struct Malformed;

/// Maximum nesting of objects and arrays in a key: that of a stored document, with a margin.
const DEPTH_MAX: u32 = 256;

/// Decode the values of `key`; `descending` has the direction of each component. Also returns the
/// number of bytes read, [`END`] included. Strings of a key with a collation are sort keys: do not
/// decode them.
///
/// # Errors
/// [`Malformed`].
pub fn decode(
    key: &[u8],
    type_bits: &[u8],
    descending: impl IntoIterator<Item = bool>,
) -> Result<(Vec<RawBson>, usize), Malformed> {
    let mut reader = Reader {
        key,
        at: 0,
        bits: type_bits,
        invert: false,
    };
    let mut values = Vec::new();
    for direction in descending {
        reader.invert = direction;
        let first = reader.byte()?;
        values.push(reader.component(first, 0)?);
    }
    reader.invert = false;
    if reader.byte()? != END {
        return Err(Malformed);
    }
    Ok((values, reader.at))
}

struct Reader<'a> {
    key: &'a [u8],
    at: usize,
    bits: &'a [u8],
    invert: bool,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.key.get(self.at).ok_or(Malformed)?;
        self.at += 1;
        Ok(if self.invert { !byte } else { byte })
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let bytes = self.key.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(if self.invert {
            bytes.iter().map(|b| !b).collect()
        } else {
            bytes.to_vec()
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| Malformed)
    }

    fn tag(&mut self) -> u8 {
        match self.bits.split_first() {
            None => tag::TRIVIAL,
            Some((tag, rest)) => {
                self.bits = rest;
                *tag
            }
        }
    }

    fn component(&mut self, first: u8, depth: u32) -> Result<RawBson, Malformed> {
        if DEPTH_MAX < depth {
            return Err(Malformed);
        }
        Ok(match first {
            kind::MIN_KEY => RawBson::MinKey,
            kind::UNDEFINED => RawBson::Undefined,
            kind::NULL => RawBson::Null,
            kind::STRING => {
                let symbol = self.tag() == tag::SYMBOL;
                let text = self.text()?;
                if symbol {
                    RawBson::Symbol(text)
                } else {
                    RawBson::String(text)
                }
            }
            kind::OBJECT => RawBson::Document(self.document(depth)?),
            kind::ARRAY => {
                let mut array = RawArrayBuf::new();
                loop {
                    match self.byte()? {
                        0 => return Ok(RawBson::Array(array)),
                        first => array.push(self.component(first, depth + 1)?),
                    }
                }
            }
            kind::BINARY => {
                let length = u32::from_be_bytes(self.array()?);
                let subtype = BinarySubtype::from(self.byte()?);
                let bytes = self.bytes(usize::try_from(length).map_err(|_| Malformed)?)?;
                RawBson::Binary(Binary { subtype, bytes })
            }
            kind::OBJECT_ID => RawBson::ObjectId(ObjectId::from_bytes(self.array()?)),
            kind::FALSE => RawBson::Boolean(false),
            kind::TRUE => RawBson::Boolean(true),
            kind::DATE => {
                let millis = i64::from_be_bytes(self.array()?) ^ i64::MIN;
                RawBson::DateTime(DateTime::from_millis(millis))
            }
            kind::TIMESTAMP => RawBson::Timestamp(Timestamp {
                time: u32::from_be_bytes(self.array()?),
                increment: u32::from_be_bytes(self.array()?),
            }),
            kind::REGEX => RawBson::RegularExpression(Regex {
                pattern: self.name()?,
                options: self.name()?,
            }),
            kind::DB_POINTER => self.pointer()?,
            kind::CODE => RawBson::JavaScriptCode(self.text()?),
            kind::CODE_WITH_SCOPE => self.code_with_scope(depth)?,
            kind::MAX_KEY => RawBson::MaxKey,
            _ => self.number(first)?,
        })
    }

    fn code_with_scope(&mut self, depth: u32) -> Result<RawBson, Malformed> {
        let code = self.text()?;
        if self.byte()? != kind::OBJECT {
            return Err(Malformed);
        }
        let scope = self.document(depth)?;
        Ok(RawBson::JavaScriptCodeWithScope(
            RawJavaScriptCodeWithScope { code, scope },
        ))
    }

    fn number(&mut self, first: u8) -> Result<RawBson, Malformed> {
        let tag = self.tag();
        let number = number::read(first, || self.byte())?.ok_or(Malformed)?;
        if tag == tag::DECIMAL {
            let (bytes, rest) = self.bits.split_first_chunk().ok_or(Malformed)?;
            self.bits = rest;
            return Ok(RawBson::Decimal128(Decimal128::from_bytes(*bytes)));
        }
        Ok(match (tag, number) {
            (tag::NEGATIVE_ZERO, _) => RawBson::Double(-0.0),
            #[expect(
                clippy::cast_precision_loss,
                reason = "the tag says that it was a double before"
            )]
            (tag::DOUBLE, Decoded::Integer(v)) => RawBson::Double(v as f64),
            (tag::INT64, Decoded::Integer(v)) => RawBson::Int64(v),
            (tag::INT64, Decoded::Double(_)) => RawBson::Int64(i64::MIN),
            (_, Decoded::Double(v)) => RawBson::Double(v),
            (_, Decoded::Integer(v)) => match i32::try_from(v) {
                Ok(v) => RawBson::Int32(v),
                Err(_) => RawBson::Int64(v),
            },
        })
    }

    /// A document, after its type byte.
    fn document(&mut self, depth: u32) -> Result<RawDocumentBuf, Malformed> {
        let mut document = RawDocumentBuf::new();
        while self.byte()? != 0 {
            let name = self.name()?;
            let first = self.byte()?;
            let value = self.component(first, depth + 1)?;
            document.append(name, value);
        }
        Ok(document)
    }

    /// Escaped text, up to its end.
    fn text(&mut self) -> Result<String, Malformed> {
        let mut text = Vec::new();
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                // An escaped zero, or the end, where another component or END follows.
                let next = self.key.get(self.at).ok_or(Malformed)?;
                let next = if self.invert { !next } else { *next };
                if next != 0xFF {
                    break;
                }
                self.at += 1;
            }
            text.push(byte);
        }
        String::from_utf8(text).map_err(|_| Malformed)
    }

    /// Text that holds no zero, up to its end.
    fn name(&mut self) -> Result<CString, Malformed> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => break,
                byte => text.push(byte),
            }
        }
        let text = String::from_utf8(text).map_err(|_| Malformed)?;
        CString::try_from(text).map_err(|_| Malformed)
    }

    /// The reverse of how the encoder writes a DBPointer.
    fn pointer(&mut self) -> Result<RawBson, Malformed> {
        let length: [u8; 4] = self.array()?;
        let count = usize::try_from(u32::from_be_bytes(length)).map_err(|_| Malformed)?;
        let rest = self.bytes(count.checked_add(12).ok_or(Malformed)?)?;
        let total = i32::try_from(rest.len() + 11).map_err(|_| Malformed)?;
        let mut bytes = total.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0x0C, 0]);
        bytes.extend(length.iter().rev());
        bytes.extend_from_slice(&rest);
        bytes.push(0);
        let document = RawDocumentBuf::from_bytes(bytes).map_err(|_| Malformed)?;
        let value = document.get("").map_err(|_| Malformed)?.ok_or(Malformed)?;
        Ok(RawBson::from(value))
    }
}

//! MongoDB's key strings of version 1, ascending, as far as resume tokens need them.
//!
//! The indexes of the server have a format of their own (`key`); this one is for tokens only,
//! because tools read them. A component is a type byte and a body:
//!
//! | type byte | values | body |
//! |---|---|---|
//! | `0x0A`, `0x0F`, `0x14`, `0xF0` | MinKey, undefined, null, MaxKey | |
//! | `0x1E..=0x33` | numbers: see below | |
//! | `0x3C` | string, symbol | bytes, `00` as `00 FF`, then `00` |
//! | `0x46` | object | per field its type byte, name, `00`, component; then `00` |
//! | `0x50` | array | components; then `00` |
//! | `0x5A` | binary | length (1 byte, or `FF` and 4 bytes), subtype, bytes |
//! | `0x64` | ObjectId | 12 bytes |
//! | `0x6E`, `0x6F` | false, true | |
//! | `0x78` | date | 8 bytes, sign bit flipped |
//! | `0x82` | timestamp | time, increment (4 bytes each) |
//! | `0x8C` | regular expression | pattern, `00`, options, `00` |
//! | `0x96` | DBPointer | length (4 bytes), namespace, ObjectId |
//! | `0xA0`, `0xAA` | code, code with scope | as a string, then the fields of the scope and `00` |
//!
//! The type byte of a number is a class, mirrored around zero (`0x29`). NaN (`0x1E`) is below all;
//! bodies of negative numbers are inverted.
//!
//! | class | magnitudes | body |
//! |---|---|---|
//! | +1 | below 1 | 8 bytes: see `small` |
//! | +2..=+9 | 1 to below 2^63 | integral part times two (1 to 8 bytes), perhaps a fraction |
//! | +10 | 2^63 and more | 8 bytes: a double without its second bit, times two |
//!
//! The integral part has one added if a fraction follows; together they fill 8 bytes. All bits of
//! the body of infinity are one.
//!
//! A decimal that is no double and no integer is written as the nearest double with a continuation
//! of 8 bytes, the low half of its coefficient. MongoDB's continuations order such decimals, these
//! only distinguish them: no two events of one entry and collection have the same index, so the
//! order of their document keys does not matter.

use bson::spec::ElementType;
use bson::{Decimal128, RawArray, RawBsonRef, RawDocument, Timestamp, Uuid};
use query::Result;
use query::number::Number;
use query::value::encoded;

use crate::key;

const END: u8 = 0x04;
const MIN_KEY: u8 = 0x0A;
const UNDEFINED: u8 = 0x0F;
const NULL: u8 = 0x14;
const NAN: u8 = 0x1E;
const ZERO: u8 = 0x29;
const STRING: u8 = 0x3C;
const OBJECT: u8 = 0x46;
const ARRAY: u8 = 0x50;
const BINARY: u8 = 0x5A;
const OBJECT_ID: u8 = 0x64;
const FALSE: u8 = 0x6E;
const TRUE: u8 = 0x6F;
const DATE: u8 = 0x78;
const TIMESTAMP: u8 = 0x82;
const REGEX: u8 = 0x8C;
const DB_POINTER: u8 = 0x96;
const CODE: u8 = 0xA0;
const CODE_WITH_SCOPE: u8 = 0xAA;
const MAX_KEY: u8 = 0xF0;

const SMALL: u8 = 1;
/// The class of integral parts of one byte.
const INT_1: u8 = 2;
const INT_8: u8 = 9;
const BIG: u8 = 10;

/// 2^63: smaller integral parts have their own classes.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
/// 2^-255: the bits of smaller doubles are those of the number times 2^256.
const TWO_MINUS_255: f64 = f64::from_bits((1_023 - 255) << 52);
const TWO_256: f64 = f64::from_bits((1_023 + 256) << 52);
/// The second highest bit: in a large double it is one, in a small one zero.
const SECOND: u64 = 1 << 62;
/// The lowest bits of a fraction when a continuation follows.
const CONTINUED: u64 = 3;

/// Maximum nesting of objects and arrays: that of a stored document, with a margin.
const DEPTH_MAX: u32 = 256;
/// The length of a binary value that takes four more bytes.
const LONG: u8 = 0xFF;

/// A key string being written.
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer { bytes: Vec::new() }
    }

    /// A writer that continues after bytes without an end.
    pub(super) fn resume(bytes: &[u8]) -> Writer {
        let mut all = Vec::with_capacity(bytes.len() + 4);
        all.extend_from_slice(bytes);
        Writer { bytes: all }
    }

    /// Bytes written.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes, ended.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        self.bytes
    }

    pub(super) fn null(&mut self) {
        self.bytes.push(NULL);
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { TRUE } else { FALSE });
    }

    pub(super) fn timestamp(&mut self, value: Timestamp) {
        self.bytes.push(TIMESTAMP);
        self.bytes.extend_from_slice(&value.time.to_be_bytes());
        self.bytes.extend_from_slice(&value.increment.to_be_bytes());
    }

    pub(super) fn uuid(&mut self, uuid: Uuid) {
        self.binary(bson::spec::BinarySubtype::Uuid.into(), &uuid.bytes());
    }

    pub(super) fn integer(&mut self, value: i64) {
        let magnitude = value.unsigned_abs();
        match magnitude {
            0 => self.bytes.push(ZERO),
            // The least integer, which is a double.
            _ if magnitude >> 63 == 1 => self.double(-TWO_63, None),
            _ => self.integral(value < 0, magnitude << 1),
        }
    }

    pub(super) fn value(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        match value {
            RawBsonRef::Int32(v) => self.integer(i64::from(v)),
            RawBsonRef::Int64(v) => self.integer(v),
            RawBsonRef::Double(v) => self.double(v, None),
            RawBsonRef::Decimal128(v) => self.decimal(v),
            RawBsonRef::String(v) | RawBsonRef::Symbol(v) => self.string(STRING, v),
            RawBsonRef::Document(v) => {
                self.bytes.push(OBJECT);
                self.fields(v)?;
            }
            RawBsonRef::Array(v) => self.array(v)?,
            RawBsonRef::JavaScriptCodeWithScope(code) => {
                self.string(CODE_WITH_SCOPE, code.code);
                self.fields(code.scope)?;
            }
            other => self.plain(other),
        }
        Ok(())
    }

    /// Writes the types that have no parts.
    fn plain(&mut self, value: RawBsonRef<'_>) {
        let out = &mut self.bytes;
        match value {
            RawBsonRef::MinKey => out.push(MIN_KEY),
            RawBsonRef::MaxKey => out.push(MAX_KEY),
            RawBsonRef::Undefined => out.push(UNDEFINED),
            RawBsonRef::Boolean(value) => self.boolean(value),
            RawBsonRef::ObjectId(id) => {
                out.push(OBJECT_ID);
                out.extend_from_slice(&id.bytes());
            }
            RawBsonRef::DateTime(date) => {
                out.push(DATE);
                let flipped = date.timestamp_millis() ^ i64::MIN;
                out.extend_from_slice(&flipped.to_be_bytes());
            }
            RawBsonRef::Timestamp(stamp) => self.timestamp(stamp),
            RawBsonRef::Binary(binary) => self.binary(binary.subtype.into(), binary.bytes),
            RawBsonRef::RegularExpression(regex) => {
                out.push(REGEX);
                for part in [regex.pattern.as_str(), regex.options.as_str()] {
                    out.extend_from_slice(part.as_bytes());
                    out.push(0);
                }
            }
            RawBsonRef::JavaScriptCode(code) => self.string(CODE, code),
            RawBsonRef::DbPointer(_) => self.pointer(value),
            _ => self.null(),
        }
    }

    fn binary(&mut self, subtype: u8, bytes: &[u8]) {
        self.bytes.push(BINARY);
        match u8::try_from(bytes.len()) {
            Ok(length) if length != LONG => self.bytes.push(length),
            _ => {
                let length = u32::try_from(bytes.len()).expect("BSON counts in 32 bits");
                self.bytes.push(LONG);
                self.bytes.extend_from_slice(&length.to_be_bytes());
            }
        }
        self.bytes.push(subtype);
        self.bytes.extend_from_slice(bytes);
    }

    fn string(&mut self, kind: u8, text: &str) {
        self.bytes.push(kind);
        key::escape(&mut self.bytes, text.as_bytes());
    }

    fn fields(&mut self, document: &RawDocument) -> Result<()> {
        for element in document.iter_elements() {
            let element = element?;
            self.bytes.push(rank(element.element_type()));
            self.bytes
                .extend_from_slice(element.key().as_str().as_bytes());
            self.bytes.push(0);
            self.value(element.value()?)?;
        }
        self.bytes.push(0);
        Ok(())
    }

    fn array(&mut self, array: &RawArray) -> Result<()> {
        self.bytes.push(ARRAY);
        for value in array {
            self.value(value?)?;
        }
        self.bytes.push(0);
        Ok(())
    }

    fn pointer(&mut self, value: RawBsonRef<'_>) {
        // The length of the namespace, which includes its final zero, the namespace, the ObjectId.
        let bytes = encoded(value);
        let body = bytes.get(4..).unwrap_or_default();
        let (namespace, id) = body.split_at(body.len().saturating_sub(12));
        let namespace = namespace.strip_suffix(&[0]).unwrap_or(namespace);
        let length = u32::try_from(namespace.len()).expect("BSON counts in 32 bits");
        self.bytes.push(DB_POINTER);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(namespace);
        self.bytes.extend_from_slice(id);
    }

    fn decimal(&mut self, value: Decimal128) {
        let number = Number::Decimal(value);
        if let Some(integer) = number.to_i64_exact() {
            return self.integer(integer);
        }
        let nearest = number.to_f64();
        if query::number::compare(number, Number::Double(nearest)).is_eq() {
            return self.double(nearest, None);
        }
        let low = u128::from_le_bytes(value.bytes()) & u128::from(u64::MAX);
        let low = u64::try_from(low).expect("its low 64 bits");
        self.double(nearest, Some(low));
    }

    /// Writes a double, or the nearest double of a decimal and its continuation.
    fn double(&mut self, value: f64, more: Option<u64>) {
        if value.is_nan() {
            return self.bytes.push(NAN);
        }
        if value == 0.0 && more.is_none() {
            return self.bytes.push(ZERO);
        }
        let (negative, magnitude) = (value.is_sign_negative(), value.abs());
        let flag = u64::from(more.is_some());
        if magnitude < 1.0 {
            self.class(negative, SMALL, &small(magnitude, more).to_be_bytes());
        } else if magnitude < TWO_63 {
            self.fraction(negative, magnitude, more);
        } else {
            let encoded = match more {
                None if magnitude.is_infinite() => u64::MAX,
                // A decimal beyond all doubles.
                Some(_) if magnitude.is_infinite() => 1 << 63,
                _ => (magnitude.to_bits() & !SECOND) << 1 | flag,
            };
            self.class(negative, BIG, &encoded.to_be_bytes());
        }
        if let Some(more) = more {
            let more = if negative { !more } else { more };
            self.bytes.extend_from_slice(&more.to_be_bytes());
        }
    }

    /// Writes a magnitude of 1 to 2^63, without its continuation.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "each conversion is of an integral double in the range of u64"
    )]
    fn fraction(&mut self, negative: bool, magnitude: f64, more: Option<u64>) {
        let whole = magnitude.trunc() as u64;
        if magnitude.fract() == 0.0 && more.is_none() {
            return self.integral(negative, whole << 1);
        }
        let encoded = whole << 1 | 1;
        self.integral(negative, encoded);
        // A double has at most 52 bits after the point, so the lowest two bits are free.
        let count = 8 - length_of(encoded);
        let unit = f64::from(u32::try_from(8 * count).expect("at most 56")).exp2();
        let bits = (magnitude.fract() * unit) as u64;
        let bits = if more.is_some() {
            bits | CONTINUED
        } else {
            bits
        };
        let bits = if negative { !bits } else { bits };
        let bytes = bits.to_be_bytes();
        self.bytes
            .extend_from_slice(bytes.get(8 - count..).unwrap_or_default());
    }

    /// Writes the class and the bytes of an integral part that is shifted by one.
    fn integral(&mut self, negative: bool, shifted: u64) {
        let length = length_of(shifted);
        let class = INT_1 + u8::try_from(length - 1).expect("at most 8");
        let bytes = shifted.to_be_bytes();
        self.class(negative, class, bytes.get(8 - length..).unwrap_or_default());
    }

    fn class(&mut self, negative: bool, class: u8, body: &[u8]) {
        if negative {
            self.bytes.push(ZERO - class);
            self.bytes.extend(body.iter().map(|byte| !byte));
        } else {
            self.bytes.push(ZERO + class);
            self.bytes.extend_from_slice(body);
        }
    }
}

/// Bytes that a number takes, at least one.
fn length_of(number: u64) -> usize {
    let bits = 64 - number.leading_zeros();
    usize::try_from(bits.div_ceil(8).max(1)).expect("at most 8")
}

/// The body of a magnitude below 1. The two highest bits are 11 for a double from 2^-255: the
/// others are its bits without the two highest, which are zero. They are 01 or 10 for smaller
/// doubles, and 00 for a decimal below all doubles.
fn small(magnitude: f64, more: Option<u64>) -> u64 {
    if magnitude == 0.0 {
        return 0;
    }
    if TWO_MINUS_255 <= magnitude {
        let low = if more.is_some() { CONTINUED } else { 0 };
        return magnitude.to_bits() << 2 | low;
    }
    let scaled = (magnitude * TWO_256).to_bits();
    (scaled << 1 | u64::from(more.is_some())) + SECOND
}

/// The type byte before the name of a field: one for all numbers, and one for both booleans.
fn rank(kind: ElementType) -> u8 {
    match kind {
        ElementType::MinKey => MIN_KEY,
        ElementType::MaxKey => MAX_KEY,
        ElementType::Undefined => UNDEFINED,
        ElementType::Null => NULL,
        ElementType::Int32 | ElementType::Int64 | ElementType::Double | ElementType::Decimal128 => {
            NAN
        }
        ElementType::String | ElementType::Symbol => STRING,
        ElementType::EmbeddedDocument => OBJECT,
        ElementType::Array => ARRAY,
        ElementType::Binary => BINARY,
        ElementType::ObjectId => OBJECT_ID,
        ElementType::Boolean => FALSE,
        ElementType::DateTime => DATE,
        ElementType::Timestamp => TIMESTAMP,
        ElementType::RegularExpression => REGEX,
        ElementType::DbPointer => DB_POINTER,
        ElementType::JavaScriptCode => CODE,
        ElementType::JavaScriptCodeWithScope => CODE_WITH_SCOPE,
    }
}

/// Reads a key string from bytes of a client. `None` everywhere means that the bytes are something
/// else.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Bytes that are not read yet.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether only the end follows.
    pub(super) fn at_end(&self) -> bool {
        self.rest == [END]
    }

    pub(super) fn timestamp(&mut self) -> Option<Timestamp> {
        self.expect(TIMESTAMP)?;
        Some(Timestamp {
            time: u32::from_be_bytes(self.array()?),
            increment: u32::from_be_bytes(self.array()?),
        })
    }

    pub(super) fn boolean(&mut self) -> Option<bool> {
        match self.byte()? {
            FALSE => Some(false),
            TRUE => Some(true),
            _ => None,
        }
    }

    pub(super) fn null(&mut self) -> Option<()> {
        self.expect(NULL)
    }

    pub(super) fn uuid_or_null(&mut self) -> Option<Option<Uuid>> {
        if self.rest.first() == Some(&NULL) {
            return self.null().map(|()| None);
        }
        self.expect(BINARY)?;
        self.expect(16)?;
        self.expect(bson::spec::BinarySubtype::Uuid.into())?;
        Some(Some(Uuid::from_bytes(self.array()?)))
    }

    /// An integer of at most 55 bits, in the only form that the writer gives it. If it is
    /// something else, nothing is read.
    pub(super) fn integer(&mut self) -> Option<i64> {
        let before = self.rest;
        let found = self.integer_of_any_form().filter(|found| {
            let mut writer = Writer::new();
            writer.integer(*found);
            before.starts_with(&writer.bytes)
        });
        if found.is_none() {
            self.rest = before;
        }
        found
    }

    fn integer_of_any_form(&mut self) -> Option<i64> {
        let first = self.byte()?;
        let (negative, class) = (first < ZERO, first.abs_diff(ZERO));
        if class == 0 {
            return Some(0);
        }
        if !(INT_1..INT_8).contains(&class) {
            return None;
        }
        let mut value: i64 = 0;
        for _ in INT_1..=class {
            let byte = self.byte()?;
            value = value << 8 | i64::from(if negative { !byte } else { byte });
        }
        let whole = value >> 1;
        (value & 1 == 0).then_some(if negative { -whole } else { whole })
    }

    /// Passes over a component of any type.
    pub(super) fn pass_value(&mut self) -> Option<()> {
        self.component(0)
    }

    fn component(&mut self, depth: u32) -> Option<()> {
        if DEPTH_MAX < depth {
            return None;
        }
        match self.byte()? {
            MIN_KEY | UNDEFINED | NULL | NAN | ZERO | FALSE | TRUE | MAX_KEY => Some(()),
            first @ NAN..STRING => self.number(first),
            STRING | CODE => self.text(),
            CODE_WITH_SCOPE => {
                self.text()?;
                self.object(depth)
            }
            OBJECT => self.object(depth),
            ARRAY => {
                while self.rest.first() != Some(&0) {
                    self.component(depth + 1)?;
                }
                self.expect(0)
            }
            BINARY => {
                let length = match self.byte()? {
                    LONG => u32::from_be_bytes(self.array()?),
                    length => u32::from(length),
                };
                self.byte()?;
                self.pass(usize::try_from(length).ok()?)
            }
            OBJECT_ID => self.pass(12),
            DATE | TIMESTAMP => self.pass(8),
            REGEX => {
                self.name()?;
                self.name()
            }
            DB_POINTER => {
                let length = u32::from_be_bytes(self.array()?);
                self.pass(usize::try_from(length).ok()?.checked_add(12)?)
            }
            _ => None,
        }
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        while self.byte()? != 0 {
            self.name()?;
            self.component(depth + 1)?;
        }
        Some(())
    }

    fn number(&mut self, first: u8) -> Option<()> {
        let negative = first < ZERO;
        let class = first.abs_diff(ZERO);
        let word = |bytes: [u8; 8]| {
            let word = u64::from_be_bytes(bytes);
            if negative { !word } else { word }
        };
        let continued = match class {
            SMALL => {
                let word = word(self.array()?);
                word >> 62 == 0 || word & 1 == 1
            }
            INT_1..=INT_8 => {
                let length = usize::from(class - INT_1) + 1;
                let invert = if negative { 0xFF } else { 0 };
                let last = *self.rest.get(length - 1)? ^ invert;
                self.pass(length)?;
                if last & 1 == 0 {
                    return Some(());
                }
                let low = match 8 - length {
                    0 => 1,
                    count => *self.rest.get(count - 1)? ^ invert,
                };
                self.pass(8 - length)?;
                low & 1 == 1
            }
            BIG => {
                let word = word(self.array()?);
                let double = word >> 63 == 0;
                if double {
                    word & 1 == 1
                } else {
                    word != u64::MAX
                }
            }
            _ => return None,
        };
        if continued { self.pass(8) } else { Some(()) }
    }

    /// Passes over escaped text and its end.
    fn text(&mut self) -> Option<()> {
        loop {
            self.name()?;
            if self.rest.first() != Some(&0xFF) {
                return Some(());
            }
            self.pass(1)?;
        }
    }

    /// Passes over text without zeros and its end.
    fn name(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        self.pass(end + 1)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.byte()? == byte).then_some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn pass(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.get(count..)?;
        Some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*first)
    }
}

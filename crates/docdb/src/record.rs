//! The identity of a document within its collection, which its index entries point to.
//!
//! A record id is a number that increases in the order of insertion and is never used again, or, in
//! a clustered collection, the key string of `_id`.
//!
//! Three forms, each in the order of the records:
//!
//! - The key in the records tree: 8 bytes big-endian, or the key string.
//! - The suffix of an index entry, readable from its end. Of a number: `2 + n` bytes, with `n` of
//!   0 to 7: three bits of `n`, five bits and `n` bytes of the number, its lowest five bits and `n`
//!   again. Of a key string: the string and its length (2 bytes).

use std::fmt;

/// The identity of a document within its collection.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(Form);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    Number(i64),
    Key(Box<[u8]>),
}

impl RecordId {
    /// The record id of a number, which must be positive.
    #[must_use]
    pub fn number(number: i64) -> RecordId {
        debug_assert!(0 <= number, "record numbers are positive: {number}");
        RecordId(Form::Number(number))
    }

    /// The record id of a clustered collection.
    #[must_use]
    pub fn clustered(key: &[u8]) -> RecordId {
        RecordId(Form::Key(key.into()))
    }

    /// The number; `None` in clustered collections.
    #[must_use]
    pub fn as_number(&self) -> Option<i64> {
        match self.0 {
            Form::Number(number) => Some(number),
            Form::Key(_) => None,
        }
    }

    /// Append the key of the records tree.
    pub fn append_key(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Number(number) => out.extend_from_slice(&number.to_be_bytes()),
            Form::Key(key) => out.extend_from_slice(key),
        }
    }

    /// The key of the records tree.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(8);
        self.append_key(&mut key);
        key
    }

    /// Decode a key of the records tree. `None` if it is invalid.
    #[must_use]
    pub fn from_key(key: &[u8], clustered: bool) -> Option<RecordId> {
        if clustered {
            return Some(RecordId::clustered(key));
        }
        let number = i64::from_be_bytes(key.try_into().ok()?);
        (0 <= number).then(|| RecordId::number(number))
    }

    /// Append the suffix of an index entry.
    pub fn append_suffix(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Number(number) => append_number(number.unsigned_abs(), out),
            Form::Key(key) => {
                out.extend_from_slice(key);
                let length = u16::try_from(key.len()).expect("keys of engines have less");
                out.extend_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Decode the suffix at the end of `bytes`; also returns the bytes before it.
    #[must_use]
    pub fn split_suffix(bytes: &[u8], clustered: bool) -> Option<(&[u8], RecordId)> {
        if clustered {
            let (rest, length) = bytes.split_last_chunk()?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (rest, key) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
            return Some((rest, RecordId::clustered(key)));
        }
        let last = *bytes.last()?;
        let middle = usize::from(last & 7);
        let (rest, suffix) = bytes.split_at_checked(bytes.len().checked_sub(middle + 2)?)?;
        let (first, suffix) = suffix.split_first()?;
        let mut number = u64::from(first & 0x1F);
        for byte in suffix.iter().take(middle) {
            number = (number << 8) | u64::from(*byte);
        }
        let number = number.checked_mul(32)? | u64::from(last >> 3);
        let number = i64::try_from(number).ok()?;
        Some((rest, RecordId::number(number)))
    }
}

#[inline]
fn append_number(number: u64, out: &mut Vec<u8>) {
    let bits = 64 - number.leading_zeros();
    // Ten bits are in the first and the last byte.
    let middle = bits.saturating_sub(10).div_ceil(8);
    let [.., low] = number.to_be_bytes();
    let high = number >> 5;
    let tag = u8::try_from(middle).expect("at most 7");
    let top = high.checked_shr(8 * middle).unwrap_or(0).to_be_bytes();
    let [.., top] = top;
    out.push((tag << 5) | (top & 0x1F));
    let bytes = high.to_be_bytes();
    out.extend_from_slice(bytes.get(8 - middle as usize..).unwrap_or_default());
    out.push((low << 3) | tag);
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(number) => write!(f, "RecordId({number})"),
            Form::Key(key) => write!(f, "RecordId(\"{}\")", key.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_in_order_and_read_from_the_end() {
        let mut numbers: Vec<i64> = vec![0, 1, 31, 32, 1023, 1024, i64::MAX];
        for shift in 0..62 {
            numbers.extend([(1 << shift) - 1, 1 << shift, (1 << shift) + 1]);
        }
        numbers.sort_unstable();
        let mut before = Vec::new();
        for (index, number) in numbers.iter().enumerate() {
            let id = RecordId::number(*number);
            let mut suffix = Vec::new();
            id.append_suffix(&mut suffix);
            if 0 < index && numbers[index - 1] != *number {
                assert!(before < suffix, "{number}");
            }
            let whole = [b"key", suffix.as_slice()].concat();
            let split = RecordId::split_suffix(&whole, false);
            assert_eq!(split, Some((&b"key"[..], id.clone())));
            assert_eq!(RecordId::from_key(&id.key(), false), Some(id));
            before = suffix;
        }
    }

    #[test]
    fn clustered_suffixes_are_read_from_the_end() {
        let id = RecordId::clustered(b"abc");
        let mut whole = b"key".to_vec();
        id.append_suffix(&mut whole);
        assert_eq!(
            RecordId::split_suffix(&whole, true),
            Some((&b"key"[..], id))
        );
        assert_eq!(RecordId::split_suffix(b"\xFF\xFF", true), None);
    }
}

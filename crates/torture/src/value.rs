//! Values: the writer, its commit, a checksum that includes the key, and bytes that depend on
//! these.
//!
//! ```text
//!  writer u32 | length u32 | counter u64 | check u64 | body: length - 24 bytes
//! ```
//! All little-endian. The check covers tree, key, writer, counter and length; every second group of
//! eight bytes of the body is random (from the check), the others are zero, so that it compresses
//! by about half. I1: bytes decode to a stamp only if they are exactly what that stamp encodes to.

use std::fmt;

use serde::{Deserialize, Serialize};
use stdx::rng::mix64;

use crate::key::Key;

/// The shortest value, in bytes.
pub const VALUE_MIN: u32 = 24;

/// The longest value, in bytes: many pages of any engine.
pub const VALUE_MAX: u32 = 48 << 10;

/// The author of a value: the writer and its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// The writer.
    pub writer: u32,
    /// The counter of the commit.
    pub counter: u64,
    /// The length of the value, in bytes.
    pub len: u32,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({} bytes)", self.writer, self.counter, self.len)
    }
}

/// Replaces `out` by the value that `stamp` writes under `key`.
pub fn encode(key: Key, stamp: Stamp, out: &mut Vec<u8>) {
    assert!(VALUE_MIN <= stamp.len, "I1: a value holds its stamp");
    assert!(stamp.len <= VALUE_MAX, "I1: a value is not too long");
    let len = stamp.len as usize;
    let check = check(key, stamp);
    out.clear();
    out.extend_from_slice(&stamp.writer.to_le_bytes());
    out.extend_from_slice(&stamp.len.to_le_bytes());
    out.extend_from_slice(&stamp.counter.to_le_bytes());
    out.extend_from_slice(&check.to_le_bytes());
    let mut group = 0_u64;
    while out.len() < len {
        out.extend_from_slice(&mix64(check ^ group).to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        group += 1;
    }
    out.truncate(len);
}

fn check(key: Key, stamp: Stamp) -> u64 {
    let place = mix64(key.id ^ mix64(u64::from(key.tree)));
    let author = mix64(stamp.counter ^ mix64(u64::from(stamp.writer)));
    mix64(place ^ author.rotate_left(17) ^ (u64::from(stamp.len) << 20))
}

/// The author of `bytes` under `key`.
///
/// # Errors
/// A description of the bytes, if no writer wrote them under `key`.
pub fn decode(key: Key, bytes: &[u8]) -> Result<Stamp, String> {
    let stamp = read(bytes).ok_or_else(|| format!("{} bytes are no stamp", bytes.len()))?;
    let fits = (VALUE_MIN..=VALUE_MAX).contains(&stamp.len) && stamp.len as usize == bytes.len();
    if !fits {
        return Err(format!("{} bytes are stamped {stamp}", bytes.len()));
    }
    let mut expected = Vec::with_capacity(bytes.len());
    encode(key, stamp, &mut expected);
    let wrong = expected.iter().zip(bytes).position(|(a, b)| a != b);
    match wrong {
        None => Ok(stamp),
        Some(at) => Err(format!(
            "stamped {stamp}, but byte {at} is not what that commit wrote under this key"
        )),
    }
}

fn read(bytes: &[u8]) -> Option<Stamp> {
    let (writer, rest) = bytes.split_first_chunk::<4>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (counter, _) = rest.split_first_chunk::<8>()?;
    Some(Stamp {
        writer: u32::from_le_bytes(*writer),
        counter: u64::from_le_bytes(*counter),
        len: u32::from_le_bytes(*len),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(len: u32) -> Stamp {
        Stamp {
            writer: 3,
            counter: 99,
            len,
        }
    }

    #[test]
    fn a_value_names_its_author() {
        let key = Key::hot(1, 4);
        for len in [VALUE_MIN, 25, 40, 41, 1000, VALUE_MAX] {
            let mut bytes = Vec::new();
            encode(key, stamp(len), &mut bytes);
            assert_eq!(bytes.len(), len as usize);
            assert_eq!(decode(key, &bytes), Ok(stamp(len)));
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let key = Key::hot(1, 4);
        let mut bytes = Vec::new();
        encode(key, stamp(100), &mut bytes);
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x10;
            assert!(decode(key, &wrong).is_err(), "byte {at}");
        }
        assert!(decode(Key::hot(1, 5), &bytes).is_err(), "another key");
        assert!(decode(Key::hot(2, 4), &bytes).is_err(), "another tree");
        assert!(decode(key, &bytes[..99]).is_err(), "a byte short");
        assert!(decode(key, b"").is_err());
    }
}

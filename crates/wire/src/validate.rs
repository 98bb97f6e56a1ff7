//! Checks every byte of a document from a peer, so that other code can rely on it (W1).
//!
//! The crate `bson` iterates a valid document without an error: inner lengths fit into outer ones,
//! strings and names are UTF-8 and end at their declared length, every type is known. The
//! specification is bsonspec.org, version 1.1; deprecated types are accepted, because they can be
//! stored and returned.

use crate::error::{Error, Result};
use crate::header::read_i32;
use crate::limits::MAX_DEPTH;

/// Size of an empty document: its length and its final zero byte.
const EMPTY: usize = 5;

/// Check the document at the beginning of `bytes`, and ignore what follows. Returns its length.
///
/// # Errors
/// [`Error::Bson`] and [`Error::Depth`].
pub fn validate(bytes: &[u8]) -> Result<usize> {
    let mut reader = Reader { bytes, at: 0 };
    reader.document(1)?;
    Ok(reader.at)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn error<T>(&self, what: &'static str) -> Result<T> {
        Err(Error::Bson { what, at: self.at })
    }

    /// Checks a document or an array, from its length to its final zero byte.
    fn document(&mut self, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::Depth);
        }
        let start = self.at;
        let length = self.length()?;
        let end = start.saturating_add(length);
        if length < EMPTY || end > self.bytes.len() {
            return self.error("the length of a document does not fit");
        }
        let last = end.saturating_sub(1);
        while self.at < last {
            self.element(depth)?;
        }
        if self.at != last || self.bytes.get(last) != Some(&0) {
            return self.error("a document does not end where its length says");
        }
        self.at = end;
        Ok(())
    }

    fn element(&mut self, depth: usize) -> Result<()> {
        let kind = self.byte()?;
        self.name()?;
        match kind {
            0x01 | 0x09 | 0x11 | 0x12 => self.skip(8),
            0x02 | 0x0D | 0x0E => self.string(),
            0x03 | 0x04 => self.document(depth.saturating_add(1)),
            0x05 => self.binary(),
            0x06 | 0x0A | 0x7F | 0xFF => Ok(()),
            0x07 => self.skip(12),
            0x08 => match self.byte()? {
                0 | 1 => Ok(()),
                _ => self.error("a boolean is neither 0 nor 1"),
            },
            0x0B => self.name().and_then(|()| self.name()),
            0x0C => self.string().and_then(|()| self.skip(12)),
            0x0F => self.code_with_scope(depth),
            0x10 => self.skip(4),
            0x13 => self.skip(16),
            _ => self.error("an unknown type"),
        }
    }

    fn byte(&mut self) -> Result<u8> {
        let Some(&byte) = self.bytes.get(self.at) else {
            return self.error("the bytes end too early");
        };
        self.at = self.at.saturating_add(1);
        Ok(byte)
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        let end = self.at.saturating_add(count);
        if end > self.bytes.len() {
            return self.error("the bytes end too early");
        }
        self.at = end;
        Ok(())
    }

    fn length(&mut self) -> Result<usize> {
        let Some(length) = read_i32(self.bytes, self.at) else {
            return self.error("the bytes end too early");
        };
        let Ok(length) = usize::try_from(length) else {
            return self.error("a negative length");
        };
        self.at = self.at.saturating_add(4);
        Ok(length)
    }

    /// Checks a name or a part of a regular expression: UTF-8 up to a zero byte.
    fn name(&mut self) -> Result<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(length) = rest.iter().position(|&byte| byte == 0) else {
            return self.error("a name without an end");
        };
        let text = rest.get(..length).unwrap_or_default();
        if !text.is_ascii() && std::str::from_utf8(text).is_err() {
            return self.error("a name is not UTF-8");
        }
        self.skip(length.saturating_add(1))
    }

    fn string(&mut self) -> Result<()> {
        let length = self.length()?;
        let start = self.at;
        self.skip(length)?;
        match self.bytes.get(start..self.at) {
            Some([text @ .., 0]) if std::str::from_utf8(text).is_ok() => Ok(()),
            Some([_, .., 0]) => self.error("a string is not UTF-8"),
            _ => self.error("a string does not end where its length says"),
        }
    }

    fn binary(&mut self) -> Result<()> {
        let length = self.length()?;
        let subtype = self.byte()?;
        if subtype == 2 {
            // The old subtype of binary data has a second length inside the data.
            let inner = read_i32(self.bytes, self.at).and_then(|n| usize::try_from(n).ok());
            if inner.and_then(|inner| inner.checked_add(4)) != Some(length) {
                return self.error("the lengths of binary data of subtype 2 differ");
            }
        }
        self.skip(length)
    }

    fn code_with_scope(&mut self, depth: usize) -> Result<()> {
        let start = self.at;
        let length = self.length()?;
        self.string()?;
        self.document(depth.saturating_add(1))?;
        if self.at != start.saturating_add(length) {
            return self.error("code with scope does not end where its length says");
        }
        Ok(())
    }
}

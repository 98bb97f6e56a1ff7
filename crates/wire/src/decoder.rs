//! Divides a stream of bytes into messages, wherever the network has split it.
//!
//! The usual case, a client that sends one message and waits, needs no copy: the read buffer
//! becomes the frame.
//!
//! Received bytes may have a password. Where they are copied, the original is overwritten if it is
//! as short as messages with passwords are; a test of the program reads its memory.

use std::mem;

use zeroize::Zeroize as _;

use crate::error::{Error, Result};
use crate::header::Header;
use crate::limits::{HEADER, MAX_MESSAGE, SECRET_MESSAGE};

/// Maximum space that is allocated in advance of received bytes. The buffer grows as bytes arrive,
/// so a peer that announces a long message and does not send it (W2) occupies little memory.
const AHEAD: usize = 1 << 20;

/// Space for a message whose length is not known yet; most commands fit.
const FIRST: usize = 4096;

/// A complete message: the decoded header, and all bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The decoded header.
    pub header: Header,
    /// The bytes of the message, including the header.
    pub bytes: Vec<u8>,
}

/// A buffer of received bytes, which is divided into messages.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    /// A decoder with an empty buffer.
    #[must_use]
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The buffer for received bytes, with space for the bytes that are expected next.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.room_ahead(AHEAD)
    }

    /// As [`Decoder::room`], with space for at most `ahead` bytes in addition to those received.
    pub fn room_ahead(&mut self, ahead: usize) -> &mut Vec<u8> {
        let missing = match self.header() {
            Some(Ok(header)) => header.length.saturating_sub(self.buffer.len()),
            _ => FIRST,
        };
        self.reserve(missing.clamp(FIRST / 4, ahead.max(FIRST / 4)));
        &mut self.buffer
    }

    /// Makes space for `more` bytes; short bytes that move are overwritten.
    fn reserve(&mut self, more: usize) {
        let (length, capacity) = (self.buffer.len(), self.buffer.capacity());
        if capacity - length < more && 0 < length && capacity <= SECRET_MESSAGE {
            let mut grown = Vec::with_capacity((length + more).max(2 * capacity));
            grown.extend_from_slice(&self.buffer);
            mem::replace(&mut self.buffer, grown).zeroize();
        } else {
            self.buffer.reserve(more);
        }
    }

    /// The buffer for received bytes, without allocating space; call [`Decoder::room`] before.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Append received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Number of bytes buffered.
    #[must_use]
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Size of the buffer's memory, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Whether the buffer has bytes of an unfinished message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next message, if it is complete.
    ///
    /// # Errors
    /// The errors of [`Header::decode`]; after an error the rest of the stream is unusable.
    pub fn frame(&mut self) -> Result<Option<Frame>> {
        self.frame_within(MAX_MESSAGE)
    }

    /// The next message, if it is complete. A message longer than `limit` bytes is refused as soon
    /// as its header has arrived.
    ///
    /// # Errors
    /// [`Error::Limit`]; the errors of [`Header::decode`]. After an error the rest of the stream is
    /// unusable.
    pub fn frame_within(&mut self, limit: usize) -> Result<Option<Frame>> {
        let header = match self.header() {
            None => return Ok(None),
            Some(header) => header?,
        };
        if limit < header.length {
            return Err(Error::Limit {
                length: header.length,
                limit,
            });
        }
        if self.buffer.len() < header.length {
            return Ok(None);
        }
        let rest = self.buffer.get(header.length..).unwrap_or_default();
        let rest = rest.to_vec();
        if let Some(copied) = self.buffer.get_mut(header.length..) {
            copied.zeroize();
        }
        self.buffer.truncate(header.length);
        let bytes = mem::replace(&mut self.buffer, rest);
        Ok(Some(Frame { header, bytes }))
    }

    fn header(&self) -> Option<Result<Header>> {
        let bytes: &[u8; HEADER] = self.buffer.first_chunk()?;
        Some(Header::decode(bytes))
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        if self.buffer.len() <= SECRET_MESSAGE {
            self.buffer.zeroize();
        }
    }
}

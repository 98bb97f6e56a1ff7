//! Divides a stream of bytes into messages, however the network split it.
//!
//! The usual case, a client that sends one message and waits, needs no copy: the read buffer
//! becomes the frame.

use crate::error::{Error, Result};
use crate::header::Header;
use crate::limits::{HEADER, MAX_MESSAGE};

/// Maximum space allocated ahead of the bytes received, so that a peer that only announces a long
/// message (W2) occupies little memory; the buffer grows as bytes arrive.
const AHEAD: usize = 1 << 20;

/// Space for a message before its length is known: most commands fit.
const FIRST: usize = 4096;

/// One complete message: its header, and all of its bytes including the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its head.
    pub header: Header,
    /// Its bytes, including the header.
    pub bytes: Vec<u8>,
}

/// A stream of bytes, divided into messages.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    /// An empty stream.
    #[must_use]
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The buffer to append to, with space for the next expected bytes.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.room_ahead(AHEAD)
    }

    /// As [`Decoder::room`], with space for at most `ahead` bytes beyond those received.
    pub fn room_ahead(&mut self, ahead: usize) -> &mut Vec<u8> {
        let missing = match self.header() {
            Some(Ok(header)) => header.length.saturating_sub(self.buffer.len()),
            _ => FIRST,
        };
        self.buffer
            .reserve(missing.clamp(FIRST / 4, ahead.max(FIRST / 4)));
        &mut self.buffer
    }

    /// The buffer to append to, without allocating; call [`Decoder::room`] before.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Append received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Number of bytes buffered.
    #[must_use]
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes of memory the buffer occupies.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Whether bytes of an unfinished message are held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next message, if it is complete.
    ///
    /// # Errors
    /// Those of [`Header::decode`]; the stream cannot be followed any further.
    pub fn frame(&mut self) -> Result<Option<Frame>> {
        self.frame_within(MAX_MESSAGE)
    }

    /// The next message, if it is complete. A message longer than `limit` bytes is refused as soon
    /// as its header has arrived.
    ///
    /// # Errors
    /// [`Error::Limit`]; those of [`Header::decode`]. The stream cannot be followed any further.
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
        let rest = self.buffer.split_off(header.length);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        Ok(Some(Frame { header, bytes }))
    }

    fn header(&self) -> Option<Result<Header>> {
        let bytes: &[u8; HEADER] = self.buffer.first_chunk()?;
        Some(Header::decode(bytes))
    }
}

//! The header of every message, sixteen bytes: four little-endian 32-bit integers. They are the
//! length of the message including the header, its number, the number of the request to which it
//! replies, and the operation code.

use crate::error::{Error, Result};
use crate::limits::{HEADER, MAX_MESSAGE};

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpCode {
    /// The reply to an [`OpCode::Query`].
    Reply,
    /// The legacy request; drivers use it only for the first `hello` of a connection.
    Query,
    /// Another message in compressed form.
    Compressed,
    /// A command or its reply.
    Message,
}

impl OpCode {
    /// The operation code.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            OpCode::Reply => 1,
            OpCode::Query => 2004,
            OpCode::Compressed => 2012,
            OpCode::Message => 2013,
        }
    }

    /// The kind of message for an operation code.
    ///
    /// # Errors
    /// [`Error::OpCode`] when this server does not support it.
    pub fn of(number: i32) -> Result<OpCode> {
        match number {
            1 => Ok(OpCode::Reply),
            2004 => Ok(OpCode::Query),
            2012 => Ok(OpCode::Compressed),
            2013 => Ok(OpCode::Message),
            other => Err(Error::OpCode(other)),
        }
    }
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Length of the message in bytes, including the header.
    pub length: usize,
    /// The number that the sender chose; the reply refers to it.
    pub request_id: i32,
    /// The number of the request to which this message replies, or 0.
    pub response_to: i32,
    /// The kind of the message.
    pub op_code: OpCode,
}

impl Header {
    /// Decode a header.
    ///
    /// # Errors
    /// [`Error::Length`] and [`Error::OpCode`].
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Header> {
        let at = |i: usize| read_i32(bytes, i).unwrap_or_default();
        let announced = at(0);
        let length = usize::try_from(announced).unwrap_or(0);
        if !(HEADER..=MAX_MESSAGE).contains(&length) {
            return Err(Error::Length(announced));
        }
        Ok(Header {
            length,
            request_id: at(4),
            response_to: at(8),
            op_code: OpCode::of(at(12))?,
        })
    }

    /// The encoded header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER] {
        let length = i32::try_from(self.length).expect("a message is no longer than its limit");
        let mut bytes = [0; HEADER];
        let numbers = [
            length,
            self.request_id,
            self.response_to,
            self.op_code.number(),
        ];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

/// The integer at offset `at`; `None` if the bytes end before or within it.
pub(crate) fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

//! `OP_QUERY`, as far as drivers still use it: the first `hello` of many drivers, and its
//! `OP_REPLY`.
//!
//! ```text
//! int32 flags | cstring namespace | int32 skip | int32 return | document query | [document fields]
//! ```

use bson::RawDocument;

use crate::decoder::Frame;
use crate::error::{Error, Result};
use crate::header::{Header, OpCode};
use crate::limits::HEADER;
use crate::message::Message;
use crate::validate::validate;

/// Flag of a reply: the server can wait for data. Always set since MongoDB 1.6.
const AWAIT_CAPABLE: i32 = 8;

/// A legacy query.
#[derive(Debug)]
pub struct Query {
    /// `DATABASE.$cmd` for a command.
    pub namespace: String,
    /// The command, converted to an `OP_MSG` message.
    pub message: Message,
}

impl Query {
    /// Find and check the parts.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Bson`], [`Error::Depth`].
    pub fn decode(frame: Frame) -> Result<Query> {
        let Frame { header, bytes } = frame;
        let start = HEADER.saturating_add(4);
        let rest = bytes.get(start..).ok_or(Error::Malformed("no flags"))?;
        let length = rest.iter().position(|&byte| byte == 0);
        let text = length.and_then(|length| std::str::from_utf8(rest.get(..length)?).ok());
        let namespace = text.ok_or(Error::Malformed("no namespace"))?.to_owned();
        // After the name: its terminator, and two numbers that commands do not use.
        let at = start.saturating_add(namespace.len()).saturating_add(9);
        let length = validate(bytes.get(at..).unwrap_or_default())?;
        let message = Message::of_body(header, bytes, at..at.saturating_add(length));
        Ok(Query { namespace, message })
    }

    /// The database, when this is a command.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.namespace.strip_suffix(".$cmd")
    }
}

/// The answer to a query: one document.
#[must_use]
pub fn reply(request_id: i32, response_to: i32, document: &RawDocument) -> Vec<u8> {
    let document = document.as_bytes();
    let length = document.len().saturating_add(HEADER).saturating_add(20);
    let header = Header {
        length,
        request_id,
        response_to,
        op_code: OpCode::Reply,
    };
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&header.encode());
    bytes.extend_from_slice(&AWAIT_CAPABLE.to_le_bytes());
    bytes.extend_from_slice(&0_i64.to_le_bytes());
    bytes.extend_from_slice(&0_i32.to_le_bytes());
    bytes.extend_from_slice(&1_i32.to_le_bytes());
    bytes.extend_from_slice(document);
    bytes
}

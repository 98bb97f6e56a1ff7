//! `OP_QUERY` and its `OP_REPLY`, to the extent that drivers still use them: many send their first
//! `hello` this way.
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

/// Flag of a reply: the server can wait for data. MongoDB has always set it since version 1.6.
const AWAIT_CAPABLE: i32 = 8;

/// A legacy query.
#[derive(Debug)]
pub struct Query {
    /// The namespace: `DATABASE.$cmd` for a command.
    pub namespace: String,
    /// The command, converted to an `OP_MSG` message.
    pub message: Message,
}

impl Query {
    /// Find and check the parts of a query.
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
        // The document starts after the namespace, its terminating zero byte, and two integers that
        // commands do not use.
        let at = start.saturating_add(namespace.len()).saturating_add(9);
        let length = validate(bytes.get(at..).unwrap_or_default())?;
        let message = Message::of_body(header, bytes, at..at.saturating_add(length));
        Ok(Query { namespace, message })
    }

    /// The database, if the query is a command.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.namespace.strip_suffix(".$cmd")
    }
}

/// The reply to a query, with one document.
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

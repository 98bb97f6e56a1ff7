//! Errors of messages from a peer, and whether the connection can continue after them.

use crate::limits::{MAX_DEPTH, MAX_MESSAGE, MAX_SEQUENCES};

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message is shorter than a header or longer than the protocol allows.
    #[error("message length {0} is not between 16 and {MAX_MESSAGE}")]
    Length(i32),
    /// The message is longer than the current limit of this connection.
    #[error("message length {length} exceeds the limit of {limit} bytes for this connection")]
    Limit {
        /// Length of the message in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The server does not support this operation code.
    #[error("unsupported operation code {0}")]
    OpCode(i32),
    /// One of the required flags is unknown.
    #[error("Message contains illegal flags value: Ob{0:b}")]
    Flags(u32),
    /// The checksum does not match the bytes.
    #[error("OP_MSG checksum does not match contents")]
    Checksum,
    /// The parts of the message contradict each other.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// The message has more document sequences than any command takes.
    #[error("too many document sequences: the limit is {MAX_SEQUENCES}")]
    Sequences,
    /// The document sequences have more documents than any command takes.
    #[error("too many documents in document sequences: the limit is {0}")]
    Documents(usize),
    /// Two document sequences are for the same argument.
    #[error("Duplicate document sequence: {0}")]
    Duplicate(String),
    /// The bytes are not valid BSON. The frame is complete, so the connection can continue.
    #[error("invalid BSON at byte {at}: {what}")]
    Bson {
        /// The error in the document.
        what: &'static str,
        /// The position in the document, in bytes.
        at: usize,
    },
    /// Documents are nested too deeply.
    #[error("BSON exceeds the nesting limit of {MAX_DEPTH}")]
    Depth,
    /// The compressor is unknown, or the payload does not decompress to its declared size.
    #[error("cannot expand a compressed message: {0}")]
    Compression(String),
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// MongoDB's error code.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Error::Length(_) | Error::Limit { .. } | Error::OpCode(_) | Error::Malformed(_) => 17,
            Error::Documents(_) => 16,
            Error::Flags(_) => 223,
            Error::Checksum => 50_000,
            Error::Sequences => 233,
            Error::Duplicate(_) => 40_431,
            Error::Bson { .. } => 22,
            Error::Depth => 15,
            Error::Compression(_) => 2,
        }
    }

    /// Whether the connection must be closed, because the rest of the stream cannot be trusted.
    #[must_use]
    pub fn closes(&self) -> bool {
        !matches!(
            self,
            Error::Bson { .. } | Error::Depth | Error::Documents(_)
        )
    }

    /// Whether the server replies with this error before it closes the connection.
    #[must_use]
    pub fn answers(&self) -> bool {
        !matches!(
            self,
            Error::Length(_) | Error::Limit { .. } | Error::OpCode(_) | Error::Compression(_)
        )
    }
}

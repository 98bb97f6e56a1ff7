//! What can be wrong with bytes from a peer, and whether the connection survives it.

use crate::limits::{MAX_DEPTH, MAX_MESSAGE, MAX_SEQUENCES};

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message shorter than its header or longer than allowed.
    #[error("message length {0} is not between 16 and {MAX_MESSAGE}")]
    Length(i32),
    /// A message longer than this connection may send now.
    #[error("message length {length} exceeds the limit of {limit} bytes for this connection")]
    Limit {
        /// Bytes of the message.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// An operation code that this server does not support.
    #[error("unsupported operation code {0}")]
    OpCode(i32),
    /// Unknown bits among the required flags.
    #[error("Message contains illegal flags value: Ob{0:b}")]
    Flags(u32),
    /// The bytes are not those that were sent.
    #[error("OP_MSG checksum does not match contents")]
    Checksum,
    /// The parts of a message contradict each other.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// More sequences than any command takes.
    #[error("too many document sequences: the limit is {MAX_SEQUENCES}")]
    Sequences,
    /// More documents in sequences than any command takes.
    #[error("too many documents in document sequences: the limit is {0}")]
    Documents(usize),
    /// The same argument twice.
    #[error("Duplicate document sequence: {0}")]
    Duplicate(String),
    /// Bytes that are not BSON. The frame is complete, so the connection can continue.
    #[error("invalid BSON at byte {at}: {what}")]
    Bson {
        /// What is wrong.
        what: &'static str,
        /// Where in the document.
        at: usize,
    },
    /// Documents nested too deeply.
    #[error("BSON exceeds the nesting limit of {MAX_DEPTH}")]
    Depth,
    /// Compressed bytes that do not have their declared size, or an unknown compressor.
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

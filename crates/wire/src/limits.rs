//! The limits of the protocol. Those reported in `hello` are MongoDB's: drivers split their batches
//! by them.

use crate::compressor::Compressor;

/// Bytes of a message with its header; a longer one ends the connection. `maxMessageSizeBytes`.
pub const MAX_MESSAGE: usize = 48_000_000;

/// Bytes of a header; no message is shorter.
pub const HEADER: usize = 16;

/// Bytes of a document of a user. `maxBsonObjectSize`.
pub const MAX_DOCUMENT: usize = 16 * 1024 * 1024;

/// Statements in one write command. `maxWriteBatchSize`.
pub const MAX_BATCH: usize = 100_000;

/// Maximum nesting of documents and arrays, on the wire. Twice the maximum for stored documents,
/// because a command contains documents; a thread's stack easily holds this many frames of a
/// recursive walk.
pub const MAX_DEPTH: usize = 200;

/// Document sequences in one message. No command takes more than two.
pub const MAX_SEQUENCES: usize = 16;

/// Documents in one document sequence: ten times the longest batch, so that commands themselves
/// refuse batches that are too long, and the offsets of one message still fit in 16 MB.
pub const MAX_SEQUENCE_DOCUMENTS: usize = 1_000_000;

/// Bytes of the identifier of a document sequence: the name of an argument of a command.
pub const MAX_IDENTIFIER: usize = 256;

/// Limits that a server may set lower for some connections, such as those that have not
/// authenticated. Each is checked before memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits<'a> {
    /// Bytes of a message with its header, before and after decompression.
    pub message: usize,
    /// Documents in all document sequences of a message together.
    pub documents: usize,
    /// Compressors that are enabled. A message compressed otherwise is refused unread.
    pub compressors: &'a [Compressor],
}

impl Limits<'_> {
    /// The limits of the protocol, with every compressor.
    pub const PROTOCOL: Limits<'static> = Limits {
        message: MAX_MESSAGE,
        documents: MAX_SEQUENCE_DOCUMENTS,
        compressors: &Compressor::ALL,
    };
}

//! The limits of the protocol. Those reported in `hello` are MongoDB's: drivers split their batches
//! by them.

use crate::compressor::Compressor;

/// Maximum size of a message in bytes, including the header; a longer one ends the connection.
/// `maxMessageSizeBytes` in `hello`.
pub const MAX_MESSAGE: usize = 48_000_000;

/// Size of a header in bytes; no message is shorter.
pub const HEADER: usize = 16;

/// Maximum size of a user's document in bytes. `maxBsonObjectSize` in `hello`.
pub const MAX_DOCUMENT: usize = 16 * 1024 * 1024;

/// Bytes of the longest message whose bytes are overwritten where they are copied: messages with
/// passwords are shorter.
pub(crate) const SECRET_MESSAGE: usize = 64 * 1024;

/// Maximum number of statements in one write command. `maxWriteBatchSize` in `hello`.
pub const MAX_BATCH: usize = 100_000;

/// Maximum nesting of documents and arrays, on the wire. Twice the maximum for stored documents,
/// because commands contain documents. A recursive walk to this depth fits a thread's stack easily.
pub const MAX_DEPTH: usize = 200;

/// Maximum number of document sequences in a message. No command takes more than two.
pub const MAX_SEQUENCES: usize = 16;

/// Maximum number of documents in a document sequence. It is ten times the longest batch, so that
/// the commands themselves refuse a batch that is too long; the offsets of one message still fit in
/// 16 MB.
pub const MAX_SEQUENCE_DOCUMENTS: usize = 1_000_000;

/// Maximum length of the name of a document sequence in bytes; it is the name of a command's
/// argument.
pub const MAX_IDENTIFIER: usize = 256;

/// Limits that a server may lower for some connections, such as connections that have not
/// authenticated. Each is checked before memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits<'a> {
    /// Maximum size of a message in bytes, including the header, before and after decompression.
    pub message: usize,
    /// Maximum number of documents in all document sequences of a message together.
    pub documents: usize,
    /// The enabled compressors. A message with another compressor is refused without decompressing
    /// it.
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

//! The limits of the protocol. Those a client is told in `hello` are MongoDB's own: drivers split
//! their batches by them.

/// Bytes of a message with its header; a longer one ends the connection. `maxMessageSizeBytes`.
pub const MAX_MESSAGE: usize = 48_000_000;

/// Bytes of a header; no message is shorter.
pub const HEADER: usize = 16;

/// Bytes of a document of a user. `maxBsonObjectSize`.
pub const MAX_DOCUMENT: usize = 16 * 1024 * 1024;

/// Statements in one write command. `maxWriteBatchSize`.
pub const MAX_BATCH: usize = 100_000;

/// Levels of documents and arrays in one another, on the wire. Twice what may be stored, because
/// a command holds documents; a thread's stack holds as many frames of a recursive walk easily.
pub const MAX_DEPTH: usize = 200;

/// Document sequences in one message. No command takes more than two.
pub const MAX_SEQUENCES: usize = 16;

/// Bytes of the identifier of a document sequence: the name of an argument of a command.
pub const MAX_IDENTIFIER: usize = 256;

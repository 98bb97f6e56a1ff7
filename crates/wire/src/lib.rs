//! The wire protocol of MongoDB: bytes in, messages out.
//!
//! Sans-I/O: no code here reads a socket or a clock. Bodies stay raw BSON, in the buffer that
//! received them; a message is that buffer and offsets into it.
//!
//! Incoming: [`Decoder`] divides a stream into [`Frame`]s, [`compress::expand`] decompresses them,
//! [`Message::decode`] or [`Query::decode`] finds the documents and checks every byte of them.
//! Outgoing: [`Builder`] writes one document after the header of a message.
//!
//! - W1. A document from a decoder is valid BSON: [`mod@validate`] checked all of it.
//! - W2. A length from a peer is checked against a limit before memory is allocated for it.

pub mod build;
pub mod compress;
mod compressor;
pub mod decoder;
pub mod error;
pub mod header;
pub mod limits;
pub mod message;
pub mod query;
pub mod validate;

pub use build::{Builder, Parts, encode};
pub use compress::Compressor;
pub use decoder::{Decoder, Frame};
pub use error::{Error, Result};
pub use header::{Header, OpCode};
pub use limits::Limits;
pub use message::{Flags, Message, Sequence};
pub use query::Query;
pub use validate::validate;

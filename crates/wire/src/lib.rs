//! The wire protocol of MongoDB: converts bytes to messages and messages to bytes.
//!
//! Sans-I/O: this crate uses neither sockets nor clocks. Bodies stay raw BSON in the receive
//! buffer; a message consists of this buffer and offsets into it.
//!
//! Incoming: [`Decoder`] divides a stream into [`Frame`]s, [`compress::expand`] decompresses them,
//! [`Message::decode`] or [`Query::decode`] finds the documents and checks every byte of each.
//! Outgoing: [`Builder`] writes one document after the header of a message.
//!
//! - W1. Every document that a decoder returns is valid BSON, checked by [`mod@validate`].
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

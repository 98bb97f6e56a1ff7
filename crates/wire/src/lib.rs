//! The wire protocol of MongoDB: bytes in, messages out.
//!
//! Sans-I/O: nothing here reads a socket or a clock. Bodies stay raw BSON, in the buffer they came
//! in; a message is that buffer and offsets into it.
//!
//! The way in: [`Decoder`] cuts a stream into [`Frame`]s, [`compress::expand`] undoes compression,
//! [`Message::decode`] or [`Query::decode`] finds the documents and checks every byte of them. The
//! way out: [`Builder`] writes one document behind the head of a message, once.
//!
//! - W1. A document that left a decoder is sound BSON: [`mod@validate`] walked all of it.
//! - W2. A length that came from a peer is bounded before memory is taken by it.

pub mod build;
pub mod compress;
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

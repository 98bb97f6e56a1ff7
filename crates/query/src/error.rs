//! The error of this crate and of the layers above it: a code of MongoDB's and a message.

use bson::Document;

use crate::code::Code;

/// An error in the terms of the wire protocol.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    /// The error code, which drivers act on.
    pub code: Code,
    /// The message for users.
    pub message: String,
    /// Further fields of the error reply, such as `keyPattern` and `errInfo`.
    pub details: Option<Box<Document>>,
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `code`.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            details: None,
        }
    }

    /// Returns this error with `details` as further fields of the reply.
    #[must_use]
    pub fn with_details(mut self, details: Document) -> Error {
        self.details = Some(Box::new(details));
        self
    }

    /// Returns this error with the failed operation in front of its message, as MongoDB chains
    /// errors: `context :: caused by :: message`.
    #[must_use]
    pub fn within(mut self, context: impl std::fmt::Display) -> Error {
        self.message = format!("{context} :: caused by :: {}", self.message);
        self
    }

    /// `BadValue`.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(Code::BAD_VALUE, message)
    }

    /// `FailedToParse`.
    pub fn parse(message: impl Into<String>) -> Error {
        Error::new(Code::FAILED_TO_PARSE, message)
    }

    /// `TypeMismatch`.
    pub fn type_mismatch(message: impl Into<String>) -> Error {
        Error::new(Code::TYPE_MISMATCH, message)
    }

    /// An error with a bare number, as `Location40324`.
    pub fn location(number: i32, message: impl Into<String>) -> Error {
        Error::new(Code(number), message)
    }
}

/// Invalid BSON.
impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::new(Code::INVALID_BSON, error.to_string())
    }
}

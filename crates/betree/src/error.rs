//! Errors are those of the vocabulary that all engines share.

pub(crate) use kv_types::{Error, ErrorKind, Result};

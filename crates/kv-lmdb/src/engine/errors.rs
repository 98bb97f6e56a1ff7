//! Converts LMDB's errors to those of `kv`.

use std::path::Path;

use heed::MdbError;
use kv::{Error, ErrorKind};
use stdx::ByteSize;

use crate::support::NAME;

/// The context that error messages need.
pub(super) struct Place<'a> {
    /// The store's directory.
    pub(super) directory: &'a Path,
    /// The size of the map, in bytes.
    pub(super) map_bytes: u64,
    /// Maximum number of open snapshots.
    pub(super) readers: u32,
    /// Maximum number of trees.
    pub(super) trees: u32,
}

impl Place<'_> {
    /// Convert `error` of the call `operation`.
    pub(super) fn error(&self, error: heed::Error, operation: &'static str) -> Error {
        let converted = match error {
            heed::Error::Io(e) => return self.io(e, operation),
            heed::Error::Mdb(e) => {
                let (kind, message) = self.words(e);
                Error::new(kind, message)
            }
            heed::Error::EnvAlreadyOpened => {
                Error::invalid("the store is open in this process already; close it first")
            }
            heed::Error::Encoding(_) | heed::Error::Decoding(_) => {
                Error::new(ErrorKind::Corrupt, "bytes that cannot be decoded")
            }
        };
        converted
            .with_engine(NAME)
            .with_operation(operation)
            .with_path(self.directory)
            .with_source(error)
    }

    fn io(&self, error: std::io::Error, operation: &'static str) -> Error {
        Error::io(operation, self.directory, error).with_engine(NAME)
    }

    fn words(&self, error: MdbError) -> (ErrorKind, String) {
        let text = error.to_string();
        match error {
            MdbError::MapFull => {
                let size = ByteSize(self.map_bytes);
                let message = format!(
                    "the map of {size} is full; close the store and open it with a larger \
                     size_max, or delete data while no old snapshot is open"
                );
                (ErrorKind::Full, message)
            }
            MdbError::ReadersFull => {
                let message = format!(
                    "all {} reader slots are taken; close snapshots or open the store with a \
                     larger option readers",
                    self.readers
                );
                (ErrorKind::Full, message)
            }
            MdbError::DbsFull => {
                let message = format!(
                    "the store has room for {} trees; open it with a larger option trees",
                    self.trees
                );
                (ErrorKind::Full, message)
            }
            MdbError::TxnFull => {
                let message = "the transaction has too many changed pages; split it".to_owned();
                (ErrorKind::Full, message)
            }
            MdbError::Corrupted
            | MdbError::PageNotFound
            | MdbError::Invalid
            | MdbError::VersionMismatch
            | MdbError::CursorFull
            | MdbError::PageFull
            | MdbError::Incompatible => (
                ErrorKind::Corrupt,
                format!("{text}; restore the store from a backup"),
            ),
            MdbError::Panic => (
                ErrorKind::Closed,
                format!("{text}; the store is closed after a failed write: open it again"),
            ),
            MdbError::MapResized => (ErrorKind::Closed, format!("{text}; open the store again")),
            MdbError::BadTxn => (
                ErrorKind::Invalid,
                "the transaction failed before; roll it back".to_owned(),
            ),
            // The adapter's own checks prevent the remaining errors (bad sizes, handles, slots).
            _ => (ErrorKind::Invalid, text),
        }
    }
}

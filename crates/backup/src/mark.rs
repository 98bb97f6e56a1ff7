//! The mark of a restored store: a file beside its identity file, until a server has opened it.
//!
//! A restored store must not continue the history of the store that it is a copy of: both would
//! issue the same times for different writes, under one identifier. The server that opens it first
//! gives it a new identifier, removes its oplog, and then removes the mark.

use std::fs;
use std::io;
use std::path::Path;

use kv::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::manifest::{Manifest, OperationTime};

/// The name of the file.
pub const FILE: &str = "romanesco-restored.json";

/// Where a restored store comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The identifier of the store that was copied.
    pub store: Option<String>,
    /// When its backup began: seconds since 1970-01-01 UTC.
    pub started: u64,
    /// The time of its oplog up to which the copy has every write.
    pub operation_time: Option<OperationTime>,
}

impl Mark {
    /// The mark of a store that is restored from a backup.
    pub(crate) fn of(manifest: &Manifest) -> Mark {
        Mark {
            store: manifest.store.clone(),
            started: manifest.started,
            operation_time: manifest.operation_time,
        }
    }

    /// The bytes of its file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("plain data serialises")
    }

    /// The mark in the directory of a store, if it has one.
    ///
    /// # Errors
    /// `Io`; `Corrupt` for a file that is not a mark.
    pub fn read(directory: &Path) -> Result<Option<Mark>> {
        let path = directory.join(FILE);
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|e| Error::io("read the mark of a restore", &path, e))?,
        };
        let mark = serde_json::from_slice(&bytes);
        let damaged = |e| {
            let message = "the mark of a restore is damaged; restore the backup again";
            Error::corrupt(message).with_path(&path).with_source(e)
        };
        mark.map(Some).map_err(damaged)
    }

    /// Remove the mark from the directory of a store, durably.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove(directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        fs::remove_file(&path)
            .and_then(|()| vfs::sync_dir(directory))
            .map_err(|e| Error::io("remove the mark of a restore", &path, e))
    }
}

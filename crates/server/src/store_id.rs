//! The identifier of a store: 16 random bytes, made when a server opens the store first, and
//! again when it opens a restored copy.
//!
//! - S1. Two stores that can both be written have different identifiers: a copy that was restored
//!   gets its own, and drops the oplog of the store it was copied from, before it is served.

use std::fmt::Write as _;
use std::path::Path;

use backup::Mark;
use bson::doc;
use docdb::Store;
use query::{Code, Error, Result};

use crate::auth::users::random;
use crate::state::log::Log;

/// The name of the store's property.
pub(crate) const PROPERTY: &str = "store-id";

/// The mark of a restore in the data directory, if the store was restored and not opened since.
///
/// # Errors
/// A mark that cannot be read.
pub(crate) fn restored(db_path: &Path) -> Result<Option<Mark>> {
    Mark::read(db_path).map_err(|error| Error::new(Code::INTERNAL_ERROR, error.to_string()))
}

/// Give the store an identifier if it has none, or if it was restored. The mark is removed then:
/// after a crash before that, this is done again.
///
/// # Errors
/// Those of the store; a mark that cannot be removed.
pub(crate) fn settle(store: &Store, mark: Option<&Mark>, db_path: &Path, log: &Log) -> Result<()> {
    if mark.is_none() && store.property(PROPERTY)?.is_some() {
        return Ok(());
    }
    let id = random(16)?;
    store.set_property(PROPERTY, &id)?;
    let Some(mark) = mark else {
        return Ok(());
    };
    Mark::remove(db_path).map_err(|error| Error::new(Code::INTERNAL_ERROR, error.to_string()))?;
    let attributes = doc! {
        "backupStarted": i64::try_from(mark.started).unwrap_or(i64::MAX),
        "storeBefore": mark.store.clone(),
        "store": text(&id),
    };
    let message = "This store was restored from a backup: it has a new identifier and a new, empty \
         oplog. Users, roles and sessions are those of the backup";
    log.warn_of_start("STORAGE", 9_000_008, message, attributes);
    Ok(())
}

/// An identifier in hexadecimal.
pub(crate) fn text(id: &[u8]) -> String {
    id.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _: std::fmt::Result = write!(text, "{byte:02x}");
        text
    })
}

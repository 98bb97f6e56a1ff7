//! The mark of a follower: up to which entry its data has the changes of the oplog.
//!
//! It is a record of the catalog's tree: key `a`, value the time of the entry as a key, and its
//! term in 8 bytes, big-endian. A store without it has applied all of its oplog: each entry is put
//! with its change.

use bson::Timestamp;
use kv::{Snapshot, Transaction, TreeId};
use query::Result;

use super::entry::OpTime;
use super::segment;
use crate::error;

const KEY: &[u8] = b"a";

/// The mark, if the store is a follower.
///
/// # Errors
/// Errors of the engine; a mark that cannot be decoded.
pub(crate) fn read(snapshot: &dyn Snapshot, catalog: TreeId) -> Result<Option<OpTime>> {
    let Some(bytes) = snapshot.get(catalog, KEY).map_err(error::engine)? else {
        return Ok(None);
    };
    let parts = bytes.split_first_chunk::<8>();
    let parts =
        parts.and_then(|(time, term)| Some((segment::time_of(time)?, term.try_into().ok()?)));
    let (ts, term): (Timestamp, [u8; 8]) =
        parts.ok_or_else(|| error::corrupt("the mark of what is applied, in the catalog"))?;
    let term = i64::from_be_bytes(term);
    Ok(Some(OpTime { ts, term }))
}

/// Put the mark.
///
/// # Errors
/// Errors of the engine.
pub(crate) fn put(
    txn: &mut (dyn Transaction + '_),
    catalog: TreeId,
    applied: OpTime,
) -> Result<()> {
    let mut value = segment::key(applied.ts).to_vec();
    value.extend_from_slice(&applied.term.to_be_bytes());
    txn.put(catalog, KEY, &value).map_err(error::engine)
}

/// Remove the mark.
///
/// # Errors
/// Errors of the engine.
pub(crate) fn remove(txn: &mut (dyn Transaction + '_), catalog: TreeId) -> Result<()> {
    txn.delete(catalog, KEY).map(|_| ()).map_err(error::engine)
}

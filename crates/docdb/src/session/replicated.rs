//! The records of sessions that come with the oplog entries of another member: a follower puts them
//! as they are, and answers a retried statement with them once it is the primary.

use bson::RawDocument;
use kv::KeyRange;
use query::{Error, Result};

use super::stored::{of_key, runs};
use crate::error;
use crate::oplog::Retry;
use crate::store::Store;
use crate::txn::{SessionId, Work};

/// Bytes of the key of a head.
const SESSION: usize = 48;
/// Bytes after them in the key of a run.
const STATEMENT: usize = 4;

/// Put the records; returns their session, which [`Store::forget_sessions`] gets after the commit.
///
/// # Errors
/// Errors of the engine.
pub(crate) fn put_records(work: &mut Work<'_>, retry: &Retry) -> Result<Option<SessionId>> {
    let Some((id, true)) = of_key(&retry.session) else {
        return Ok(None);
    };
    let tree = work.store.trees().sessions;
    let txn = work.txn()?;
    if retry.clear {
        let (start, end) = runs(&id);
        let range = KeyRange::half_open(&start, &end);
        txn.delete_range(tree, range).map_err(error::engine)?;
    }
    for (rest, value) in &retry.records {
        let key = [&retry.session[..], rest].concat();
        let put = txn.put_blind(tree, &key, value.as_bytes());
        put.map_err(error::engine)?;
    }
    Ok(Some(id))
}

/// Put the records of sessions back as they were; returns the sessions, as [`put_records`].
///
/// # Errors
/// Errors of the engine.
pub(crate) fn restore_records(
    work: &mut Work<'_>,
    records: &[(Vec<u8>, Option<Vec<u8>>)],
) -> Result<Vec<SessionId>> {
    let tree = work.store.trees().sessions;
    let txn = work.txn()?;
    let mut ids = Vec::new();
    for (key, value) in records {
        let done = match value {
            Some(value) => txn.put_blind(tree, key, value),
            None => txn.delete_blind(tree, key),
        };
        done.map_err(error::engine)?;
        ids.extend(of_key(key).map(|(id, _)| id));
    }
    Ok(ids)
}

/// Put a record of a session as another member has it; returns the session.
///
/// # Errors
/// `BadValue` for what is no record of a session; errors of the engine.
pub(crate) fn put_session_record(
    work: &mut Work<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<SessionId> {
    let statement = key.len().checked_sub(SESSION);
    let known = of_key(key).filter(|_| statement.is_some_and(|n| n == 0 || n == STATEMENT));
    let Some((id, _)) = known else {
        return Err(Error::bad_value("a record of a session with a wrong key"));
    };
    let value = RawDocument::from_bytes(value)?;
    crate::document::check(value)?;
    let tree = work.store.trees().sessions;
    let put = work.txn()?.put_blind(tree, key, value.as_bytes());
    put.map_err(error::engine)?;
    Ok(id)
}

impl Store {
    /// Read the records of all sessions again at their next use.
    pub(crate) fn forget_all_sessions(&self) {
        self.sessions().forget_all();
    }

    /// Read the records of sessions again at their next use.
    pub(crate) fn forget_sessions(&self, ids: &[SessionId]) {
        for id in ids {
            self.sessions().forget(id);
        }
    }
}

//! What is stored of a session: the number of its last retryable write and what its statements did,
//! or the number of the last transaction it committed.
//!
//! The tree `_sessions` has the session's id and user digest (48 bytes) as keys, and documents
//! `{n: number, t: time, s: [{i: statement, c: how many of the kind follow, r: result}]}` as
//! values; `c: true` beside them says that the number is that of a committed transaction.

use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use query::Result;

use super::retry::Done;
use crate::op::SessionId;

/// The statements that were executed: the first number of a run, and its length with its result.
pub(crate) type Executed = BTreeMap<i32, (i32, Done)>;

pub(super) fn key(id: &SessionId) -> Vec<u8> {
    [&id.id[..], &id.uid[..]].concat()
}

/// What is stored of a session.
pub(super) struct Stored {
    pub(super) number: i64,
    pub(super) time: bson::DateTime,
    pub(super) executed: Executed,
    /// Whether the number is that of a transaction that was committed.
    pub(super) committed: bool,
}

/// A transaction was committed under the number.
pub(super) fn committed(number: i64, now: bson::DateTime) -> Result<Vec<u8>> {
    let statements: Vec<Bson> = Vec::new();
    let document = doc! { "n": number, "t": now, "s": statements, "c": true };
    Ok(RawDocumentBuf::try_from(&document)?.into_bytes())
}

pub(super) fn to_bytes(number: i64, now: bson::DateTime, executed: &Executed) -> Result<Vec<u8>> {
    let statements: Vec<Bson> = executed
        .iter()
        .map(|(first, (count, done))| {
            let mut result = doc! { "n": done.n, "m": done.modified };
            if let Some(id) = &done.upserted {
                result.insert("u", id.clone());
            }
            if let Some(image) = &done.image {
                result.insert("v", image.clone());
            }
            Bson::Document(doc! { "i": *first, "c": *count, "r": result })
        })
        .collect();
    let document = doc! { "n": number, "t": now, "s": statements };
    Ok(RawDocumentBuf::try_from(&document)?.into_bytes())
}

/// `None` for bytes that are no such document.
pub(super) fn from_bytes(bytes: &[u8]) -> Option<Stored> {
    let document = Document::try_from(RawDocument::from_bytes(bytes).ok()?).ok()?;
    let mut executed = Executed::new();
    for statement in document.get_array("s").ok()? {
        let statement = statement.as_document()?;
        let result = statement.get_document("r").ok()?;
        let done = Done {
            n: result.get_i64("n").ok()?,
            modified: result.get_i64("m").ok()?,
            upserted: result.get("u").cloned(),
            image: result.get("v").cloned(),
        };
        let (first, count) = (statement.get_i32("i").ok()?, statement.get_i32("c").ok()?);
        executed.insert(first, (count, done));
    }
    Some(Stored {
        number: document.get_i64("n").ok()?,
        time: *document.get_datetime("t").ok()?,
        executed,
        committed: document.get_bool("c").unwrap_or(false),
    })
}

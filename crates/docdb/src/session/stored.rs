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

/// Note what `count` statements from `first` on have done, each of them.
///
/// Statements that did the same lengthen the run before: what is stored, anew with each statement
/// of a batch, stays as short as their results are alike.
pub(super) fn add(executed: &mut Executed, first: i32, count: i32, done: &Done) {
    let plain = done.upserted.is_none() && done.image.is_none();
    if let Some((start, (length, same))) = executed.range_mut(..first).next_back()
        && plain
        && start.checked_add(*length) == Some(first)
        && same == done
    {
        *length = length.saturating_add(count);
        return;
    }
    executed.insert(first, (count, done.clone()));
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_did_the_same_are_one_run() {
        let one = Done {
            n: 1,
            modified: 1,
            ..Done::default()
        };
        let upsert = |id: i32| Done {
            n: 1,
            upserted: Some(id.into()),
            ..Done::default()
        };
        let mut executed = Executed::new();
        for statement in 0..1000 {
            add(&mut executed, statement, 1, &one);
        }
        add(&mut executed, 1000, 1, &upsert(1));
        add(&mut executed, 1001, 1, &upsert(1));
        add(&mut executed, 1003, 2, &one);
        add(&mut executed, 1005, 1, &Done::default());
        let runs: Vec<(i32, i32)> = executed
            .iter()
            .map(|(f, (count, _))| (*f, *count))
            .collect();
        assert_eq!(
            runs,
            [(0, 1000), (1000, 1), (1001, 1), (1003, 2), (1005, 1)]
        );
        let bytes = to_bytes(7, bson::DateTime::from_millis(1), &executed).unwrap();
        assert_eq!(from_bytes(&bytes).unwrap().executed, executed);
        assert!(bytes.len() < 500, "{} bytes", bytes.len());
    }
}

//! What is stored of a session: the number of its last retryable write and what its statements did,
//! or the number of the last transaction it committed.
//!
//! The tree `_sessions` has two kinds of records:
//!
//! - The head: the session's id and user digest (48 bytes) are the key, the document
//!   `{n: number, t: time, s: [{i: statement, c: how many of the kind follow, r: result}]}` is the
//!   value; `c: true` beside them says that the number is that of a committed transaction. It is
//!   written by the first commit of a number, with the first run of statements.
//! - The runs behind the first: the key of the head and the number of the statement (4 bytes, big
//!   endian, the sign bit turned over), `{n: number, c: how many, r: result}`. One counts only if
//!   it has the number of the head, and then more than a run of the same statement there.
//!
//! So each statement of a batch writes a record of its own and not all of those before. Most writes
//! have one statement and need the head alone, which the next number overwrites; runs are removed
//! together when the number advances or the session ends. Heads with many runs, as they were once
//! written, are read the same.

use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use kv::{Direction, KeyRange, Snapshot, TreeId};
use query::Result;

use super::retry::Done;
use crate::error;
use crate::txn::SessionId;

/// The statements that were executed: the first number of a run, and its length with its result.
pub(crate) type Executed = BTreeMap<i32, (i32, Done)>;

/// Note in `fresh` what `count` statements from `first` on have done, each of them, after those of
/// `executed`.
///
/// Statements that did the same lengthen the run before: what is stored stays as short as their
/// results are alike.
pub(super) fn add(executed: &Executed, fresh: &mut Executed, first: i32, count: i32, done: &Done) {
    let plain = done.upserted.is_none() && done.image.is_none();
    // A run of both has become longer in `fresh`.
    let before = [&*fresh, executed]
        .into_iter()
        .filter_map(|runs| runs.range(..first).next_back())
        .reduce(|a, b| if a.0 < b.0 { b } else { a });
    if let Some((start, (length, same))) = before
        && plain
        && start.checked_add(*length) == Some(first)
        && same == done
    {
        let (start, length) = (*start, length.saturating_add(count));
        fresh.insert(start, (length, done.clone()));
        return;
    }
    fresh.insert(first, (count, done.clone()));
}

/// The key of a session's head.
pub(super) fn key(id: &SessionId) -> Vec<u8> {
    [&id.id[..], &id.uid[..]].concat()
}

/// The session whose head or run has a key, and whether it is a head.
pub(super) fn of_key(key: &[u8]) -> Option<(SessionId, bool)> {
    let (id, rest) = key.split_first_chunk()?;
    let (uid, statement) = rest.split_first_chunk()?;
    let id = SessionId { id: *id, uid: *uid };
    Some((id, statement.is_empty()))
}

/// The bounds of the keys of a session's runs.
pub(super) fn runs(id: &SessionId) -> (Vec<u8>, Vec<u8>) {
    let key = key(id);
    ([&key[..], &[0]].concat(), [&key[..], &[0xFF; 5]].concat())
}

fn run_key(id: &SessionId, first: i32) -> Vec<u8> {
    let place = first.cast_unsigned() ^ (1 << 31);
    [&key(id)[..], &place.to_be_bytes()].concat()
}

/// What is stored of a session.
pub(super) struct Stored {
    pub(super) number: i64,
    pub(super) time: bson::DateTime,
    pub(super) executed: Executed,
    /// Whether the number is that of a transaction that was committed.
    pub(super) committed: bool,
    /// Whether there are runs beside the head.
    pub(super) has_runs: bool,
}

/// A transaction was committed under the number.
pub(super) fn committed(number: i64, now: bson::DateTime) -> Result<Vec<u8>> {
    let statements: Vec<Bson> = Vec::new();
    let document = doc! { "n": number, "t": now, "s": statements, "c": true };
    Ok(RawDocumentBuf::try_from(&document)?.into_bytes())
}

/// The records that tell of `fresh`, the runs that are new or longer than in `executed`.
pub(super) fn records(
    id: &SessionId,
    number: i64,
    now: bson::DateTime,
    executed: &Executed,
    fresh: &Executed,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut records = Vec::with_capacity(fresh.len());
    // The run of the head is the first one that was ever noted.
    let mut head = executed.is_empty();
    for (first, (count, done)) in fresh {
        let only = executed.len() == 1 && executed.contains_key(first);
        let in_head = std::mem::replace(&mut head, false) || only;
        let (key, document) = if in_head {
            let run = doc! { "i": *first, "c": *count, "r": result(done) };
            let head = doc! { "n": number, "t": now, "s": [run] };
            (key(id), head)
        } else {
            let run = doc! { "n": number, "c": *count, "r": result(done) };
            (run_key(id, *first), run)
        };
        records.push((key, RawDocumentBuf::try_from(&document)?.into_bytes()));
    }
    Ok(records)
}

fn result(done: &Done) -> Document {
    let mut result = doc! { "n": done.n, "m": done.modified };
    if let Some(id) = &done.upserted {
        result.insert("u", id.clone());
    }
    if let Some(image) = &done.image {
        result.insert("v", image.clone());
    }
    result
}

/// Read what is stored of a session. `None` when that is nothing, or no such documents.
///
/// # Errors
/// As the engine's.
pub(super) fn load(
    snapshot: &dyn Snapshot,
    tree: TreeId,
    id: &SessionId,
) -> Result<Option<Stored>> {
    let bytes = snapshot.get(tree, &key(id)).map_err(error::engine)?;
    let Some(mut stored) = bytes.as_deref().and_then(from_bytes) else {
        return Ok(None);
    };
    let (start, end) = runs(id);
    let range = KeyRange::half_open(&start, &end);
    let cursor = snapshot.cursor(tree, range, Direction::Forward);
    let mut cursor = cursor.map_err(error::engine)?;
    while cursor.advance().map_err(error::engine)? {
        stored.has_runs = true;
        let place = cursor.key().last_chunk().copied().map(u32::from_be_bytes);
        let first = place.map(|place| (place ^ (1 << 31)).cast_signed());
        if let Some((first, run)) = first.zip(run(cursor.value(), stored.number)) {
            stored.executed.insert(first, run);
        }
    }
    Ok(Some(stored))
}

/// A run of its record, if that is of `number`.
fn run(bytes: &[u8], number: i64) -> Option<(i32, Done)> {
    let document = Document::try_from(RawDocument::from_bytes(bytes).ok()?).ok()?;
    let same = document.get_i64("n").ok()? == number;
    let run = (document.get_i32("c").ok()?, done(&document)?);
    same.then_some(run)
}

fn done(statement: &Document) -> Option<Done> {
    let result = statement.get_document("r").ok()?;
    Some(Done {
        n: result.get_i64("n").ok()?,
        modified: result.get_i64("m").ok()?,
        upserted: result.get("u").cloned(),
        image: result.get("v").cloned(),
    })
}

/// A head; `None` for bytes that are no such document.
pub(super) fn from_bytes(bytes: &[u8]) -> Option<Stored> {
    let document = Document::try_from(RawDocument::from_bytes(bytes).ok()?).ok()?;
    let mut executed = Executed::new();
    for statement in document.get_array("s").ok()? {
        let statement = statement.as_document()?;
        let (first, count) = (statement.get_i32("i").ok()?, statement.get_i32("c").ok()?);
        executed.insert(first, (count, done(statement)?));
    }
    Some(Stored {
        number: document.get_i64("n").ok()?,
        time: *document.get_datetime("t").ok()?,
        executed,
        committed: document.get_bool("c").unwrap_or(false),
        has_runs: false,
    })
}

#[cfg(test)]
mod tests;

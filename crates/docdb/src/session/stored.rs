//! The stored state of a session: the number of its last retryable write with the results of its
//! statements, or the number of the last transaction it committed.
//!
//! The tree `_sessions` has two kinds of records:
//!
//! - The head. Its key is the session's id and user digest (48 bytes). Its value is the document
//!   `{n: number, t: time, s: [{i: statement, c: number of statements in the run, r: result}]}`; a
//!   field `c: true` beside them marks the number of a committed transaction. The first commit
//!   under a number writes the head, with the first run of statements.
//! - The runs after the first. The key is that of the head plus the statement number (4 bytes, big
//!   endian, sign bit inverted); the value is `{n: number, c: length, r: result}`. A run is valid
//!   only if it has the number of the head; it then takes precedence over a run of the same
//!   statement in the head.
//!
//! Each statement of a batch thus writes one record and does not rewrite those before. Most writes
//! have one statement and need the head alone, which the next number overwrites. Runs are removed
//! together when the number advances or the session ends. Older stores have heads with many runs;
//! these are read in the same way.

use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use kv::{Direction, KeyRange, Snapshot, TreeId};
use query::Result;

use super::retry::Done;
use crate::error;
use crate::txn::SessionId;

/// Executed statements: for each run, its first statement number, its length and its result.
pub(crate) type Executed = BTreeMap<i32, (i32, Done)>;

/// Add to `fresh` that each of `count` statements from `first` on had the result `done`, given the
/// runs already in `executed`.
///
/// Consecutive statements with equal results extend the preceding run, which keeps the records
/// short.
pub(super) fn add(executed: &Executed, fresh: &mut Executed, first: i32, count: i32, done: &Done) {
    let plain = done.upserted.is_none() && done.image.is_none();
    // A run in both maps is the longer one in `fresh`.
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

/// The session that a head's or run's key belongs to, and whether the key is a head's.
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

/// Stored state of a session.
pub(super) struct Stored {
    pub(super) number: i64,
    pub(super) time: bson::DateTime,
    pub(super) executed: Executed,
    /// Whether the number belongs to a committed transaction.
    pub(super) committed: bool,
    /// Whether run records exist beside the head.
    pub(super) has_runs: bool,
}

/// The head record of a transaction committed under `number`.
pub(super) fn committed(number: i64, now: bson::DateTime) -> Result<Vec<u8>> {
    let statements: Vec<Bson> = Vec::new();
    let document = doc! { "n": number, "t": now, "s": statements, "c": true };
    Ok(RawDocumentBuf::try_from(&document)?.into_bytes())
}

/// The records to write for `fresh`, the runs that are new or longer than in `executed`.
pub(super) fn records(
    id: &SessionId,
    number: i64,
    now: bson::DateTime,
    executed: &Executed,
    fresh: &Executed,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut records = Vec::with_capacity(fresh.len());
    // The head holds the run that was recorded first.
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

/// Read the stored state of a session. `None` if nothing is stored or the head cannot be decoded.
///
/// # Errors
/// Errors of the engine.
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

/// Decode a run's record; `None` unless its number is `number`.
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

/// Decode a head; `None` for bytes that are not a valid head.
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

//! The chain of an entry: the entries whose operations were committed with it.

use bson::{RawArray, RawBsonRef, RawDocument, Timestamp};
use query::{Error, Result};

use super::super::scope::is_partial;
use super::{Entries, lost};
use crate::oplog::entry::{Entry, OpTime, Operation};

/// The entries of a chain, in order: the time of each, and the index of its first operation.
#[derive(Debug)]
pub(super) struct Links(Vec<(Timestamp, i64)>);

impl Links {
    /// An entry without a chain.
    pub(super) fn one(time: Timestamp) -> Links {
        Links(vec![(time, 0)])
    }

    /// The chain that ends with an entry.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` if an entry before is gone; `FailedToParse` for what is no chain.
    pub(super) fn walk(
        (time, last): (Timestamp, &RawDocument),
        mut previous: Timestamp,
        entries: &mut dyn Entries,
    ) -> Result<Links> {
        let mut counts = vec![(time, length(last)?)];
        let mut later = time;
        loop {
            if later <= previous {
                return Err(Error::parse(
                    "a chain of oplog entries does not go back in time",
                ));
            }
            let bytes = entries.entry(previous)?.ok_or_else(lost)?;
            let before = before(&bytes)?;
            counts.push((previous, length(&bytes)?));
            let Some(before) = before else { break };
            later = previous;
            previous = before;
        }
        counts.reverse();
        let mut index = 0;
        let first = |(time, count)| {
            let first = (time, index);
            index += count;
            first
        };
        Ok(Links(counts.into_iter().map(first).collect()))
    }

    /// The time and the first index of an entry.
    pub(super) fn get(&self, place: usize) -> Option<(Timestamp, i64)> {
        self.0.get(place).copied()
    }
}

/// The time of the entry before one that does not end the chain.
fn before(entry: &RawDocument) -> Result<Option<Timestamp>> {
    let entry = Entry::parse(entry)?;
    let is_partial = match entry.operation {
        Operation::Command { command, .. } => is_partial(command)?,
        _ => false,
    };
    if !is_partial {
        return Err(Error::parse(
            "a chain of oplog entries has one that ends it",
        ));
    }
    let before = entry.previous.map(|previous| previous.ts);
    Ok(before.filter(|before| *before != OpTime::NONE.ts))
}

/// The operations of a group; `None` for another command.
pub(super) fn group_of(command: &RawDocument) -> Result<Option<&RawArray>> {
    let Some(first) = command.iter_elements().next().transpose()? else {
        return Ok(None);
    };
    match (first.key().as_str(), first.value()?) {
        ("applyOps", RawBsonRef::Array(list)) => Ok(Some(list)),
        ("applyOps", _) => Err(Error::type_mismatch(
            "an oplog entry needs an array in 'applyOps'",
        )),
        _ => Ok(None),
    }
}

/// The operations of an entry with a group.
pub(super) fn operations(entry: &RawDocument) -> Result<&RawArray> {
    let group = match entry.get("o")? {
        Some(RawBsonRef::Document(command)) => group_of(command)?,
        _ => None,
    };
    group.ok_or_else(|| Error::parse("a chain of oplog entries has one that is no group"))
}

fn length(entry: &RawDocument) -> Result<i64> {
    let mut count = 0;
    for element in operations(entry)?.iter_elements() {
        element?;
        count += 1;
    }
    Ok(count)
}

//! The operations of an entry, or of a chain of entries.
//!
//! The last entry of a chain has the events of all: they have its time, and their operations are
//! counted through the chain. The entries before are found by `prevOpTime`, and read again one at a
//! time. So a stream holds the operations of at most one entry, which has at most 16 MiB; of the
//! others it holds the times.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use bson::{DateTime, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp};
use query::{Error, Result};

use super::super::event::Site;
use super::super::scope::Scope;
use super::links::{Links, group_of, operations};
use super::position::Position;
use super::{Entries, lost};
use crate::oplog::entry::{Entry, OpTime, Operation, Session};

/// An entry while its operations are read.
#[derive(Debug)]
pub(super) struct Unwinding {
    time: Timestamp,
    wall: DateTime,
    transaction: Option<(RawDocumentBuf, i64)>,
    /// The entry before in the chain.
    previous: Option<Timestamp>,
    /// The entry itself.
    last: RawDocumentBuf,
    is_group: bool,
    links: Arc<Links>,
    /// The place of the next entry in the links.
    next: usize,
    /// Operations of the current entry that concern the scope.
    queue: VecDeque<Item>,
}

/// An operation.
#[derive(Debug)]
struct Item {
    /// Its index in the chain.
    index: i64,
    /// Its entry and its index there.
    within: (Timestamp, i64),
    bytes: RawDocumentBuf,
}

impl Unwinding {
    /// An entry with the key `time`.
    pub(super) fn of(time: Timestamp, bytes: &RawDocument) -> Result<Unwinding> {
        let entry = Entry::parse(bytes)?;
        if entry.at.ts != time {
            return Err(Error::parse("an oplog entry has another time than its key"));
        }
        let group = match entry.operation {
            Operation::Command { command, .. } => group_of(command)?,
            _ => None,
        };
        // Only chains have the time of the entry before; so do statements of retryable writes,
        // which are numbered, while those of a transaction are not.
        let is_transaction = match group {
            Some(list) => entry.previous.is_some() && !is_retryable(list)?,
            None => false,
        };
        let transaction = entry.session.filter(|_| is_transaction);
        let previous = entry
            .previous
            .filter(|previous| previous.ts != OpTime::NONE.ts);
        Ok(Unwinding {
            time,
            wall: entry.wall,
            transaction: transaction.map(|session| (session.id.to_owned(), session.number)),
            previous: previous
                .filter(|_| group.is_some())
                .map(|previous| previous.ts),
            last: bytes.to_owned(),
            is_group: group.is_some(),
            links: Arc::new(Links::one(time)),
            next: 0,
            queue: VecDeque::new(),
        })
    }

    /// The same with the entries before in its chain, which the position remembers.
    pub(super) fn linked(
        mut self,
        entries: &mut dyn Entries,
        position: &mut Position,
    ) -> Result<Unwinding> {
        let Some(previous) = self.previous else {
            return Ok(self);
        };
        let links = match &position.links {
            Some(links) => Arc::clone(links),
            None => Arc::new(Links::walk((self.time, &self.last), previous, entries)?),
        };
        position.links = Some(Arc::clone(&links));
        self.links = links;
        Ok(self)
    }

    /// Reads the next entry of the chain, if all operations of the last one are done. False if
    /// there is none.
    pub(super) fn fill(
        &mut self,
        scope: &Scope,
        entries: &mut dyn Entries,
        position: &Position,
    ) -> Result<bool> {
        while self.queue.is_empty() {
            let Some((time, first)) = self.links.get(self.next) else {
                return Ok(false);
            };
            self.next += 1;
            let following = self.links.get(self.next);
            if following.is_some_and(|(_, index)| position.has_passed(index - 1)) {
                continue;
            }
            if time == self.time {
                let last = mem::take(&mut self.last);
                self.read((time, first), last, scope, position)?;
            } else {
                let bytes = entries.entry(time)?.ok_or_else(lost)?;
                self.read((time, first), bytes, scope, position)?;
            }
        }
        Ok(true)
    }

    fn read(
        &mut self,
        (time, first): (Timestamp, i64),
        entry: RawDocumentBuf,
        scope: &Scope,
        position: &Position,
    ) -> Result<()> {
        if !self.is_group {
            self.queue.push_back(Item {
                index: first,
                within: (time, 0),
                bytes: entry,
            });
            return Ok(());
        }
        for (element, place) in operations(&entry)?.iter_elements().zip(0..) {
            let RawBsonRef::Document(operation) = element?.value()? else {
                return Err(Error::type_mismatch(
                    "an oplog entry needs a document in 'applyOps'",
                ));
            };
            let index = first + place;
            if !position.has_passed(index) && scope.concerns_one(operation)? {
                self.queue.push_back(Item {
                    index,
                    within: (time, place),
                    bytes: operation.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The next operation, and its place.
    pub(super) fn front(&self) -> Option<(Site<'_>, &RawDocument)> {
        let item = self.queue.front()?;
        let transaction = self.transaction.as_ref();
        let site = Site {
            time: self.time,
            wall: self.wall,
            transaction: transaction.map(|(id, number)| Session {
                id,
                number: *number,
            }),
            index: item.index,
            within: item.within,
        };
        Some((site, &item.bytes))
    }

    /// All events of the next operation are done.
    pub(super) fn pop(&mut self) {
        self.queue.pop_front();
    }
}

/// Whether the operations are statements of a retryable write.
fn is_retryable(list: &RawArray) -> Result<bool> {
    match list.iter_elements().next() {
        None => Ok(false),
        Some(first) => match first?.value()? {
            RawBsonRef::Document(operation) => Ok(operation.get("stmtId")?.is_some()),
            _ => Ok(false),
        },
    }
}

//! The state of a change stream, and reading events from the oplog.
//!
//! A stream is a position: between two batches it holds neither entries nor a snapshot. A batch
//! seeks to the position, and reads entries until the batch is full or the visible ones end:
//!
//! ```text
//! Entries -> Scope::concerns -> group, chain -> Change -> Event -> the stages of the user
//! ```
//!
//! - S1. The events of a stream are those of its scope in the order of their tokens, each once.
//!   Resuming after any token of them gives exactly the events behind it.
//! - S2. A stream that resumes after an event finds it in the oplog, or fails with
//!   `ChangeStreamFatalError` (280). It finds events of kinds that it does not show, too.
//! - S3. A stream fails with `ChangeStreamHistoryLost` (286) where entries behind its position may
//!   be gone; it never skips them.
//! - S4. After an `invalidate` nothing follows. A stream that starts after an `invalidate`
//!   continues behind the event that caused it.
//! - S5. [`Stream::token`] is a position behind all events that were delivered, and before all
//!   others of the scope.
//!
//! The server gives the label `ResumableChangeStreamError` to errors of `getMore` on a stream with
//! these codes: 6, 7, 43, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388,
//! 13435, 13436. Codes 280, 286 and 260 never have it: resuming again cannot help.

mod links;
mod position;
mod unwind;

use bson::{RawDocument, RawDocumentBuf, Timestamp};
use query::{Code, Error, Result};

use super::event::{Change, Documents, Event, Shown, Site};
use super::options::{Options, Start};
use super::scope::Scope;
use super::token::Token;
use crate::oplog::entry::Operation;
pub use position::Position;
use position::{Found, after};
use unwind::Unwinding;

/// The entries of an oplog. Only visible ones are read (see `oplog::slots`).
pub trait Entries {
    /// Move before the first entry of the time or later. False if entries of the time or later may
    /// have been removed from the oplog.
    ///
    /// # Errors
    /// Those of the oplog.
    fn seek(&mut self, time: Timestamp) -> Result<bool>;

    /// The next entry with its time; `None` if all entries up to [`Entries::visible`] were read.
    /// Where many entries are read for few events, this is also the place to check whether the
    /// operation was interrupted or has used its time.
    ///
    /// # Errors
    /// Those of the oplog; the reason of an interruption.
    fn advance(&mut self) -> Result<Option<(Timestamp, &RawDocument)>>;

    /// The entry of a time, which is not after the last one of `advance`. Does not move.
    ///
    /// # Errors
    /// Those of the oplog.
    fn entry(&mut self, time: Timestamp) -> Result<Option<RawDocumentBuf>>;

    /// The time up to which `advance` returns entries.
    fn visible(&self) -> Timestamp;
}

/// A change stream.
#[derive(Clone, Debug)]
pub struct Stream {
    scope: Scope,
    /// The scope with events of all kinds, to find the event of a token.
    wide: Scope,
    shown: Shown,
    position: Position,
}

impl Stream {
    /// A stream with options; `visible` is the time of the last visible entry, and `splits` whether
    /// `$changeStreamSplitLargeEvent` is among its stages.
    ///
    /// # Errors
    /// `ChangeStreamFatalError` for a start after a fragment without that stage.
    pub fn new(options: Options, visible: Timestamp, splits: bool) -> Result<Stream> {
        let position = match options.start {
            Start::Now => Position::at(after(visible)),
            Start::At(time) => Position::at(time),
            Start::After(token) => {
                let event = token.stands_for();
                if event.is_some_and(|event| event.fragment.is_some()) && !splits {
                    return Err(fatal(
                        "cannot resume stream; the resume token is that of a fragment, and the \
                         pipeline does not include a $changeStreamSplitLargeEvent stage",
                    ));
                }
                Position::behind(token)
            }
        };
        Ok(Stream {
            wide: options.scope.widened(),
            scope: options.scope,
            shown: options.shown,
            position,
        })
    }

    /// What it follows: `db.c`, `db.` or nothing.
    pub(crate) fn followed(&self) -> &str {
        self.scope.followed()
    }

    /// Where a new stream would continue (S5): `postBatchResumeToken`.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.position.token
    }

    /// Whether an `invalidate` was delivered (S4): the cursor is exhausted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.position.over
    }

    /// The position, to which the stream can return.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    /// Return to an earlier position: after an event that did not fit into the batch.
    pub fn return_to(&mut self, position: Position) {
        self.position = position;
    }

    /// Read from the position on.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (S3); those of [`Entries`].
    pub fn read<'r>(
        &'r mut self,
        entries: &'r mut dyn Entries,
        documents: &'r dyn Documents,
    ) -> Result<Reading<'r>> {
        if !self.position.over && !entries.seek(self.position.time)? {
            return Err(lost());
        }
        Ok(Reading {
            stream: self,
            entries,
            documents,
            unwinding: None,
        })
    }
}

/// A stream while it is read.
pub struct Reading<'r> {
    stream: &'r mut Stream,
    entries: &'r mut dyn Entries,
    documents: &'r dyn Documents,
    /// The entry at the position.
    unwinding: Option<Unwinding>,
}

impl Reading<'_> {
    /// The next event; `None` if no visible entry has a further one, or the stream is over.
    ///
    /// # Errors
    /// `ChangeStreamFatalError` (S2); `ChangeStreamHistoryLost` (S3); those of [`Change::of`] for a
    /// damaged entry, of [`Change::event`] and of [`Entries`]. The position stays behind the last
    /// event.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        while !self.stream.position.over {
            if let Some(event) = self.of_entry()? {
                return Ok(Some(event));
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The position behind the last event.
    #[must_use]
    pub fn position(&self) -> Position {
        self.stream.position()
    }

    /// The next event of the current entry or its chain.
    fn of_entry(&mut self) -> Result<Option<Event>> {
        let Some(unwinding) = &mut self.unwinding else {
            return Ok(None);
        };
        let stream = &mut *self.stream;
        while unwinding.fill(stream.looked_for(), self.entries, &stream.position)? {
            while let Some((site, operation)) = unwinding.front() {
                let found = stream.of_operation(&site, operation, self.documents)?;
                let (event, ends) = found.map_or((None, true), |(event, ends)| (Some(event), ends));
                if ends {
                    unwinding.pop();
                }
                if event.is_some() {
                    return Ok(event);
                }
            }
        }
        stream.position.finish()?;
        self.unwinding = None;
        Ok(None)
    }

    /// Moves to the next entry that concerns the scope. False if no visible one does.
    fn advance(&mut self) -> Result<bool> {
        let stream = &mut *self.stream;
        loop {
            let Some((time, entry)) = self.entries.advance()? else {
                stream.position.reach(self.entries.visible())?;
                return Ok(false);
            };
            stream.position.begin(time)?;
            if stream.looked_for().concerns(entry)? {
                let unwinding = Unwinding::of(time, entry)?;
                let unwinding = unwinding.linked(self.entries, &mut stream.position)?;
                self.unwinding = Some(unwinding);
                return Ok(true);
            }
            stream.position.finish()?;
        }
    }
}

impl Stream {
    /// The scope of the entries that are read: all kinds until the event of a token is found.
    fn looked_for(&self) -> &Scope {
        match self.position.seeks() {
            true => &self.wide,
            false => &self.scope,
        }
    }

    /// The next event of an operation, and whether it is the last one.
    fn of_operation(
        &mut self,
        site: &Site<'_>,
        operation: &RawDocument,
        documents: &dyn Documents,
    ) -> Result<Option<(Event, bool)>> {
        let operation = Operation::parse(operation)?;
        let Some(change) = Change::of(self.looked_for(), &operation)? else {
            return Ok(None);
        };
        let invalidates = self.scope.is_invalidated_by(change.kind());
        for invalidate in [false, true] {
            let at = (site.index, invalidate);
            if invalidate && !invalidates || self.position.has_done(at) {
                continue;
            }
            let token = change.token(site, invalidate)?;
            let sought = self.position.find(&token)?;
            if sought == Found::Skipped || !self.shows(sought, &operation)? {
                self.position.skip(at);
                continue;
            }
            let event = match invalidate {
                true => Change::invalidate(site, token),
                false => {
                    let shown = (&self.scope, self.shown);
                    change.event((site, token), shown, documents)?
                }
            };
            self.position.deliver(at, &event);
            return Ok(Some((event, invalidate || !invalidates)));
        }
        Ok(None)
    }

    /// Whether the stream shows the event of an operation: of the event in whose middle it resumes,
    /// that is not known yet.
    fn shows(&self, sought: Found, operation: &Operation<'_>) -> Result<bool> {
        Ok(sought != Found::Fragment || Change::of(&self.scope, operation)?.is_some())
    }
}

/// The error of a stream whose position is before the entries that are kept (S3).
pub(crate) fn lost() -> Error {
    Error::new(
        Code::CHANGE_STREAM_HISTORY_LOST,
        "Resume of change stream was not possible, as the resume point may no longer be in the \
         oplog.",
    )
}

fn fatal(message: impl Into<String>) -> Error {
    Error::new(Code::CHANGE_STREAM_FATAL_ERROR, message)
}

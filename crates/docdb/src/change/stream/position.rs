//! The position of a stream.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::Timestamp;
use query::Result;

use super::super::event::Event;
use super::super::scope::Kind;
use super::super::token::Token;
use super::fatal;
use super::links::Links;

/// A position of a stream: small, and valid as long as the stream.
#[derive(Clone, Debug)]
pub struct Position {
    /// All entries before this time are done.
    pub(super) time: Timestamp,
    /// The last event of the entry at `time` that is done: the index of its operation, and whether
    /// it is the `invalidate` that follows.
    done: Option<(i64, bool)>,
    /// The chain of the entry at `time`, once it is known.
    pub(super) links: Option<Arc<Links>>,
    /// The token of the event behind which the stream starts, until the event is found.
    sought: Option<Token>,
    /// The token of the last event, or a mark.
    pub(super) token: Token,
    /// Whether an `invalidate` was delivered.
    pub(super) over: bool,
}

/// What an event is to a stream that starts behind one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is that event or before it.
    Skipped,
    /// It is that event, and the stream starts behind one of its fragments.
    Fragment,
    /// It is behind.
    Behind,
}

impl Position {
    /// Before the first entry of a time or later.
    pub(super) fn at(time: Timestamp) -> Position {
        Position {
            time,
            done: None,
            links: None,
            sought: None,
            token: Token::mark(time),
            over: false,
        }
    }

    /// Behind a token.
    pub(super) fn behind(token: Token) -> Position {
        let mut position = Position::at(token.time());
        position.sought = token.stands_for().is_some().then(|| token.clone());
        position.token = token;
        position
    }

    /// The first time whose entries are not done.
    pub(crate) fn begins(&self) -> Timestamp {
        self.time
    }

    /// Whether the event of a token is not found yet.
    pub(super) fn seeks(&self) -> bool {
        self.sought.is_some()
    }

    pub(super) fn has_done(&self, at: (i64, bool)) -> bool {
        self.done.is_some_and(|done| at <= done)
    }

    /// Whether all events of the operation with an index are done.
    pub(super) fn has_passed(&self, index: i64) -> bool {
        self.has_done((index, true))
    }

    /// Compare an event with the one behind which the stream starts.
    pub(super) fn find(&mut self, token: &Token) -> Result<Found> {
        let Some(sought) = &self.sought else {
            return Ok(Found::Behind);
        };
        match token.cmp(&sought.with_fragment(None)) {
            Ordering::Less => Ok(Found::Skipped),
            Ordering::Equal => {
                let event = sought.stands_for();
                let in_middle = event.is_some_and(|event| event.fragment.is_some());
                self.sought = None;
                Ok(if in_middle {
                    Found::Fragment
                } else {
                    Found::Skipped
                })
            }
            Ordering::Greater => Err(not_found(sought)),
        }
    }

    /// An event of the current entry is not delivered.
    pub(super) fn skip(&mut self, at: (i64, bool)) {
        self.done = Some(at);
    }

    /// An event of the current entry is delivered.
    pub(super) fn deliver(&mut self, at: (i64, bool), event: &Event) {
        assert!(
            self.token <= event.token || event.token == self.token.with_fragment(None),
            "S1: events are in the order of their tokens"
        );
        self.done = Some(at);
        self.token = event.token.clone();
        self.over = event.kind == Kind::Invalidate;
    }

    /// The next entry has this time.
    pub(super) fn begin(&mut self, time: Timestamp) -> Result<()> {
        if time != self.time {
            self.check_found(time)?;
            self.move_to(time);
        }
        Ok(())
    }

    /// The entry at the position is done.
    pub(super) fn finish(&mut self) -> Result<()> {
        let next = after(self.time);
        self.check_found(next)?;
        self.move_to(next);
        Ok(())
    }

    /// All entries up to `visible` are done.
    pub(super) fn reach(&mut self, visible: Timestamp) -> Result<()> {
        let next = after(visible);
        self.check_found(next)?;
        if self.time < next {
            self.move_to(next);
        }
        // The event of the last entry is behind the mark of its time.
        if !self.seeks() && self.token.time() < visible {
            self.token = Token::mark(visible);
        }
        Ok(())
    }

    fn move_to(&mut self, time: Timestamp) {
        self.time = time;
        self.done = None;
        self.links = None;
    }

    /// Checks that the event of the token was found if its entry is before `time`.
    fn check_found(&self, time: Timestamp) -> Result<()> {
        match &self.sought {
            Some(sought) if sought.time() < time => Err(not_found(sought)),
            _ => Ok(()),
        }
    }
}

/// The next time.
pub(super) fn after(time: Timestamp) -> Timestamp {
    match time.increment.checked_add(1) {
        Some(increment) => Timestamp { increment, ..time },
        None => Timestamp {
            time: time.time.saturating_add(1),
            increment: 0,
        },
    }
}

fn not_found(token: &Token) -> query::Error {
    fatal(format!(
        "cannot resume stream; the resume token was not found. {:?}",
        token.to_document()
    ))
}

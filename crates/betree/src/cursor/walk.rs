//! The cursor over a tree: from bucket to bucket, each merged.
//!
//! Invariants:
//! - I1: it stands before the first entry until it is advanced or sought; keys then come strictly
//!   ascending (forward) or descending (backward), within the cursor's bounds, until the next seek.
//! - I2: a bucket is left only when all of its keys have been passed. So the next one is entered at
//!   the bound of the last, whatever has become of the division into buckets meanwhile, and no key
//!   comes twice or is left out.
//! - I3: the bucket that is entered holds the bound it is entered at.
//! - I4: what it stands on does not change while it stands there: it has a copy, or the page.
//! - I5: between two calls it holds no buffer and no run, so that a cursor that rests keeps neither
//!   memory nor space. When it moves and what it read is gone, it enters the bucket again beyond
//!   the key it leaves: what its snapshot sees is the same in whatever has taken its place.
//!
//! A cursor belongs to one thread at a time and takes no lock but those inside buffers and cache.

use std::ops::Bound;
use std::sync::Arc;

use super::bounds::{self, Edge};
use super::input::{Input, Reading};
use super::merge::Merge;
use super::own::Own;
use super::stop::Stop;
use super::view::{At, Buckets, View};
use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::types::{Direction, Seq};

/// A cursor over the keys of a tree that a snapshot sees, with a transaction's own writes on top.
pub(crate) struct MergeCursor<'a> {
    buckets: Arc<dyn Buckets + Send + Sync>,
    own: Option<Own<'a>>,
    snapshot: Seq,
    start: Edge,
    end: Edge,
    direction: Direction,
    state: State,
    place: Option<Place<'a>>,
    /// The last key, only to check I1 in debug builds.
    last: Vec<u8>,
}

/// The position of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Entry,
    End,
    /// Reading failed, with an error of this kind.
    Failed(ErrorKind),
}

/// The bucket a cursor is in.
struct Place<'a> {
    lo: Arc<[u8]>,
    hi: Option<Arc<[u8]>>,
    merge: Merge<Input<'a>>,
}

impl<'a> MergeCursor<'a> {
    /// A cursor before the first entry within `start` and `end` in `direction`, of what `snapshot`
    /// sees of `buckets` with the writes of `own` on top. Reads nothing yet.
    pub(crate) fn new(
        buckets: Arc<dyn Buckets + Send + Sync>,
        own: Option<Own<'a>>,
        snapshot: Seq,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
    ) -> MergeCursor<'a> {
        MergeCursor {
            buckets,
            own,
            snapshot,
            start: bounds::own(start),
            end: bounds::own(end),
            direction,
            state: State::Before,
            place: None,
            last: Vec::new(),
        }
    }

    /// Move to the next entry. Returns false at the end, and then stays there.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, those of the buckets. The cursor then needs a seek before it can advance.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match (self.state, self.place.as_mut()) {
            (State::Entry, Some(place)) => match place.merge.next() {
                Ok(true) => {
                    self.check_order();
                    Ok(true)
                }
                Ok(false) => self.leave(),
                Err(stop) => self.resume(stop),
            },
            _ => self.begin(),
        }
    }

    /// Go to the first entry at or beyond `key` in the cursor's direction, within its bounds; it
    /// may also go back. False when there is none: the cursor is then at its end.
    ///
    /// # Errors
    /// As [`MergeCursor::advance`].
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let from = match (self.direction, &self.start, &self.end) {
            (Direction::Forward, start @ (Bound::Included(low) | Bound::Excluded(low)), _)
                if *key <= **low =>
            {
                start.clone()
            }
            (Direction::Backward, _, end @ (Bound::Included(high) | Bound::Excluded(high)))
                if **high <= *key =>
            {
                end.clone()
            }
            _ => Bound::Included(Arc::from(key)),
        };
        self.restart(from)
    }

    /// The key of the current entry. Empty when there is none.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match (self.state, &self.place) {
            (State::Entry, Some(place)) => place.merge.entry().map_or(&[], |entry| entry.key),
            _ => &[],
        }
    }

    /// The value of the current entry. Empty when there is none.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match (self.state, &self.place) {
            (State::Entry, Some(place)) => place.merge.entry().map_or(&[], |entry| entry.value),
            _ => &[],
        }
    }

    /// `advance` without a current entry.
    #[inline(never)]
    fn begin(&mut self) -> Result<bool> {
        match self.state {
            State::End => Ok(false),
            State::Failed(kind) => Err(Error::new(
                kind,
                "the cursor stopped at an earlier error: seek, or make another",
            )),
            State::Before | State::Entry => {
                assert_eq!(self.state, State::Before, "I1: an entry is in a bucket");
                self.restart(self.first().clone())
            }
        }
    }

    /// Continue after a failed step: enter the bucket again if its data are gone (I5).
    #[cold]
    fn resume(&mut self, stop: Stop) -> Result<bool> {
        match stop {
            Stop::Failed(error) => self.arrive(Err(error)),
            Stop::Gone(left) => {
                let left = left.expect("a walk that advances leaves a key");
                self.place = None;
                self.begin_at(Bound::Excluded(Arc::from(left)))
            }
        }
    }

    /// Start at `from`, which is within the cursor's bounds on the side where it starts.
    fn restart(&mut self, from: Edge) -> Result<bool> {
        self.last.clear();
        self.begin_at(from)
    }

    fn begin_at(&mut self, from: Edge) -> Result<bool> {
        let (here, limit) = (bounds::lend(&from), bounds::lend(self.limit()));
        let nothing = match self.direction {
            Direction::Forward => bounds::crossed(here, limit),
            Direction::Backward => bounds::crossed(limit, here),
        };
        let found = if nothing { Ok(false) } else { self.walk(from) };
        self.arrive(found)
    }

    /// Leave the bucket, whose keys have all been passed, for the next ones.
    #[inline(never)]
    fn leave(&mut self) -> Result<bool> {
        let found = match self.beyond() {
            Some(from) => self.walk(from),
            None => Ok(false),
        };
        self.arrive(found)
    }

    /// Record the result of a step.
    fn arrive(&mut self, found: Result<bool>) -> Result<bool> {
        self.state = match &found {
            Ok(true) => State::Entry,
            Ok(false) => State::End,
            Err(error) => State::Failed(error.kind()),
        };
        if found.is_err() {
            // After an error its sources may be anywhere.
            self.place = None;
        }
        if self.state == State::Entry {
            self.check_order();
        }
        found
    }

    /// Find the first entry within `from`, in the current bucket or in later ones.
    fn walk(&mut self, mut from: Edge) -> Result<bool> {
        // Held until an entry is found, so that what was just entered cannot be gone.
        let mut held: Option<View> = None;
        loop {
            if !self.reaches(bounds::lend(&from)) {
                self.place = None;
                let Some(view) = self.view(bounds::lend(&from))? else {
                    return Ok(false);
                };
                self.place = Some(self.enter(&view));
                held = Some(view);
                assert!(
                    self.reaches(bounds::lend(&from)),
                    "I3: the bucket does not hold the bound {from:?}"
                );
            }
            let place = self.place.as_mut().expect("entered above");
            let sought = place.merge.seek(bounds::lend(&from));
            match sought.and_then(|()| place.merge.next()) {
                Ok(true) => return Ok(true),
                Ok(false) => match self.beyond() {
                    Some(next) => from = next,
                    None => return Ok(false),
                },
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Gone(_)) => {
                    // An earlier call entered the bucket; this one has found nothing in it.
                    assert!(held.is_none(), "I5: what is held is not gone");
                    self.place = None;
                }
            }
        }
    }

    /// The bucket in which a cursor that starts at `from` begins.
    fn view(&self, from: Bound<&[u8]>) -> Result<Option<View>> {
        let at = match (self.direction, from) {
            (Direction::Forward, Bound::Unbounded) => At::First,
            (Direction::Backward, Bound::Unbounded) => At::Last,
            (Direction::Backward, Bound::Excluded(key)) => At::Before(key),
            (_, Bound::Included(key) | Bound::Excluded(key)) => At::Key(key),
        };
        self.buckets.view(at)
    }

    /// The state of a cursor in the bucket `view`.
    fn enter(&self, view: &View) -> Place<'a> {
        let reading = Reading {
            own: self.own,
            snapshot: self.snapshot,
            direction: self.direction,
            lower: bounds::later(&self.start, &view.lo),
            upper: bounds::sooner(&self.end, view.hi.as_ref()),
        };
        assert!(
            view.hi.as_ref().is_none_or(|hi| view.lo < *hi),
            "a bucket has room for keys"
        );
        assert!(
            !bounds::crossed(bounds::lend(&reading.lower), bounds::lend(&reading.upper)),
            "I2: only buckets that reach into the range are entered"
        );
        Place {
            lo: Arc::clone(&view.lo),
            hi: view.hi.clone(),
            merge: reading.merge(view),
        }
    }

    /// Whether a cursor that starts at `from` begins in the current bucket.
    fn reaches(&self, from: Bound<&[u8]>) -> bool {
        let Some(Place { lo, hi, .. }) = &self.place else {
            return false;
        };
        let within = |key: &[u8]| **lo <= *key && hi.as_deref().is_none_or(|hi| key < hi);
        match (self.direction, from) {
            (Direction::Forward, Bound::Unbounded) => lo.is_empty(),
            (Direction::Backward, Bound::Unbounded) => hi.is_none(),
            (Direction::Backward, Bound::Excluded(key)) => {
                **lo < *key && hi.as_deref().is_none_or(|hi| key <= hi)
            }
            (_, Bound::Included(key) | Bound::Excluded(key)) => within(key),
        }
    }

    /// The bound at which the cursor continues behind its bucket; `None` if its range ends there.
    fn beyond(&self) -> Option<Edge> {
        let place = self.place.as_ref()?;
        let from = match self.direction {
            Direction::Forward if planted(Plant::ScanSkipsFirst) => {
                Bound::Excluded(Arc::clone(place.hi.as_ref()?))
            }
            Direction::Forward => Bound::Included(Arc::clone(place.hi.as_ref()?)),
            Direction::Backward => Bound::Excluded(Arc::clone(&place.lo)),
        };
        let nothing = match self.direction {
            Direction::Forward => bounds::crossed(bounds::lend(&from), bounds::lend(&self.end)),
            Direction::Backward => bounds::crossed(bounds::lend(&self.start), bounds::lend(&from)),
        };
        (!nothing).then_some(from)
    }

    /// The bound at which the cursor starts.
    fn first(&self) -> &Edge {
        match self.direction {
            Direction::Forward => &self.start,
            Direction::Backward => &self.end,
        }
    }

    /// The bound at which the cursor ends.
    fn limit(&self) -> &Edge {
        match self.direction {
            Direction::Forward => &self.end,
            Direction::Backward => &self.start,
        }
    }

    /// Check I1 in debug builds: the order, and the bounds.
    #[inline]
    fn check_order(&mut self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let mut last = std::mem::take(&mut self.last);
        let key = self.key();
        let ordered = match self.direction {
            _ if last.is_empty() => true,
            Direction::Forward => *last < *key,
            Direction::Backward => *key < *last,
        };
        assert!(
            ordered,
            "I1: {} after {}",
            key.escape_ascii(),
            last.escape_ascii()
        );
        assert!(
            bounds::after(key, bounds::lend(&self.start)),
            "I1: before the start"
        );
        assert!(
            bounds::before(key, bounds::lend(&self.end)),
            "I1: after the end"
        );
        last.clear();
        last.extend_from_slice(key);
        self.last = last;
    }
}

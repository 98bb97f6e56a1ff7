//! The merge of a bucket's sources: the newest source with a key determines its value.
//!
//! Each source's current key is represented by 8 of its bytes (those after the bytes that all keys
//! of the range share), as a number that ascends in the direction of the walk; whole keys are
//! compared only where two numbers are equal. There are seldom more than a handful of sources, so
//! the least head is found by looking at all; and while the source that was least stays below the
//! second least of then (`second`) not even that is needed. A single source is walked alone.
//!
//! Invariants:
//! - I1: `heads` names each source that stands on an entry once, newest first.
//! - I2: while an entry is current, `winner` is the newest of the heads with the least key, and
//!   `tied` are the others with that key, ascending; if none is tied, `second` is the one with the
//!   least key but the winner's, if there is one.
//! - I3: what was current stays so, and borrowed, until the next call of `next` or `seek`.
//! - I4: entries beyond `limit` are never current.
//! - I5: sources are advanced only from the current key, tombstones among them. So the key that
//!   comes with [`super::stop::Stop::Gone`] is the current one, and all before it are passed.

#![expect(
    clippy::indexing_slicing,
    reason = "heads name sources by index (I1), winner and tied are indexes of heads (I2)"
)]

use std::cmp::Ordering;
use std::ops::Bound;

use super::bounds::{self, Edge};
use super::source::Source;
use super::stop::Step;
use crate::plant::{Plant, planted};
use crate::types::{Direction, Entry, Op, head};

/// The sources of one bucket as one.
pub(super) struct Merge<S> {
    sources: Vec<S>,
    heads: Vec<Head>,
    winner: usize,
    tied: Vec<usize>,
    second: usize,
    standing: bool,
    direction: Direction,
    limit: Edge,
    prefix: Vec<u8>,
}

/// A source with a current entry.
#[derive(Clone, Copy)]
struct Head {
    order: u64,
    source: usize,
}

impl<S: Source> Merge<S> {
    /// Merge `sources`, given newest first. Their keys are within `lower` and `upper`; with
    /// `overhang` they may exceed the bound at which the cursor ends. There is no current entry
    /// before a seek.
    pub(super) fn new(
        sources: Vec<S>,
        direction: Direction,
        lower: &Edge,
        upper: &Edge,
        overhang: bool,
    ) -> Merge<S> {
        let (low, high) = (bounds::lend(lower), bounds::lend(upper));
        let limit = match direction {
            _ if !overhang => Bound::Unbounded,
            Direction::Forward => upper.clone(),
            Direction::Backward => lower.clone(),
        };
        let shared = bounds::shared(low, high);
        let prefix = match low {
            Bound::Included(key) | Bound::Excluded(key) => &key[..shared],
            Bound::Unbounded => &[],
        };
        Merge {
            heads: Vec::with_capacity(sources.len()),
            sources,
            winner: 0,
            tied: Vec::new(),
            second: 0,
            standing: false,
            direction,
            limit,
            prefix: prefix.to_vec(),
        }
    }

    /// Move before the first entry within `from`.
    pub(super) fn seek(&mut self, from: Bound<&[u8]>) -> Step {
        self.heads.clear();
        self.tied.clear();
        self.standing = false;
        for source in 0..self.sources.len() {
            self.sources[source].seek(from)?;
            if let Some(order) = self.order(source) {
                self.heads.push(Head { order, source });
            }
        }
        Ok(())
    }

    /// Move to the next entry that is not a tombstone. Returns false at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Step<bool> {
        loop {
            if self.standing {
                self.leave()?;
            } else {
                self.select();
            }
            let Some(head) = self.heads.get(self.winner) else {
                assert!(self.heads.is_empty(), "I2: a head wins while there is one");
                self.standing = false;
                return Ok(false);
            };
            self.standing = true;
            debug_assert!(
                self.tied.iter().all(|&index| self.winner < index),
                "I2: the newest of those that tie wins"
            );
            let entry = self.sources[head.source].entry().expect("I1");
            if !self.allows(entry.key) {
                self.end();
                return Ok(false);
            }
            if entry.op == Op::Put {
                return Ok(true);
            }
            if planted(Plant::ScanForgetsTombstone)
                && let Some(older) = self.tied.pop()
            {
                // Advance the source with the tombstone; entries that it hides are skipped below.
                self.sources[head.source].advance()?;
                self.winner = older;
                return Ok(true);
            }
        }
    }

    /// The current entry.
    #[inline]
    pub(super) fn entry(&self) -> Option<Entry<'_>> {
        if !self.standing {
            return None;
        }
        let head = self.heads.get(self.winner)?;
        self.sources[head.source].entry()
    }

    /// Move the sources with the current key beyond it, and find the new least head.
    #[inline]
    fn leave(&mut self) -> Step {
        if !self.tied.is_empty() {
            return self.leave_all();
        }
        let head = self.heads[self.winner];
        self.sources[head.source].advance()?;
        if self.heads.len() == 1 {
            if self.sources[head.source].entry().is_none() {
                self.heads.clear();
            }
            return Ok(());
        }
        if !self.refresh(self.winner) || !self.precedes(self.winner, self.second) {
            self.select();
        }
        Ok(())
    }

    /// As `leave`, if several sources have the current key.
    #[inline(never)]
    fn leave_all(&mut self) -> Step {
        // From the last one on, so that a removed head does not move those still to be visited.
        while let Some(index) = self.tied.pop() {
            debug_assert!(self.winner < index, "I2: the winner is the newest");
            self.sources[self.heads[index].source].advance()?;
            self.refresh(index);
        }
        self.sources[self.heads[self.winner].source].advance()?;
        self.refresh(self.winner);
        self.select();
        Ok(())
    }

    /// Update the head `index` from its source. Returns false if the source has ended.
    #[inline]
    fn refresh(&mut self, index: usize) -> bool {
        let order = self.order(self.heads[index].source);
        match order {
            Some(order) => self.heads[index].order = order,
            None => drop(self.heads.remove(index)),
        }
        order.is_some()
    }

    /// Find the least head, the heads that tie with it, and the second least.
    fn select(&mut self) {
        self.tied.clear();
        self.winner = 0;
        let mut second = None;
        for index in 1..self.heads.len() {
            match self.compare(index, self.winner) {
                Ordering::Less => {
                    second = Some(self.winner);
                    self.tied.clear();
                    self.winner = index;
                }
                Ordering::Equal => self.tied.push(index),
                Ordering::Greater => {
                    if second.is_none_or(|second| self.precedes(index, second)) {
                        second = Some(index);
                    }
                }
            }
        }
        self.second = second.unwrap_or(self.winner);
    }

    /// Whether head `one` comes before head `other` in the direction of the cursor.
    #[inline]
    fn precedes(&self, one: usize, other: usize) -> bool {
        self.compare(one, other) == Ordering::Less
    }

    /// Compare the keys of two heads in the direction of the cursor.
    #[inline]
    fn compare(&self, one: usize, other: usize) -> Ordering {
        let (one, other) = (self.heads[one], self.heads[other]);
        let order = one.order.cmp(&other.order);
        order.then_with(|| self.compare_keys(one.source, other.source))
    }

    /// Compare the whole keys of two sources in the direction of the cursor.
    #[inline(never)]
    fn compare_keys(&self, one: usize, other: usize) -> Ordering {
        let key = |source: usize| self.sources[source].entry().expect("I1").key;
        let order = key(one).cmp(key(other));
        match self.direction {
            Direction::Forward => order,
            Direction::Backward => order.reverse(),
        }
    }

    /// The head of a source; `None` if it has no more entries within the limit.
    #[inline]
    fn order(&self, source: usize) -> Option<u64> {
        let key = self.sources[source].entry()?.key;
        let skip = self.prefix.len();
        if 0 < skip && key.get(..skip) != Some(self.prefix.as_slice()) {
            // The entry is beyond the limit, like all that follow: keys within it share the prefix.
            debug_assert!(
                !self.allows(key),
                "I4: a key within the limit lacks the prefix"
            );
            return None;
        }
        let order = head(&key[skip..]);
        Some(match self.direction {
            Direction::Forward => order,
            Direction::Backward => !order,
        })
    }

    /// Whether `key` is within the limit.
    #[inline]
    fn allows(&self, key: &[u8]) -> bool {
        match (self.direction, &self.limit) {
            (_, Bound::Unbounded) => true,
            (Direction::Forward, limit) => bounds::before(key, bounds::lend(limit)),
            (Direction::Backward, limit) => bounds::after(key, bounds::lend(limit)),
        }
    }

    /// Record that no source has more entries within the limit.
    fn end(&mut self) {
        self.heads.clear();
        self.tied.clear();
        self.standing = false;
    }
}

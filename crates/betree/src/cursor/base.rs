//! The base of a bucket as a source: runs with disjoint key ranges, one after the other.
//!
//! Invariants:
//! - I1: the runs are ascending and disjoint, so that all versions of a key are in one run.
//! - I2: while it is not at its end, the run `at` is open and stands on an entry.
//!
//! Runs are opened as they are reached: a walk that ends in the first never reads the others. None
//! is held, nor is the list of them ([`RunCursor`]).

use std::ops::Bound;
use std::sync::{Arc, Weak};

use super::bounds::{self, Edge};
use super::source::Source;
use super::stop::{Step, Stop};
use super::visible::Visible;
use crate::run::{Run, RunCursor};
use crate::types::{Direction, Entry, Seq};

/// The runs of a base as one source.
pub(super) struct Base {
    runs: Weak<[Arc<Run>]>,
    /// Number of runs.
    count: usize,
    direction: Direction,
    snapshot: Seq,
    limit: Edge,
    at: usize,
    open: Option<Visible<RunCursor>>,
}

/// The versions in `run` that `snapshot` sees.
pub(super) fn visible(run: &Arc<Run>, direction: Direction, snapshot: Seq) -> Visible<RunCursor> {
    let max_seq = run.meta().max_seq;
    Visible::new(run.cursor(direction), direction, snapshot, max_seq)
}

impl Base {
    /// The versions in `runs` that `snapshot` sees, in `direction`, up to `limit`.
    pub(super) fn new(
        runs: &Arc<[Arc<Run>]>,
        direction: Direction,
        snapshot: Seq,
        limit: Edge,
    ) -> Base {
        let disjoint = |pair: &[Arc<Run>]| match pair {
            [one, next] => one.meta().max_key < next.meta().min_key,
            _ => true,
        };
        debug_assert!(runs.windows(2).all(disjoint), "I1: a base is disjoint");
        Base {
            runs: Arc::downgrade(runs),
            count: runs.len(),
            direction,
            snapshot,
            limit,
            at: 0,
            open: None,
        }
    }

    /// The index of the run in which a cursor that starts at `from` begins.
    fn first(&self, runs: &[Arc<Run>], from: Bound<&[u8]>) -> Option<usize> {
        match self.direction {
            Direction::Forward => {
                let passed = |run: &Arc<Run>| !bounds::after(&run.meta().max_key, from);
                Some(runs.partition_point(passed))
            }
            Direction::Backward => {
                let reached = |run: &Arc<Run>| bounds::before(&run.meta().min_key, from);
                runs.partition_point(reached).checked_sub(1)
            }
        }
    }

    /// Open run `at` and those behind it, until one has a visible entry within `from`.
    fn enter(&mut self, runs: &[Arc<Run>], mut at: Option<usize>, from: Bound<&[u8]>) -> Step {
        while let Some(run) = at.and_then(|index| runs.get(index)) {
            let within = match self.direction {
                Direction::Forward => {
                    bounds::before(&run.meta().min_key, bounds::lend(&self.limit))
                }
                Direction::Backward => {
                    bounds::after(&run.meta().max_key, bounds::lend(&self.limit))
                }
            };
            if !within {
                break;
            }
            let index = at.expect("a run was found at it");
            let mut cursor = match self.open.take() {
                Some(open) if self.at == index => open,
                _ => visible(run, self.direction, self.snapshot),
            };
            cursor.seek(from)?;
            let empty = cursor.entry().is_none();
            self.at = index;
            self.open = Some(cursor);
            if !empty {
                return Ok(());
            }
            at = self.after(index);
        }
        self.open = None;
        Ok(())
    }

    /// Move to the run behind the one that has ended.
    #[cold]
    fn turn(&mut self) -> Step {
        let Some(next) = self.after(self.at) else {
            self.open = None;
            return Ok(());
        };
        match (self.runs.upgrade(), &self.open) {
            (Some(runs), _) => self.enter(&runs, Some(next), Bound::Unbounded),
            (None, open) => Err(Stop::Gone(open.as_ref().map(|open| open.left().into()))),
        }
    }

    /// The index of the run behind `index` in the direction, if there is one.
    fn after(&self, index: usize) -> Option<usize> {
        match self.direction {
            Direction::Forward => Some(index + 1).filter(|next| *next < self.count),
            Direction::Backward => index.checked_sub(1),
        }
    }
}

impl Source for Base {
    fn seek(&mut self, from: Bound<&[u8]>) -> Step {
        let Some(runs) = self.runs.upgrade() else {
            return Err(Stop::Gone(None));
        };
        self.enter(&runs, self.first(&runs, from), from)
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.open.as_ref()?.entry()
    }

    #[inline]
    fn advance(&mut self) -> Step {
        let open = self.open.as_mut().expect("I2: it stands on an entry");
        open.advance()?;
        if open.entry().is_some() {
            return Ok(());
        }
        self.turn()
    }
}

//! The sources of a bucket's merge: own writes, buffers, deltas, base.

use std::ops::Bound;
use std::sync::Arc;

use super::base::{self, Base};
use super::bounds::{self, Edge};
use super::merge::Merge;
use super::own::Own;
use super::source::Source;
use super::stop::Step;
use super::view::View;
use super::visible::{Versions, Visible};
use super::windowed::{Seen, Windowed};
use crate::buffer::{Buffer, WriteSet};
use crate::error::Result;
use crate::run::{Run, RunCursor};
use crate::types::{Direction, Entry, Seq};

/// One source of a bucket.
pub(super) enum Input<'a> {
    /// The transaction's own writes.
    Own(Windowed<&'a WriteSet>),
    /// A buffer.
    Buffer(Windowed<Seen>),
    /// A run of changes: of the bucket, or of the transaction's own writes.
    Delta(Visible<RunCursor>),
    /// The base.
    Base(Base),
}

impl Source for Input<'_> {
    fn seek(&mut self, from: Bound<&[u8]>) -> Step {
        match self {
            Input::Own(own) => own.seek(from),
            Input::Buffer(buffer) => buffer.seek(from),
            Input::Delta(run) => run.seek(from),
            Input::Base(base) => base.seek(from),
        }
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        match self {
            Input::Base(base) => base.entry(),
            Input::Buffer(buffer) => buffer.entry(),
            Input::Delta(run) => run.entry(),
            Input::Own(own) => own.entry(),
        }
    }

    #[inline]
    fn advance(&mut self) -> Step {
        match self {
            Input::Base(base) => base.advance(),
            Input::Buffer(buffer) => buffer.advance(),
            Input::Delta(run) => run.advance(),
            Input::Own(own) => own.advance(),
        }
    }
}

impl Versions for RunCursor {
    #[inline]
    fn seek(&mut self, from: Bound<&[u8]>) -> Result<()> {
        RunCursor::seek(self, from)
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        RunCursor::entry(self)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        RunCursor::advance(self)
    }

    fn is_gone(&self) -> bool {
        RunCursor::is_gone(self)
    }

    fn passed(&self) -> &[u8] {
        RunCursor::passed(self)
    }
}

/// The part of one bucket that a cursor reads.
pub(super) struct Reading<'a> {
    pub(super) own: Option<Own<'a>>,
    pub(super) snapshot: Seq,
    pub(super) direction: Direction,
    /// The lower bound of the cursor within the bucket.
    pub(super) lower: Edge,
    /// The upper bound of the cursor within the bucket.
    pub(super) upper: Edge,
}

impl<'a> Reading<'a> {
    /// The merge of the content of `view` within the bounds. It reads through `view` while that
    /// lives, and holds no part of it.
    pub(super) fn merge(&self, view: &View) -> Merge<Input<'a>> {
        let most = view.buffers.len() + view.deltas.len() + 2;
        let mut inputs = Vec::with_capacity(most);
        let mut overhang = false;
        if let Some(Own { writes, runs }) = self.own {
            if 0 < writes.entries() {
                let windows = Windowed::new(writes, self.direction, self.limit().clone());
                inputs.push(Input::Own(windows));
            }
            for run in runs.iter().filter(|run| self.meets(run)) {
                overhang |= self.exceeds(run);
                let visible = base::visible(run, self.direction, Seq::MAX);
                inputs.push(Input::Delta(visible));
            }
        }
        for buffer in view.buffers.iter().filter(|buffer| self.sees(buffer)) {
            let seen = Seen {
                buffer: Arc::downgrade(buffer),
                snapshot: self.snapshot,
            };
            let windows = Windowed::new(seen, self.direction, self.limit().clone());
            inputs.push(Input::Buffer(windows));
        }
        for run in view.deltas.iter().filter(|run| self.meets(run)) {
            overhang |= self.exceeds(run);
            let visible = base::visible(run, self.direction, self.snapshot);
            inputs.push(Input::Delta(visible));
        }
        if view.base.iter().any(|run| self.meets(run)) {
            let mut met = view.base.iter().filter(|run| self.meets(run));
            overhang |= met.any(|run| self.exceeds(run));
            let limit = self.limit().clone();
            let base = Base::new(&view.base, self.direction, self.snapshot, limit);
            inputs.push(Input::Base(base));
        }
        Merge::new(inputs, self.direction, &self.lower, &self.upper, overhang)
    }

    /// The bound at which the cursor ends.
    fn limit(&self) -> &Edge {
        match self.direction {
            Direction::Forward => &self.upper,
            Direction::Backward => &self.lower,
        }
    }

    /// Whether the snapshot sees anything of `buffer`. All commits that it sees have been applied,
    /// so a buffer that is empty for it stays so.
    fn sees(&self, buffer: &Buffer) -> bool {
        buffer.first_seq().is_some_and(|seq| seq <= self.snapshot)
    }

    /// Whether `run` may have keys within the bounds.
    fn meets(&self, run: &Run) -> bool {
        bounds::after(&run.meta().max_key, bounds::lend(&self.lower))
            && bounds::before(&run.meta().min_key, bounds::lend(&self.upper))
    }

    /// Whether `run` has keys beyond the end of the cursor.
    fn exceeds(&self, run: &Run) -> bool {
        match self.direction {
            Direction::Forward => !bounds::before(&run.meta().max_key, bounds::lend(&self.upper)),
            Direction::Backward => !bounds::after(&run.meta().min_key, bounds::lend(&self.lower)),
        }
    }
}

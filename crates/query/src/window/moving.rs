//! Accumulators over windows that move.
//!
//! Both ends of a window only ever move forward. While the start stays, documents are added to one
//! state. When the start moves, accumulators of fixed size use two stacks: `behind` is the state of
//! the documents added last; for each document before these, `suffixes` has the state from this
//! document to the last document before `behind`. Dropping the first document pops a state; when
//! `suffixes` is empty, it is rebuilt over the window, and `behind` becomes empty. So each document
//! is added twice and merged once, however long the window is. Accumulators whose result grows with
//! the window are recomputed for every window: their result costs as much as the recomputation.

use std::ops::Range;

use bson::{Bson, Document};

use crate::accumulator::{Accumulator, State};
use crate::expr::{Env, Variables};
use crate::{Result, meter};

/// An accumulator that moves through a partition.
pub(super) struct Moving<'a> {
    accumulator: &'a Accumulator,
    documents: &'a [Document],
    vars: &'a Variables,
    empty: Document,
    window: Range<usize>,
    behind: State,
    suffixes: Vec<State>,
    /// Bytes charged to the meter for the states.
    charged: usize,
}

impl<'a> Moving<'a> {
    pub(super) fn new(
        accumulator: &'a Accumulator,
        documents: &'a [Document],
        vars: &'a Variables,
    ) -> Result<Moving<'a>> {
        let empty = Document::new();
        let behind = accumulator.start(&Env::new(&empty, vars))?;
        Ok(Moving {
            accumulator,
            documents,
            vars,
            empty,
            window: 0..0,
            behind,
            suffixes: Vec::new(),
            charged: 0,
        })
    }

    /// The result over `window`, which must neither start nor end before the previous window.
    pub(super) fn over(&mut self, window: Range<usize>) -> Result<Bson> {
        if window.start != self.window.start && !self.accumulator.has_fixed_size() {
            self.restart(window.start)?;
        }
        if window.start >= self.window.end {
            self.restart(window.start)?;
        }
        self.extend(window.end)?;
        self.shorten(window.start)?;
        let behind = self.copy(&self.behind)?;
        let Some(suffix) = self.suffixes.last() else {
            return Ok(self.accumulator.finish(behind));
        };
        let mut state = self.copy(suffix)?;
        self.accumulator.merge(&mut state, behind)?;
        Ok(self.accumulator.finish(state))
    }

    /// Copies a state for a result; the copy stays charged to the meter.
    fn copy(&self, state: &State) -> Result<State> {
        meter::read(state.memory())?;
        meter::charge("$setWindowFields", size_of::<Bson>() + state.memory())?;
        Ok(state.clone())
    }

    /// Charges or releases the change of the size of the states.
    fn grown(&mut self, before: usize, after: usize) -> Result<()> {
        let (more, less) = (after.saturating_sub(before), before.saturating_sub(after));
        meter::charge("$setWindowFields", more)?;
        meter::release(less);
        self.charged = (self.charged + more).saturating_sub(less);
        Ok(())
    }

    fn fresh(&self) -> Result<State> {
        self.accumulator.start(&Env::new(&self.empty, self.vars))
    }

    fn restart(&mut self, at: usize) -> Result<()> {
        self.suffixes.clear();
        meter::release(std::mem::take(&mut self.charged));
        self.behind = self.fresh()?;
        self.window = at..at;
        Ok(())
    }

    fn extend(&mut self, to: usize) -> Result<()> {
        let added = self.documents.get(self.window.end..to).unwrap_or(&[]);
        for document in added {
            let env = Env::new(document, self.vars);
            let before = self.behind.memory();
            self.accumulator.add(&mut self.behind, &env)?;
            self.grown(before, self.behind.memory())?;
        }
        self.window.end = self.window.end.max(to);
        Ok(())
    }

    fn shorten(&mut self, to: usize) -> Result<()> {
        while self.window.start < to {
            if self.suffixes.is_empty() {
                self.turn()?;
            }
            if let Some(dropped) = self.suffixes.pop() {
                let bytes = size_of::<State>() + dropped.memory();
                meter::release(bytes);
                self.charged = self.charged.saturating_sub(bytes);
            }
            self.window.start += 1;
        }
        Ok(())
    }

    /// Rebuilds `suffixes` over all documents of the window.
    fn turn(&mut self) -> Result<()> {
        let documents = self.documents.get(self.window.clone()).unwrap_or(&[]);
        for document in documents.iter().rev() {
            let mut state = self.fresh()?;
            self.accumulator
                .add(&mut state, &Env::new(document, self.vars))?;
            if let Some(rest) = self.suffixes.last() {
                self.accumulator.merge(&mut state, rest.clone())?;
            }
            self.grown(0, size_of::<State>() + state.memory())?;
            self.suffixes.push(state);
        }
        meter::release(self.behind.memory());
        self.charged = self.charged.saturating_sub(self.behind.memory());
        self.behind = self.fresh()?;
        Ok(())
    }
}

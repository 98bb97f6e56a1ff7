//! Accumulators over windows that move.
//!
//! Both ends of a window only ever move forward. While the start stays, documents are added to one
//! state. When it moves, accumulators of fixed size use two stacks: `behind` is the state of the
//! documents added last, `suffixes` holds for each document before those the state from it to the
//! last of them. Dropping the first document pops a state; when none is left, `behind` is turned
//! into suffixes. So each document is added twice and merged once, however long the window is.
//! Accumulators whose result grows with the window are computed anew: the result costs as much.

use std::ops::Range;

use bson::{Bson, Document};

use crate::Result;
use crate::accumulator::{Accumulator, State};
use crate::expr::{Env, Variables};

/// An accumulator on its way through a partition.
pub(super) struct Moving<'a> {
    accumulator: &'a Accumulator,
    documents: &'a [Document],
    vars: &'a Variables,
    empty: Document,
    window: Range<usize>,
    behind: State,
    suffixes: Vec<State>,
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
        })
    }

    /// The result over a window that begins and ends no earlier than the one before.
    pub(super) fn over(&mut self, window: Range<usize>) -> Result<Bson> {
        if window.start != self.window.start && !self.accumulator.has_fixed_size() {
            self.restart(window.start)?;
        }
        if window.start >= self.window.end {
            self.restart(window.start)?;
        }
        self.extend(window.end)?;
        self.shorten(window.start)?;
        let mut state = match self.suffixes.last() {
            None => return Ok(self.accumulator.finish(self.behind.clone())),
            Some(suffix) => suffix.clone(),
        };
        self.accumulator.merge(&mut state, self.behind.clone())?;
        Ok(self.accumulator.finish(state))
    }

    fn fresh(&self) -> Result<State> {
        self.accumulator.start(&Env::new(&self.empty, self.vars))
    }

    fn restart(&mut self, at: usize) -> Result<()> {
        self.suffixes.clear();
        self.behind = self.fresh()?;
        self.window = at..at;
        Ok(())
    }

    fn extend(&mut self, to: usize) -> Result<()> {
        let added = self.documents.get(self.window.end..to).unwrap_or(&[]);
        for document in added {
            let env = Env::new(document, self.vars);
            self.accumulator.add(&mut self.behind, &env)?;
        }
        self.window.end = self.window.end.max(to);
        Ok(())
    }

    fn shorten(&mut self, to: usize) -> Result<()> {
        while self.window.start < to {
            if self.suffixes.is_empty() {
                self.turn()?;
            }
            self.suffixes.pop();
            self.window.start += 1;
        }
        Ok(())
    }

    /// Makes suffixes of all documents of the window.
    fn turn(&mut self) -> Result<()> {
        let documents = self.documents.get(self.window.clone()).unwrap_or(&[]);
        for document in documents.iter().rev() {
            let mut state = self.fresh()?;
            self.accumulator
                .add(&mut state, &Env::new(document, self.vars))?;
            if let Some(rest) = self.suffixes.last() {
                self.accumulator.merge(&mut state, rest.clone())?;
            }
            self.suffixes.push(state);
        }
        self.behind = self.fresh()?;
        Ok(())
    }
}

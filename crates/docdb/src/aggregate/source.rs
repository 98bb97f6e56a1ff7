//! The scans that a pipeline reads, kept by its cursor.
//!
//! A pipeline's rows are pulled through the current host, which has a view of the store; the scans
//! are kept here, by number. A scan is dropped when nothing can pull it any more.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bson::RawDocumentBuf;
use query::execute::{Host, Rows};
use query::meter::Held;
use query::{Result, Row};

use crate::collection::Collection;
use crate::exec::{Executor, Order};
use crate::txn::Op;

/// Number of sources that triggers a search for those that nothing can pull.
const SWEEP: usize = 64;

/// Rows that pull the source with this number from the host.
pub(super) struct Hosted {
    number: u64,
    /// Keeps the source alive: its drop shows the host that the source is unused.
    _wanted: Arc<()>,
}

impl Rows for Hosted {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        host.pull(self.number)
    }
}

/// A read of a collection by a pipeline.
pub(super) struct Read {
    pub(super) collection: Arc<Collection>,
    pub(super) executor: Executor,
    /// The sort order, if the pipeline asks for each document's sort key.
    pub(super) order: Option<Order>,
    /// Whether it is read by the command's own pipeline, and not by a nested one.
    pub(super) first: bool,
}

/// A scan of a collection.
pub(super) struct Source {
    wanted: Weak<()>,
    pub(super) collection: Arc<Collection>,
    pub(super) executor: Executor,
    order: Option<Order>,
    first: bool,
}

impl Source {
    /// Convert a document that was read into a row.
    pub(super) fn row(&self, document: RawDocumentBuf) -> Result<Row> {
        Ok(match &self.order {
            None => Row::from_raw(document),
            Some(order) => {
                let key = order.key(&document)?;
                Row::from_raw(document).sorted_by(&key)
            }
        })
    }

    /// Report to an operation what was read since the last report.
    pub(super) fn report(&mut self, op: &Op<'_>) {
        self.executor.report_counts(op);
    }
}

/// All scans of a pipeline and of its nested pipelines.
#[derive(Default)]
pub(crate) struct Sources {
    next: u64,
    by_number: HashMap<u64, Source>,
    sweep_at: usize,
    /// Whether the pipeline of the command sorts.
    pub(super) sorts: bool,
    /// The scan that is returned at the end, and its number.
    kept: Option<(u64, Option<Executor>)>,
    /// The memory of the pipeline of the command, with that of the view it reads, and of the
    /// largest view that a nested pipeline reads: those are read one after the other.
    held: Held,
    own: usize,
    nested: usize,
}

impl Sources {
    /// Reserve the memory of a pipeline that is about to be opened: that of the command, or one
    /// nested in it. Of a nested one only the pipelines of views have `bytes`.
    ///
    /// # Errors
    /// `ExceededMemoryLimit` when the budget of all queries refuses it.
    pub(super) fn hold(&mut self, bytes: usize, first: bool) -> Result<()> {
        match first {
            true => {
                self.held = Held::new();
                self.own = bytes;
            }
            false if bytes <= self.nested => return Ok(()),
            false => self.nested = bytes,
        }
        self.held
            .retain("A pipeline", self.own.saturating_add(self.nested))
    }

    /// Add a scan of an operation; returns the rows that pull it.
    pub(super) fn add(&mut self, op: &Op<'_>, read: Read) -> Hosted {
        if self.sweep_at.max(SWEEP) <= self.by_number.len() {
            self.report(op);
            let kept = self.kept.as_ref().map(|(number, _)| *number);
            self.by_number.retain(|number, source| {
                source.wanted.strong_count() != 0 || Some(*number) == kept
            });
            self.sweep_at = self.by_number.len() * 2;
        }
        self.next += 1;
        let wanted = Arc::new(());
        let source = Source {
            wanted: Arc::downgrade(&wanted),
            collection: read.collection,
            executor: read.executor,
            order: read.order,
            first: read.first,
        };
        self.by_number.insert(self.next, source);
        Hosted {
            number: self.next,
            _wanted: wanted,
        }
    }

    /// The source with this number, unless it has ended.
    pub(super) fn get(&mut self, number: u64) -> Option<&mut Source> {
        self.by_number.get_mut(&number)
    }

    /// Remove a source that has ended.
    pub(super) fn remove(&mut self, number: u64, op: &Op<'_>) {
        if let Some(mut source) = self.by_number.remove(&number) {
            source.report(op);
            if let Some((kept, executor)) = &mut self.kept
                && *kept == number
            {
                *executor = Some(source.executor);
            }
        }
    }

    /// Keep a scan beyond its end.
    pub(super) fn keep(&mut self, hosted: &Hosted) {
        self.kept = Some((hosted.number, None));
    }

    /// The scan that was kept.
    pub(super) fn into_kept(mut self) -> Option<Executor> {
        let (number, ended) = self.kept?;
        let going_on = || Some(self.by_number.remove(&number)?.executor);
        ended.or_else(going_on)
    }

    /// Report to an operation where the command's own pipeline reads, before it does; nested
    /// pipelines are not reported.
    pub(super) fn announce(&self, op: &Op<'_>) {
        for source in self.by_number.values().filter(|source| source.first) {
            source.executor.announce(op);
        }
    }

    /// Report to an operation what was read since the last report.
    pub(super) fn report(&mut self, op: &Op<'_>) {
        let Some(examined) = &op.examined else {
            return;
        };
        if self.sorts {
            examined.sorts();
        }
        for source in self.by_number.values_mut() {
            source.report(op);
        }
    }

    /// The sources still in use.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        let all = self.by_number.values();
        all.filter(|source| source.wanted.strong_count() != 0)
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        let all = self.by_number.values_mut();
        all.filter(|source| source.wanted.strong_count() != 0)
    }

    /// Release the current view of the store.
    pub(super) fn save(&mut self) {
        for source in self.by_number.values_mut() {
            source.executor.save();
        }
    }
}

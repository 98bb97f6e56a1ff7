//! The scans that a pipeline reads, kept by its cursor.
//!
//! A pipeline's rows are pulled through the host of the moment, which has a view of the store; the
//! scans themselves are here, by number. A scan is dropped when nothing can pull it any more.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bson::RawDocumentBuf;
use query::execute::{Host, Rows};
use query::{Result, Row};

use crate::collection::Collection;
use crate::exec::{Executor, Order};
use crate::txn::Op;

/// Number of sources after which those that nothing can pull are looked for.
const SWEEP: usize = 64;

/// Pulls the source of a number from the host.
pub(super) struct Hosted {
    number: u64,
    /// Shows the host that the source is wanted.
    _wanted: Arc<()>,
}

impl Rows for Hosted {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        host.pull(self.number)
    }
}

/// What a pipeline reads of a collection.
pub(super) struct Read {
    pub(super) collection: Arc<Collection>,
    pub(super) executor: Executor,
    /// The order, when the pipeline asks by which key documents were sorted.
    pub(super) order: Option<Order>,
    /// Whether it is what the pipeline of the command reads, and not one within.
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
    /// A document that was read, as the pipeline takes it.
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

/// All scans of a pipeline and of those within it.
#[derive(Default)]
pub(crate) struct Sources {
    next: u64,
    by_number: HashMap<u64, Source>,
    sweep_at: usize,
    /// Whether the pipeline of the command sorts.
    pub(super) sorts: bool,
    /// The scan that is given back in the end, and its number.
    kept: Option<(u64, Option<Executor>)>,
}

impl Sources {
    /// Keep a scan of an operation; gives what pulls it.
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

    /// The source of a number, unless it has ended.
    pub(super) fn get(&mut self, number: u64) -> Option<&mut Source> {
        self.by_number.get_mut(&number)
    }

    /// A source has ended.
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

    /// Report to an operation where it reads, before it does: for the pipeline of the command, and
    /// not for those within.
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

    /// Those that are still wanted.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        let all = self.by_number.values();
        all.filter(|source| source.wanted.strong_count() != 0)
    }

    /// Leave the view of the store.
    pub(super) fn save(&mut self) {
        for source in self.by_number.values_mut() {
            source.executor.save();
        }
    }
}

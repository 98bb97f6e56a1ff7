//! Execution of a plan: input, sort, skip, limit, projection.

use std::sync::Arc;

use bson::spec::BinarySubtype;
use bson::{Binary, RawDocument, RawDocumentBuf, raw::cstr};
use query::Result;
use query::collation::Collator;
use query::filter::{Details, Filter};
use query::meter::Held;
use query::projection::Projection;
use query::sort::{Sort, SortKey};

use super::cx::Cx;
use super::input::Input;
use super::item::{Counts, Item, Step};
use super::output::carried_key;
use super::sorter::Sorter;
use crate::record::RecordId;
use crate::txn::{Op, View};

/// The steps after reading: skip, limit, projection and the metadata fields added.
#[derive(Clone, Default)]
pub(crate) struct Tail {
    /// Number of items to skip.
    pub(crate) skip: u64,
    /// Maximum number of items to return after the skip.
    pub(crate) limit: Option<u64>,
    /// The projection applied to each document.
    pub(crate) projection: Option<Arc<Projection>>,
    /// The filter, if the projection needs the position of the matched array element.
    pub(crate) positional: Option<Arc<Filter>>,
    /// Return the index key each document was found by, instead of the document.
    pub(crate) return_key: bool,
    /// Add the record number as `$recordId`.
    pub(crate) record_id: bool,
    /// The sort order, if the projection asks for each document's sort key.
    pub(crate) order: Option<Order>,
}

/// A sort order of documents.
#[derive(Clone)]
pub(crate) struct Order {
    /// The sort pattern.
    pub(crate) sort: Arc<Sort>,
    /// The collator for strings; `None` compares bytes.
    pub(crate) collator: Option<Arc<Collator>>,
}

impl Order {
    /// The sort key of a whole document.
    pub(crate) fn key(&self, document: &RawDocument) -> Result<SortKey> {
        self.sort.key(document, self.collator.as_deref())
    }
}

/// Executes one plan.
pub(crate) struct Executor {
    input: Input,
    sorter: Option<Sorter>,
    tail: Tail,
    skipped: u64,
    returned: u64,
    /// Counts already reported to operations.
    reported: Counts,
    /// The memory of the plan.
    plan: Option<Held>,
}

impl Executor {
    pub(crate) fn new(input: Input, sorter: Option<Sorter>, tail: Tail) -> Executor {
        Executor {
            input,
            sorter,
            tail,
            skipped: 0,
            returned: 0,
            reported: Counts::default(),
            plan: None,
        }
    }

    /// Keeps the reservation for the memory of the plan until the execution ends.
    pub(crate) fn hold(&mut self, plan: Held) {
        self.plan = Some(plan);
    }

    /// The next item, before projection.
    pub(crate) fn next_item(&mut self, cx: &mut Cx<'_>) -> Result<Step<Item>> {
        loop {
            if self.tail.limit.is_some_and(|limit| limit <= self.returned) {
                return Ok(Step::End);
            }
            let skip = self.tail.skip - self.skipped;
            let wanted = self
                .tail
                .limit
                .map_or(u64::MAX, |limit| limit - self.returned)
                .min(u64::try_from(cx.rows_left).unwrap_or(u64::MAX))
                .saturating_add(skip);
            let rows_left = cx.rows_left;
            cx.rows_left = usize::try_from(wanted).unwrap_or(usize::MAX);
            let step = match &mut self.sorter {
                None => self.input.next(cx),
                Some(sorter) => sorter.next(&mut self.input, cx),
            };
            cx.rows_left = rows_left;
            match step? {
                Step::Row(_) if 0 < skip => self.skipped += 1,
                Step::Row(item) => {
                    self.returned += 1;
                    return Ok(Step::Row(item));
                }
                other => return Ok(other),
            }
        }
    }

    /// The next document, after projection.
    pub(crate) fn next(&mut self, cx: &mut Cx<'_>) -> Result<Step<RawDocumentBuf>> {
        Ok(match self.next_item(cx)? {
            Step::Row(item) => Step::Row(self.project(item)?),
            Step::Pause => Step::Pause,
            Step::End => Step::End,
        })
    }

    fn project(&self, item: Item) -> Result<RawDocumentBuf> {
        if !self.tail.record_id {
            return self.projected(item);
        }
        let record = item.record.clone();
        Ok(with_record_id(self.projected(item)?, &record))
    }

    fn projected(&self, item: Item) -> Result<RawDocumentBuf> {
        if self.tail.return_key {
            return carried_key(&item.document);
        }
        let Some(projection) = self.tail.projection.as_ref().filter(|_| !item.projected) else {
            return Ok(item.document);
        };
        let mut details = None;
        if let Some(filter) = &self.tail.positional {
            let found = details.insert(Details::default());
            filter.matches_at(&item.document, found)?;
        }
        match &self.tail.order {
            None => projection.apply(&item.document, details.as_ref()),
            Some(order) => {
                let key = order.key(&item.document)?;
                projection.apply_sorted(&item.document, details.as_ref(), &key)
            }
        }
    }

    /// Whether the end is already known without reading further.
    pub(crate) fn is_over(&self) -> bool {
        self.tail.limit.is_some_and(|limit| limit <= self.returned)
            || self.sorter.as_ref().is_some_and(Sorter::is_over)
    }

    /// Release the current view of the store.
    pub(crate) fn save(&mut self) {
        self.input.save();
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.input.counts();
        counts.returned = self.returned;
        counts
    }

    /// Report to an operation the plan it reads by, before reading: `$currentOp` shows it.
    pub(crate) fn announce(&self, op: &Op<'_>) {
        if let Some(examined) = &op.examined {
            self.input.report_plan(examined);
        }
    }

    /// Report to an operation the counts since the last report.
    pub(crate) fn report_counts(&mut self, op: &Op<'_>) {
        let Some(examined) = &op.examined else {
            return;
        };
        let (counts, before) = (self.counts(), self.reported);
        examined.add(
            counts.keys - before.keys,
            counts.documents - before.documents,
        );
        self.reported = counts;
        if let Some(sorter) = &self.sorter {
            examined.sorts();
            if sorter.usage().runs != 0 {
                examined.spills();
            }
        }
    }

    /// Check that the position of a tailing scan still exists.
    ///
    /// # Errors
    /// `CappedPositionLost`.
    pub(crate) fn check_position(&mut self, view: &View<'_>) -> Result<()> {
        let Some(scan) = self.input.as_scan() else {
            return Ok(());
        };
        let op = view.op();
        let mut check = || op.check();
        scan.check_position(&Cx::new(view.snapshot()?, &mut check))
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    pub(crate) fn sorter(&self) -> Option<&Sorter> {
        self.sorter.as_ref()
    }
}

/// The document with its record number appended as `$recordId`.
fn with_record_id(mut document: RawDocumentBuf, record: &RecordId) -> RawDocumentBuf {
    match record.as_number() {
        Some(number) => document.append(cstr!("$recordId"), number),
        None => {
            let key = Binary {
                subtype: BinarySubtype::Generic,
                bytes: record.key(),
            };
            document.append(cstr!("$recordId"), key);
        }
    }
    document
}

//! One batch of a cursor.
//!
//! B1: a batch holds at most the requested number of documents and at most 16 MiB of documents, but
//!     at least one; a document that does not fit begins the next batch.
//! B2: no document in a batch is larger than [`RESULT_MAX`], the limit of clients.

use bson::RawDocumentBuf;
use query::{Code, Error, Namespace, Result, meter};

use super::alive::check_alive;
use crate::collection::Collection;
use crate::exec::{Cx, Executor, Step};
use crate::limits::RESULT_MAX;
use crate::txn::View;
use crate::writes::Awaiting;

/// Default number of documents in a first batch.
pub const FIRST_BATCH: u64 = 101;
/// Maximum bytes of documents in a batch.
pub const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// Reply of a command that opens or continues a cursor.
#[derive(Debug)]
pub struct Batch {
    /// The cursor's id, or 0 after the last batch.
    pub id: i64,
    /// The namespace that `getMore` must name.
    pub ns: Namespace,
    /// The documents.
    pub documents: Vec<RawDocumentBuf>,
    /// If a cursor that waits for data found none: the wait after which to call
    /// [`crate::Store::get_more`] again.
    pub awaits: Option<Awaiting>,
    /// Of a change stream, the resume token after the batch (`postBatchResumeToken`).
    pub resume: Option<RawDocumentBuf>,
}

/// Collects documents up to the limits of a batch.
pub(crate) struct Collector {
    documents: Vec<RawDocumentBuf>,
    bytes: usize,
    wanted: usize,
    /// The document that did not fit.
    over: Option<RawDocumentBuf>,
}

impl Collector {
    /// A batch of at most `wanted` documents that begins with `pending`, the document that did not
    /// fit before.
    pub(crate) fn new(wanted: u64, pending: Option<RawDocumentBuf>) -> Collector {
        let mut collector = Collector {
            documents: Vec::new(),
            bytes: 0,
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            over: None,
        };
        if let Some(pending) = pending {
            if collector.wanted == 0 {
                collector.over = Some(pending);
            } else {
                collector.place(pending);
            }
        }
        collector
    }

    /// The number of documents still wanted.
    pub(crate) fn left(&self) -> usize {
        if self.over.is_some() {
            return 0;
        }
        self.wanted - self.documents.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Add a document.
    ///
    /// # Errors
    /// `BSONObjectTooLarge` (B2).
    pub(crate) fn push(&mut self, document: RawDocumentBuf) -> Result<()> {
        let size = document.as_bytes().len();
        if RESULT_MAX < size {
            let message = format!(
                "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and \
                 {RESULT_MAX}(16MB)"
            );
            return Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message));
        }
        // A batch ends early when memory runs out; the next one continues.
        let charged = meter::charge_operation("A reply", size);
        if charged.is_err() && !self.documents.is_empty() {
            self.over = Some(document);
            return Ok(());
        }
        charged?;
        self.place(document);
        Ok(())
    }

    /// Add a document whose size was already checked.
    pub(super) fn place(&mut self, document: RawDocumentBuf) {
        let size = document.as_bytes().len();
        if !self.documents.is_empty() && BATCH_BYTES < self.bytes + size {
            self.over = Some(document);
            return;
        }
        self.bytes += size;
        self.documents.push(document);
    }

    /// The documents of the batch, and the one that did not fit.
    pub(crate) fn finish(self) -> (Vec<RawDocumentBuf>, Option<RawDocumentBuf>) {
        (self.documents, self.over)
    }
}

/// Fill a batch from a plan on a collection. Returns whether the plan has ended.
pub(crate) fn fill(
    collection: &Collection,
    executor: &mut Executor,
    collector: &mut Collector,
    view: &mut View<'_>,
) -> Result<bool> {
    executor.announce(view.op());
    let filled = take(collection, executor, collector, view);
    executor.report_counts(view.op());
    filled
}

fn take(
    collection: &Collection,
    executor: &mut Executor,
    collector: &mut Collector,
    view: &mut View<'_>,
) -> Result<bool> {
    let op = view.op();
    loop {
        let mut check = || op.check();
        let mut cx = Cx::new(view.snapshot()?, &mut check);
        cx.set_budget(view.budget());
        let paused = loop {
            let left = collector.left();
            if left == 0 {
                break None;
            }
            cx.rows_left = left;
            match executor.next(&mut cx)? {
                Step::Row(document) => collector.push(document)?,
                Step::Pause => break Some(false),
                Step::End => break Some(true),
            }
        };
        match paused {
            None => {
                executor.save();
                return Ok(executor.is_over());
            }
            Some(true) => {
                executor.save();
                return Ok(true);
            }
            Some(false) => {
                executor.save();
                view.renew()?;
                check_alive(view.store(), op, collection, executor)?;
                executor.check_position(view)?;
            }
        }
    }
}

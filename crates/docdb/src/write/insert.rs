//! Inserting documents.
//!
//! A batch is one engine transaction (several if it is large). A rejected document does not affect
//! the others of the batch; an ordered batch stops at it.

use std::borrow::Cow;

use bson::RawDocument;
use query::{Error, Namespace, Result};

use crate::collection::{Collection, Gathered};
use crate::document;
use crate::entries::Writer;
use crate::error::is_fatal;
use crate::limits::BATCH_BYTES_MAX;
use crate::session::{Done, Retry};
use crate::store::Store;
use crate::txn::{Op, Work};
use crate::write::validate::Validator;

/// Options of an insert.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// Stop at the first error (default true).
    pub ordered: bool,
    /// Skip the collection's validator (default false).
    pub bypass_validation: bool,
    /// Keep zero timestamps instead of filling in the current time (default false).
    pub keep_zero_timestamps: bool,
}

impl Default for InsertOptions {
    fn default() -> InsertOptions {
        InsertOptions {
            ordered: true,
            bypass_validation: false,
            keep_zero_timestamps: false,
        }
    }
}

/// Result of an insert.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InsertReply {
    /// Documents inserted.
    pub n: i32,
    /// Errors of the rejected documents.
    pub errors: Vec<WriteError>,
    /// Statement numbers already executed by an earlier attempt; they are counted in `n`.
    pub retried: Vec<i32>,
}

/// A statement of a batch that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteError {
    /// Its index in the batch.
    pub index: usize,
    /// The reason.
    pub error: Error,
}

impl Store {
    /// Insert documents. The collection is created if it does not exist.
    ///
    /// # Errors
    /// Errors of the whole command: an invalid name, a view, the engine, a killed operation.
    /// Rejected documents are listed in the reply; in a multi-document transaction the first
    /// rejection is returned as the error.
    pub fn insert(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        documents: &[&RawDocument],
        options: InsertOptions,
    ) -> Result<InsertReply> {
        self.ensure_collection(op, ns)?;
        let retry = self.begin_retry(op)?;
        let mut reply = InsertReply::default();
        let mut rest = documents;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_len(rest));
            let first = documents.len() - rest.len();
            let batch = Batch {
                documents: batch,
                first,
                options,
                retry: retry.as_ref(),
            };
            self.insert_batch(op, ns, &batch, &mut reply)?;
            rest = after;
            if options.ordered && !reply.errors.is_empty() {
                break;
            }
        }
        Ok(reply)
    }

    fn insert_batch(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        batch: &Batch<'_>,
        reply: &mut InsertReply,
    ) -> Result<()> {
        let keep = batch.options.keep_zero_timestamps;
        let mut stamp = || (!keep).then(|| self.timestamp());
        let ready: Vec<Result<Cow<'_, RawDocument>>> = batch
            .documents
            .iter()
            .map(|document| {
                let shape = document::check(document)?;
                document::normalise(document, shape, &mut stamp)
            })
            .collect();
        let done = self.write(op, &mut |work| {
            let mut done = InsertReply::default();
            let collection = match self.collection_in(work, (op, ns))? {
                Some(collection) => collection,
                // The collection was created by this transaction, or was dropped a moment ago.
                None if work.is_multi_document() => return Err(crate::error::conflict()),
                None => {
                    self.ensure_collection(op, ns)?;
                    return Err(crate::error::conflict());
                }
            };
            work.hold_capped(&collection)?;
            batch.insert(op, work, &collection, &ready, &mut done)?;
            Writer::new(work).evict(&collection)?;
            Ok(done)
        })?;
        reply.n += done.n;
        reply.errors.extend(done.errors);
        reply.retried.extend(done.retried);
        Ok(())
    }

    /// The timestamp that replaces a zero timestamp: seconds and a counter that makes each one
    /// unique.
    pub(crate) fn timestamp(&self) -> bson::Timestamp {
        use stdx::sync::atomic::{AtomicU64, Ordering};
        static LAST: AtomicU64 = AtomicU64::new(0);
        let now = stdx::time::wall().as_secs() << 32;
        let next = |last: u64| Some((last + 1).max(now + 1));
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let stamp = last.ok().and_then(next).unwrap_or(now);
        bson::Timestamp {
            time: u32::try_from(stamp >> 32).unwrap_or(u32::MAX),
            increment: u32::try_from(stamp & 0xFFFF_FFFF).expect("32 bits"),
        }
    }
}

/// Documents of one engine transaction.
struct Batch<'b> {
    documents: &'b [&'b RawDocument],
    /// The index of the first document within the whole insert.
    first: usize,
    options: InsertOptions,
    retry: Option<&'b Retry<'b>>,
}

impl Batch<'_> {
    fn insert(
        &self,
        op: &Op<'_>,
        work: &mut Work<'_>,
        collection: &Collection,
        ready: &[Result<Cow<'_, RawDocument>>],
        done: &mut InsertReply,
    ) -> Result<()> {
        let (mut writer, mut gathered) = (Writer::new(work), Gathered::new());
        let mut runs = Vec::new();
        let validator = Validator::of(op, collection, self.options.bypass_validation);
        for (at, document) in ready.iter().enumerate() {
            if at % 64 == 63 {
                op.check()?;
            }
            let stmt = op.session.as_ref().map_or(0, |s| s.stmt(self.first + at));
            if self.retry.is_some_and(|retry| retry.done(stmt).is_some()) {
                done.n += 1;
                done.retried.push(stmt);
                continue;
            }
            let inserted = match document {
                Err(error) => Err(error.clone()),
                Ok(document) => validator
                    .check(None, document)
                    .and_then(|()| writer.insert_one(collection, document, &mut gathered)),
            };
            match inserted {
                Ok(()) => {
                    done.n += 1;
                    if self.retry.is_some() {
                        writer.work().log_statement(stmt);
                    }
                    add_run(&mut runs, stmt);
                }
                Err(error) if is_fatal(&error) || op.transaction.is_some() => return Err(error),
                Err(error) => {
                    let index = self.first + at;
                    done.errors.push(WriteError { index, error });
                    if self.options.ordered {
                        break;
                    }
                }
            }
        }
        if let Some(retry) = self.retry.filter(|_| !runs.is_empty()) {
            let one = Done {
                n: 1,
                ..Done::default()
            };
            retry.remember_all(writer.work(), &runs, &one)?;
        }
        Ok(())
    }
}

/// Append a statement number to runs of consecutive numbers.
fn add_run(runs: &mut Vec<(i32, i32)>, stmt: i32) {
    match runs.last_mut() {
        Some((first, count)) if first.saturating_add(*count) == stmt => *count += 1,
        _ => runs.push((stmt, 1)),
    }
}

/// The number of leading documents that go into one engine transaction.
fn batch_len(documents: &[&RawDocument]) -> usize {
    let mut bytes = 0;
    for (at, document) in documents.iter().enumerate() {
        bytes += document.as_bytes().len();
        if BATCH_BYTES_MAX < bytes {
            return at.max(1);
        }
    }
    documents.len()
}

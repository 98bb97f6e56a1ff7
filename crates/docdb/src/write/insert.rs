//! Inserting documents.
//!
//! A batch is one engine transaction (several when it is large). A document that is refused takes
//! nothing with it, so the others of the batch stay; an ordered batch ends there.

use std::borrow::Cow;

use bson::RawDocument;
use query::{Error, Namespace, Result};

use crate::collection::{Collection, Gathered};
use crate::document;
use crate::limits::BATCH_BYTES_MAX;
use crate::op::Op;
use crate::record::RecordId;
use crate::store::Store;
use crate::work::Work;

/// How documents are inserted.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// Stop at the first error (default true).
    pub ordered: bool,
    /// Do not ask the collection's validator (default false).
    pub bypass_validation: bool,
    /// Leave timestamps of zeros as they are (default false).
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

/// What an insert has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InsertReply {
    /// Documents inserted.
    pub n: i32,
    /// Documents refused.
    pub errors: Vec<WriteError>,
}

/// A statement of a batch that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteError {
    /// Its place in the batch.
    pub index: usize,
    /// Why.
    pub error: Error,
}

impl Store {
    /// Insert documents. The collection is created if there is none.
    ///
    /// # Errors
    /// What concerns the whole command: a bad name, a view, the engine, an operation that is killed.
    /// Refused documents are in the reply; in a multi-document transaction the first is the error.
    pub fn insert(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        documents: &[&RawDocument],
        options: InsertOptions,
    ) -> Result<InsertReply> {
        self.ensure_collection(ns)?;
        let mut reply = InsertReply::default();
        let mut rest = documents;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_len(rest));
            let first = documents.len() - rest.len();
            self.insert_batch(op, ns, batch, first, options, &mut reply)?;
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
        batch: &[&RawDocument],
        first: usize,
        options: InsertOptions,
        reply: &mut InsertReply,
    ) -> Result<()> {
        let mut stamp = || (!options.keep_zero_timestamps).then(|| self.timestamp());
        let ready: Vec<Result<Cow<'_, RawDocument>>> = batch
            .iter()
            .map(|document| {
                let shape = document::check(document)?;
                document::normalise(document, shape, &mut stamp)
            })
            .collect();
        let done = self.write(op, &mut |work| {
            let mut done = InsertReply::default();
            let collection = match work.collection(ns)? {
                Some(collection) => collection,
                // It was dropped a moment ago.
                None => {
                    self.ensure_collection(ns)?;
                    return Err(crate::error::conflict());
                }
            };
            insert_all(op, work, &collection, &ready, first, options, &mut done)?;
            Ok(done)
        })?;
        reply.n += done.n;
        reply.errors.extend(done.errors);
        Ok(())
    }

    /// The time for timestamps of zeros: seconds, and a number that makes each different.
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

fn insert_all(
    op: &Op<'_>,
    work: &mut Work<'_>,
    collection: &Collection,
    ready: &[Result<Cow<'_, RawDocument>>],
    first: usize,
    options: InsertOptions,
    done: &mut InsertReply,
) -> Result<()> {
    let mut gathered = Gathered::new();
    for (at, document) in ready.iter().enumerate() {
        if at % 64 == 63 {
            op.check()?;
        }
        let inserted = match document {
            Err(error) => Err(error.clone()),
            Ok(document) => work.insert_one(collection, document, &mut gathered),
        };
        match inserted {
            Ok(()) => done.n += 1,
            Err(error) if is_fatal(&error) || op.transaction.is_some() => return Err(error),
            Err(error) => {
                done.errors.push(WriteError {
                    index: first + at,
                    error,
                });
                if options.ordered {
                    break;
                }
            }
        }
    }
    Ok(())
}

impl Work<'_> {
    /// Insert one document that was checked.
    pub(crate) fn insert_one<'d>(
        &mut self,
        collection: &Collection,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
    ) -> Result<()> {
        let (record, number) = if collection.is_clustered() {
            (self.clustered_record(collection, document)?, 0)
        } else {
            let number = collection.core().counts.take_records(1);
            (RecordId::number(number), number)
        };
        self.put_new(collection, &record, document, gathered)?;
        let bytes = i64::try_from(document.as_bytes().len()).expect("at most 16 MiB");
        self.count(collection, 1, bytes, number);
        Ok(())
    }
}

/// How many of the documents go into one engine transaction.
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

/// Errors that are not of one document: the whole work fails.
pub(crate) fn is_fatal(error: &Error) -> bool {
    use query::Code;
    matches!(
        error.code,
        Code::WRITE_CONFLICT
            | Code::INTERRUPTED
            | Code::MAX_TIME_MS_EXPIRED
            | Code::INTERNAL_ERROR
            | Code::OUT_OF_DISK_SPACE
            | Code::INTERRUPTED_AT_SHUTDOWN
            | Code::LOCK_TIMEOUT
    )
}

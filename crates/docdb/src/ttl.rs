//! Expiry of documents (TTL).
//!
//! A pass goes through every TTL index and deletes, through the ordinary write path, the documents
//! whose date has expired: in batches, so that other writes can run in between. Documents that an
//! open transaction has written are left to the next pass.
//!
//! - T1. A failure for one index is reported and counted; the pass continues with the next index.
//! - T2. A TTL index expires documents once it is built, also while another index of its collection
//!   is being built.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bson::raw::CString;
use bson::{DateTime, RawDocumentBuf, rawdoc};
use kv::Durability;
use query::{Code, Error, Namespace, Result};
use stdx::sync::atomic::Ordering;

use crate::collection::Collection;
use crate::index::IndexSpec;
use crate::store::Store;
use crate::txn::Op;

/// Length of one sleep of the thread, so that closing does not wait for it.
const STEP: Duration = Duration::from_millis(100);

/// A failure to delete expired documents. The next pass tries again.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExpiryFailure<'f> {
    /// The collection.
    pub ns: &'f Namespace,
    /// The name of the TTL index; `None` for the expiry of a clustered collection.
    pub index: Option<&'f str>,
    /// The error of the delete.
    pub error: &'f Error,
}

/// Called with each failure, on the thread that expires documents.
pub type OnExpiryFailure = Box<dyn Fn(&ExpiryFailure<'_>) + Send + Sync>;

/// The listener for failures.
#[derive(Default)]
pub(crate) struct Listener(OnceLock<OnExpiryFailure>);

/// Documents of a collection that have expired.
struct Expired {
    collection: Arc<Collection>,
    index: Option<String>,
    filter: RawDocumentBuf,
}

impl Store {
    /// Call `listener` with each failure to delete expired documents. Only the first call of this
    /// function has an effect.
    pub fn on_expiry_failure(&self, listener: OnExpiryFailure) {
        // The listener of the first call stays.
        drop(self.part::<Listener>().0.set(listener));
    }

    /// Delete the documents that have expired by `op.now`; returns their number. Failures for one
    /// index are reported (T1).
    ///
    /// # Errors
    /// The operation must end.
    pub fn expire(&self, op: &Op<'_>) -> Result<i64> {
        let mut deleted = 0;
        if self.is_follower() {
            // The primary's deletes have entries.
            return Ok(0);
        }
        let figures = self.figures();
        figures.ttl_passes.fetch_add(1, Ordering::Relaxed);
        for expired in self.expired(op.now) {
            self.check_open(op)?;
            let filter = expired.filter.clone();
            match self.delete_expired(op, &expired.collection, filter) {
                Ok(n) => {
                    deleted += n;
                    let n = u64::try_from(n).unwrap_or(0);
                    figures.ttl_deleted.fetch_add(n, Ordering::Relaxed);
                }
                // The collection or the index was dropped: nothing is left to expire.
                Err(error) if error.code == Code::QUERY_PLAN_KILLED => {}
                Err(error) => {
                    self.check_open(op)?;
                    self.failed(&expired, &error);
                }
            }
        }
        Ok(deleted)
    }

    fn failed(&self, expired: &Expired, error: &Error) {
        let figures = self.figures();
        figures.ttl_failed.fetch_add(1, Ordering::Relaxed);
        if let Some(listener) = self.part::<Listener>().0.get() {
            listener(&ExpiryFailure {
                ns: expired.collection.ns(),
                index: expired.index.as_deref(),
                error,
            });
        }
    }

    /// The indexes with expired documents to delete.
    fn expired(&self, now: DateTime) -> Vec<Expired> {
        let mut out = Vec::new();
        for (_, named) in self.catalog().iter() {
            let Some(collection) = named.collection().filter(|c| !c.is_capped()) else {
                continue;
            };
            let ready = collection.indexes().iter().filter(|i| i.is_ready());
            out.extend(ready.filter_map(|index| {
                Some(Expired {
                    collection: Arc::clone(collection),
                    index: Some(index.name().to_owned()),
                    filter: filter(index.spec(), now)?,
                })
            }));
            let clustered = collection.options().expire_after.as_ref();
            let seconds = clustered
                .and_then(crate::index::number)
                .filter(|s| !s.is_nan());
            if let Some(seconds) = seconds.filter(|_| collection.is_clustered()) {
                #[expect(clippy::cast_possible_truncation, reason = "it saturates, as meant")]
                let limit = before(now, seconds as i64);
                out.push(Expired {
                    collection: Arc::clone(collection),
                    index: None,
                    filter: rawdoc! { "_id": { "$lte": limit, "$gte": DateTime::MIN } },
                });
            }
        }
        out
    }
}

/// The filter that matches the documents expired by an index.
fn filter(spec: &IndexSpec, now: DateTime) -> Option<RawDocumentBuf> {
    let limit = before(now, spec.ttl_seconds()?);
    let field = spec.key.keys().next()?;
    let mut old = RawDocumentBuf::new();
    let field = CString::try_from(field.as_str()).ok()?;
    old.append(field, rawdoc! { "$lte": limit, "$gte": DateTime::MIN });
    Some(match &spec.partial {
        None => old,
        Some(partial) => rawdoc! { "$and": [old, partial.clone()] },
    })
}

fn before(now: DateTime, seconds: i64) -> DateTime {
    let age = seconds.saturating_mul(1000);
    DateTime::from_millis(now.timestamp_millis().saturating_sub(age))
}

/// Start the thread that expires documents and sessions. It ends when the store is dropped.
pub(crate) fn start(store: &Arc<Store>) {
    if store.options().ttl_period.is_none() {
        return;
    }
    let store = Arc::downgrade(store);
    let body = move || run(&store);
    // Without the thread nothing expires until the next start.
    drop(stdx::sync::spawn("ttl", body));
}

fn run(store: &Weak<Store>) {
    let mut slept = Duration::ZERO;
    loop {
        stdx::time::sleep(STEP);
        slept += STEP;
        let Some(store) = store.upgrade() else {
            return;
        };
        if store.is_closed() {
            return;
        }
        if slept < store.tuning().ttl_period() || store.is_paused() {
            continue;
        }
        slept = Duration::ZERO;
        if store.tuning().ttl_on() {
            // Ends early only when the store is closed; failures are reported to the listener.
            drop(store.expire(&Op::new(Durability::Interval)));
        }
        drop(store.expire_sessions());
        store.drop_left_trees();
    }
}

#[cfg(test)]
mod tests;

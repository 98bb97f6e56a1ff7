//! Documents that expire.
//!
//! A pass looks at every TTL index and deletes, through the ordinary path, the documents whose date
//! is older than the index allows: in batches, so that ingest goes on between them. Documents that
//! an open transaction has written are left to the next pass.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bson::{DateTime, Document, RawDocumentBuf, doc};
use kv::Durability;
use query::{Namespace, Result};
use stdx::sync::atomic::Ordering;

use crate::index::IndexSpec;
use crate::op::Op;
use crate::store::Store;

/// How long the thread sleeps at a time, so that closing does not wait for it.
const STEP: Duration = Duration::from_millis(100);

impl Store {
    /// Delete what has expired by `op.now`; gives the number of documents.
    ///
    /// # Errors
    /// As deletes.
    pub fn expire(&self, op: &Op<'_>) -> Result<i64> {
        let mut deleted = 0;
        let figures = self.figures();
        figures.ttl_passes.fetch_add(1, Ordering::Relaxed);
        for (ns, filter) in self.expired(op.now) {
            op.check()?;
            let n = self.delete_expired(op, &ns, RawDocumentBuf::try_from(&filter)?)?;
            deleted += n;
            let n = u64::try_from(n).unwrap_or(0);
            figures.ttl_deleted.fetch_add(n, Ordering::Relaxed);
        }
        Ok(deleted)
    }

    /// What has expired: collections and filters.
    fn expired(&self, now: DateTime) -> Vec<(Namespace, Document)> {
        let mut out = Vec::new();
        for (ns, named) in self.catalog().iter() {
            let Some(collection) = named.collection().filter(|c| !c.is_capped()) else {
                continue;
            };
            // While an index is built the collection has work enough.
            if collection.indexes().iter().any(|i| !i.is_ready()) {
                continue;
            }
            let specs = collection.indexes().iter().map(|i| i.spec());
            out.extend(
                specs
                    .filter_map(|s| filter(s, now))
                    .map(|f| (ns.clone(), f)),
            );
            let clustered = collection.options().expire_after.as_ref();
            let seconds = clustered
                .and_then(crate::index::number)
                .filter(|s| !s.is_nan());
            if let Some(seconds) = seconds.filter(|_| collection.is_clustered()) {
                #[expect(clippy::cast_possible_truncation, reason = "it saturates, as meant")]
                let limit = before(now, seconds as i64);
                out.push((
                    ns.clone(),
                    doc! { "_id": { "$lte": limit, "$gte": DateTime::MIN } },
                ));
            }
        }
        out
    }
}

/// The filter of what has expired by an index.
fn filter(spec: &IndexSpec, now: DateTime) -> Option<Document> {
    let limit = before(now, spec.ttl_seconds()?);
    let field = spec.key.keys().next()?;
    let old = doc! { field: { "$lte": limit, "$gte": DateTime::MIN } };
    Some(match &spec.partial {
        None => old,
        Some(partial) => doc! { "$and": [old, partial.clone()] },
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
    // Without the thread nothing expires, which the next start mends.
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
        // What fails now is done in the next pass.
        if store.tuning().ttl_on() {
            drop(store.expire(&Op::new(Durability::Interval)));
        }
        drop(store.expire_sessions());
        store.drop_left_trees();
    }
}

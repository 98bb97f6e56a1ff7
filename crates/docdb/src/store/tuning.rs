//! Settings that may be changed while a store is open.

use std::time::Duration;

use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::Options;
use crate::turn::IDLE;

/// Settings that may be changed while a store is open. Their first values are those of the options.
#[derive(Debug)]
pub struct Tuning {
    ttl_ms: AtomicU64,
    ttl_on: AtomicBool,
    transaction_ms: AtomicU64,
    idle_ms: AtomicU64,
    cursor_ms: AtomicU64,
    index_bytes: AtomicUsize,
    no_table_scan: AtomicBool,
    /// `u64::MAX` for none.
    oplog_idle_ms: AtomicU64,
    /// `u64::MAX` for none.
    image_age_ms: AtomicU64,
    key_max: AtomicUsize,
}

/// Time after which an idle cursor is closed, unless it was opened with `noCursorTimeout`.
pub const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// Default bytes that an index build holds in memory before it uses temporary files, as in MongoDB.
const INDEX_MEMORY: usize = 200 << 20;

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Tuning {
    pub(super) fn new(options: &Options) -> Tuning {
        let period = options.ttl_period.unwrap_or_default();
        Tuning {
            ttl_ms: AtomicU64::new(millis(period)),
            ttl_on: AtomicBool::new(options.ttl_period.is_some()),
            transaction_ms: AtomicU64::new(millis(options.transaction_lifetime)),
            idle_ms: AtomicU64::new(millis(IDLE)),
            cursor_ms: AtomicU64::new(millis(IDLE_LIMIT)),
            index_bytes: AtomicUsize::new(INDEX_MEMORY),
            no_table_scan: AtomicBool::new(false),
            oplog_idle_ms: AtomicU64::new(options.oplog_noop.map_or(u64::MAX, millis)),
            image_age_ms: AtomicU64::new(u64::MAX),
            key_max: AtomicUsize::new(usize::MAX),
        }
    }

    /// Set the interval of the passes that delete expired documents.
    pub fn set_ttl_period(&self, period: Duration) {
        self.ttl_ms.store(millis(period), Ordering::Relaxed);
    }

    /// Set whether expired documents are deleted.
    pub fn set_ttl_on(&self, on: bool) {
        self.ttl_on.store(on, Ordering::Relaxed);
    }

    /// Set the maximum duration of multi-document transactions that begin from now on.
    pub fn set_transaction_lifetime(&self, lifetime: Duration) {
        self.transaction_ms
            .store(millis(lifetime), Ordering::Relaxed);
    }

    /// Set how long a multi-document transaction may be idle while others wait to write, on an
    /// engine with one writer (default 5 s). After that it is aborted.
    pub fn set_transaction_idle(&self, limit: Duration) {
        self.idle_ms.store(millis(limit), Ordering::Relaxed);
    }

    /// Set how long a cursor may be idle (default [`IDLE_LIMIT`]).
    pub fn set_cursor_limit(&self, limit: Duration) {
        self.cursor_ms.store(millis(limit), Ordering::Relaxed);
    }

    /// Set the bytes of entries that all builds of one `createIndexes` together hold in memory
    /// before they use temporary files (default 200 MiB).
    pub fn set_index_memory(&self, bytes: usize) {
        self.index_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Set whether queries fail whose filter no index can serve (MongoDB's `notablescan`; default
    /// off). Queries of the server's own collections are exempt.
    pub fn set_no_table_scan(&self, on: bool) {
        self.no_table_scan.store(on, Ordering::Relaxed);
    }

    /// Set the time without an entry after which an entry that changes nothing is put into the
    /// oplog; `None` puts none.
    pub fn set_oplog_idle(&self, limit: Option<Duration>) {
        let limit = limit.map_or(u64::MAX, millis);
        self.oplog_idle_ms.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn oplog_idle(&self) -> Option<Duration> {
        let limit = self.oplog_idle_ms.load(Ordering::Relaxed);
        (limit != u64::MAX).then(|| Duration::from_millis(limit))
    }

    /// Set the age at which pre-images expire (default `None`: with their entries of the oplog).
    pub fn set_image_age(&self, limit: Option<Duration>) {
        let limit = limit.map_or(u64::MAX, millis);
        self.image_age_ms.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn image_age(&self) -> Option<Duration> {
        let limit = self.image_age_ms.load(Ordering::Relaxed);
        (limit != u64::MAX).then(|| Duration::from_millis(limit))
    }

    /// Set the longest key that the engines of all members of the replica set store (default: that
    /// of the own engine). It limits the `_id` of new documents in clustered collections; other
    /// keys are shortened by each member for itself.
    pub fn set_key_max(&self, bytes: usize) {
        self.key_max.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn key_max(&self) -> usize {
        self.key_max.load(Ordering::Relaxed)
    }

    pub(crate) fn no_table_scan(&self) -> bool {
        self.no_table_scan.load(Ordering::Relaxed)
    }

    pub(crate) fn ttl_period(&self) -> Duration {
        Duration::from_millis(self.ttl_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn ttl_on(&self) -> bool {
        self.ttl_on.load(Ordering::Relaxed)
    }

    pub(crate) fn transaction_lifetime(&self) -> Duration {
        Duration::from_millis(self.transaction_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn transaction_idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn index_memory(&self) -> usize {
        self.index_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn cursor_limit(&self) -> Duration {
        Duration::from_millis(self.cursor_ms.load(Ordering::Relaxed))
    }
}

//! Statistics, from the library's `statistics:` cursors.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};

use kv::{
    CacheStats, Count, Cursor as _, Direction, EngineStats, Error, ErrorKind, IoCount, IoReason,
    KeyRange, Result, Snapshot as _, StallCount, StatScope, TreeId, TreeStats,
};

use super::catalog::Tree;
use super::config::TreeType;
use super::connection::c_string;
use super::error::Called;
use super::pool::Purpose;
use super::session::Session;
use super::shared::Shared;
use super::sys;
use super::view::View;
use crate::support::NAME;

/// Number of entries that `StatScope::Quick` reads before it estimates the rest.
const QUICK_ENTRIES: u64 = 2_000;

/// Counters reported under our names.
const COUNTERS: [(&str, c_int); 11] = [
    ("transactions_committed", sys::WT_STAT_CONN_TXN_COMMIT),
    ("transactions_rolled_back", sys::WT_STAT_CONN_TXN_ROLLBACK),
    ("splits", sys::WT_STAT_CONN_CACHE_EVICTION_SPLIT_LEAF),
    ("checkpoints", sys::WT_STAT_CONN_TXN_CHECKPOINT),
    (
        "checkpoint_recent_ms",
        sys::WT_STAT_CONN_TXN_CHECKPOINT_TIME_RECENT,
    ),
    ("log_syncs", sys::WT_STAT_CONN_LOG_SYNC),
    ("log_payload_bytes", sys::WT_STAT_CONN_LOG_BYTES_PAYLOAD),
    ("lookaside_bytes", sys::WT_STAT_CONN_CACHE_BYTES_LOOKASIDE),
    ("fsyncs", sys::WT_STAT_CONN_FSYNC_IO),
    ("lsm_rows_merged", sys::WT_STAT_CONN_LSM_ROWS_MERGED),
    ("lsm_queue", sys::WT_STAT_CONN_LSM_WORK_QUEUE_APP),
];

/// The statistics `ids` of the whole database.
pub(super) fn connection<const N: usize>(shared: &Shared, ids: &[c_int; N]) -> Result<[u64; N]> {
    let lease = shared.own()?;
    let read = source(lease.session(), c"statistics:", c"statistics=(fast)", ids);
    read.map_err(|fault| fault.into_error("statistics"))
}

/// The statistics `ids` of one table or file.
fn source<const N: usize>(
    session: &Session,
    uri: &CStr,
    config: &CStr,
    ids: &[c_int; N],
) -> Called<[u64; N]> {
    session.with_cursor(uri, config, |cursor| {
        let mut values = [0; N];
        for (value, &id) in values.iter_mut().zip(ids) {
            *value = cursor.statistic(id)?;
        }
        Ok(values)
    })
}

/// The statistics of the engine since it was opened. Bytes of pages and of the log are counted as
/// written, that is, after compression.
pub(super) fn engine(shared: &Shared) -> Result<EngineStats> {
    let io = io(shared)?;
    let [max, used, dirty, requested, missed] = connection(
        shared,
        &[
            sys::WT_STAT_CONN_CACHE_BYTES_MAX,
            sys::WT_STAT_CONN_CACHE_BYTES_INUSE,
            sys::WT_STAT_CONN_CACHE_BYTES_DIRTY,
            sys::WT_STAT_CONN_CACHE_PAGES_REQUESTED,
            sys::WT_STAT_CONN_CACHE_READ,
        ],
    )?;
    let mut activity = Vec::new();
    let [checkpoint, merges] = connection(
        shared,
        &[
            sys::WT_STAT_CONN_TXN_CHECKPOINT_RUNNING,
            sys::WT_STAT_CONN_LSM_WORK_QUEUE_APP,
        ],
    )?;
    if 0 < checkpoint {
        activity.push("checkpoint".to_owned());
    }
    if 0 < merges {
        activity.push("compaction".to_owned());
    }
    let values = connection(shared, &COUNTERS.map(|(_, id)| id))?;
    let names = COUNTERS.iter().map(|(name, _)| (*name).to_owned());
    Ok(EngineStats {
        written: io.0,
        read: io.1,
        cache: Some(CacheStats {
            capacity_bytes: max,
            used_bytes: used,
            dirty_bytes: dirty,
            hits: requested.saturating_sub(missed),
            misses: missed,
        }),
        stalls: stalls(shared)?,
        debt_bytes: Some(dirty),
        activity,
        counters: names.zip(values).collect::<BTreeMap<_, _>>(),
    })
}

fn io(shared: &Shared) -> Result<(Vec<IoCount>, Vec<IoCount>)> {
    let [log, log_writes, written, by_checkpoint, read, reads] = connection(
        shared,
        &[
            sys::WT_STAT_CONN_LOG_BYTES_WRITTEN,
            sys::WT_STAT_CONN_LOG_WRITES,
            sys::WT_STAT_CONN_BLOCK_BYTE_WRITE,
            sys::WT_STAT_CONN_BLOCK_BYTE_WRITE_CHECKPOINT,
            sys::WT_STAT_CONN_BLOCK_BYTE_READ,
            sys::WT_STAT_CONN_BLOCK_READ,
        ],
    )?;
    let count = |reason, bytes, operations| IoCount {
        reason,
        bytes,
        operations,
    };
    let pages = written.saturating_sub(by_checkpoint);
    Ok((
        vec![
            count(IoReason::Log, log, Some(log_writes)),
            count(IoReason::PageWrite, pages, None),
            count(IoReason::Checkpoint, by_checkpoint, None),
        ],
        vec![count(IoReason::PageRead, read, Some(reads))],
    ))
}

fn stalls(shared: &Shared) -> Result<Vec<StallCount>> {
    let [evictions, evicting, waiting, flush_throttle, merge_throttle] = connection(
        shared,
        &[
            sys::WT_STAT_CONN_CACHE_EVICTION_APP,
            sys::WT_STAT_CONN_APPLICATION_EVICT_TIME,
            sys::WT_STAT_CONN_APPLICATION_CACHE_TIME,
            sys::WT_STAT_CONN_LSM_CHECKPOINT_THROTTLE,
            sys::WT_STAT_CONN_LSM_MERGE_THROTTLE,
        ],
    )?;
    let stall = |reason: &str, count, micros| StallCount {
        reason: reason.to_owned(),
        count,
        micros,
    };
    Ok(vec![
        stall("cache_full", evictions, Some(waiting)),
        stall("caller_evicts", evictions, Some(evicting)),
        stall("lsm_flush_throttle", flush_throttle, None),
        stall("lsm_merge_throttle", merge_throttle, None),
    ])
}

/// The size of a tree's files, in bytes.
pub(super) fn file_bytes(shared: &Shared, tree: &Tree) -> Result<u64> {
    let [size, _] = file_and_free(shared, &tree.uri)?;
    Ok(size)
}

/// The size of a table or file, and the part of it that is free for reuse, in bytes.
pub(super) fn file_and_free(shared: &Shared, uri: &CStr) -> Result<[u64; 2]> {
    let ids = [
        sys::WT_STAT_DSRC_BLOCK_SIZE,
        sys::WT_STAT_DSRC_BLOCK_REUSE_BYTES,
    ];
    let lease = shared.own()?;
    let read = statistics_of(uri)
        .and_then(|uri| source(lease.session(), &uri, c"statistics=(fast)", &ids));
    read.map_err(|fault| fault.into_error("statistics"))
}

fn statistics_of(uri: &CStr) -> Called<CString> {
    c_string(&format!("statistics:{}", uri.to_string_lossy()))
}

/// The content of a tree.
pub(super) fn tree(shared: &Shared, id: TreeId, scope: StatScope) -> Result<TreeStats> {
    let tree = shared.tree(id)?;
    let (limit, config) = match scope {
        StatScope::Quick => (QUICK_ENTRIES, c"statistics=(fast)"),
        StatScope::Exact => (u64::MAX, c"statistics=(all)"),
    };
    let scan = scan(shared, id, limit)?;
    let ids = [
        sys::WT_STAT_DSRC_BLOCK_SIZE,
        sys::WT_STAT_DSRC_BLOCK_REUSE_BYTES,
        sys::WT_STAT_DSRC_BTREE_ROW_LEAF,
        sys::WT_STAT_DSRC_BTREE_ROW_INTERNAL,
        sys::WT_STAT_DSRC_BTREE_OVERFLOW,
        sys::WT_STAT_DSRC_BTREE_MAXIMUM_DEPTH,
        sys::WT_STAT_DSRC_LSM_CHUNK_COUNT,
    ];
    let [size, free, leaves, inner, overflow, depth, chunks] = {
        let lease = shared.own()?;
        let read =
            statistics_of(&tree.uri).and_then(|uri| source(lease.session(), &uri, config, &ids));
        read.map_err(|fault| fault.into_error("statistics").with_tree(&tree.name))?
    };
    let walked = scope == StatScope::Exact;
    let pages = match tree.tree_type {
        TreeType::Lsm => Some(chunks),
        TreeType::Btree => walked.then_some(leaves + inner + overflow),
    };
    Ok(TreeStats {
        entries: scan.entries(size.saturating_sub(free)),
        live_bytes: scan.complete.then_some(scan.bytes),
        allocated_bytes: Some(size),
        pages,
        depth: u32::try_from(depth).ok().filter(|&d| 0 < d),
        // Unknown: the library fills pages by their size after compression, and pages in memory
        // grow larger than those on disk.
        mean_fill: None,
        splits: None,
        merges: None,
    })
}

/// Read all entries of a tree and check that their keys ascend.
pub(super) fn read_all(shared: &Shared, tree: &Tree) -> Result<()> {
    let view = View::begin(shared, Purpose::Own)?;
    let mut walk = view.walk(tree.id, KeyRange::ALL, Direction::Forward)?;
    let mut last = Vec::new();
    while walk.advance()? {
        if walk.key() <= last.as_slice() {
            return Err(Error::new(ErrorKind::Corrupt, "the keys do not ascend")
                .with_engine(NAME)
                .with_tree(&tree.name)
                .with_key(walk.key()));
        }
        last.clear();
        last.extend_from_slice(walk.key());
    }
    Ok(())
}

/// Totals over the first entries of a tree.
struct Scan {
    entries: u64,
    bytes: u64,
    complete: bool,
}

impl Scan {
    /// The number of entries of a tree that uses `used` bytes of its files: exact when all entries
    /// were read; else estimated from the uncompressed size of those that were read.
    fn entries(&self, used: u64) -> Count {
        let mean = self.bytes.checked_div(self.entries).unwrap_or(1).max(1);
        Count {
            value: if self.complete {
                self.entries
            } else {
                self.entries.max(used / mean)
            },
            exact: self.complete,
        }
    }
}

fn scan(shared: &Shared, tree: TreeId, limit: u64) -> Result<Scan> {
    let view = View::begin(shared, Purpose::Own)?;
    // The library knows the depth of a tree only after a search in it.
    view.get(tree, b"\0")?;
    let mut walk = view.walk(tree, KeyRange::ALL, Direction::Forward)?;
    let mut scan = Scan {
        entries: 0,
        bytes: 0,
        complete: false,
    };
    while scan.entries < limit {
        if !walk.advance()? {
            scan.complete = true;
            break;
        }
        scan.entries += 1;
        scan.bytes += (walk.key().len() + walk.value().len()) as u64;
    }
    Ok(scan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_scan_is_an_estimate() {
        let scan = Scan {
            entries: 10,
            bytes: 1000,
            complete: false,
        };
        assert_eq!(scan.entries(100_000).value, 1000);
        assert_eq!(scan.entries(0).value, 10);
        assert!(!scan.entries(0).exact);
    }
}

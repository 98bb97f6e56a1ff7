//! Converts statistics and the storage map to those of `kv`.

use kv::{CacheStats, Count, EngineStats, IoCount, IoReason, Region, RegionKind, StallCount};
use kv::{StorageMap, TreeStats};

/// The name of the data file.
pub(crate) const DATA: &str = "data.betree";

/// The statistics of the store since it was opened.
pub(super) fn engine(stats: &betree::Stats) -> EngineStats {
    let cache = stats.cache;
    let stalls = stats.waits.iter().map(|wait| StallCount {
        reason: wait.name.to_owned(),
        count: wait.count,
        micros: Some(wait.micros),
    });
    let counters = counters(stats);
    EngineStats {
        written: stats.written.iter().map(count).collect(),
        read: stats.read.iter().map(count).collect(),
        cache: Some(CacheStats {
            capacity_bytes: cache.capacity,
            used_bytes: cache.used,
            // Cached pages are never changed; changes not yet written are in buffers.
            dirty_bytes: 0,
            hits: cache.hits,
            misses: cache.misses,
        }),
        stalls: stalls.collect(),
        debt_bytes: Some(stats.debt_bytes),
        activity: stats.activity.iter().map(|&a| a.to_owned()).collect(),
        counters: counters.map(|(name, n)| (name.to_owned(), n)).collect(),
    }
}

fn count(count: &betree::IoCount) -> IoCount {
    let reason = match count.reason {
        betree::IoReason::Log => IoReason::Log,
        betree::IoReason::Flush => IoReason::Flush,
        betree::IoReason::Merge => IoReason::Merge,
        betree::IoReason::Checkpoint => IoReason::Checkpoint,
        betree::IoReason::Page => IoReason::PageRead,
        // Superblocks, and reasons added to betree later.
        _ => IoReason::Meta,
    };
    IoCount {
        reason,
        bytes: count.bytes,
        operations: Some(count.operations),
    }
}

/// Counters that only grow, then gauges.
fn counters(stats: &betree::Stats) -> impl Iterator<Item = (&'static str, u64)> {
    let (done, log, space) = (stats.operations, stats.log, stats.space);
    let runs_max = stats.runs_per_bucket.iter().rposition(|&n| 0 < n);
    let counters = [
        ("commits", done.commits),
        ("puts", done.puts),
        ("deletes", done.deletes),
        ("range_deletes", done.range_deletes),
        ("gets", done.gets),
        ("cursors", done.cursors),
        ("conflicts", done.conflicts),
        ("flushes", done.flushes),
        ("appends", done.appends),
        ("merges", done.merges),
        ("splits", done.splits),
        ("checkpoints", done.checkpoints),
        ("log_syncs", log.syncs),
        ("log_groups", log.groups),
        ("log_group_commits", log.group_commits),
    ];
    let gauges = [
        ("buffered_bytes", stats.buffered_bytes),
        ("frozen_bytes", stats.frozen_bytes),
        ("delta_bytes", stats.delta_bytes),
        ("base_bytes", stats.base_bytes),
        ("rho_debt_bytes", stats.rho_balance.min(0).unsigned_abs()),
        ("trees", stats.trees),
        ("buckets", stats.buckets),
        ("runs", stats.runs),
        ("runs_in_bucket_max", runs_max.map_or(0, |n| n as u64)),
        ("log_held_bytes", log.bytes_held),
        ("file_bytes", space.file_bytes),
        ("used_bytes", space.used_bytes),
        ("free_bytes", space.free_bytes),
        ("pending_bytes", space.pending_bytes),
        ("largest_free_bytes", space.largest_free),
        ("checkpoint_age_micros", stats.checkpoint.age_micros),
        ("checkpoint_image_bytes", stats.checkpoint.image_bytes),
        ("snapshots_open", stats.snapshots.open),
        ("snapshot_oldest_micros", stats.snapshots.oldest_micros),
    ];
    counters.into_iter().chain(gauges)
}

/// The content of one tree.
pub(super) fn tree(stats: &betree::TreeStats) -> TreeStats {
    let stored = (stats.delta_bytes + stats.base_bytes) as f64;
    let fill = stored / stats.allocated_bytes as f64;
    TreeStats {
        entries: Count {
            value: stats.entries,
            exact: stats.exact,
        },
        live_bytes: Some(stats.live_bytes),
        allocated_bytes: Some(stats.allocated_bytes),
        pages: Some(stats.runs),
        // betree has no levels: one table of buckets points to all buffers and runs.
        depth: None,
        // A run that several buckets share may be counted by each.
        mean_fill: (0 < stats.allocated_bytes).then_some(fill.min(1.0)),
        splits: Some(stats.splits),
        merges: Some(stats.merges),
    }
}

pub(crate) fn map(map: &betree::StorageMap) -> StorageMap {
    let data = map.regions.iter().map(region);
    let log = map.log.iter().map(|segment| Region {
        file: segment.file.clone(),
        offset: 0,
        length: segment.len,
        kind: RegionKind::Log,
        tree: None,
        level: 0,
        used: Some(if segment.held { 1.0 } else { 0.0 }),
    });
    StorageMap {
        regions: data.chain(log).collect(),
        offsets_are_real: true,
    }
}

fn region(region: &betree::Region) -> Region {
    let (kind, level) = match region.kind {
        betree::RegionKind::Base => (RegionKind::Data, 1),
        betree::RegionKind::Delta => (RegionKind::Buffer, 0),
        betree::RegionKind::Free | betree::RegionKind::Pending => (RegionKind::Free, 0),
        // Images and superblocks, and kinds added to betree later.
        _ => (RegionKind::Meta, 0),
    };
    Region {
        file: DATA.to_owned(),
        offset: region.offset,
        length: region.len,
        kind,
        tree: region.tree,
        level,
        used: Some(region.used),
    }
}

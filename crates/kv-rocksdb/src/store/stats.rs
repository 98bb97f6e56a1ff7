//! RocksDB's statistics: its tickers and properties under our names.

use std::collections::BTreeMap;
use std::ffi::CStr;

use kv::{
    CacheStats, Count, Direction, EngineStats, IoCount, IoReason, KeyRange, Result, Snapshot,
    StallCount, StatScope, TreeId, TreeStats,
};
use rocksdb::statistics::Ticker;

use super::engine::Store;
use super::raw::Family;
use super::snapshot;

/// The properties `rocksdb.num-files-at-level0` and so on.
const FILES_AT_LEVEL: [&CStr; 7] = [
    c"rocksdb.num-files-at-level0",
    c"rocksdb.num-files-at-level1",
    c"rocksdb.num-files-at-level2",
    c"rocksdb.num-files-at-level3",
    c"rocksdb.num-files-at-level4",
    c"rocksdb.num-files-at-level5",
    c"rocksdb.num-files-at-level6",
];

/// The tickers that are reported under their own names.
const COUNTERS: [Ticker; 8] = [
    Ticker::WalFileSynced,
    Ticker::WriteDoneBySelf,
    Ticker::WriteDoneByOther,
    Ticker::WriteWithWal,
    Ticker::BloomFilterUseful,
    Ticker::BytesRead,
    Ticker::IterBytesRead,
    Ticker::CompactionCancelled,
];

/// The statistics of the store since it was opened.
pub(super) fn engine(store: &Store) -> EngineStats {
    let ticker = |ticker| store.tuning.db.get_ticker_count(ticker);
    let merge_read = ticker(Ticker::CompactReadBytes);
    let all_read = ticker(Ticker::LastLevelReadBytes) + ticker(Ticker::NonLastLevelReadBytes);
    let written = vec![
        count(IoReason::Log, ticker(Ticker::WalFileBytes)),
        count(IoReason::Flush, ticker(Ticker::FlushWriteBytes)),
        count(IoReason::Merge, ticker(Ticker::CompactWriteBytes)),
    ];
    let read = vec![
        count(IoReason::Merge, merge_read),
        count(IoReason::PageRead, all_read.saturating_sub(merge_read)),
    ];
    let catalog = store.catalog();
    let sum = |name: &CStr| -> u64 {
        let all = catalog.trees().filter_map(|tree| tree.family.number(name));
        all.fold(0, u64::saturating_add)
    };
    let memtables = sum(c"rocksdb.cur-size-all-mem-tables");
    let pending = sum(c"rocksdb.estimate-pending-compaction-bytes");
    EngineStats {
        written,
        read,
        cache: Some(CacheStats {
            capacity_bytes: store.tuning.settings.cache as u64,
            used_bytes: store.tuning.cache.get_usage() as u64,
            dirty_bytes: memtables,
            hits: ticker(Ticker::BlockCacheHit),
            misses: ticker(Ticker::BlockCacheMiss),
        }),
        stalls: stalls(store, ticker(Ticker::StallMicros)),
        debt_bytes: Some(memtables.saturating_add(pending)),
        activity: activity(store),
        counters: counters(store),
    }
}

fn count(reason: IoReason, bytes: u64) -> IoCount {
    IoCount {
        reason,
        bytes,
        operations: None,
    }
}

/// The waits of writers. RocksDB reports only a total time, under `write_stall`; it also reports
/// counts by reason, such as `l0-file-count-limit-delays`, which are summed over the trees here.
fn stalls(store: &Store, micros: u64) -> Vec<StallCount> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |text: Option<String>| {
        for (name, value) in text.iter().flat_map(|text| stall_counts(text)) {
            let total = counts.entry(name.to_owned()).or_default();
            *total = total.saturating_add(value);
        }
    };
    for tree in store.catalog().trees() {
        add(tree.family.text(c"rocksdb.cf-write-stall-stats"));
    }
    add(store.db.text(c"rocksdb.db-write-stall-stats"));
    let all = ["total-delays", "total-stops"]
        .iter()
        .filter_map(|name| counts.remove(*name))
        .fold(0, u64::saturating_add);
    let mut stalls = vec![
        StallCount {
            reason: "write_stall".to_owned(),
            count: all,
            micros: Some(micros),
        },
        store.pressure.stall(),
    ];
    stalls.extend(
        counts
            .into_iter()
            .filter(|(_, count)| *count != 0)
            .map(|(reason, count)| StallCount {
                reason,
                count,
                micros: None,
            }),
    );
    stalls
}

/// The pairs of name and count in text such as `Write Stall (count): memtable-limit-delays: 0,
/// total-stops: 2`.
fn stall_counts(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let pairs = text.split_once("(count):").map_or("", |(_, pairs)| pairs);
    pairs.split([',', '\n']).filter_map(|pair| {
        let (name, value) = pair.split_once(':')?;
        Some((name.trim(), value.trim().parse().ok()?))
    })
}

fn activity(store: &Store) -> Vec<String> {
    [
        (c"rocksdb.num-running-flushes", "flush"),
        (c"rocksdb.num-running-compactions", "compaction"),
        (c"rocksdb.is-write-stopped", "write_stop"),
        (c"rocksdb.actual-delayed-write-rate", "write_slowdown"),
    ]
    .into_iter()
    .filter(|(property, _)| store.db.number(property).unwrap_or(0) != 0)
    .map(|(_, name)| name.to_owned())
    .collect()
}

fn counters(store: &Store) -> BTreeMap<String, u64> {
    let mut counters: BTreeMap<String, u64> = COUNTERS
        .iter()
        .map(|ticker| {
            let name = ticker.name();
            (name.to_owned(), store.tuning.db.get_ticker_count(*ticker))
        })
        .collect();
    let memtables = store.tuning.memtables.get_usage() as u64;
    counters.insert("memtables.charged.bytes".to_owned(), memtables);
    let pinned = store.tuning.cache.get_pinned_usage() as u64;
    counters.insert("block.cache.pinned.bytes".to_owned(), pinned);
    for (name, property) in [
        ("background.errors", c"rocksdb.background-errors"),
        ("delayed.write.rate", c"rocksdb.actual-delayed-write-rate"),
        ("snapshots", c"rocksdb.num-snapshots"),
    ] {
        counters.insert(name.to_owned(), store.db.number(property).unwrap_or(0));
    }
    counters
}

/// The content of one tree. Exact counts require a scan of the tree.
pub(super) fn tree(store: &Store, id: TreeId, scope: StatScope) -> Result<TreeStats> {
    let catalog = store.catalog();
    let family = &catalog.need(id)?.family;
    let files: Vec<u64> = FILES_AT_LEVEL
        .iter()
        .map(|name| files_at(family, name))
        .collect();
    let levels = files.iter().filter(|count| **count != 0).count();
    let (entries, live_bytes) = match scope {
        StatScope::Quick => (
            Count {
                value: family.number(c"rocksdb.estimate-num-keys").unwrap_or(0),
                exact: false,
            },
            None,
        ),
        StatScope::Exact => walk(store, id)?,
    };
    Ok(TreeStats {
        entries,
        live_bytes,
        allocated_bytes: family.number(c"rocksdb.total-sst-files-size"),
        pages: Some(files.iter().sum()),
        depth: u32::try_from(levels).ok(),
        mean_fill: None,
        splits: None,
        merges: None,
    })
}

fn files_at(family: &Family, name: &CStr) -> u64 {
    let text = family.text(name).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn walk(store: &Store, tree: TreeId) -> Result<(Count, Option<u64>)> {
    let snapshot = snapshot::Snapshot::new(store);
    let mut cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Forward)?;
    let (mut entries, mut bytes) = (0_u64, 0_u64);
    while cursor.advance()? {
        entries += 1;
        bytes += cursor.key().len() as u64 + cursor.value().len() as u64;
    }
    let entries = Count {
        value: entries,
        exact: true,
    };
    Ok((entries, Some(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_texts_are_read_by_name() {
        let text = "Write Stall (count): memtable-limit-stops: 2, total-delays: 0\n\
                    interval: 2 total count\n";
        let pairs: Vec<_> = stall_counts(text).collect();
        assert_eq!(pairs, [("memtable-limit-stops", 2), ("total-delays", 0)]);
        assert_eq!(stall_counts("nothing").count(), 0);
    }
}

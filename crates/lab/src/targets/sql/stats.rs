//! Statistics that servers report about their engines: bytes by reason, caches, pending work.

use std::collections::BTreeMap;

use kv::{CacheStats, EngineStats, IoCount, IoReason};
use lab_report::error::{Error, Result};

use super::engine::Engine;
use super::value::Value;
use super::wire::Wire;

/// Page size of PostgreSQL in bytes; every distribution builds it with this size.
const BLOCK: u64 = 8192;

/// Numbers, by name.
type Numbers = BTreeMap<String, u64>;

/// Query the engine's current statistics.
pub(super) fn ask(wire: &mut dyn Wire, engine: Engine) -> Result<EngineStats> {
    Ok(match engine {
        Engine::Heap => postgres(&postgres_numbers(wire)?.0),
        Engine::InnoDb => {
            let mut found = numbers(wire, "SHOW GLOBAL STATUS LIKE 'Innodb%'", false)?;
            // Only privileged users may read these metrics.
            found.extend(numbers(wire, METRICS, false).unwrap_or_default());
            innodb(&found)
        }
        Engine::MyRocks => {
            let mut found = numbers(wire, "SHOW GLOBAL STATUS LIKE 'Rocksdb%'", false)?;
            found.extend(numbers(wire, FAMILIES, false).unwrap_or_default());
            myrocks(&found)
        }
        Engine::MyIsam => myisam(&numbers(wire, "SHOW GLOBAL STATUS LIKE 'Key%'", false)?),
        Engine::Aria => aria(&numbers(wire, "SHOW GLOBAL STATUS LIKE 'Aria%'", false)?),
    })
}

/// Splits and merges of pages, counted since the server's start (`innodb_monitor_enable`).
const METRICS: &str = "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME LIKE \
                       'index_page%'";

/// Pending work of MyRocks, summed over the column families.
const FAMILIES: &str = "SELECT STAT_TYPE, CAST(SUM(VALUE) AS UNSIGNED) FROM \
                        information_schema.ROCKSDB_CFSTATS WHERE STAT_TYPE IN \
                        ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING', \
                        'CUR_SIZE_ALL_MEM_TABLES') GROUP BY STAT_TYPE";

/// The query for the statistics of a release of PostgreSQL (as in `server_version_num`). It returns
/// one row whose columns have the names used below. From release 17 on, checkpoints have a separate
/// view, and the writes of other processes are in the I/O view; from 18 on, the I/O view has bytes
/// and the syncs of the log.
fn question(release: u64) -> String {
    let (checkpoints, others, view) = if release < 170_000 {
        (
            "b.buffers_checkpoint AS checkpoint, b.checkpoints_timed + b.checkpoints_req",
            "b.buffers_backend".to_owned(),
            "",
        )
    } else {
        // Earlier releases count the pages of file extensions as written pages.
        let pages = match release {
            ..180_000 => "COALESCE(SUM(writes), 0) + COALESCE(SUM(extends), 0)".to_owned(),
            _ => format!(
                "(COALESCE(SUM(write_bytes), 0) + COALESCE(SUM(extend_bytes), 0)) / {BLOCK}"
            ),
        };
        (
            "c.buffers_written AS checkpoint, c.num_timed + c.num_requested",
            format!(
                "(SELECT ({pages})::bigint FROM pg_stat_io WHERE object = 'relation' AND \
                 backend_type NOT IN ('background writer', 'checkpointer'))"
            ),
            ", pg_stat_checkpointer c",
        )
    };
    let syncs = match release {
        ..180_000 => "w.wal_sync",
        _ => "(SELECT COALESCE(SUM(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal')",
    };
    format!(
        "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint AS wal, {checkpoints} AS \
         checkpoints, b.buffers_clean + {others} AS backend, d.blks_read AS misses, d.blks_hit AS \
         hits, {syncs} AS syncs, w.wal_fpi AS images, w.wal_bytes::bigint AS bytes FROM \
         pg_stat_bgwriter b, pg_stat_database d, pg_stat_wal w{view} WHERE d.datname = \
         current_database()"
    )
}

/// The statistics of PostgreSQL and, if some cannot be read, the reason. All releases report the
/// position of the log; the rest is queried in the form of the server's release.
fn postgres_numbers(wire: &mut dyn Wire) -> Result<(Numbers, Option<Error>)> {
    let release = wire.number("SELECT current_setting('server_version_num')::bigint");
    let all = release.and_then(|release| numbers(wire, &question(release), true));
    match all {
        Ok(all) => Ok((all, None)),
        Err(why) => Ok((numbers(wire, POSITION, true)?, Some(why))),
    }
}

/// Notes for the user on what the server does not report, and why.
pub(super) fn unreported(wire: &mut dyn Wire, engine: Engine) -> Vec<String> {
    let (what, why) = match engine {
        Engine::Heap => (
            "pages written and read, checkpoints, cache hits and syncs of its log",
            postgres_numbers(wire).map_or_else(Some, |(_, why)| why),
        ),
        Engine::InnoDb => (
            "splits and merges of its pages",
            numbers(wire, METRICS, false).err(),
        ),
        Engine::MyRocks => ("what compaction owes", numbers(wire, FAMILIES, false).err()),
        Engine::MyIsam | Engine::Aria => return Vec::new(),
    };
    let note = why.map(|why| format!("it does not tell {what}, which read n/a: {why}"));
    note.into_iter().collect()
}

/// Query for only the first of these columns.
const POSITION: &str = "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint AS wal";

/// The columns of [`question`], in their order.
const COLUMNS: [&str; 9] = [
    "wal",
    "checkpoint",
    "checkpoints",
    "backend",
    "misses",
    "hits",
    "syncs",
    "images",
    "bytes",
];

/// Parse a result into numbers: names and values in two columns, or one row of columns.
fn numbers(wire: &mut dyn Wire, text: &str, row: bool) -> Result<Numbers> {
    let all = wire.all(text, Vec::new())?;
    let number = |value: &Value| match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    if row {
        let values = all.first().map_or(&[][..], Vec::as_slice).iter();
        let named = COLUMNS.iter().zip(values);
        return Ok(named
            .filter_map(|(name, value)| Some(((*name).to_owned(), number(value)?)))
            .collect());
    }
    let pair = |row: Vec<Value>| match row.as_slice() {
        [Value::Text(name), value] => Some((name.clone(), number(value)?)),
        _ => None,
    };
    Ok(all.into_iter().filter_map(pair).collect())
}

fn of(numbers: &Numbers, name: &str) -> u64 {
    numbers.get(name).copied().unwrap_or(0)
}

fn count(reason: IoReason, bytes: u64, operations: Option<u64>) -> IoCount {
    IoCount {
        reason,
        bytes,
        operations,
    }
}

/// Counters under the names common to all engines, and under the server's own.
fn counters(numbers: &Numbers, names: &[(&str, &str)]) -> Numbers {
    let known = names.iter().filter_map(|(own, common)| {
        let value = numbers.get(*own)?;
        Some(((*common).to_owned(), *value))
    });
    known.collect()
}

/// InnoDB's counters, and their common names.
const INNODB: [(&str, &str); 11] = [
    ("Innodb_lsn_current", "lsn"),
    ("Innodb_checkpoint_age", "checkpoint_age"),
    ("Innodb_data_fsyncs", "fsyncs"),
    ("Innodb_history_list_length", "history_list_length"),
    ("Innodb_ibuf_merges", "change_buffer_merges"),
    ("Innodb_pages_read", "pages_read"),
    ("Innodb_pages_written", "pages_written"),
    ("index_page_splits", "index_page_splits"),
    ("index_page_merge_attempts", "index_page_merge_attempts"),
    ("index_page_merge_successful", "index_page_merges"),
    ("index_page_reorg_attempts", "index_page_reorganizations"),
];

fn innodb(n: &Numbers) -> EngineStats {
    let page = of(n, "Innodb_page_size").max(1);
    let get = |name: &str| of(n, name);
    let (dirty, data) = (
        get("Innodb_buffer_pool_bytes_dirty"),
        get("Innodb_buffer_pool_bytes_data"),
    );
    let pages = get("Innodb_pages_written");
    // The doublewrite buffer writes these pages a second time.
    let twice = get("Innodb_dblwr_pages_written");
    let asked = get("Innodb_buffer_pool_read_requests");
    let missed = get("Innodb_buffer_pool_reads");
    EngineStats {
        written: vec![
            count(
                IoReason::Log,
                get("Innodb_os_log_written"),
                Some(get("Innodb_log_writes")),
            ),
            count(IoReason::PageWrite, pages * page, Some(pages)),
            count(
                IoReason::Checkpoint,
                twice * page,
                Some(get("Innodb_dblwr_writes")),
            ),
        ],
        read: vec![count(
            IoReason::PageRead,
            get("Innodb_data_read"),
            Some(get("Innodb_data_reads")),
        )],
        cache: Some(CacheStats {
            capacity_bytes: get("Innodb_buffer_pool_pages_total") * page,
            used_bytes: data,
            dirty_bytes: dirty,
            hits: asked.saturating_sub(missed),
            misses: missed,
        }),
        debt_bytes: Some(dirty),
        activity: Vec::new(),
        stalls: vec![
            stall("log_waits", get("Innodb_log_waits")),
            stall("buffer_pool_wait_free", get("Innodb_buffer_pool_wait_free")),
        ],
        counters: counters(n, &INNODB),
    }
}

/// Counters that are gauges: they may decrease, and are not relative to a base.
const GAUGES: [&str; 3] = ["lsn", "checkpoint_age", "history_list_length"];

/// The difference of `stats` to `base`: a server may have run long before the lab opened it.
pub(super) fn since(mut stats: EngineStats, base: &EngineStats) -> EngineStats {
    let less = |now: &mut [IoCount], then: &[IoCount]| {
        for count in now {
            if let Some(then) = then.iter().find(|t| t.reason == count.reason) {
                count.bytes = count.bytes.saturating_sub(then.bytes);
                let operations = count.operations.zip(then.operations);
                count.operations = operations.map(|(now, then)| now.saturating_sub(then));
            }
        }
    };
    less(&mut stats.written, &base.written);
    less(&mut stats.read, &base.read);
    if let (Some(now), Some(then)) = (&mut stats.cache, &base.cache) {
        now.hits = now.hits.saturating_sub(then.hits);
        now.misses = now.misses.saturating_sub(then.misses);
    }
    for (name, value) in &mut stats.counters {
        if !GAUGES.contains(&name.as_str()) {
            *value = value.saturating_sub(of(&base.counters, name));
        }
    }
    stats
}

fn stall(reason: &str, count: u64) -> kv::StallCount {
    kv::StallCount {
        reason: reason.to_owned(),
        count,
        micros: None,
    }
}

fn myrocks(n: &Numbers) -> EngineStats {
    let get = |name: &str| of(n, name);
    let mut activity = Vec::new();
    for (name, word) in [
        ("COMPACTION_PENDING", "compaction"),
        ("MEM_TABLE_FLUSH_PENDING", "flush"),
    ] {
        if 0 < get(name) {
            activity.push(word.to_owned());
        }
    }
    EngineStats {
        written: vec![
            count(
                IoReason::Log,
                get("Rocksdb_wal_bytes"),
                Some(get("Rocksdb_write_wal")),
            ),
            count(IoReason::Flush, get("Rocksdb_flush_write_bytes"), None),
            count(IoReason::Merge, get("Rocksdb_compact_write_bytes"), None),
        ],
        read: vec![count(
            IoReason::Merge,
            get("Rocksdb_compact_read_bytes"),
            None,
        )],
        cache: None,
        debt_bytes: n.get("CUR_SIZE_ALL_MEM_TABLES").copied(),
        activity,
        stalls: vec![kv::StallCount {
            reason: "write_stall".to_owned(),
            count: get("Rocksdb_stall_total_stops") + get("Rocksdb_stall_total_slowdowns"),
            micros: Some(get("Rocksdb_stall_micros")),
        }],
        counters: counters(
            n,
            &[
                ("Rocksdb_wal_synced", "log_syncs"),
                ("Rocksdb_block_cache_hit", "block_cache_hits"),
                ("Rocksdb_block_cache_miss", "block_cache_misses"),
                ("Rocksdb_bloom_filter_useful", "bloom_filter_useful"),
                ("Rocksdb_covered_secondary_key_lookups", "covered_lookups"),
                ("Rocksdb_snapshot_conflict_errors", "snapshot_conflicts"),
            ],
        ),
    }
}

/// `MyISAM` caches only keys, in blocks of 1 KiB; the kernel caches the rows.
fn myisam(n: &Numbers) -> EngineStats {
    let get = |name: &str| of(n, name);
    let block = 1024;
    let (asked, missed) = (get("Key_read_requests"), get("Key_reads"));
    let used = get("Key_blocks_used");
    EngineStats {
        written: vec![count(
            IoReason::PageWrite,
            get("Key_writes") * block,
            Some(get("Key_writes")),
        )],
        read: vec![count(IoReason::PageRead, missed * block, Some(missed))],
        cache: Some(CacheStats {
            capacity_bytes: (used + get("Key_blocks_unused")) * block,
            used_bytes: used * block,
            dirty_bytes: get("Key_blocks_not_flushed") * block,
            hits: asked.saturating_sub(missed),
            misses: missed,
        }),
        debt_bytes: Some(get("Key_blocks_not_flushed") * block),
        ..EngineStats::default()
    }
}

fn aria(n: &Numbers) -> EngineStats {
    let get = |name: &str| of(n, &format!("Aria_pagecache_{name}"));
    let (asked, missed) = (get("read_requests"), get("reads"));
    let used = get("blocks_used");
    EngineStats {
        written: vec![count(
            IoReason::PageWrite,
            get("writes") * BLOCK,
            Some(get("writes")),
        )],
        read: vec![count(IoReason::PageRead, missed * BLOCK, Some(missed))],
        cache: Some(CacheStats {
            capacity_bytes: (used + get("blocks_unused")) * BLOCK,
            used_bytes: used * BLOCK,
            dirty_bytes: get("blocks_not_flushed") * BLOCK,
            hits: asked.saturating_sub(missed),
            misses: missed,
        }),
        debt_bytes: Some(get("blocks_not_flushed") * BLOCK),
        counters: counters(n, &[("Aria_transaction_log_syncs", "log_syncs")]),
        ..EngineStats::default()
    }
}

fn postgres(n: &Numbers) -> EngineStats {
    // Omit what the server does not report, since a zero would look like a measurement.
    let pages = |reason, name: &str| {
        let pages = *n.get(name)?;
        Some(count(reason, pages * BLOCK, Some(pages)))
    };
    let log = n.get("wal").map(|bytes| count(IoReason::Log, *bytes, None));
    let written = [
        log,
        pages(IoReason::Checkpoint, "checkpoint"),
        pages(IoReason::PageWrite, "backend"),
    ];
    let cache = n.get("hits").zip(n.get("misses"));
    EngineStats {
        written: written.into_iter().flatten().collect(),
        // These pages were read from the kernel, possibly from its page cache.
        read: pages(IoReason::PageRead, "misses").into_iter().collect(),
        cache: cache.map(|(hits, misses)| CacheStats {
            hits: *hits,
            misses: *misses,
            ..CacheStats::default()
        }),
        // The server does not report dirty bytes.
        debt_bytes: None,
        counters: counters(
            n,
            &[
                ("wal", "lsn"),
                ("syncs", "log_syncs"),
                ("images", "full_page_images"),
                ("checkpoints", "checkpoints"),
            ],
        ),
        ..EngineStats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::sql::wire::{Answer, Cancel, Failure, Take};

    fn named(pairs: &[(&str, u64)]) -> Numbers {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        owned.collect()
    }

    /// A PostgreSQL server of a given release, with the columns of that release.
    struct Release(i64);

    impl Wire for Release {
        fn run(&mut self, _: &str) -> Answer<u64> {
            Ok(0)
        }

        fn execute(&mut self, _: &str, _: Vec<Value>) -> Answer<u64> {
            Ok(0)
        }

        fn rows(&mut self, text: &str, _: Vec<Value>, take: &mut Take<'_>) -> Answer<()> {
            let from_17 = ["pg_stat_checkpointer", "pg_stat_io"];
            let to_16 = ["b.buffers_checkpoint", "b.buffers_backend"];
            let has = |names: &[&str]| names.iter().any(|name| text.contains(name));
            let unknown = match self.0 {
                ..140_000 => has(&["pg_stat_wal"]),
                140_000..170_000 => has(&from_17),
                170_000..180_000 => has(&to_16) || has(&["write_bytes", "extend_bytes"]),
                _ => has(&to_16) || has(&["w.wal_sync", "SUM(writes)", "SUM(extends)"]),
            };
            let extended = text.contains("extends") || text.contains("extend_bytes");
            if unknown || (has(&["pg_stat_io"]) && has(&["write"]) && !extended) {
                return Err(Failure {
                    message: "column does not exist".to_owned(),
                    conflict: false,
                    duplicate: false,
                });
            }
            let row = if text.contains("server_version_num") {
                vec![Value::Int(self.0)]
            } else if text == POSITION {
                vec![Value::Int(1)]
            } else {
                (1..=9).map(Value::Int).collect()
            };
            take(row);
            Ok(())
        }

        fn cancel(&self) -> Cancel {
            Box::new(|| {})
        }
    }

    #[test]
    fn releases_of_postgresql_are_asked_where_they_keep_their_figures() {
        for release in [140_005, 150_010, 160_000, 170_002, 180_001, 190_000] {
            let mut wire = Release(release);
            let stats = ask(&mut wire, Engine::Heap).unwrap();
            assert_eq!(stats.written_bytes(IoReason::Checkpoint), 2 * BLOCK);
            assert_eq!(stats.written_bytes(IoReason::PageWrite), 4 * BLOCK);
            assert_eq!(stats.counters["checkpoints"], 3, "{release}");
            assert_eq!(
                (stats.cache.unwrap().misses, stats.counters["log_syncs"]),
                (5, 7)
            );
            assert!(unreported(&mut wire, Engine::Heap).is_empty(), "{release}");
        }
    }

    #[test]
    fn what_a_release_does_not_tell_is_left_out_and_named() {
        let mut wire = Release(130_000);
        let stats = ask(&mut wire, Engine::Heap).unwrap();
        assert_eq!(stats.written_bytes(IoReason::Log), 1);
        assert_eq!((stats.written.len(), stats.read.len()), (1, 0));
        assert!(stats.cache.is_none() && !stats.counters.contains_key("checkpoints"));
        let missing = unreported(&mut wire, Engine::Heap);
        assert!(
            missing[0].contains("checkpoints") && missing[0].contains("n/a: column does not exist"),
            "{missing:?}"
        );
    }

    #[test]
    fn bytes_have_their_reasons() {
        let stats = innodb(&named(&[
            ("Innodb_page_size", 16384),
            ("Innodb_pages_written", 3),
            ("Innodb_dblwr_pages_written", 2),
            ("Innodb_os_log_written", 700),
            ("Innodb_buffer_pool_bytes_dirty", 16384),
            ("index_page_splits", 5),
        ]));
        assert_eq!(stats.written_bytes(IoReason::PageWrite), 3 * 16384);
        assert_eq!(stats.written_bytes(IoReason::Checkpoint), 2 * 16384);
        assert_eq!(stats.written_bytes(IoReason::Log), 700);
        assert_eq!(stats.debt_bytes, Some(16384));
        assert_eq!(stats.counters["index_page_splits"], 5);
        let stats = myrocks(&named(&[
            ("Rocksdb_wal_bytes", 9),
            ("COMPACTION_PENDING", 1),
        ]));
        assert_eq!(
            (stats.written_bytes(IoReason::Log), stats.activity),
            (9, vec!["compaction".to_owned()])
        );
        let (then, now) = (
            named(&[("wal", 4), ("syncs", 1)]),
            named(&[("wal", 9), ("syncs", 3)]),
        );
        let grown = since(postgres(&now), &postgres(&then));
        assert_eq!(grown.written_bytes(IoReason::Log), 5);
        assert_eq!((grown.counters["log_syncs"], grown.counters["lsn"]), (2, 9));
    }
}

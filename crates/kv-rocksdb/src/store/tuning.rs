//! How RocksDB is tuned, and why. The settings were compared with `tools/benchmark.sh` in RocksDB's
//! sources, which M. Callaghan uses for his published results (smalldatum.blogspot.com), and with
//! RocksDB's own headers. Equal to that script: dynamic level sizes, filters of level 0 pinned, ten
//! filter bits per key, a merge at 4 runs (8 for universal), a slowdown at 20. Different, because
//! one `cache` must hold everything and may be small: memtables that are a part of `cache` instead
//! of 128 MiB each, index blocks inside it, 800 open files instead of all, blocks of 16 KiB instead
//! of 8. The script disables statistics; this adapter enables them (see below).
//!
//! **Memory.** `cache` bounds everything. One write buffer manager limits the memtables of all
//! trees to `memtables` (a quarter) and charges them to the block cache, which has the rest for
//! blocks: with 128 MiB, 32 MiB of memtables, two write buffers of 16 MiB, and 96 MiB of blocks.
//! The manager does not stall writers (`allow_stall` off): it starts flushes earlier, RocksDB's own
//! triggers slow writers down, and `pressure` keeps the memtables below the whole cache.
//!
//! Index and filter blocks are in the cache too; otherwise a large store would exceed the limit.
//! They are not partitioned: with keys and values of 100 bytes, a 16 MiB file with 16 KiB blocks
//! has an index of about a thousand entries (30 KiB) and a filter of 200 KiB; two such blocks per
//! file are read rarely enough. The cache is RocksDB's hyper clock cache, which RocksDB's authors
//! recommend over the older LRU cache.
//!
//! A memtable allocates blocks of a 64th of a write buffer, at most 256 KiB; RocksDB's default is
//! an eighth, at most 1 MiB. With that default, a hundred trees with few writes each would fill the
//! memtables' share, and be flushed nearly empty.
//!
//! **Conflict history.** Optimistic transactions look for conflicts in memtables, including flushed
//! ones as long as RocksDB keeps them. A tree keeps its flushed memtables until all but the oldest,
//! together with the data not yet flushed, reach a 16th of `memtables`
//! (`max_write_buffer_size_to_maintain`), that is, with 128 MiB of cache, until 2 MiB more have
//! been written into the tree. RocksDB's default for transactions is the size of all write buffers
//! that a tree may have, four, all charged to the cache. A transaction gets a conflict if a tree
//! that it wrote to was flushed and then received that amount of writes.
//!
//! **Compression.** The class `fast` is LZ4; the engine-specific option `codec` selects another
//! codec. Leveled compaction: level 0 and the first level below it are not compressed, because they
//! are rewritten soon and hold little of the data; but the last level always is
//! (`bottommost_compression`), so a small store is compressed as well. Universal compaction: every
//! level is compressed, since any run may stay for long.
//!
//! **Shape.** Leveled compaction uses `level_compaction_dynamic_level_bytes`, which keeps the space
//! amplification near 1.1, four write buffers in level 0 and as much in the first level below it.
//! Writers are slowed down and stopped at RocksDB's defaults of 20 and 36 runs, or at twice and
//! three times the merge trigger where that is more.
//!
//! **Writes.** Pipelined by default: the next group writes the log while the current group fills
//! memtables. Optimistic transactions allow this because they commit by ordinary writes (pipelining
//! excludes two write queues, that is, two-phase commit; it also excludes atomic flushes, so it is
//! off without a log). Unordered writes, which are faster still, would let a snapshot change (I2),
//! so they are off. Files are written to the device every MiB (`bytes_per_sync`,
//! `wal_bytes_per_sync`), so that the sync at the end has little left to do.
//!
//! **Statistics** are on at the level `ExceptDetailedTimers`: the adapter needs the bytes by
//! reason, and the counters are per core; the expensive statistics, times of locks and of
//! compression, are left out.

use kv::{EngineOptions, NamedCodec, TreeOptions};
use rocksdb::statistics::StatsLevel;
use rocksdb::{
    BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, InfoLogger, Options,
    UniversalCompactOptions, WriteBufferManager,
};

use super::settings::{Compaction, Settings};

/// Bytes written between two early syncs of a file.
const SYNC_STEP: u64 = 1 << 20;

/// RocksDB's default number of levels.
const LEVELS: usize = 7;

/// The options of the database and their shared objects.
pub(super) struct Tuning {
    /// The options of the database, which own its statistics.
    pub(super) db: Options,
    /// The block cache, to which memtables are charged.
    pub(super) cache: Cache,
    /// Limits and counts the memory of all memtables.
    pub(super) memtables: WriteBufferManager,
    /// The settings from which these objects were made.
    pub(super) settings: Settings,
}

impl Tuning {
    /// Options for a store with `settings` that logs to `log`.
    pub(super) fn new(settings: Settings, options: &EngineOptions, log: InfoLogger) -> Tuning {
        let cache = Cache::new_hyper_clock_cache(settings.cache, 0);
        let memtables = WriteBufferManager::new_write_buffer_manager_with_cache(
            settings.memtables,
            false,
            cache.clone(),
        );
        let mut db = db_options(&settings, options, &memtables);
        db.set_info_logger(log);
        Tuning {
            db,
            cache,
            memtables,
            settings,
        }
    }

    pub(super) fn tree(&self, tree: &TreeOptions) -> Options {
        let settings = &self.settings;
        let mut options = Options::default();
        options.set_block_based_table_factory(&self.table(tree));
        options.set_write_buffer_size(settings.write_buffer);
        options.set_arena_block_size((settings.write_buffer / 64).clamp(32 << 10, 256 << 10));
        options.set_max_write_buffer_number(4);
        let history = (settings.memtables / 16).min(settings.write_buffer);
        let history = i64::try_from(history).unwrap_or(i64::MAX).max(1);
        options.set_max_write_buffer_size_to_maintain(history);
        let trigger = settings.l0_trigger();
        options.set_level_zero_file_num_compaction_trigger(trigger);
        options.set_level_zero_slowdown_writes_trigger(trigger.saturating_mul(2).max(20));
        options.set_level_zero_stop_writes_trigger(trigger.saturating_mul(3).max(36));
        match settings.compaction {
            Compaction::Leveled => self.leveled(&mut options),
            Compaction::Universal => self.universal(&mut options),
        }
        options
    }

    fn leveled(&self, options: &mut Options) {
        options.set_compaction_style(DBCompactionStyle::Level);
        options.set_level_compaction_dynamic_level_bytes(true);
        let buffer = u64::try_from(self.settings.write_buffer).unwrap_or(u64::MAX);
        let runs = u64::try_from(self.settings.l0_trigger()).unwrap_or(1);
        options.set_target_file_size_base(buffer.clamp(2 << 20, 64 << 20));
        options.set_max_bytes_for_level_base(buffer.saturating_mul(runs).max(8 << 20));
        let codec = self.settings.codec;
        if codec == NamedCodec::None {
            options.set_compression_type(DBCompressionType::None);
            return;
        }
        let mut levels = [kind(codec); LEVELS];
        for top in levels.iter_mut().take(2) {
            *top = DBCompressionType::None;
        }
        options.set_compression_per_level(&levels);
        options.set_bottommost_compression_type(kind(codec));
    }

    fn universal(&self, options: &mut Options) {
        options.set_compaction_style(DBCompactionStyle::Universal);
        options.set_universal_compaction_options(&UniversalCompactOptions::default());
        let buffer = u64::try_from(self.settings.write_buffer).unwrap_or(u64::MAX);
        options.set_target_file_size_base(buffer.clamp(2 << 20, 64 << 20));
        options.set_compression_type(kind(self.settings.codec));
    }

    fn table(&self, tree: &TreeOptions) -> BlockBasedOptions {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&self.cache);
        table.set_block_size(self.settings.block);
        table.set_cache_index_and_filter_blocks(true);
        table.set_cache_index_and_filter_blocks_with_high_priority(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        if tree.point_lookups && 0 < self.settings.bloom {
            table.set_bloom_filter(f64::from(self.settings.bloom), false);
            table.set_optimize_filters_for_memory(true);
        }
        table
    }
}

/// RocksDB's constant for a codec; zlib and Zstandard use its default levels, 6 and 3.
fn kind(codec: NamedCodec) -> DBCompressionType {
    match codec {
        NamedCodec::None => DBCompressionType::None,
        NamedCodec::Snappy => DBCompressionType::Snappy,
        NamedCodec::Lz4 => DBCompressionType::Lz4,
        NamedCodec::Zlib => DBCompressionType::Zlib,
        NamedCodec::Zstd => DBCompressionType::Zstd,
    }
}

fn db_options(
    settings: &Settings,
    options: &EngineOptions,
    memtables: &WriteBufferManager,
) -> Options {
    let mut db = Options::default();
    db.create_if_missing(true);
    db.set_write_buffer_manager(memtables);
    let jobs = i32::try_from(options.threads.max(1)).unwrap_or(i32::MAX);
    db.set_max_background_jobs(jobs);
    db.set_max_subcompactions(settings.subcompactions);
    db.set_enable_pipelined_write(settings.pipelined && options.log);
    db.set_atomic_flush(!options.log);
    db.set_bytes_per_sync(SYNC_STEP);
    db.set_wal_bytes_per_sync(SYNC_STEP);
    db.set_max_open_files(settings.open_files);
    db.set_use_direct_reads(options.direct_io);
    db.set_use_direct_io_for_flush_and_compaction(options.direct_io);
    db.set_avoid_unnecessary_blocking_io(true);
    db.set_stats_dump_period_sec(0);
    db.set_stats_persist_period_sec(0);
    db.enable_statistics();
    db.set_statistics_level(StatsLevel::ExceptDetailedTimers);
    db
}

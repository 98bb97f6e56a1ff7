"""Write amplification of RocksDB under the laboratory's inserts and under db_bench's."""

import re
import shutil

import common

MIB = 1 << 20

# Rows and their size in both.
ROWS = 1_500_000
KEY, VALUE = 8, 188
BATCH = 100

# The laboratory's division of the cache: a quarter for memtables, an eighth for one.
CACHE = 32 * MIB
BUFFER = CACHE // 8
MEMTABLES = CACHE // 4

FLAGS = {
    "benchmarks": "filluniquerandom,waitforcompaction,stats",
    "key_size": KEY,
    "value_size": VALUE,
    "batch_size": BATCH,
    "compression_type": "none",
    "cache_type": "hyper_clock_cache",
    "cache_size": CACHE,
    "cost_write_buffer_to_cache": "true",
    "write_buffer_size": BUFFER,
    "db_write_buffer_size": MEMTABLES,
    "arena_block_size": BUFFER // 64,
    "max_write_buffer_number": 4,
    "max_write_buffer_size_to_maintain": MEMTABLES // 16,
    "level0_file_num_compaction_trigger": 4,
    "level0_slowdown_writes_trigger": 20,
    "level0_stop_writes_trigger": 36,
    "level_compaction_dynamic_level_bytes": "true",
    "target_file_size_base": max(BUFFER, 2 * MIB),
    "max_bytes_for_level_base": max(4 * BUFFER, 8 * MIB),
    "block_size": 16 << 10,
    "bloom_bits": 10,
    "cache_index_and_filter_blocks": "true",
    "pin_l0_filter_and_index_blocks_in_cache": "true",
    "max_background_jobs": 2,
    "subcompactions": 1,
    "enable_pipelined_write": "true",
    "bytes_per_sync": MIB,
    "wal_bytes_per_sync": MIB,
    "open_files": 800,
    "statistics": "true",
    "sync": "false",
    "seed": 42,
}


def theirs(program, folder, rows):
    """Bytes by reason of db_bench, by RocksDB's own counters."""
    store = folder / "db_bench"
    words = [f"--{name}={value}" for name, value in FLAGS.items()]
    words.append(f"--num={rows}")
    told = common.run([program, f"--db={store}", *words])
    shutil.rmtree(store, ignore_errors=True)

    def counter(name):
        found = re.search(rf"^{re.escape(name)} COUNT : (\d+)", told, re.MULTILINE)
        if found is None:
            raise RuntimeError(f"db_bench did not print {name}")
        return int(found.group(1))

    return {
        "log": counter("rocksdb.wal.bytes"),
        "flush": counter("rocksdb.flush.write.bytes"),
        "merge": counter("rocksdb.compact.write.bytes"),
    }


def ours(lab, rows):
    """The same of the load of `fill-factor`: rows by a hashed key, no secondary index."""
    steps = lab.run(
        *("fill-factor", "-t", "rocksdb", "--preset", "smoke", "--rows", str(rows)),
        *("--payload", f"{VALUE - 28}:50", "--batch", str(BATCH)),
        *("--time", "300", "--cache", str(CACHE), "--mem", "512M"),
        *("--codec", "none", "--threads", "2"),
    )
    return steps["load"]["written_by_reason"]


def check(lab):
    """RocksDB's write amplification of random inserts against db_bench of rocksdb-tools."""
    program = common.tool("db_bench", "rocksdb-tools")
    mine, foreign = [], []
    rows = lab.size(ROWS, 50_000)
    for _ in range(lab.turns):
        mine.append(ours(lab, rows))
        foreign.append(theirs(program, lab.folder, rows))
    logical = rows * (KEY + VALUE)

    def row(what, reasons, *bound):
        def each(side):
            return [sum(by.get(reason, 0) for reason in reasons) / logical for by in side]

        return common.paired(what, "B/B", each(mine), each(foreign), *bound)

    return common.Made(
        [
            row("bytes written for a byte inserted", ["log", "flush", "merge"], 0.9, 1.1),
            row("of these, merges", ["merge"]),
            row("of these, flushes", ["flush"]),
            row("of these, the log", ["log"]),
        ],
        [
            f"{rows:,} rows of {KEY} and {VALUE} bytes by unique random keys, {BATCH} a batch, in "
            f"a closed loop, into {CACHE // MIB} MiB of cache with memtables of {BUFFER // MIB} "
            "MiB, not compressed. Ours is the step `load` of `lab "
            "run fill-factor -t rocksdb`, theirs `filluniquerandom` with the options that the "
            "laboratory sets. Both are RocksDB's own counters, after the merges that are due.",
            "Debian's db_bench is RocksDB 7.8 built with assertions, the laboratory's 11.8: "
            "amplification compares, rates do not.",
        ],
    )

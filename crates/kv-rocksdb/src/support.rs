//! What RocksDB supports, as data: name, limits, options and capabilities. It exists whether or not
//! RocksDB is compiled in.

use kv::{Capabilities, Limits, NamedCodec, OptionDoc};

/// The engine's name.
pub(crate) const NAME: &str = "rocksdb";

/// The longest key, in bytes. RocksDB accepts far longer ones (below 4 GiB); this limit keeps an
/// index block of a few keys small.
pub(crate) const KEY_MAX: usize = 65_535;

/// The longest value, in bytes: RocksDB's write batch holds less than 4 GiB, and values are copied
/// into memory before they are written.
pub(crate) const VALUE_MAX: usize = 1 << 30;

/// The engine's own options; `store::settings` parses them.
pub(crate) const OPTIONS: &[OptionDoc] = &[
    OptionDoc {
        name: "compaction",
        values: "leveled|universal",
        default: "leveled",
        about: "leveled rewrites more and needs the least space; universal (tiered) rewrites less \
                and for a while needs up to twice the space",
    },
    OptionDoc {
        name: "write_buffer",
        values: "size 64K-1G",
        default: "an eighth of the cache, 256K to 64M",
        about: "size of one memtable; larger: fewer flushes and merges, for memory and time to \
                recover",
    },
    OptionDoc {
        name: "memtables",
        values: "size",
        default: "a quarter of the cache, at least two write buffers",
        about: "memory for the memtables of all trees, charged to the cache; larger: fewer flushes \
                when many trees are written, and a longer history for detecting conflicts, for a \
                smaller block cache",
    },
    OptionDoc {
        name: "block",
        values: "size 1K-1M",
        default: "16K",
        about: "size of a data block before compression; larger compresses better and needs less \
                index, smaller reads less for one key",
    },
    OptionDoc {
        name: "codec",
        values: NamedCodec::NAMES,
        default: "lz4",
        about: "codec of newly written data (default: by the codec class); a stronger one (zlib \
                at level 6, zstd at level 3) trades processor time of merges for space",
    },
    OptionDoc {
        name: "bloom",
        values: "0-30",
        default: "10",
        about: "filter bits per key in trees made for point lookups; 10 let 1 % of the absent keys \
                through; more costs cache, 0 is no filter",
    },
    OptionDoc {
        name: "subcompactions",
        values: "1-32",
        default: "1",
        about: "maximum number of threads for one compaction; shortens the longest merges, \
                takes threads from the others",
    },
    OptionDoc {
        name: "l0_trigger",
        values: "1-64",
        default: "4 leveled, 8 universal",
        about: "runs in level 0 that start a merge; more runs merge less often and slow down \
                reads (writes slow down at 20 and stop at 36, or 2 and 3 times this number)",
    },
    OptionDoc {
        name: "pipelined",
        values: "true|false",
        default: "true",
        about: "insert into memtables while the next group writes the log; helps several writers, \
                costs a single one a little. Ignored without a log (flushes are atomic then)",
    },
    OptionDoc {
        name: "open_files",
        values: "-1 or 16-1000000",
        default: "800",
        about: "number of files kept open; fewer saves handles and memory, but reads must \
                reopen files; -1 keeps all open",
    },
];

/// What the engine supports with or without a log.
pub(crate) fn capabilities(log: bool) -> Capabilities {
    Capabilities {
        limits: Limits {
            key_max: KEY_MAX,
            value_max: VALUE_MAX,
        },
        empty_keys: true,
        persistent: log,
        interval: log,
        group_commit: log,
        none_is_consistent: true,
        concurrent_writers: true,
        blind_writes: true,
        cheap_range_delete: true,
        drop_with_readers: true,
        compaction: true,
        backup: true,
        increments: false,
        storage_map: true,
        io_by_reason: true,
        direct_io: true,
        compression: true,
    }
}

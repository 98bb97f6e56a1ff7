//! What WiredTiger supports, as data: name, limits, options and capabilities. It exists whether or
//! not the library is compiled in.

use kv::{Capabilities, EngineOptions, Limits, NamedCodec, OptionDoc};

/// The engine's name.
pub(crate) const NAME: &str = "wiredtiger";

/// The value of the option `type` that makes log-structured merge trees.
pub(crate) const LSM: &str = "lsm";

/// The longest key, in bytes. WiredTiger accepts nearly 4 GiB, but keys longer than a tenth of a
/// page are stored in overflow pages and read with extra I/O.
const KEY_MAX: usize = 65_535;

/// The longest value, in bytes: four times MongoDB's largest document. The cache holds a value as a
/// whole, and also every older version of it that a snapshot can still see.
const VALUE_MAX: usize = 64 << 20;

/// The engine's own options; `linked::config` parses them.
pub(crate) static OPTIONS: [OptionDoc; 7] = [
    OptionDoc {
        name: "type",
        values: "btree|lsm",
        default: "btree",
        about: "type of new trees: a B-tree, or a log-structured merge of B-trees, which has \
                fewer random writes, reads more and cannot be compacted on request",
    },
    OptionDoc {
        name: "leaf_page",
        values: "size, 512-512M",
        default: "32K",
        about: "largest leaf page before compression: larger pages compress better and scan \
                faster, smaller ones read and write less for a single key",
    },
    OptionDoc {
        name: "internal_page",
        values: "size, 512-512M",
        default: "4K",
        about: "largest inner page: larger pages make the tree flatter, smaller ones cost less \
                to rewrite at a checkpoint",
    },
    OptionDoc {
        name: "split_pct",
        values: "50-100",
        default: "90",
        about: "fill of pages after a split, in per cent of the largest page: less leaves space \
                for later entries, more makes the file smaller",
    },
    OptionDoc {
        name: "sessions",
        values: "4-20000",
        default: "1024",
        about: "maximum number of open snapshots and transactions; each takes some kilobytes, \
                and one more is refused with Full",
    },
    OptionDoc {
        name: "extension_dir",
        values: "path",
        default: "the library's directory",
        about: "directory of libwiredtiger_snappy.so and libwiredtiger_zlib.so, which the \
                codecs snappy and zlib need",
    },
    OptionDoc {
        name: "codec",
        values: NamedCodec::NAMES,
        default: "snappy",
        about: "codec of new trees (default: by the codec class); a stronger one (zlib, zstd: \
                both at level 6) trades processor time for space",
    },
];

/// What the engine supports when opened with `options`. `open` refuses invalid options of its own,
/// so they are not checked here.
pub(crate) fn capabilities(options: &EngineOptions) -> Capabilities {
    Capabilities {
        limits: Limits {
            key_max: KEY_MAX,
            value_max: VALUE_MAX,
        },
        // "Empty keys not permitted", `__wt_cursor_set_keyv`.
        empty_keys: false,
        persistent: true,
        interval: options.log,
        group_commit: options.log,
        none_is_consistent: true,
        concurrent_writers: true,
        blind_writes: false,
        cheap_range_delete: false,
        drop_with_readers: false,
        // Compacting an LSM first writes its newest chunk; that waits, in whole seconds, as long as
        // a snapshot pins a change in it.
        compaction: options.own.get("type").is_none_or(|text| text != LSM),
        backup: true,
        increments: false,
        storage_map: true,
        io_by_reason: true,
        direct_io: true,
        compression: true,
    }
}

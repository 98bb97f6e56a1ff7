//! The factory, which exists whether or not the library is compiled in.

use std::path::Path;

use kv::{
    Capabilities, CodecDoc, Engine, EngineOptions, Factory, Limits, NamedCodec, OptionDoc, Result,
    Writes,
};

use crate::library;

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

static OPTIONS: [OptionDoc; 7] = [
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

struct Wiredtiger;

/// The factory of this engine. It always exists; without the cargo feature `wiredtiger`, `open`
/// fails and names the feature.
///
/// ```
/// use kv::Factory;
///
/// let factory = kv_wiredtiger::factory();
/// assert_eq!(factory.name(), "wiredtiger");
/// assert_eq!(factory.available(), cfg!(feature = "wiredtiger"));
/// ```
#[must_use]
pub fn factory() -> &'static dyn Factory {
    &Wiredtiger
}

impl Factory for Wiredtiger {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "B-tree or LSM with MVCC in memory, checkpoints and a log, by MongoDB Inc."
    }

    fn license(&self) -> &'static str {
        "GPL-2.0-only OR GPL-3.0-only"
    }

    fn feature(&self) -> Option<&'static str> {
        Some("wiredtiger")
    }

    /// One malloc arena. WiredTiger frees on its eviction threads memory that callers allocated, so
    /// that glibc's arenas hold about twice the cache; MongoDB uses tcmalloc instead.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[("MALLOC_ARENA_MAX", "1")]
    }

    fn available(&self) -> bool {
        library::AVAILABLE
    }

    fn version(&self) -> Option<String> {
        library::version()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(&EngineOptions::default())
    }

    fn writes(&self) -> Option<Writes> {
        Some(Writes::Pages)
    }

    fn options(&self) -> &'static [OptionDoc] {
        &OPTIONS
    }

    fn codecs(&self) -> &'static [CodecDoc] {
        NamedCodec::DOCS
    }

    fn check(&self, options: &EngineOptions) -> Result<()> {
        self.check_own(options)?;
        library::check(options)
    }

    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
        self.check_own(options)?;
        library::open(directory, options)
    }
}

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
        storage_map: true,
        io_by_reason: true,
        direct_io: true,
        compression: true,
    }
}

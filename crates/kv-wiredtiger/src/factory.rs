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

/// The longest key, in bytes. WiredTiger would take nearly 4 GiB, but keys longer than a tenth of a
/// page are kept apart and read with extra I/O.
const KEY_MAX: usize = 65_535;

/// The longest value, in bytes: four times MongoDB's largest document. A value lies in the cache
/// as a whole, and so does every older version of it that a snapshot can still see.
const VALUE_MAX: usize = 64 << 20;

static OPTIONS: [OptionDoc; 7] = [
    OptionDoc {
        name: "type",
        values: "btree|lsm",
        default: "btree",
        about: "what trees are created as: a B-tree, or a log-structured merge of B-trees, which \
                writes less at random, reads more and cannot be compacted on request",
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
        about: "per cent of the largest page to which pages are filled when one is split: less \
                leaves room for entries to come, more makes the file smaller",
    },
    OptionDoc {
        name: "sessions",
        values: "4-20000",
        default: "1024",
        about: "snapshots and transactions open at once; each takes some kilobytes, and one more \
                is refused with Full",
    },
    OptionDoc {
        name: "extension_dir",
        values: "path",
        default: "the library's directory",
        about: "where libwiredtiger_snappy.so and libwiredtiger_zlib.so lie, which the codecs \
                snappy and zlib need",
    },
    OptionDoc {
        name: "codec",
        values: NamedCodec::NAMES,
        default: "snappy",
        about: "the codec of trees created from now on (of the codec class when not given); a \
                stronger one (zlib, zstd: both at level 6) trades processor time for space",
    },
];

struct Wiredtiger;

/// The factory of this engine. It always exists; without the cargo feature `wiredtiger` it opens
/// nothing and says so.
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

    /// One malloc arena. WiredTiger frees on its eviction threads what callers allocated, which
    /// makes glibc's arenas hold about twice the cache; its usual servers use tcmalloc instead.
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

/// What the engine can do when opened with `options`. Options of its own that are wrong are refused
/// by `open`, so they need not be told apart here.
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
        // Compacting an LSM first writes out its newest chunk; that waits, in whole seconds, for as
        // long as a snapshot pins a change in it.
        compaction: options.own.get("type").is_none_or(|text| text != LSM),
        backup: true,
        storage_map: true,
        io_by_reason: true,
        direct_io: true,
        compression: true,
    }
}

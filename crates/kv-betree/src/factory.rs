//! The factory: what betree supports, and how it is opened.
//!
//! Of the common options betree uses all but `size_max`: its data file grows as far as the disk
//! allows. `cache` is all the memory that betree uses, write buffers included. betree runs at least
//! one background thread, because callers of this API do no background work.

use std::path::Path;
use std::sync::Arc;

use kv::{
    Capabilities, Codec, CodecDoc, Engine, EngineOptions, Factory, Limits, OptionDoc, Result,
    Writes,
};
use vfs::RealVfs;

use crate::settings::{self, NAME, OPTIONS};

/// The codecs for betree's data.
const CODECS: &[CodecDoc] = &[
    CodecDoc::NONE,
    CodecDoc {
        name: "snappy",
        class: Codec::Fast,
        own: &[("codec", "snappy"), ("delta_codec", "snappy")],
    },
    CodecDoc::fast("lz4"),
    // Deltas are soon rewritten, so the stronger codecs are used for bases only.
    CodecDoc {
        name: "zlib",
        class: Codec::Fast,
        own: &[("codec", "zlib:6")],
    },
    CodecDoc {
        name: "zstd",
        class: Codec::Fast,
        own: &[("codec", "zstd:3")],
    },
];

pub(crate) struct Betree;

impl Factory for Betree {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "write-optimised Be-tree of buffered buckets, Romanesco's own"
    }

    fn license(&self) -> &'static str {
        "MIT OR Apache-2.0"
    }

    fn feature(&self) -> Option<&'static str> {
        None
    }

    fn available(&self) -> bool {
        true
    }

    fn version(&self) -> Option<String> {
        // All crates of the workspace have one version.
        Some(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(true)
    }

    fn writes(&self) -> Option<Writes> {
        Some(Writes::Changes)
    }

    fn torn_pages(&self) -> &'static str {
        "not needed: a page that a checkpoint uses is not overwritten; the log has checksums"
    }

    fn options(&self) -> &'static [OptionDoc] {
        OPTIONS
    }

    fn codecs(&self) -> &'static [CodecDoc] {
        CODECS
    }

    fn check(&self, options: &EngineOptions) -> Result<()> {
        self.check_own(options)?;
        settings::read(options).map(|_| ())
    }

    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
        crate::open_with(Arc::new(RealVfs::new()), directory, options)
    }
}

/// What betree supports with or without a log.
pub(crate) fn capabilities(log: bool) -> Capabilities {
    Capabilities {
        limits: Limits {
            key_max: betree::KEY_MAX,
            value_max: betree::VALUE_MAX,
        },
        empty_keys: true,
        persistent: log,
        interval: log,
        group_commit: log,
        none_is_consistent: true,
        concurrent_writers: true,
        blind_writes: true,
        // A range delete finds the keys of the range and deletes them one by one.
        cheap_range_delete: false,
        drop_with_readers: true,
        compaction: true,
        backup: true,
        increments: true,
        storage_map: true,
        io_by_reason: true,
        direct_io: true,
        compression: true,
    }
}

//! The factory, which exists whether or not the library is compiled in.

use std::path::Path;

use kv::{
    Capabilities, CodecDoc, Engine, EngineOptions, Factory, NamedCodec, OptionDoc, Result, Writes,
};

use crate::library;
use crate::support::{NAME, OPTIONS, capabilities};

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

    /// With glibc's allocator one arena: WiredTiger's eviction threads free memory that callers
    /// allocated, so its arenas would hold about twice the cache.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        match stdx::memory::NAME {
            "glibc" => &[("MALLOC_ARENA_MAX", "1")],
            _ => &[],
        }
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

    fn torn_pages(&self) -> &'static str {
        "not needed: a block that a checkpoint uses is not overwritten; the log has checksums"
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

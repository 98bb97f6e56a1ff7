//! The factory: what LMDB supports, and how it is opened.
//!
//! Of the common options LMDB uses `size_max` (the size of its map, which is address space, not
//! memory or disk), `interval` and `log`. It has no cache of its own (the page cache of the
//! operating system is its cache, so `cache` cannot bound it), no checkpoints, no compression and
//! no background threads but the one that syncs, and it cannot bypass the page cache it maps:
//! `cache`, `checkpoint`, `codec`, `threads` and `direct_io` are accepted and have no effect.

use std::path::Path;

use kv::{Capabilities, Engine, EngineOptions, Factory, Limits, OptionDoc, Result, Writes};

use crate::engine;
use crate::settings::{OPTIONS, Settings};

/// The engine's name.
pub(crate) const NAME: &str = "lmdb";

/// The longest key, in bytes. Two nodes must fit in a page: of a page of 4096 bytes 16 are the
/// header, half the rest is 2040, less the 2-byte slot 2038, less the node header (8) and the
/// record of a named database (48), which LMDB reserves in every node. Larger pages would allow
/// more; the limit is the same everywhere so that a store can move between machines.
pub(crate) const KEY_MAX: usize = 1982;

/// The longest value, in bytes. LMDB itself accepts 4 GiB, but needs that many contiguous free
/// pages.
pub(crate) const VALUE_MAX: usize = 1 << 30;

pub(crate) struct Lmdb;

impl Factory for Lmdb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "memory-mapped copy-on-write B-tree with one writer and no log, by Symas"
    }

    fn license(&self) -> &'static str {
        "OpenLDAP Public License 2.8"
    }

    fn feature(&self) -> Option<&'static str> {
        Some("lmdb")
    }

    fn available(&self) -> bool {
        engine::AVAILABLE
    }

    fn version(&self) -> Option<String> {
        engine::version()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn writes(&self) -> Option<Writes> {
        Some(Writes::Pages)
    }

    fn options(&self) -> &'static [OptionDoc] {
        OPTIONS
    }

    fn has_cache(&self) -> bool {
        false
    }

    fn check(&self, options: &EngineOptions) -> Result<()> {
        self.check_own(options)?;
        Settings::read(options).map(|_| ())
    }

    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
        self.check_own(options)?;
        engine::open(directory, options, Settings::read(options)?)
    }
}

/// What LMDB supports; no option changes it.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        limits: Limits {
            key_max: KEY_MAX,
            value_max: VALUE_MAX,
        },
        empty_keys: false,
        // Commits are written with pwrite, so they are in the page cache when they return.
        persistent: true,
        interval: false,
        group_commit: false,
        none_is_consistent: false,
        concurrent_writers: false,
        blind_writes: false,
        cheap_range_delete: false,
        // Trees are emptied, not deleted (see `engine::catalog`), and older pages stay for readers.
        drop_with_readers: true,
        compaction: false,
        backup: true,
        storage_map: true,
        // The kernel reads pages through the map; LMDB does not see these reads.
        io_by_reason: false,
        direct_io: false,
        compression: false,
    }
}

#[cfg(all(test, not(feature = "lmdb")))]
mod tests {
    use super::*;
    use kv::ErrorKind;

    #[test]
    fn without_the_feature_open_names_it() {
        assert!(!Lmdb.available());
        let error = Lmdb.open(Path::new("/nowhere"), &EngineOptions::default());
        let error = error.err().expect("there is no engine to open");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("--features lmdb"), "{error}");
    }
}

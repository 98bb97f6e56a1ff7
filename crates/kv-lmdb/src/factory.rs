//! The factory: how LMDB is opened, and which options it uses.
//!
//! Of the common options LMDB uses `size_max` (the size of its map, which is address space, not
//! memory or disk), `interval` and `log`. The other options are accepted and have no effect. LMDB
//! has no cache of its own (the page cache of the operating system is its cache, so `cache` cannot
//! bound it), no checkpoints (`checkpoint`), no compression (`codec`), and no background threads
//! except the one that syncs (`threads`); and it cannot bypass the page cache that it maps
//! (`direct_io`).

use std::path::Path;

use kv::{Capabilities, Engine, EngineOptions, Factory, OptionDoc, Result, Writes};

use crate::engine;
use crate::settings::{OPTIONS, Settings};
use crate::support::{NAME, capabilities};

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

    fn torn_pages(&self) -> &'static str {
        "not needed: pages are copied on write, and two meta pages alternate"
    }

    fn options(&self) -> &'static [OptionDoc] {
        OPTIONS
    }

    fn has_cache(&self) -> bool {
        false
    }

    /// Servers have many small commits, and promise that a power loss takes those of the commit
    /// interval.
    fn serving(&self) -> &'static [(&'static str, &'static str)] {
        match vfs::PageCacheId::of(Path::new("/")) {
            Ok(_) => &[("interval", "background")],
            Err(_) => &[],
        }
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

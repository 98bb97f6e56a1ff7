//! Runs in a file, with small pages and a small cache.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use vfs::{Open, RealVfs, Vfs};

use super::super::testing::Version;
use crate::cache::Cache;
use crate::page::Codec;
use crate::run::{Run, RunOptions, RunStore, RunWriter};
use crate::space::{Purpose, Space};
use crate::types::{Entry, RunId, TreeId, UNIT};

/// Makes runs.
pub(super) struct Runs {
    store: Arc<RunStore>,
    space: Arc<Space>,
    made: AtomicU64,
    _directory: TempDir,
}

impl Runs {
    /// A file to write runs to, and a cache of `cache` bytes to read them through.
    pub(super) fn new(cache: u64) -> Runs {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.betree");
        let space = Arc::new(Space::new(4 * UNIT));
        let file = Self::file(&path);
        let cache = Arc::new(Cache::new(cache));
        Runs {
            store: RunStore::new(file, path, Arc::clone(&space), cache, None),
            space,
            made: AtomicU64::new(0),
            _directory: directory,
        }
    }

    fn file(path: &Path) -> Arc<dyn vfs::File> {
        let how = Open {
            create: true,
            direct: false,
        };
        let site = vfs::Site("test.open");
        Arc::from(RealVfs::new().open(site, path, how).unwrap())
    }

    /// A run of these versions, in pages of `page_raw` bytes.
    pub(super) fn make<'a>(
        &self,
        versions: impl IntoIterator<Item = Entry<'a>>,
        page_raw: usize,
    ) -> Arc<Run> {
        let options = RunOptions {
            codec: Codec::Lz4,
            page_raw,
            filter_bits: 10,
            purpose: Purpose::Flush,
        };
        let id = RunId(self.made.fetch_add(1, Ordering::Relaxed) + 1);
        let mut writer = RunWriter::new(&self.store, TreeId(1), id, options);
        for version in versions {
            writer.push(version).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Write the next runs where runs were that are no longer held.
    pub(super) fn reuse(&self) {
        let epoch = self.space.begin_checkpoint();
        self.space.checkpoint_durable(epoch);
    }

    /// A run of a few entries a page.
    pub(super) fn make_small(&self, versions: &[Version]) -> Arc<Run> {
        self.make(versions.iter().map(Version::entry), 100)
    }
}

//! Stands in for what the store does not answer yet.

use std::path::Path;

use betree::{Db, Error, ErrorKind, Report, Result, Stats, StorageMap, TreeId, TreeStats};

pub(crate) trait Missing {
    fn backup(&self, _: &Path, _: &mut dyn FnMut(u64, u64) -> bool) -> Result<bool> {
        none()
    }
    fn verify(&self) -> Result<Report> {
        Ok(Report::default())
    }
    fn stats(&self) -> Stats {
        Stats::default()
    }
    fn tree_stats(&self, tree: TreeId, _: bool) -> Result<TreeStats> {
        self.count(tree)
    }
    fn count(&self, _: TreeId) -> Result<TreeStats> {
        none()
    }
    fn storage_map(&self) -> StorageMap {
        StorageMap::default()
    }
}

impl Missing for Db {
    fn count(&self, tree: TreeId) -> Result<TreeStats> {
        let mut stats = TreeStats::default();
        let all = std::ops::Bound::Unbounded;
        let snapshot = self.begin_read()?;
        let mut cursor = snapshot.cursor(tree, all, all, betree::Direction::Forward)?;
        while cursor.advance()? {
            stats.entries += 1;
            stats.live_bytes += (cursor.key().len() + cursor.value().len()) as u64;
        }
        stats.exact = true;
        Ok(stats)
    }
}

fn none<T>() -> Result<T> {
    let message = "the store does not answer this yet";
    Err(Error::new(ErrorKind::Closed, message))
}

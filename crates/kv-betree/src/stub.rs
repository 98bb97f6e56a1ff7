//! Stands in for what the store does not answer yet.

use std::path::Path;

use betree::{Db, Error, ErrorKind, Report, Result, Stats, StorageMap, TreeId, TreeStats};

pub(crate) trait Missing {
    fn backup(&self, _: &Path, _: &mut dyn FnMut(u64, u64) -> bool) -> Result<bool> {
        none()
    }
    fn verify(&self) -> Result<Report> {
        none()
    }
    fn stats(&self) -> Stats {
        Stats::default()
    }
    fn tree_stats(&self, _: TreeId, _: bool) -> Result<TreeStats> {
        none()
    }
    fn storage_map(&self) -> StorageMap {
        StorageMap::default()
    }
}

impl Missing for Db {}

fn none<T>() -> Result<T> {
    let message = "the store does not answer this yet";
    Err(Error::new(ErrorKind::Closed, message))
}

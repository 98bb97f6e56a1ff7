//! Stands in for the store until it is there. Nothing of it works.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    unused_variables,
    clippy::needless_pass_by_value,
    clippy::unused_self
)]

use std::marker::PhantomData;
use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use betree::{
    Batch, Durability, Error, ErrorKind, Options, Report, Result, Stats, StorageMap, TreeId,
    TreeStats,
};

pub struct Db(());
pub struct Snapshot(());
pub struct Transaction(());
pub struct Cursor<'a>(PhantomData<&'a ()>);
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeOptions {
    pub ascending: bool,
    pub point_lookups: bool,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}
type B<'a> = Bound<&'a [u8]>;
fn none<T>() -> Result<T> {
    Err(Error::new(
        ErrorKind::Closed,
        "the store is not written yet",
    ))
}

impl Db {
    pub fn open(directory: &Path, options: Options) -> Result<Db> {
        none()
    }
    pub fn create_tree(&self, name: &str, options: TreeOptions) -> Result<TreeId> {
        none()
    }
    pub fn open_tree(&self, name: &str) -> Result<TreeId> {
        none()
    }
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        none()
    }
    pub fn trees(&self) -> Vec<String> {
        Vec::new()
    }
    pub fn begin_read(&self) -> Result<Snapshot> {
        none()
    }
    pub fn begin(&self) -> Result<Transaction> {
        none()
    }
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        none()
    }
    pub fn checkpoint(&self) -> Result<()> {
        none()
    }
    pub fn sync_log(&self) -> Result<()> {
        none()
    }
    pub fn settle(&self, limit: Duration) -> Result<bool> {
        none()
    }
    pub fn compact(
        &self,
        tree: TreeId,
        start: B<'_>,
        end: B<'_>,
        watch: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        none()
    }
    pub fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        none()
    }
    pub fn verify(&self) -> Result<Report> {
        none()
    }
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
    pub fn tree_stats(&self, tree: TreeId, exact: bool) -> Result<TreeStats> {
        none()
    }
    pub fn storage_map(&self) -> StorageMap {
        StorageMap::default()
    }
    pub fn close(self) -> Result<()> {
        none()
    }
}

impl Snapshot {
    pub fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        none()
    }
    pub fn cursor(
        &self,
        tree: TreeId,
        start: B<'_>,
        end: B<'_>,
        direction: Direction,
    ) -> Result<Cursor<'static>> {
        none()
    }
}

impl Transaction {
    pub fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        none()
    }
    pub fn cursor(
        &self,
        tree: TreeId,
        start: B<'_>,
        end: B<'_>,
        direction: Direction,
    ) -> Result<Cursor<'_>> {
        none()
    }
    pub fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        none()
    }
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        none()
    }
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        none()
    }
    pub fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        none()
    }
    pub fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        none()
    }
    pub fn delete_range(&mut self, tree: TreeId, start: B<'_>, end: B<'_>) -> Result<()> {
        none()
    }
    pub fn commit(self, durability: Durability) -> Result<()> {
        none()
    }
    pub fn rollback(self) {}
}

impl Cursor<'_> {
    pub fn advance(&mut self) -> Result<bool> {
        none()
    }
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        none()
    }
    pub fn key(&self) -> &[u8] {
        b""
    }
    pub fn value(&self) -> &[u8] {
        b""
    }
}

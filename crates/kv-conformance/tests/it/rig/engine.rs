//! The rig: the reference engine in a wrapper that stores its content in a file, limits its
//! capabilities, and adds a bug on request.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use kv::{
    BackupSink, Batch, CacheStats, Capabilities, Change, Compaction, Durability, Engine,
    EngineOptions, EngineStats, Error, ErrorKind, Factory, Flow, KeyRange, Limits, OptionDoc,
    Progress, Region, RegionKind, Result, Snapshot, StatScope, StorageMap, Transaction, TreeId,
    TreeOptions, TreeStats,
};
use stdx::sync::{Condvar, Mutex};

use super::content;
use super::pieces;
use super::plant::Plant;
use super::view::{Txn, View};

const NAME: &str = "memory";

/// The factory of rigs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RigFactory {
    /// The planted bug, if any.
    pub(crate) plant: Option<Plant>,
    /// Whether the rig lacks the optional capabilities: it has one writer at a time, no empty keys,
    /// no compaction, no backup.
    pub(crate) plain: bool,
}

impl RigFactory {
    /// A factory that lives until the process ends.
    pub(crate) fn leak(plant: Option<Plant>, plain: bool) -> &'static dyn Factory {
        Box::leak(Box::new(RigFactory { plant, plain }))
    }
}

/// An open rig.
pub(crate) struct Rig {
    pub(crate) plant: Option<Plant>,
    pub(crate) readers: AtomicUsize,
    pub(crate) commits: AtomicU64,
    inner: Option<Box<dyn Engine>>,
    plain: bool,
    capabilities: Capabilities,
    directory: PathBuf,
    writer: Mutex<Option<ThreadId>>,
    writer_left: Condvar,
    last: Mutex<Option<Vec<u8>>>,
    dropped: Mutex<Vec<String>>,
    calls: AtomicU64,
}

/// The right to write, in a rig with one writer at a time.
pub(crate) struct Turn<'e>(&'e Rig);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.writer.lock() = None;
        self.0.writer_left.notify_one();
    }
}

impl Rig {
    pub(crate) fn has(&self, plant: Plant) -> bool {
        self.plant == Some(plant)
    }

    pub(crate) fn inner(&self) -> &dyn Engine {
        self.inner.as_deref().expect("open until it is closed")
    }

    /// Refuse keys and values larger than the rig's limits.
    pub(crate) fn check(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.has(Plant::LimitsIgnored) {
            return Ok(());
        }
        let limits = self.capabilities.limits;
        let short = key.is_empty() && !self.capabilities.empty_keys;
        if short || limits.key_max < key.len() || limits.value_max < value.len() {
            return Err(Error::invalid("beyond the limits").with_engine(NAME));
        }
        Ok(())
    }

    /// Record a commit whose last write was of `key`.
    pub(crate) fn wrote(&self, key: Option<Vec<u8>>) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        *self.last.lock() = key;
    }

    fn turn(&self) -> Result<Option<Turn<'_>>> {
        if !self.plain {
            return Ok(None);
        }
        let me = thread::current().id();
        let mut writer = self.writer.lock();
        if *writer == Some(me) {
            let message = "this thread has a write transaction open";
            return Err(Error::invalid(message).with_engine(NAME));
        }
        while writer.is_some() {
            self.writer_left.wait(&mut writer);
        }
        *writer = Some(me);
        Ok(Some(Turn(self)))
    }

    fn store(&self) -> Result<()> {
        let last = self.last.lock().take();
        let keep = |key: &[u8]| !self.has(Plant::LastWriteLost) || last.as_deref() != Some(key);
        let mut names = self.inner().trees()?;
        if self.has(Plant::DroppedTreeReturns) {
            names.extend(self.dropped.lock().drain(..));
            names.sort();
            names.dedup();
        }
        let view = self.inner().begin_read()?;
        content::save(&self.directory, self.inner(), &*view, &names, &keep)
    }

    fn write_one_by_one(&self, batch: &Batch, durability: Durability) -> Result<()> {
        for change in batch.ops() {
            let mut one = Batch::new();
            push(&mut one, change);
            self.check_batch(&one)?;
            self.inner().write(&one, durability)?;
        }
        Ok(())
    }

    fn check_batch(&self, batch: &Batch) -> Result<()> {
        batch.ops().try_for_each(|change| match change {
            Change::Put { key, value, .. } => self.check(key, value),
            Change::Delete { .. } | Change::DeleteRange { .. } => Ok(()),
        })
    }

    /// `batch`, changed by the planted bug if it is about batches.
    fn twisted(&self, batch: &Batch) -> Result<Batch> {
        let mut twisted = Batch::new();
        let reordered = self.has(Plant::BatchReordered);
        let late = |change: &Change<'_>| reordered && matches!(change, Change::Delete { .. });
        for change in batch.ops().filter(|change| !late(change)) {
            push(&mut twisted, change);
            if let (Change::DeleteRange { tree, range }, Some(Plant::RangeDeleteLeavesOne)) =
                (change, self.plant)
            {
                let now = self.inner().begin_read()?;
                let mut cursor = now.cursor(tree, range, kv::Direction::Backward)?;
                if cursor.advance()? {
                    twisted.put(tree, cursor.key(), cursor.value());
                }
            }
        }
        batch
            .ops()
            .filter(late)
            .for_each(|change| push(&mut twisted, change));
        Ok(twisted)
    }
}

fn push(batch: &mut Batch, change: Change<'_>) {
    match change {
        Change::Put { tree, key, value } => batch.put(tree, key, value),
        Change::Delete { tree, key } => batch.delete(tree, key),
        Change::DeleteRange { tree, range } => batch.delete_range(tree, range),
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.inner.is_some() && !self.has(Plant::DropStoresNothing) {
            // An error is ignored: by the contract, dropping reports none.
            let _ = self.store();
        }
    }
}

impl Engine for Rig {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        match self.inner().create_tree(name, options) {
            Err(e) if e.kind() == ErrorKind::Exists && self.has(Plant::CreateOpens) => {
                self.inner().open_tree(name)
            }
            other => other,
        }
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        self.inner().open_tree(name)
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        self.inner().open_tree(name)?;
        if self.plain && 0 < self.readers.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Conflict, "a snapshot is open").with_engine(NAME));
        }
        self.dropped.lock().push(name.to_owned());
        self.inner().drop_tree(name)
    }

    fn trees(&self) -> Result<Vec<String>> {
        let mut names = self.inner().trees()?;
        if self.has(Plant::ListingUnsorted) {
            names.reverse();
        }
        Ok(names)
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        self.readers.fetch_add(1, Ordering::Relaxed);
        let inner = self.inner().begin_read()?;
        Ok(Box::new(View { rig: self, inner }))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        let turn = self.turn()?;
        Ok(Box::new(Txn {
            rig: self,
            commits: self.commits.load(Ordering::Relaxed),
            inner: Some(self.inner().begin_write()?),
            base: self.inner().begin_read()?,
            log: Batch::new(),
            spoilt: false,
            last: None,
            _turn: turn,
        }))
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let _turn = self.turn()?;
        if self.has(Plant::BatchTorn) {
            return self.write_one_by_one(batch, durability);
        }
        self.check_batch(batch)?;
        self.inner().write(&self.twisted(batch)?, durability)?;
        let last = batch.ops().last();
        self.wrote(match last {
            Some(Change::Put { key, .. }) => Some(key.to_vec()),
            _ => None,
        });
        Ok(())
    }

    fn checkpoint(&self) -> Result<()> {
        self.inner().checkpoint()
    }

    fn sync_log(&self) -> Result<()> {
        self.inner().sync_log()
    }

    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        if self.plain {
            return Err(Error::unsupported(NAME, "compaction"));
        }
        if self.has(Plant::CompactionLosesKey) {
            let mut batch = Batch::new();
            batch.delete(tree, b"00000044");
            batch.delete(tree, b"k");
            self.inner().write(&batch, Durability::None)?;
        }
        let deaf = self.has(Plant::CancelIgnored);
        self.inner()
            .compact(tree, range, &mut |progress| match watch(progress) {
                Flow::Cancel if !deaf => Flow::Cancel,
                _ => Flow::Continue,
            })
    }

    fn settle(&self, limit: Duration) -> Result<Compaction> {
        self.inner().settle(limit)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        if self.plain {
            return Err(Error::unsupported(NAME, "backup"));
        }
        let taken = fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
        if taken && !self.has(Plant::BackupIntrudes) {
            return Err(Error::new(ErrorKind::Exists, "the directory holds files"));
        }
        if watch(Progress::default()) == Flow::Cancel {
            return Ok(Compaction::Cancelled);
        }
        if !taken {
            kv::identity::claim(directory, NAME, 1, "")?;
        }
        let view = self.inner().begin_read()?;
        let mut names = self.inner().trees()?;
        if self.has(Plant::BackupIncomplete) {
            names.pop();
        }
        content::save(directory, self.inner(), &*view, &names, &|_| true)?;
        watch(Progress::default());
        Ok(Compaction::Complete)
    }

    fn backup_to(&self, staging: &Path, sink: &mut dyn BackupSink) -> Result<Compaction> {
        let mut flow = Flow::Continue;
        let ended = self.backup(staging, &mut |progress| {
            flow = sink.preparing(progress);
            flow
        })?;
        if ended == Compaction::Cancelled {
            return Ok(ended);
        }
        let passed = match flow {
            Flow::Cancel => Compaction::Cancelled,
            Flow::Continue => pieces::pass(staging, self.plant, sink),
        };
        fs::remove_dir_all(staging).unwrap();
        Ok(passed)
    }

    fn lineage(&self) -> Option<[u8; 16]> {
        let shared = self.has(Plant::LineageShared);
        let own = || pieces::identify(self.directory.as_os_str().as_encoded_bytes());
        (!self.plain).then(|| if shared { [0; 16] } else { own() })
    }

    fn stats(&self) -> Result<EngineStats> {
        let mut stats = self.inner().stats()?;
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        let falls = self.has(Plant::CounterFalls);
        stats.cache = Some(CacheStats {
            capacity_bytes: 1,
            hits: if falls {
                1000u64.saturating_sub(calls)
            } else {
                calls
            },
            ..CacheStats::default()
        });
        Ok(stats)
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        let mut stats = self.inner().tree_stats(tree, scope)?;
        if self.has(Plant::CountOff) && 500 < stats.entries.value {
            stats.entries.value += 1;
        }
        Ok(stats)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        if self.plain {
            return Err(Error::unsupported(NAME, "storage map"));
        }
        let mut map = StorageMap::default();
        for name in self.inner().trees()? {
            let tree = self.inner().open_tree(&name)?;
            let stats = self.inner().tree_stats(tree, StatScope::Quick)?;
            let overfull = self.has(Plant::MapOverfull);
            map.regions.push(Region {
                file: content::FILE.to_owned(),
                offset: map.regions.iter().map(|region| region.length).sum(),
                length: stats.live_bytes.unwrap_or_default(),
                kind: RegionKind::Data,
                tree: Some(tree),
                level: 0,
                used: Some(if overfull { 1.5 } else { 1.0 }),
            });
        }
        Ok(map)
    }

    fn verify(&self) -> Result<()> {
        self.inner().verify()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.store()?;
        let inner = self.inner.take().expect("open until it is closed");
        inner.close()
    }
}

impl Factory for RigFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the reference engine, stored in a file and broken on request"
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
        kv::memory::factory().version()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            limits: Limits {
                key_max: 1000,
                value_max: 100_000,
            },
            persistent: true,
            empty_keys: !self.plain,
            concurrent_writers: !self.plain,
            drop_with_readers: !self.plain,
            compaction: !self.plain,
            backup: !self.plain,
            increments: !self.plain,
            storage_map: !self.plain,
            ..kv::memory::factory().capabilities()
        }
    }

    fn options(&self) -> &'static [OptionDoc] {
        kv::memory::factory().options()
    }

    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
        let mut options = options.clone();
        if self.plant == Some(Plant::OptionIgnored) {
            options.own.clear();
        }
        let identity = directory.join(kv::identity::FILE);
        if self.plant == Some(Plant::ForeignTaken) && identity.exists() {
            fs::write(
                &identity,
                r#"{"engine":"memory","format":1,"created":1,"options":""}"#,
            )
            .unwrap();
        }
        let inner = kv::memory::factory().open(directory, &options)?;
        content::load(directory, &*inner)?;
        Ok(Box::new(Rig {
            plant: self.plant,
            readers: AtomicUsize::new(0),
            commits: AtomicU64::new(0),
            inner: Some(inner),
            plain: self.plain,
            capabilities: self.capabilities(),
            directory: directory.to_owned(),
            writer: Mutex::new(None),
            writer_left: Condvar::new(),
            last: Mutex::new(None),
            dropped: Mutex::new(Vec::new()),
            calls: AtomicU64::new(0),
        }))
    }
}

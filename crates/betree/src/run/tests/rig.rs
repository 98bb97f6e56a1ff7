//! A file in memory, a store on it, and random entries.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stdx::Rng;
use stdx::sync::Mutex;
use vfs::{File, Site};

use crate::cache::Cache;
use crate::error::Result;
use crate::page::Codec;
use crate::run::{Run, RunOptions, RunStore, RunWriter};
use crate::space::{Purpose, Space};
use crate::types::{Entry, Op, RunId, Seq, TreeId, UNIT};

/// Start of the data in the file of a [`Rig`].
pub(super) const DATA_START: u64 = 4 * UNIT;

#[derive(Default)]
pub(super) struct MemoryFile {
    pub(super) bytes: Mutex<Vec<u8>>,
    /// Number of writes that still succeed.
    pub(super) writes_left: AtomicU64,
    pub(super) forgotten: AtomicU64,
    /// Numbers of random and of sequential reads.
    pub(super) scattered: AtomicU64,
    pub(super) in_order: AtomicU64,
    pub(super) writes: Mutex<Vec<usize>>,
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl MemoryFile {
    fn copy_to(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.bytes.lock();
        let start = place(offset);
        let found = bytes
            .get(start..start + buffer.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}

impl File for MemoryFile {
    fn read_at(&self, _: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.in_order.fetch_add(1, Ordering::Relaxed);
        self.copy_to(buffer, offset)
    }

    fn read_scattered_at(&self, _: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.scattered.fetch_add(1, Ordering::Relaxed);
        self.copy_to(buffer, offset)
    }

    fn write_at(&self, _: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let left = self.writes_left.load(Ordering::Relaxed);
        self.writes_left.store(
            left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?,
            Ordering::Relaxed,
        );
        self.writes.lock().push(bytes.len());
        let mut file = self.bytes.lock();
        let end = place(offset) + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[place(offset)..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self, _: Site) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _: Site, length: u64) -> io::Result<()> {
        self.bytes.lock().resize(place(length), 0);
        Ok(())
    }

    fn allocate(&self, _: Site, offset: u64, length: u64) -> io::Result<()> {
        let mut bytes = self.bytes.lock();
        let end = place(offset + length).max(bytes.len());
        bytes.resize(end, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn forget(&self, _: u64, length: u64) {
        self.forgotten.fetch_add(length, Ordering::Relaxed);
    }
}

/// A store in memory.
pub(super) struct Rig {
    pub(super) file: Arc<MemoryFile>,
    pub(super) space: Arc<Space>,
    pub(super) cache: Arc<Cache>,
    pub(super) store: Arc<RunStore>,
    next: AtomicU64,
}

pub(super) const TREE: TreeId = TreeId(5);

impl Rig {
    pub(super) fn new(cache_bytes: u64) -> Rig {
        let file = Arc::new(MemoryFile::default());
        file.writes_left.store(u64::MAX, Ordering::Relaxed);
        let space = Arc::new(Space::new(DATA_START));
        let cache = Arc::new(Cache::new(cache_bytes));
        let shared: Arc<dyn File> = file.clone();
        let store = RunStore::new(shared, "data.betree", space.clone(), cache.clone(), None);
        Rig {
            file,
            space,
            cache,
            store,
            next: AtomicU64::new(1),
        }
    }

    pub(super) fn writer(&self, page_raw: usize, filter_bits: u8) -> RunWriter {
        let id = RunId(self.next.fetch_add(1, Ordering::Relaxed));
        let options = options(page_raw, filter_bits);
        RunWriter::new(&self.store, TREE, id, options)
    }

    pub(super) fn write(&self, page_raw: usize, filter_bits: u8, of: &[Version]) -> Arc<Run> {
        self.try_write(page_raw, filter_bits, of).unwrap()
    }

    pub(super) fn try_write(
        &self,
        page_raw: usize,
        filter_bits: u8,
        versions: &[Version],
    ) -> Result<Arc<Run>> {
        let mut writer = self.writer(page_raw, filter_bits);
        for version in versions {
            writer.push(version.entry())?;
        }
        assert_eq!(writer.entries(), versions.len() as u64);
        writer.finish()
    }

    /// The same run in a store whose cache is empty.
    pub(super) fn cold(&self, run: &Run, cache_bytes: u64) -> Arc<Run> {
        let cache = Arc::new(Cache::new(cache_bytes));
        let shared: Arc<dyn File> = self.file.clone();
        let store = RunStore::new(shared, "data.betree", self.space.clone(), cache, None);
        Run::open(&store, run.meta().clone())
    }
}

pub(super) fn options(page_raw: usize, filter_bits: u8) -> RunOptions {
    RunOptions {
        codec: Codec::Lz4,
        page_raw,
        filter_bits,
        purpose: Purpose::Flush,
    }
}

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) key: Vec<u8>,
    pub(super) seq: Seq,
    pub(super) op: Op,
    pub(super) value: Vec<u8>,
}

impl Version {
    pub(super) fn new(key: impl Into<Vec<u8>>, seq: u64, value: impl Into<Vec<u8>>) -> Version {
        Version {
            key: key.into(),
            seq: Seq(seq),
            op: Op::Put,
            value: value.into(),
        }
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.key,
            seq: self.seq,
            op: self.op,
            value: &self.value,
        }
    }

    pub(super) fn of(entry: Entry<'_>) -> Version {
        Version {
            key: entry.key.into(),
            seq: entry.seq,
            op: entry.op,
            value: entry.value.into(),
        }
    }
}

/// The shape of random entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) keys: u64,
    pub(super) versions: u64,
    pub(super) fixed: bool,
    pub(super) max_value: u64,
}

/// A random key from a small alphabet, so that keys are prefixes of others and share heads.
pub(super) fn random_key(rng: &mut Rng, shape: Shape) -> Vec<u8> {
    let mut key = b"shared/".to_vec();
    if shape.fixed {
        key.extend_from_slice(&rng.below(shape.keys * 2).to_be_bytes());
        return key;
    }
    if rng.chance(0.1) {
        key.clear();
    }
    for _ in 0..rng.below(14) {
        key.push(*b"\0ab\xff".get(rng.index(4)).unwrap());
    }
    key
}

/// Random entries in order.
pub(super) fn random(rng: &mut Rng, shape: Shape) -> Vec<Version> {
    let mut versions = Vec::new();
    for _ in 0..shape.keys {
        let key = random_key(rng, shape);
        for _ in 0..=rng.below(shape.versions) {
            let op = if rng.chance(0.2) { Op::Delete } else { Op::Put };
            let len = if op == Op::Put {
                rng.index(place(shape.max_value + 1))
            } else {
                0
            };
            let mut value = vec![0; len];
            rng.fill(&mut value);
            let seq = if rng.chance(0.3) { 0 } else { rng.below(1000) };
            versions.push(Version {
                key: key.clone(),
                seq: Seq(seq),
                op,
                value,
            });
        }
    }
    versions.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq.cmp(&a.seq)));
    versions.dedup_by(|a, b| a.key == b.key && a.seq == b.seq);
    versions
}

//! Shared by all runs of a store: the data file, its space, the cache, and counters.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crypt::{Kind, Opener, Sealer};
use stdx::sync::Mutex;
use vfs::{File, Site};

use super::RunMeta;
use crate::cache::Cache;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keys;
use crate::space::{Claim, Layout, Purpose, Space};
use crate::types::{Extent, UNIT};

/// The sites that read or write runs.
pub(crate) mod sites {
    use vfs::Site;

    /// Writes of flushes.
    pub(crate) const FLUSH_WRITE: Site = Site("flush.write");
    /// Writes of merges.
    pub(crate) const MERGE_WRITE: Site = Site("merge.write");
    /// Writes of transactions too large for memory.
    pub(crate) const SPILL_WRITE: Site = Site("spill.write");
    /// Sequential reads of merges.
    pub(crate) const MERGE_READ: Site = Site("merge.read");
    /// Pages for readers.
    pub(crate) const PAGE_READ: Site = Site("page.read");
    /// Fence and filter blocks.
    pub(crate) const INDEX_READ: Site = Site("index.read");
    /// Sequential reads of verification.
    pub(crate) const VERIFY_READ: Site = Site("verify.read");
    /// Growing the data file.
    pub(crate) const ALLOCATE: Site = Site("run.allocate");
}

/// The access pattern of a read, as advice for the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// A random read: adjacent bytes need not be read.
    Alone,
    /// A sequential read: the following bytes will be needed.
    InOrder,
}

/// Operations and bytes of one site.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    /// Count one operation.
    fn count(&self, bytes: usize) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// I/O of runs since the store was opened, by site.
#[derive(Debug, Default)]
pub(crate) struct RunTraffic {
    pub(crate) flush_write: Traffic,
    pub(crate) merge_write: Traffic,
    pub(crate) merge_read: Traffic,
    pub(crate) page_read: Traffic,
    /// Fence and filter blocks.
    pub(crate) index_read: Traffic,
    /// Verification and other I/O of runs.
    pub(crate) other: Traffic,
}

impl RunTraffic {
    fn of(&self, site: Site) -> &Traffic {
        match site {
            sites::FLUSH_WRITE => &self.flush_write,
            sites::MERGE_WRITE => &self.merge_write,
            sites::MERGE_READ => &self.merge_read,
            sites::PAGE_READ => &self.page_read,
            sites::INDEX_READ => &self.index_read,
            _ => &self.other,
        }
    }
}

/// The environment of runs.
///
/// Invariant: `held` is the sum of the extents of all runs that are open or being written. It and
/// the space change under its lock, so that the two can be compared while work is under way.
pub(crate) struct RunStore {
    file: Arc<dyn File>,
    path: PathBuf,
    space: Arc<Space>,
    cache: Arc<Cache>,
    /// The keys of an encrypted store.
    keys: Option<Arc<Keys>>,
    traffic: RunTraffic,
    held: Mutex<u64>,
    /// Whether an extent could not be had since the last call of [`RunStore::lacked_room`].
    lacked: AtomicBool,
}

impl fmt::Debug for RunStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl RunStore {
    /// The environment for the data file `file`; `path` is used in errors.
    pub(crate) fn new(
        file: Arc<dyn File>,
        path: impl Into<PathBuf>,
        space: Arc<Space>,
        cache: Arc<Cache>,
        keys: Option<Arc<Keys>>,
    ) -> Arc<RunStore> {
        Arc::new(RunStore {
            file,
            path: path.into(),
            space,
            cache,
            keys,
            traffic: RunTraffic::default(),
            held: Mutex::new(0),
            lacked: AtomicBool::new(false),
        })
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A sealer for a new run, if the store is encrypted.
    pub(super) fn sealer(&self) -> Result<Option<Sealer>> {
        let keys = self.keys.as_ref();
        keys.map(|keys| keys.sealer(Kind::Run)).transpose()
    }

    /// The opener of the run that `meta` describes, if it is encrypted.
    pub(super) fn opener(&self, meta: &RunMeta) -> Result<Option<Opener>> {
        match (&meta.seal, &self.keys) {
            (None, None) => Ok(None),
            (Some(seal), Some(keys)) => keys.opener(Kind::Run, seal).map(Some),
            _ => {
                let message = format!("run {} is not encrypted as the store is", meta.id.0);
                Err(self.corrupt(meta, message))
            }
        }
    }

    pub(crate) fn traffic(&self) -> &RunTraffic {
        &self.traffic
    }

    /// Bytes of all runs that are open or being written, and the state of the space, at one moment.
    pub(crate) fn accounts(&self) -> (u64, Layout) {
        let held = self.held.lock();
        (*held, self.space.layout())
    }

    /// Count the extents of a run that was opened from an image.
    pub(super) fn hold(&self, extents: &[Extent]) {
        *self.held.lock() += length(extents);
    }

    /// Subtract the extents of a closed run that the next opening needs.
    pub(super) fn let_go(&self, extents: &[Extent]) {
        let mut held = self.held.lock();
        assert!(length(extents) <= *held, "what goes was held");
        *held -= length(extents);
    }

    /// Free extents that no image has ever referred to.
    pub(super) fn discard(&self, extents: &[Extent]) {
        let mut held = self.held.lock();
        assert!(length(extents) <= *held, "what is discarded was held");
        *held -= length(extents);
        self.space.discard(extents);
    }

    /// The same for extents that a run being written has taken and does not need.
    pub(super) fn give_back(&self, purpose: Purpose, extents: &[Extent]) {
        let mut held = self.held.lock();
        assert!(length(extents) <= *held, "what is given back was held");
        *held -= length(extents);
        self.space.give_back(purpose, extents);
    }

    /// Release extents that no bucket refers to any more, although an image may.
    pub(super) fn release(&self, extents: &[Extent]) {
        let mut held = self.held.lock();
        assert!(length(extents) <= *held, "what is released was held");
        *held -= length(extents);
        self.space.release(extents);
    }

    /// An extent of at most `len` bytes that the file system has granted, for a run being written.
    pub(super) fn allocate(&self, purpose: Purpose, len: u64) -> Result<Extent> {
        loop {
            let missing = {
                let mut held = self.held.lock();
                match self.space.take(purpose, len) {
                    Ok(extent) => {
                        *held += extent.len;
                        return Ok(extent);
                    }
                    Err(length) => length,
                }
            };
            // Then again: other threads may take what was just granted.
            let Err(error) = self.grow(missing) else {
                continue;
            };
            if error.kind() != ErrorKind::Full {
                return Err(error);
            }
            let mut held = self.held.lock();
            let Some(part) = self.space.take_part(purpose, len) else {
                self.lacked.store(true, Ordering::Relaxed);
                return Err(error);
            };
            *held += part.len;
            return Ok(part);
        }
    }

    /// Claim `bytes` for the outputs of a merge; the file grows for that if it can.
    ///
    /// # Errors
    /// `Full`, `Io`.
    pub(crate) fn claim(&self, bytes: u64) -> Result<Claim> {
        loop {
            let missing = match self.space.claim(bytes) {
                Ok(claim) => return Ok(claim),
                Err(length) => length,
            };
            // Then again: other threads may take what was just granted.
            self.grow(missing).inspect_err(|error| {
                let full = error.kind() == ErrorKind::Full;
                self.lacked.fetch_or(full, Ordering::Relaxed);
            })?;
        }
    }

    /// Whether an extent could not be had since the last call.
    pub(crate) fn lacked_room(&self) -> bool {
        self.lacked.swap(false, Ordering::Relaxed)
    }

    /// Have the file system grant the data file's bytes up to `length`.
    ///
    /// # Errors
    /// `Full`, `Io`.
    pub(crate) fn grow(&self, length: u64) -> Result<()> {
        let allocate = |offset, length| self.file.allocate(sites::ALLOCATE, offset, length);
        self.space
            .grow(length, allocate)
            .map_err(|source| Error::io("grow the data file", &self.path, source))
    }

    /// Write `bytes` at `offset` of the file, and start the writeback to the device.
    pub(super) fn write(&self, site: Site, bytes: &[u8], offset: u64) -> Result<()> {
        assert!(
            offset.is_multiple_of(UNIT),
            "runs are written in whole units"
        );
        assert!(
            (bytes.len() as u64).is_multiple_of(UNIT),
            "runs are written in whole units"
        );
        let written = self.file.write_at(site, bytes, offset);
        written.map_err(|source| Error::io("write a run", &self.path, source))?;
        self.file.start_writeback(offset, bytes.len() as u64);
        self.traffic.of(site).count(bytes.len());
        Ok(())
    }

    /// Fill `buffer` from the logical `offset` of a run.
    pub(super) fn read(
        &self,
        (site, manner): (Site, Manner),
        meta: &RunMeta,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<()> {
        let (mut rest, mut offset) = (buffer, offset);
        while !rest.is_empty() {
            let Some((at, contiguous)) = meta.locate(offset) else {
                let message = format!("run {} ends before its offset {offset}", meta.id.0);
                return Err(self.corrupt(meta, message));
            };
            let len = usize::try_from(contiguous).map_or(rest.len(), |len| len.min(rest.len()));
            let (piece, after) = rest.split_at_mut(len);
            let done = match manner {
                Manner::Alone => self.file.read_scattered_at(site, piece, at),
                Manner::InOrder => self.file.read_at(site, piece, at),
            };
            self.have_read(site, meta, done.map(|()| piece.len()), at)?;
            offset += len as u64;
            rest = after;
        }
        Ok(())
    }

    /// Count a read, or convert its error.
    fn have_read(
        &self,
        site: Site,
        meta: &RunMeta,
        done: io::Result<usize>,
        at: u64,
    ) -> Result<()> {
        match done {
            Ok(bytes) => {
                self.traffic.of(site).count(bytes);
                Ok(())
            }
            Err(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                let message = format!(
                    "the file ends within run {}, at file offset {at}",
                    meta.id.0
                );
                Err(self.corrupt(meta, message))
            }
            Err(source) => {
                let error = Error::io("read a run", &self.path, source);
                Err(error.with_tree(meta.tree.0.to_string()))
            }
        }
    }

    /// Advise the operating system that it need not keep the logical bytes `[offset, offset + len)`
    /// of a run in its cache.
    pub(super) fn forget(&self, meta: &RunMeta, offset: u64, len: u64) {
        let (mut offset, mut len) = (offset, len);
        while 0 < len
            && let Some((at, contiguous)) = meta.locate(offset)
        {
            let piece = contiguous.min(len);
            self.file.forget(at, piece);
            offset += piece;
            len -= piece;
        }
    }

    /// The error for damage in a run; the message names the run and the place.
    pub(super) fn corrupt(&self, meta: &RunMeta, message: String) -> Error {
        let error = Error::corrupt(message).with_path(&self.path);
        error.with_tree(meta.tree.0.to_string())
    }
}

/// The site of writes of a run for `purpose`.
pub(super) fn write_site(purpose: Purpose) -> Site {
    match purpose {
        Purpose::Flush => sites::FLUSH_WRITE,
        Purpose::Merge(_) => sites::MERGE_WRITE,
        Purpose::Other => sites::SPILL_WRITE,
    }
}

fn length(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.len).sum()
}

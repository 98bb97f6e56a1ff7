//! Writes a run.
//!
//! Pages collect in memory and go to the file in pieces of [`PIECE`] bytes at whole units. Extents
//! are taken as they are needed, larger ones as the run grows; a run shorter than a piece takes
//! one extent of just the units it needs. What is left of the last extent goes back at the end.
//!
//! Nothing is synced: a run must be named by no image that is not written after a sync of the data
//! file. A writer that is dropped before the end gives all its extents back.
//!
//! Invariants:
//! - I1: entries come in the order of [`Entry`], each key and version once.
//! - I2: `written` is whole units; the logical bytes from there on are `out`.
//! - I3: `allocated` is the sum of the extents, and at least `written`.

use std::fmt;
use std::mem;
use std::sync::Arc;

use crypt::Sealer;

use super::frame::{self, Part};
use super::leftover::Leftovers;
use super::meta::MAX_PAGES;
use super::store::write_site;
use super::{Run, RunMeta, RunStore};
use crate::block::{BlockIdent, BlockKind, Fence, FenceBuilder, Filter, key_hash};
use crate::error::{ErrorKind, Result};
use crate::page::{Codec, PageBuilder, PageIdent};
use crate::space::Purpose;
use crate::types::{Entry, Extent, Op, RunId, Seq, TreeId, UNIT};

/// Bytes written at once: half of what volumes with a cap count as two operations, and enough to
/// keep a device busy.
const PIECE: usize = 512 << 10;

/// Sizes of the first extent of a run longer than a piece, and of the largest extent.
const EXTENT_MIN: u64 = 1 << 20;
const EXTENT_MAX: u64 = 4 << 20;

/// Options for writing a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) codec: Codec,
    /// Bytes of keys and values per page. A page with a single entry may be larger.
    pub(crate) page_raw: usize,
    /// Bits of the filter for each key; 0 for no filter.
    pub(crate) filter_bits: u8,
    pub(crate) purpose: Purpose,
}

/// A run being written.
pub(crate) struct RunWriter {
    store: Arc<RunStore>,
    options: RunOptions,
    builder: PageBuilder,
    fence: FenceBuilder,
    /// The hash of each key, if the run gets a filter.
    hashes: Vec<u64>,
    out: Vec<u8>,
    written: u64,
    allocated: u64,
    /// The last key of the previous page.
    last_key: Vec<u8>,
    /// The sequence number of the last entry.
    last_seq: Seq,
    leftovers: Leftovers,
    /// From the first page on, if the store is encrypted.
    sealer: Option<Sealer>,
    meta: RunMeta,
}

impl fmt::Debug for RunWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunWriter")
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}

impl RunWriter {
    /// Begin run `id` of `tree`.
    pub(crate) fn new(
        store: &Arc<RunStore>,
        tree: TreeId,
        id: RunId,
        options: RunOptions,
    ) -> RunWriter {
        assert!(0 < options.page_raw, "pages hold something");
        RunWriter {
            store: Arc::clone(store),
            options,
            builder: PageBuilder::new(options.codec),
            fence: FenceBuilder::default(),
            hashes: Vec::new(),
            out: Vec::new(),
            written: 0,
            allocated: 0,
            last_key: Vec::new(),
            last_seq: Seq::ANCIENT,
            leftovers: Leftovers::NONE,
            sealer: None,
            meta: RunMeta {
                id,
                tree,
                extents: Vec::new(),
                bytes: 0,
                raw_bytes: 0,
                entries: 0,
                tombstones: 0,
                pages: 0,
                min_key: Box::default(),
                max_key: Box::default(),
                max_seq: Seq::ANCIENT,
                fence_offset: 0,
                fence_len: 0,
                filter_offset: 0,
                filter_len: 0,
                seal: None,
            },
        }
    }

    /// Add the next entry.
    ///
    /// # Errors
    /// `Full`, `Io`, after which the writer is good for nothing but to be dropped.
    pub(crate) fn push(&mut self, entry: Entry<'_>) -> Result<()> {
        let len = entry.key.len() + entry.value.len();
        if !self.builder.is_empty() && self.options.page_raw < self.builder.raw_len() + len {
            self.finish_page()?;
        }
        if self.builder.is_empty() {
            self.begin_page(entry.key);
        }
        let newer = self.newer_version(entry);
        self.leftovers.count(entry, newer);
        self.last_seq = entry.seq;
        let meta = &mut self.meta;
        meta.entries += 1;
        meta.raw_bytes += len as u64;
        meta.tombstones += u64::from(entry.op == Op::Delete);
        meta.max_seq = meta.max_seq.max(entry.seq);
        if self.options.filter_bits != 0 {
            let hash = key_hash(entry.key);
            // Versions of one key are adjacent.
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
        self.builder.push(entry);
        Ok(())
    }

    /// The sequence number of the previous entry, if it is a newer version of the key of `entry`. A
    /// version without a sequence number has no older versions, so settled data need no comparison.
    #[inline]
    fn newer_version(&self, entry: Entry<'_>) -> Option<Seq> {
        if self.last_seq == Seq::ANCIENT || self.last_seq <= entry.seq {
            return None;
        }
        let last = if self.builder.is_empty() {
            self.last_key.as_slice()
        } else {
            self.builder.last_key()
        };
        (last == entry.key).then_some(self.last_seq)
    }

    /// Bytes of completed pages.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.written + self.out.len() as u64
    }

    /// Number of entries pushed.
    pub(crate) fn entries(&self) -> u64 {
        self.meta.entries
    }

    /// Write the rest and open the run. At least one entry must have been pushed.
    ///
    /// # Errors
    /// `Full`, `Io`; the extents have then gone back.
    pub(crate) fn finish(mut self) -> Result<Arc<Run>> {
        assert!(0 < self.meta.entries, "a run has an entry");
        self.meta.max_key = self.builder.last_key().into();
        self.finish_page()?;
        self.meta.pages = self.fence.pages();
        self.meta.fence_offset = self.stored_bytes();
        let frame = self.begin_frame();
        let block = self.out.len();
        self.fence
            .finish(self.ident(BlockKind::Fence), &mut self.out);
        let fence = self.fence_again(block);
        self.meta.fence_len = self.end_frame(frame, Part::Fence);
        self.meta.filter_offset = self.stored_bytes();
        let filter = self.filter();
        self.meta.bytes = self.stored_bytes();
        let padded = self
            .out
            .len()
            .next_multiple_of(usize::try_from(UNIT).expect("4096"));
        self.out.resize(padded, 0);
        self.spill(1)?;
        self.trim();
        let meta = self.meta.clone();
        // The run owns them now.
        self.meta.extents.clear();
        assert!(
            meta.check().is_ok(),
            "what is written is as it is described"
        );
        self.store.cache().insert_fence(meta.id, Arc::new(fence));
        if let Some(filter) = filter {
            self.store.cache().insert_filter(meta.id, Arc::new(filter));
        }
        Ok(Run::adopt(&self.store, meta, self.leftovers))
    }

    fn ident(&self, kind: BlockKind) -> BlockIdent {
        BlockIdent {
            tree: self.meta.tree,
            run: self.meta.id,
            kind,
        }
    }

    /// Decode the fence block at `block` of `out`, as a reader will.
    fn fence_again(&self, block: usize) -> Fence {
        let stored = self
            .out
            .get(block..)
            .expect("it begins where the buffer ended");
        let ident = self.ident(BlockKind::Fence);
        let fence = Fence::decode(ident, stored, self.meta.pages, self.meta.fence_offset);
        fence.expect("what is encoded can be decoded")
    }

    /// Make the filter and append its block.
    fn filter(&mut self) -> Option<Filter> {
        if self.options.filter_bits == 0 {
            return None;
        }
        let filter = Filter::new(&self.hashes, self.options.filter_bits);
        let frame = self.begin_frame();
        filter.encode(self.ident(BlockKind::Filter), &mut self.out);
        self.meta.filter_len = self.end_frame(frame, Part::Filter);
        Some(filter)
    }

    fn begin_page(&mut self, key: &[u8]) {
        if self.fence.pages() == 0 {
            self.meta.min_key = key.into();
            self.fence.begin(None, key);
        } else {
            let ascends = self.last_key.as_slice() <= key;
            debug_assert!(ascends, "I1: entries come in order");
            self.fence.begin(Some(&self.last_key), key);
        }
    }

    fn finish_page(&mut self) -> Result<()> {
        assert!(!self.builder.is_empty(), "pages are not empty");
        assert!(self.fence.pages() < MAX_PAGES, "runs are cut long before");
        self.last_key.clear();
        self.last_key.extend_from_slice(self.builder.last_key());
        let index = self.fence.pages();
        let ident = PageIdent {
            tree: self.meta.tree,
            run: self.meta.id,
            index,
        };
        if index == 0 {
            self.sealer = self.store.sealer()?;
            self.meta.seal = self.sealer.as_ref().map(Sealer::seal);
        }
        let frame = self.begin_frame();
        let before = self.out.len();
        let stored = self.builder.finish(ident, &mut self.out);
        assert_eq!(before + stored as usize, self.out.len(), "pages are packed");
        let stored = self.end_frame(frame, Part::Page(index));
        self.fence.end(stored);
        self.spill(PIECE)
    }

    /// Make room for the head of a frame, if the run is encrypted; returns where the frame begins.
    fn begin_frame(&mut self) -> usize {
        let begin = self.out.len();
        if self.sealer.is_some() {
            self.out.resize(begin + frame::HEAD, 0);
        }
        begin
    }

    /// Encrypt what `out` has from `begin` on, if the run is encrypted; returns its stored length.
    fn end_frame(&mut self, begin: usize, part: Part) -> u32 {
        if let Some(sealer) = &mut self.sealer {
            let place = frame::Place {
                tree: self.meta.tree,
                run: self.meta.id,
                part,
            };
            let (_, bytes) = self.out.split_at_mut(begin);
            frame::encrypt(sealer, place, bytes);
        }
        u32::try_from(self.out.len() - begin).expect("pages and blocks are below 4 GiB")
    }

    /// Write pieces until fewer than `least` bytes are left.
    fn spill(&mut self, least: usize) -> Result<()> {
        if self.out.len() < least {
            return Ok(());
        }
        let out = mem::take(&mut self.out);
        let mut rest = out.as_slice();
        let mut result = Ok(());
        while least <= rest.len() {
            let (piece, after) = rest.split_at(rest.len().min(PIECE));
            result = self.write(piece);
            if result.is_err() {
                break;
            }
            rest = after;
        }
        let done = out.len() - rest.len();
        self.out = out;
        self.out.drain(..done);
        result
    }

    /// Write whole units at `written`.
    fn write(&mut self, piece: &[u8]) -> Result<()> {
        let end = self.written + piece.len() as u64;
        while self.allocated < end {
            self.grow(end - self.allocated)?;
        }
        let mut rest = piece;
        while !rest.is_empty() {
            debug_assert!(self.written < self.allocated, "I3: there is room");
            let place = self.meta.locate(self.written);
            let (at, contiguous) = place.expect("I3: the extents hold what is written");
            let len = usize::try_from(contiguous).map_or(rest.len(), |len| len.min(rest.len()));
            let (part, after) = rest.split_at(len);
            let site = write_site(self.options.purpose);
            self.store.write(site, part, at)?;
            self.written += len as u64;
            rest = after;
        }
        Ok(())
    }

    /// Take an extent of `needed` bytes; longer when more will surely follow, and shorter when the
    /// disk is full and free extents are short.
    fn grow(&mut self, needed: u64) -> Result<()> {
        let whole_piece = needed == PIECE as u64;
        let len = if whole_piece {
            self.allocated.clamp(EXTENT_MIN, EXTENT_MAX)
        } else {
            needed
        };
        let purpose = self.options.purpose;
        let extent = match self.store.allocate(purpose, len.max(needed)) {
            // What is needed now may still be found.
            Err(error) if error.kind() == ErrorKind::Full && needed < len => {
                self.store.allocate(purpose, needed)?
            }
            extent => extent?,
        };
        self.allocated += extent.len;
        match self.meta.extents.last_mut() {
            Some(last) if last.end() == extent.offset => last.len += extent.len,
            _ => self.meta.extents.push(extent),
        }
        Ok(())
    }

    /// Free the unused part of the last extent.
    fn trim(&mut self) {
        assert!(
            self.written <= self.allocated,
            "I3: nothing is written elsewhere"
        );
        let unused = self.allocated - self.written;
        if unused == 0 {
            return;
        }
        let last = self
            .meta
            .extents
            .last_mut()
            .expect("something was allocated");
        assert!(unused < last.len, "an extent is taken when it is needed");
        last.len -= unused;
        self.allocated -= unused;
        let tail = Extent {
            offset: last.end(),
            len: unused,
        };
        self.store.give_back(self.options.purpose, &[tail]);
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.meta.extents.is_empty() {
            self.store
                .give_back(self.options.purpose, &self.meta.extents);
        }
    }
}

//! An open run.
//!
//! Opening one reads nothing; its fences and its filter are read when first needed and live in the
//! cache. A run is shared by the versions of a tree that name it and by the readers of those; when
//! the last of them releases a run that was retired, its extents go back to the space.
//!
//! No lock is taken here but the cache's own, and none is held across I/O: two readers that miss
//! the same page both read it, which is right as pages do not change.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crypt::Opener;
use stdx::sync::atomic::{AtomicBool, Ordering};
use vfs::Site;

use super::frame::{self, Part};
use super::leftover::Leftovers;
use super::pages::PageReader;
use super::sites;
use super::store::Manner;
use super::{RunCursor, RunMeta, RunScan, RunStore};
use crate::block::{BlockIdent, BlockKind, Fence, Filter, key_hash};
use crate::error::{Error, Result};
use crate::page::{Page, PageIdent};
use crate::types::{Direction, Op, Seq};

/// An open run.
#[derive(Debug)]
pub(crate) struct Run {
    store: Arc<RunStore>,
    meta: RunMeta,
    leftovers: Leftovers,
    /// Made when the first frame is read; `None` inside if the run is not encrypted.
    opener: OnceLock<Option<Box<Opener>>>,
    retired: AtomicBool,
    /// Whether no image has ever referred to it.
    private: AtomicBool,
}

impl Run {
    /// Open the run that `meta` describes, without I/O.
    pub(crate) fn open(store: &Arc<RunStore>, meta: RunMeta) -> Arc<Run> {
        debug_assert!(
            meta.check().is_ok(),
            "a description is checked before it is used"
        );
        store.hold(&meta.extents);
        let leftovers = Leftovers::guess(&meta);
        Run::adopt(store, meta, leftovers)
    }

    /// Create the handle of a run that was just written: the store already counts its extents.
    pub(super) fn adopt(store: &Arc<RunStore>, meta: RunMeta, leftovers: Leftovers) -> Arc<Run> {
        let store = Arc::clone(store);
        Arc::new(Run {
            store,
            meta,
            leftovers,
            opener: OnceLock::new(),
            retired: AtomicBool::new(false),
            private: AtomicBool::new(false),
        })
    }

    pub(crate) fn meta(&self) -> &RunMeta {
        &self.meta
    }

    /// The versions that it contains only for snapshots, if nothing older lies below it.
    pub(crate) fn leftovers(&self) -> Leftovers {
        self.leftovers
    }

    pub(super) fn store(&self) -> &RunStore {
        &self.store
    }

    /// Mark the run as unused by any version of a tree. Its extents are released when the last
    /// reader has dropped it.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// As [`Run::retire`], for a run that no version of a tree has ever referred to: its extents
    /// can be reused at once, and not only after the next checkpoint.
    pub(crate) fn discard(&self) {
        self.private.store(true, Ordering::Release);
        self.retire();
    }

    /// Get the newest version of `key` that `snapshot` sees; its value overwrites `value`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn get(
        &self,
        key: &[u8],
        snapshot: Seq,
        value: &mut Vec<u8>,
    ) -> Result<Option<(Seq, Op)>> {
        if !self.meta.spans(key) {
            return Ok(None);
        }
        if self.meta.filter_len != 0 && !self.filter()?.may_hold(key_hash(key)) {
            return Ok(None);
        }
        let fence = self.fence()?;
        let mut index = fence.first_page(key);
        loop {
            let page = self.page(&fence, index)?;
            let at = page.lower_bound(key, snapshot);
            if at < page.len() {
                let entry = page.entry(at);
                if entry.key != key {
                    return Ok(None);
                }
                value.clear();
                value.extend_from_slice(entry.value);
                return Ok(Some((entry.seq, entry.op)));
            }
            // All versions here are newer than the snapshot; older ones may be in the next page.
            index += 1;
            if !fence.continues(index, key) {
                return Ok(None);
            }
        }
    }

    /// A cursor without a current entry until a seek. It does not hold the run.
    pub(crate) fn cursor(self: &Arc<Self>, direction: Direction) -> RunCursor {
        RunCursor::new(self, direction)
    }

    /// A scan of all versions of all keys, at the first one.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn scan(self: &Arc<Self>, site: Site) -> Result<RunScan> {
        RunScan::new(PageReader::new(Arc::clone(self), site), None, None)
    }

    /// A scan of all versions of the keys in `[lo, hi)`, at the first one.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn scan_from(
        self: &Arc<Self>,
        site: Site,
        lo: &[u8],
        hi: Option<&[u8]>,
    ) -> Result<RunScan> {
        let below = hi.is_some_and(|hi| hi <= &*self.meta.min_key || hi <= lo);
        if *self.meta.max_key < *lo || below {
            return Ok(RunScan::empty(Arc::clone(self), site));
        }
        let all_below_hi = hi.is_none_or(|hi| *self.meta.max_key < *hi);
        if lo <= &*self.meta.min_key && all_below_hi {
            return self.scan(site);
        }
        let fence = self.fence()?;
        let last = match hi {
            Some(hi) if !all_below_hi => fence.last_page(hi),
            _ => self.meta.pages - 1,
        };
        let pages = fence.first_page(lo)..=last;
        let reader = PageReader::between(Arc::clone(self), site, &fence, pages)?;
        RunScan::new(reader, Some(lo), hi)
    }

    /// The fences, from the cache or the file.
    pub(super) fn fence(&self) -> Result<Arc<Fence>> {
        if let Some(fence) = self.store.cache().fence(self.meta.id) {
            return Ok(fence);
        }
        let fence = Arc::new(match self.meta.pages {
            // A single page needs no fences.
            1 => Fence::single(self.meta.fence_offset),
            _ => self.read_fence(sites::INDEX_READ)?,
        });
        self.store
            .cache()
            .insert_fence(self.meta.id, Arc::clone(&fence));
        Ok(fence)
    }

    /// Read the fences from the file.
    pub(super) fn read_fence(&self, site: Site) -> Result<Fence> {
        let meta = &self.meta;
        let mut stored = self.read_block(site, meta.fence_offset, meta.fence_len)?;
        let ident = self.block(BlockKind::Fence);
        let stored = self.open_frame(&mut stored, Part::Fence)?;
        let fence = Fence::decode(ident, stored, meta.pages, meta.fence_offset);
        fence.map_err(|why| self.damage("the fence block", meta.fence_offset, &why))
    }

    /// The filter, from the cache or the file. The run must have one.
    fn filter(&self) -> Result<Arc<Filter>> {
        if let Some(filter) = self.store.cache().filter(self.meta.id) {
            return Ok(filter);
        }
        let filter = Arc::new(self.read_filter(sites::INDEX_READ)?);
        self.store
            .cache()
            .insert_filter(self.meta.id, Arc::clone(&filter));
        Ok(filter)
    }

    /// Read the filter from the file. The run must have one.
    pub(super) fn read_filter(&self, site: Site) -> Result<Filter> {
        let meta = &self.meta;
        assert!(0 < meta.filter_len, "the run has a filter");
        let mut stored = self.read_block(site, meta.filter_offset, meta.filter_len)?;
        let stored = self.open_frame(&mut stored, Part::Filter)?;
        let filter = Filter::decode(self.block(BlockKind::Filter), stored);
        filter.map_err(|why| self.damage("the filter block", meta.filter_offset, &why))
    }

    fn read_block(&self, site: Site, offset: u64, len: u32) -> Result<Vec<u8>> {
        let mut stored = vec![0; len as usize];
        let how = (site, Manner::Alone);
        self.store.read(how, &self.meta, &mut stored, offset)?;
        Ok(stored)
    }

    fn block(&self, kind: BlockKind) -> BlockIdent {
        BlockIdent {
            tree: self.meta.tree,
            run: self.meta.id,
            kind,
        }
    }

    /// A page, from the cache or the file.
    #[inline]
    pub(super) fn page(&self, fence: &Fence, index: u32) -> Result<Arc<Page>> {
        match self.store.cache().page(self.meta.id, index) {
            Some(page) => Ok(page),
            None => self.load(fence, index),
        }
    }

    /// Read a page and add it to the cache.
    #[cold]
    fn load(&self, fence: &Fence, index: u32) -> Result<Arc<Page>> {
        let span = self.span(fence, index)?;
        let mut stored = vec![0; length(&span)];
        let how = (sites::PAGE_READ, Manner::Alone);
        self.store.read(how, &self.meta, &mut stored, span.start)?;
        let page = Arc::new(self.decode(&mut stored, index, span.start)?);
        self.store
            .cache()
            .insert_page(self.meta.id, index, Arc::clone(&page));
        Ok(page)
    }

    /// Read adjacent pages, bypassing the cache.
    pub(super) fn load_many(&self, fence: &Fence, pages: Range<u32>) -> Result<Vec<Arc<Page>>> {
        assert!(!pages.is_empty(), "some pages are read");
        let start = self.span(fence, pages.start)?.start;
        let end = self.span(fence, pages.end - 1)?.end;
        let mut stored = vec![0; length(&(start..end))];
        let how = (sites::PAGE_READ, Manner::InOrder);
        self.store.read(how, &self.meta, &mut stored, start)?;
        let mut decoded = Vec::with_capacity(pages.len());
        let mut rest = &mut *stored;
        for index in pages {
            let span = self.span(fence, index)?;
            let (bytes, after) = rest.split_at_mut(length(&span));
            decoded.push(Arc::new(self.decode(bytes, index, span.start)?));
            rest = after;
        }
        Ok(decoded)
    }

    pub(super) fn span(&self, fence: &Fence, index: u32) -> Result<Range<u64>> {
        let missing = || self.damage(&format!("page {index}"), 0, &"there is no such page");
        fence.span(index).ok_or_else(missing)
    }

    fn decode(&self, stored: &mut [u8], index: u32, offset: u64) -> Result<Page> {
        let stored = self.open_frame(stored, Part::Page(index))?;
        let page = Page::decode(stored, self.page_ident(index));
        let page = page.map_err(|why| self.damage(&format!("page {index}"), offset, &why))?;
        if page.len() == 0 {
            return Err(self.damage(&format!("page {index}"), offset, &"it is empty"));
        }
        Ok(page)
    }

    /// The opener of its frames, if it is encrypted.
    ///
    /// # Errors
    /// `Corrupt`: the key file does not have its key.
    pub(super) fn opener(&self) -> Result<Option<&Opener>> {
        if let Some(opener) = self.opener.get() {
            return Ok(opener.as_deref());
        }
        let made = self.store.opener(&self.meta)?.map(Box::new);
        // Two readers may make the same one.
        Ok(self.opener.get_or_init(|| made).as_deref())
    }

    /// The page or block in `stored`, which is decrypted in place if the run is encrypted.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(super) fn open_frame<'a>(&self, stored: &'a mut [u8], part: Part) -> Result<&'a [u8]> {
        let Some(opener) = self.opener()? else {
            return Ok(stored);
        };
        let place = frame::Place {
            tree: self.meta.tree,
            run: self.meta.id,
            part,
        };
        let opened = frame::decrypt(opener, place, stored);
        let opened = opened.map_err(|why| match part {
            Part::Page(index) => self.damage(&format!("page {index}"), 0, &why),
            Part::Fence => self.damage("the fence block", self.meta.fence_offset, &why),
            Part::Filter => self.damage("the filter block", self.meta.filter_offset, &why),
        })?;
        Ok(opened)
    }

    pub(super) fn page_ident(&self, index: u32) -> PageIdent {
        PageIdent {
            tree: self.meta.tree,
            run: self.meta.id,
            index,
        }
    }

    /// The error for damage of `what` at a logical offset.
    pub(super) fn damage(&self, what: &str, offset: u64, why: &dyn std::fmt::Display) -> Error {
        let place = match self.meta.locate(offset) {
            Some((at, _)) => format!("at file offset {at}"),
            None => format!("at offset {offset}, beyond the run"),
        };
        let run = self.meta.id.0;
        self.store.corrupt(
            &self.meta,
            format!("{what} of run {run} {place} is damaged: {why}"),
        )
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if *self.retired.get_mut() {
            self.store.cache().forget_run(self.meta.id, self.meta.pages);
            if *self.private.get_mut() {
                self.store.discard(&self.meta.extents);
            } else {
                self.store.release(&self.meta.extents);
            }
        } else {
            self.store.let_go(&self.meta.extents);
        }
    }
}

/// The length of a page, which fits in memory because it was written from memory.
fn length(span: &Range<u64>) -> usize {
    usize::try_from(span.end - span.start).expect("what is read at once fits into memory")
}

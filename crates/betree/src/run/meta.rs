//! The description of a run, which the image of a checkpoint stores.
//!
//! A run has its own, *logical*, offsets: those of its extents laid end to end. Extents are whole
//! units, so a logical offset that is a multiple of [`UNIT`] is one in the file too.
//!
//! Invariants ([`RunMeta::check`]):
//! - I1: pages fill `[0, fence_offset)`, the fence block follows, then the filter block, if any;
//!   `bytes` is where the last of them ends.
//! - I2: the extents hold `bytes` and less than one unit more.
//! - I3: a run has an entry, so at least one page, and `min_key <= max_key`.

use crypt::Seal;
use stdx::hash::hash64;

use crate::error::{Error, Result};
use crate::types::{Extent, RunId, Seq, TreeId, UNIT};

/// Maximum number of pages of a run: the larger numbers stand for its fence and filter blocks in
/// the cache.
pub(crate) const MAX_PAGES: u32 = u32::MAX - 2;

/// The description of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunMeta {
    pub(crate) id: RunId,
    pub(crate) tree: TreeId,
    /// Its location, in logical order.
    pub(crate) extents: Vec<Extent>,
    /// Stored bytes of pages, fence block and filter block, without the padding behind them.
    pub(crate) bytes: u64,
    /// Bytes of all keys and values.
    pub(crate) raw_bytes: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) pages: u32,
    pub(crate) min_key: Box<[u8]>,
    pub(crate) max_key: Box<[u8]>,
    /// The largest sequence number; 0 if all are 0.
    pub(crate) max_seq: Seq,
    /// The logical offset of the fence block.
    pub(crate) fence_offset: u64,
    pub(crate) fence_len: u32,
    /// The logical offset of the filter block.
    pub(crate) filter_offset: u64,
    /// 0 if there is no filter block.
    pub(crate) filter_len: u32,
    /// What opens its frames, if it is encrypted.
    pub(crate) seal: Option<Seal>,
}

impl RunMeta {
    /// Identifies the run and its bytes in all copies of the store, wherever they are: its number,
    /// and a hash of what else describes it.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        let mut about = Vec::with_capacity(128);
        for number in [
            u64::from(self.tree.0),
            self.bytes,
            self.raw_bytes,
            self.entries,
            self.tombstones,
            u64::from(self.pages),
            self.max_seq.0,
            self.fence_offset,
            self.filter_offset,
            self.min_key.len() as u64,
        ] {
            about.extend(number.to_le_bytes());
        }
        about.extend(&*self.min_key);
        about.extend(&*self.max_key);
        about.extend(self.seal.iter().flat_map(|seal| seal.encode()));
        let mut id = [0; 16];
        let (number, hash) = id.split_at_mut(8);
        number.copy_from_slice(&self.id.0.to_le_bytes());
        hash.copy_from_slice(&hash64(&about).to_le_bytes());
        id
    }

    /// Allocated bytes of the data file.
    pub(crate) fn allocated(&self) -> u64 {
        self.extents.iter().map(|extent| extent.len).sum()
    }

    /// Whether it may contain an entry of `key`.
    #[inline]
    pub(crate) fn spans(&self, key: &[u8]) -> bool {
        *self.min_key <= *key && *key <= *self.max_key
    }

    /// The file offset of a logical offset, and the number of contiguous bytes from there.
    pub(super) fn locate(&self, offset: u64) -> Option<(u64, u64)> {
        let mut before = 0;
        for extent in &self.extents {
            let within = offset.checked_sub(before)?;
            if within < extent.len {
                return Some((extent.offset + within, extent.len - within));
            }
            before += extent.len;
        }
        None
    }

    /// Check I1 to I3 for a description read from disk.
    ///
    /// # Errors
    /// `Corrupt`, naming the run and what is wrong with it.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = self.wrong();
        if let Some(wrong) = wrong {
            let message = format!("the description of run {} is wrong: {wrong}", self.id.0);
            return Err(Error::corrupt(message).with_tree(self.tree.0.to_string()));
        }
        Ok(())
    }

    fn wrong(&self) -> Option<&'static str> {
        let mut allocated = 0u64;
        for extent in &self.extents {
            let whole = extent.len % UNIT == 0 && extent.offset % UNIT == 0;
            if extent.len == 0 || !whole || extent.offset.checked_add(extent.len).is_none() {
                return Some("an extent is not made of whole units");
            }
            match allocated.checked_add(extent.len) {
                Some(sum) => allocated = sum,
                None => return Some("its extents are larger than any file"),
            }
        }
        if self.entries == 0 || self.pages == 0 {
            return Some("it is empty");
        }
        if u64::from(self.pages) > self.entries || MAX_PAGES < self.pages {
            return Some("it has more pages than entries");
        }
        if self.entries < self.tombstones {
            return Some("it has more tombstones than entries");
        }
        if self.max_key < self.min_key {
            return Some("its largest key is below its smallest");
        }
        let fence_end = self.fence_offset.checked_add(u64::from(self.fence_len));
        let filter_end = self.filter_offset.checked_add(u64::from(self.filter_len));
        let filtered = self.filter_len != 0;
        if self.fence_len == 0 || filtered && fence_end != Some(self.filter_offset) {
            return Some("its fence and filter blocks do not follow its pages");
        }
        let end = if filtered { filter_end } else { fence_end };
        if end != Some(self.bytes) {
            return Some("its blocks do not end where it does");
        }
        if self.bytes.checked_next_multiple_of(UNIT) != Some(allocated) {
            return Some("its extents do not hold its bytes");
        }
        None
    }
}

//! What the catalog keeps of a run: where it lies and what is in it.

use crate::types::{Extent, RunId, Seq, TreeId};

/// A run's description. Offsets are logical: inside the run, its extents concatenated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunMeta {
    pub(crate) id: RunId,
    pub(crate) tree: TreeId,
    /// Where it lies in the data file, in order.
    pub(crate) extents: Vec<Extent>,
    /// Bytes stored: pages, fences and filter.
    pub(crate) bytes: u64,
    /// Bytes of keys and values before encoding.
    pub(crate) raw_bytes: u64,
    /// Versions in it, tombstones included.
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) pages: u32,
    pub(crate) min_key: Box<[u8]>,
    pub(crate) max_key: Box<[u8]>,
    /// The largest sequence number in it, 0 when all are 0.
    pub(crate) max_seq: Seq,
    pub(crate) fence_offset: u64,
    pub(crate) fence_len: u32,
    pub(crate) filter_offset: u64,
    /// 0: there is no filter.
    pub(crate) filter_len: u32,
}

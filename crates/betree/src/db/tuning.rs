//! Values derived from the options.

use crate::options::{Filter, Options};
use crate::types::TreeOptions;

/// Maximum size of a buffer before it is flushed, however much memory there is: one flush then
/// takes at most a tenth of a second of one core.
const BUFFER_MAX: usize = 16 << 20;
/// Maximum size of a chunk of a bulk commit: it holds the commit lock for a few milliseconds.
const CHUNK_MAX: usize = 1 << 20;
/// Minimum size of a chunk: the log record of a smaller one is mostly padding.
const CHUNK_MIN: usize = 16 << 10;
/// Maximum size of a transaction's set of writes: sorting more at once takes a second.
const OWN_MAX: usize = 64 << 20;
/// Maximum number of entries merged in one slice: about half a millisecond.
const SLICE_MAX: u64 = 8192;
/// Minimum number of entries merged in one slice, in a store with tiny buckets.
const SLICE_MIN: u64 = 16;
/// Bytes of the bucket size per entry of a merge slice. The merge of a full bucket then takes
/// several slices at any bucket size, and flushes of the same bucket can run between them.
const BUCKET_PER_SLICE: u64 = 256;
/// Minimum size of a full buffer.
const BUFFER_MIN: usize = 64 << 10;

/// Values derived from the options.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// Hard limit of write buffers in bytes.
    pub(crate) buffers: usize,
    /// Bytes at which a single buffer is flushed.
    pub(crate) buffer_max: usize,
    /// Size of a chunk of a bulk commit. A chunk takes about five times as much memory while it is
    /// applied.
    pub(crate) chunk: usize,
    /// Size from which a commit is executed in chunks.
    pub(crate) bulk: usize,
    /// Memory from which a transaction spills its writes.
    pub(crate) own_max: usize,
    /// Bytes of merge debt at which a commit waits as long as its own merges take.
    pub(crate) merge_span: f64,
    /// Entries that a merge handles before it gives way to other work: 8,192 from 2 MiB of bucket
    /// size on.
    pub(crate) merge_slice: u64,
    /// Bytes of keys and values in a page.
    pub(crate) page: usize,
    /// Number of deltas in a bucket that force a merge.
    pub(crate) k_cap: usize,
    /// Filter bits a key in the base.
    pub(crate) base_filter_bits: u8,
    filter: Filter,
    filter_bits: u8,
}

impl Tuning {
    /// The values for valid options.
    pub(crate) fn new(options: &Options) -> Tuning {
        let buffers = usize::try_from(options.shares().buffers).unwrap_or(usize::MAX);
        let all = options.filter() == Filter::All;
        Tuning {
            buffers,
            buffer_max: (buffers / 8).clamp(BUFFER_MIN, BUFFER_MAX),
            chunk: (buffers / 64).clamp(CHUNK_MIN, CHUNK_MAX),
            bulk: 2 * (buffers / 64).clamp(CHUNK_MIN, CHUNK_MAX),
            own_max: (buffers / 8).clamp(BUFFER_MIN, OWN_MAX),
            // An eighth of what is buffered, or a bucket: merges come to an end in such pieces.
            merge_span: (buffers as f64 / 8.0).max(options.bucket() as f64) * options.rho(),
            merge_slice: (options.bucket() / BUCKET_PER_SLICE).clamp(SLICE_MIN, SLICE_MAX),
            page: usize::try_from(options.page()).unwrap_or(usize::MAX),
            k_cap: usize::try_from(options.k_cap()).unwrap_or(usize::MAX),
            base_filter_bits: if all { options.filter_bits() } else { 0 },
            filter: options.filter(),
            filter_bits: options.filter_bits(),
        }
    }

    /// Filter bits a key in a delta of a tree.
    pub(crate) fn delta_filter_bits(&self, tree: TreeOptions) -> u8 {
        match self.filter {
            Filter::None => 0,
            Filter::All => self.filter_bits,
            Filter::Auto if tree.point_lookups => self.filter_bits,
            Filter::Auto => 0,
        }
    }
}

//! Options and statistics of a log.

use std::sync::Arc;
use std::time::Duration;

use crate::keys::Keys;
use crate::types::Seq;

use super::format::{BLOCK, GROUP_HEADER, GROUP_RAW_MAX, RECORD_HEADER};

/// Minimum bytes for a write of its own: below this the cost of the call matters; above it the
/// write only takes longer.
const PIECE: usize = 1 << 20;

/// The options of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogOptions {
    /// The most bytes of a segment, preallocated. Larger: fewer rotations, each of which syncs;
    /// smaller: space comes back in smaller steps. Default 64 MiB: a rotation every half second at
    /// 128 MB/s.
    pub(crate) segment: u64,
    /// Bytes of the first segment, and of the next one after [`Log::shrink`]; each one that is full
    /// within a second is followed by one four times as large, up to `segment`. Default 4 MiB: a
    /// small store has a small log, and 64 MiB/s are enough for the largest.
    ///
    /// [`Log::shrink`]: super::Log::shrink
    pub(crate) first: u64,
    /// Bytes of each of the buffers in memory. Default 2 MiB: pieces large enough to be written at
    /// full speed.
    pub(crate) buffer: usize,
    /// Number of buffers. Default 8: with 16 MiB they hold what arrives at 500 MB/s while a write
    /// waits 30 ms for the file system.
    pub(crate) buffers: usize,
    /// How long the leader of a group waits for others before it writes, when the group before had
    /// more than one member. Default 0; worth it where a sync costs more than the wait.
    pub(crate) group_delay: Duration,
    /// Compress groups with LZ4, as far as they become shorter. Default false: see decision 0010.
    pub(crate) compress: bool,
    /// Bypass the page cache. Default false: a write then returns without waiting for the device.
    pub(crate) direct: bool,
    /// The keys of an encrypted store.
    pub(crate) keys: Option<Arc<Keys>>,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment: 64 << 20,
            first: 4 << 20,
            buffer: 2 << 20,
            buffers: 8,
            group_delay: Duration::ZERO,
            compress: false,
            direct: false,
            keys: None,
        }
    }
}

impl LogOptions {
    /// Divide `total` bytes of memory into buffers: eight, but at least 64 KiB each, and at least
    /// two.
    pub(crate) fn divide(total: usize) -> (usize, usize) {
        let buffers = (total / (64 << 10)).clamp(2, 8);
        (total / buffers, buffers)
    }

    /// The options with valid sizes: whole blocks, and room for a record.
    pub(super) fn rounded(mut self) -> LogOptions {
        self.segment = self.segment.next_multiple_of(BLOCK).max(2 * BLOCK);
        self.first = self.first.next_multiple_of(BLOCK);
        self.first = self.first.clamp(2 * BLOCK, self.segment);
        let block = 4096;
        self.buffer = self.buffer.next_multiple_of(block).max(block);
        self.buffers = self.buffers.max(2);
        assert!(GROUP_HEADER + RECORD_HEADER < self.buffer, "it holds one");
        assert!(self.buffer as u64 <= GROUP_RAW_MAX, "recovery reads it");
        self
    }

    /// Number of buffered bytes from which on a buffer is written.
    pub(super) fn piece(&self) -> usize {
        PIECE.min(self.buffer / 2)
    }
}

/// A place in the log: `sync_to` it makes it and everything before it durable.
///
/// It is the number of the record, not a segment and an offset: numbers are given without gaps in
/// log order, so they order places just as well, they can be compared with [`Seq`]s elsewhere
/// (flushed, durable), and they do not change when recovery copies a record into another segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(pub(crate) Seq);

/// Statistics of a log since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogStats {
    /// Bytes written, including headers and padding.
    pub(crate) bytes_written: u64,
    /// The same without compression.
    pub(crate) bytes_raw: u64,
    /// Write calls.
    pub(crate) writes: u64,
    /// Syncs of segments, including those at the end of a segment.
    pub(crate) syncs: u64,
    /// Syncs with at least one waiting commit.
    pub(crate) groups: u64,
    /// Number of waiting commits that these syncs served; divided by `groups` it is the size of a
    /// group.
    pub(crate) group_commits: u64,
    /// Total time that threads spent in `sync_to`, in microseconds.
    pub(crate) wait_micros: u64,
    /// Segments started.
    pub(crate) segments: u64,
    /// Number of appends that waited because all buffers were full or a segment was missing.
    pub(crate) append_waits: u64,
}

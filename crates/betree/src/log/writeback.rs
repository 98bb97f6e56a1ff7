//! Asking the operating system to start writing the log's pages to the device.
//!
//! A hint, so that a sync finds little left to do; but on a device whose queue is full even the
//! hint waits. So writers, for whom commits wait, only note what they wrote, and the log's thread
//! asks.

use std::sync::Arc;

use super::Log;
use super::segment::Segment;

/// Bytes that were written and for which writeback was not yet requested.
pub(super) struct Written {
    segment: Arc<Segment>,
    start: u64,
    end: u64,
}

impl Log {
    /// Record that a piece of a segment was written. Earlier pieces of another segment are
    /// forgotten, because that segment will soon be synced.
    pub(super) fn note_written(&self, segment: &Arc<Segment>, offset: u64, length: u64) {
        let mut written = self.written.lock();
        let start = match &*written {
            Some(w) if Arc::ptr_eq(&w.segment, segment) => w.start.min(offset),
            _ => offset,
        };
        assert!(start <= offset, "what was noted before begins before");
        *written = Some(Written {
            segment: Arc::clone(segment),
            start,
            end: offset + length,
        });
    }

    /// Request writeback of the recorded pieces. May wait for the device; no commit waits for the
    /// calling thread.
    pub(crate) fn start_writeback(&self) {
        let written = self.written.lock().take();
        if let Some(Written {
            segment,
            start,
            end,
        }) = written
            && start < end
        {
            segment.file.start_writeback(start, end - start);
        }
    }
}

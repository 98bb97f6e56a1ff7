//! What a member has fetched and applied. Plain statistics: nothing is decided by them.

use std::collections::VecDeque;
use std::time::Duration;

use repl::position::Position;
use stdx::sync::Mutex;

use crate::counter::Counter;
use crate::long::long;

/// Counts of a member since its server started.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Fetches that were answered, and the milliseconds that they took.
    pub(crate) fetches: Counter,
    pub(crate) fetch_millis: Counter,
    /// Entries that were fetched, and their bytes.
    pub(crate) fetched: Counter,
    pub(crate) fetched_bytes: Counter,
    /// Entries that were applied, in how many batches, and the milliseconds that those took.
    pub(crate) applied: Counter,
    pub(crate) batches: Counter,
    pub(crate) apply_millis: Counter,
    /// Batches that are written and not applied yet.
    buffer: Mutex<Buffer>,
}

#[derive(Debug, Default)]
struct Buffer {
    batches: VecDeque<Batch>,
    entries: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Batch {
    last: Position,
    entries: u64,
    bytes: u64,
}

impl Traffic {
    /// Entries were written to the oplog; `last` is the last of them.
    pub(crate) fn wrote(&self, last: Position, entries: u64, bytes: u64) {
        let mut buffer = self.buffer.lock();
        buffer.entries += entries;
        buffer.bytes += bytes;
        buffer.batches.push_back(Batch {
            last,
            entries,
            bytes,
        });
    }

    /// All entries up to `to` are applied.
    pub(crate) fn applied_to(&self, to: Position, taken: Duration) {
        let mut buffer = self.buffer.lock();
        let mut entries = 0;
        while let Some(batch) = buffer.batches.pop_front() {
            if to < batch.last {
                buffer.batches.push_front(batch);
                break;
            }
            entries += batch.entries;
            buffer.entries -= batch.entries;
            buffer.bytes -= batch.bytes;
        }
        drop(buffer);
        self.applied.add(long(entries));
        self.batches.one();
        self.apply_millis.add(long(taken.as_millis()));
    }

    /// The entries after `to` were removed.
    pub(crate) fn rolled_back(&self, to: Position) {
        let mut buffer = self.buffer.lock();
        while let Some(batch) = buffer.batches.pop_back() {
            if batch.last <= to {
                buffer.batches.push_back(batch);
                break;
            }
            buffer.entries -= batch.entries;
            buffer.bytes -= batch.bytes;
        }
    }

    /// Entries that are written and not applied yet, and their bytes.
    pub(crate) fn buffered(&self) -> (u64, u64) {
        let buffer = self.buffer.lock();
        (buffer.entries, buffer.bytes)
    }
}

#[cfg(test)]
mod tests {
    use repl::position::Term;

    use super::*;

    #[test]
    fn what_is_written_is_in_the_buffer_until_it_is_applied_or_removed() {
        let at = |ts| Position { term: Term(1), ts };
        let traffic = Traffic::default();
        traffic.wrote(at(3), 3, 300);
        traffic.wrote(at(5), 2, 200);
        traffic.wrote(at(6), 1, 100);
        assert_eq!(traffic.buffered(), (6, 600));
        traffic.applied_to(at(4), Duration::from_millis(7));
        assert_eq!(traffic.buffered(), (3, 300), "a batch counts as a whole");
        traffic.rolled_back(at(5));
        assert_eq!(traffic.buffered(), (2, 200));
        traffic.applied_to(at(5), Duration::ZERO);
        assert_eq!(traffic.buffered(), (0, 0));
        assert_eq!((traffic.applied.get(), traffic.apply_millis.get()), (5, 7));
    }
}

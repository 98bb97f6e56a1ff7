//! Memory that write buffers do not need now is lent to the cache of pages.
//!
//! - I1. When a commit goes on, what is buffered and what is lent are together within the limit of
//!   the buffers.
//! - I2. The capacity of the cache is its own share and what is lent, changed under one lock.
//!
//! Three quarters of the buffers' memory are lent as far as they are not filled; the last quarter
//! is room for what comes in before a background thread looks again. Taking back evicts pages, so
//! it is done in steps of a sixteenth: by background threads as the buffers fill, and only by a
//! commit when they have not come to it.

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicUsize, Ordering};

use super::core::Core;

/// A loan changes by this part of the buffers at least.
const STEP_PART: usize = 16;

/// What is lent.
#[derive(Default)]
pub(crate) struct Loan {
    lent: AtomicUsize,
    change: Mutex<()>,
}

impl Core {
    /// Lend what is free, or take back what is needed, if it is worth a step. For background work.
    pub(crate) fn lend(&self) {
        let lent = self.loan.lent.load(Ordering::Relaxed);
        if self.tuning.buffers / STEP_PART <= lent.abs_diff(self.to_lend()) {
            self.change_loan();
        }
    }

    /// Take back what a commit of `bytes` needs (I1).
    pub(crate) fn take_back(&self, bytes: usize) {
        let lent = self.loan.lent.load(Ordering::Relaxed);
        if 0 < lent && self.tuning.buffers < self.memory.used() + bytes + lent {
            self.change_loan();
        }
    }

    /// What may be lent now.
    fn to_lend(&self) -> usize {
        (self.tuning.buffers / 4 * 3).saturating_sub(self.memory.used())
    }

    #[cold]
    fn change_loan(&self) {
        let _one = self.loan.change.lock();
        let lent = self.to_lend();
        self.loan.lent.store(lent, Ordering::Relaxed);
        let own = self.options.shares().cache;
        self.runs.cache().set_capacity(own + lent as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::durability::Durability;
    use crate::options::Options;
    use crate::{Batch, Db, TreeOptions};

    #[test]
    fn what_buffers_leave_is_lent_and_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::default().with_memory(8 << 20).with_threads(0);
        let (own, buffers) = (options.shares().cache, options.shares().buffers);
        let db = Db::open(directory.path(), options).unwrap();
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        // The cache rounds down to whole shards.
        let lent = || db.stats().unwrap().cache.capacity.saturating_sub(own) / 1024 * 1024;
        let most = buffers / 4 * 3 / 1024 * 1024;
        while db.step().unwrap() {}
        assert!(lent().abs_diff(most) <= 4096, "{} of {most}", lent());

        // Commits alone, without background work between them, keep within the limit.
        let mut batch = Batch::new();
        for number in 0..60_u64 {
            batch.clear();
            batch.put(tree, &number.to_be_bytes(), &vec![1; 50_000]);
            db.write(&batch, Durability::None).unwrap();
            let buffered = db.stats().unwrap().buffered_bytes;
            assert!(buffered + lent() <= buffers, "{buffered} + {}", lent());
        }
        assert!(lent() < most, "some was taken back");
        assert!(db.settle(Duration::from_secs(60)).unwrap());
        while db.step().unwrap() {}
        assert!(lent().abs_diff(most) <= 4096, "{} of {most}", lent());
    }
}

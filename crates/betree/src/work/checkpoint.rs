//! Checkpoints: the catalog of all runs becomes durable, and the log before it is released.
//!
//! A checkpoint is fuzzy: it captures each bucket as it is at some moment, while commits, flushes
//! and merges continue, and each bucket says up to which commit its runs are complete. There are no
//! dirty pages, so there is no storm of them: what is written is the catalog.
//!
//! - I1. Every commit whose changes are in a captured run is durable in the log before the catalog
//!   that names the run is: the log is synced after the capture.
//! - I2. The log is kept from the oldest commit that some captured bucket has in memory only.
//! - I3. Without a log the catalog is a cut: all buffers are frozen at one moment, and only those
//!   are flushed before the capture.
//! - I4. A bucket that was replaced is not captured: its runs have gone to those that replaced it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::{Mutex, MutexGuard};

use super::queue::HeldBack;
use crate::checkpoint::{self, BucketImage, Image, Superblock, TreeFlags, TreeImage};
use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::run::{Run, RunMeta};
use crate::tree::{State, Tree};
use crate::types::{RunId, Seq};

/// Where the last checkpoint stands.
pub(crate) struct Last {
    superblock: Superblock,
    at: Duration,
    /// Total bytes written to the log when it was made.
    log_bytes: u64,
    /// The newest commit that it contains.
    seq: Seq,
    /// Number of catalog changes when it was made; the catalog can change without a commit.
    changes: u64,
}

impl Last {
    /// The newest durable checkpoint.
    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }
}

/// Statistics of the last checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) number: u64,
    pub(crate) seq: Seq,
    /// When it became durable, or when the store was opened.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
    pub(crate) image_bytes: u64,
}

/// The state of checkpoints; the lock lets one run at a time.
pub(crate) struct Checkpoints {
    last: Mutex<Last>,
    /// For statistics, which must not wait for a checkpoint. A leaf in the lock order.
    shown: Mutex<Shown>,
}

/// A moment: everything committed before it is in runs, and while this lives nothing later is.
pub(crate) struct Cut<'a> {
    pub(crate) through: Seq,
    _held: HeldBack<'a>,
}

impl Checkpoints {
    /// Wait for the end of a checkpoint in progress.
    pub(crate) fn wait(&self) {
        drop(self.last.lock());
    }

    /// The state after the checkpoint `superblock`.
    pub(crate) fn new(superblock: Superblock, now: Duration) -> Checkpoints {
        let shown = Shown {
            number: superblock.number,
            seq: superblock.last_seq,
            at: now,
            took: Duration::ZERO,
            image_bytes: superblock.image.map_or(0, |place| place.length),
        };
        let last = Last {
            seq: superblock.last_seq,
            superblock,
            at: now,
            log_bytes: 0,
            changes: 0,
        };
        Checkpoints {
            last: Mutex::new(last),
            shown: Mutex::new(shown),
        }
    }

    /// The newest durable checkpoint.
    pub(crate) fn superblock(&self) -> Superblock {
        self.last.lock().superblock.clone()
    }

    /// Prevent checkpoints while the guard lives; waits for one in progress.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Last> {
        self.last.lock()
    }

    /// Whether a checkpoint is in progress, or prevented.
    pub(crate) fn is_busy(&self) -> bool {
        self.last.is_locked()
    }

    /// Statistics of the last checkpoint, without waiting.
    pub(crate) fn shown(&self) -> Shown {
        *self.shown.lock()
    }
}

/// Minimum bytes of freed extents that wait for a checkpoint before one is made to release them.
const PENDING_MIN: u64 = 64 << 20;

impl Core {
    /// Whether a checkpoint is due: because of the time, the length of the log, or the space that
    /// waits for one. False while one is in progress.
    pub(crate) fn checkpoint_due(&self) -> bool {
        let Some(last) = self.checkpoints.last.try_lock() else {
            return false;
        };
        let now = self.vfs.now();
        let pending = self.space.pending_bytes();
        let same = last.changes == self.changes() && last.seq == self.snapshots.visible();
        // The last reader of a dropped or replaced run releases it without changing the catalog.
        if same && pending == 0 || self.refused.checkpoint.is_recent(now) {
            return false;
        }
        let age = now.saturating_sub(last.at);
        let log = self.log_written().saturating_sub(last.log_bytes);
        self.options.checkpoint_interval() <= age
            || self.options.checkpoint_bytes() <= log
            || PENDING_MIN.max(self.space.used_bytes() / 8) <= pending
    }

    /// Bytes written to the log since the store was opened.
    pub(crate) fn log_written(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.stats().bytes_written)
    }

    /// A number that grows whenever the catalog changes.
    pub(super) fn changes(&self) -> u64 {
        let counters = &self.counters;
        counters.flushes.get()
            + counters.merges.get()
            + counters.splits.get()
            + counters.absorbed.get()
    }

    /// Make a checkpoint, after one in progress has ended.
    ///
    /// # Errors
    /// `Full`: the store is as it was before. After a failed sync the store is closed for writes.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        let mut last = self.checkpoints.last.lock();
        // Checked under the lock: close waits for the thread that holds it.
        self.health.check_writable()?;
        self.write_checkpoint(&mut last)
    }

    /// As `checkpoint`, for a store that may be closing.
    pub(crate) fn make_checkpoint(&self) -> Result<()> {
        self.write_checkpoint(&mut self.checkpoints.last.lock())
    }

    /// Make a checkpoint if it frees anything. False when it does not, or when there is no room for
    /// the checkpoint, or was none a moment ago.
    ///
    /// # Errors
    /// As [`Core::checkpoint`], but `Full`.
    pub(crate) fn checkpoint_for_space(&self) -> Result<bool> {
        if !self.waits_for_checkpoint() || planted(Plant::FullFreesNothing) {
            return Ok(false);
        }
        let mut last = self.checkpoints.last.lock();
        self.health.check_writable()?;
        // Another thread may have been faster.
        if !self.waits_for_checkpoint() {
            return Ok(true);
        }
        // It has just failed, and would cost a sync or a flush of everything to fail again.
        if self.refused.checkpoint.is_recent(self.vfs.now()) {
            return Ok(false);
        }
        match self.write_checkpoint(&mut last) {
            Err(error) if error.kind() == ErrorKind::Full => Ok(false),
            made => made.map(|()| true),
        }
    }

    /// Make the checkpoint that follows `last`.
    fn write_checkpoint(&self, last: &mut Last) -> Result<()> {
        let made = self.write_checkpoint_after(last);
        match &made {
            Err(error) if error.kind() == ErrorKind::Full => {
                self.refused.checkpoint.note(self.vfs.now());
            }
            _ => self.refused.checkpoint.forget(),
        }
        made
    }

    fn write_checkpoint_after(&self, last: &mut Last) -> Result<()> {
        let start = self.vfs.now();
        let cut = match &self.log {
            Some(_) => None,
            None => Some(self.flush_cut()?),
        };
        let changes = self.changes();
        let log_bytes = self.log_written();
        let epoch = self.space.begin_checkpoint();
        let image = self.capture(&last.superblock, cut.as_ref());
        drop(cut);
        if let Some(log) = &self.log {
            log.sync().inspect_err(|e| self.health.poison(e))?;
            assert!(
                image.last_seq <= log.durable(),
                "I1: the log is synced after the capture"
            );
        }
        let path = self.data_path();
        let written = checkpoint::write(
            self.data_file(&path),
            &self.space,
            &last.superblock,
            epoch,
            &image,
        );
        let superblock = written.inspect_err(|e| {
            if e.kind() != ErrorKind::Full {
                self.health.poison(e);
            }
        })?;
        assert!(last.superblock.number < superblock.number, "numbers grow");
        assert!(last.seq <= image.last_seq, "an image is never older");
        let image_bytes = superblock.image.map_or(0, |place| place.length);
        let padded = superblock.image.map_or(0, |place| place.extent().len);
        self.counters.image_bytes.add(padded);
        self.counters.checkpoints.add(1);
        let now = self.vfs.now();
        *self.checkpoints.shown.lock() = Shown {
            number: superblock.number,
            seq: image.last_seq,
            at: now,
            took: now.saturating_sub(start),
            image_bytes,
        };
        *last = Last {
            seq: image.last_seq,
            superblock,
            at: now,
            log_bytes,
            changes,
        };
        // A reserve smaller than requested is not a failure; the next checkpoint requests it again.
        let _ = checkpoint::keep_reserve(&*self.file, &path, &self.space, &last.superblock);
        // Last: the checkpoint is valid whether or not the log can release its files.
        self.release_log(image.log_from)
    }

    /// Release the log before `from`, and create missing files of its reserve for a full disk.
    fn release_log(&self, from: Seq) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        log.release_before(from)?;
        log.keep_reserve();
        Ok(())
    }

    /// Flush everything committed before the call.
    ///
    /// # Errors
    /// As the work.
    pub(crate) fn flush(&self) -> Result<()> {
        // What was frozen and not flushed is flushed by the next attempt.
        self.or_freed(|| {
            let _last = self.checkpoints.last.lock();
            // Checked under the lock: close waits for the thread that holds it.
            self.health.check_writable()?;
            self.flush_cut().map(drop)
        })
    }

    /// Freeze everything at one moment and flush exactly that (I3). The caller holds the checkpoint
    /// lock.
    pub(crate) fn flush_cut(&self) -> Result<Cut<'_>> {
        let cut = {
            // Not during a bulk commit: the cut would contain half of it.
            let committer = self.committer();
            for (tree, bucket) in self.buckets() {
                self.freeze(&tree, &bucket, committer.last);
            }
            // Still under the lock, so that nothing later is frozen yet.
            Cut {
                through: committer.last,
                _held: self.queue.hold_after(committer.last),
            }
        };
        self.flush_until_idle()?;
        Ok(cut)
    }

    /// Flush until no buffer that may be flushed is waiting.
    pub(crate) fn flush_until_idle(&self) -> Result<()> {
        loop {
            if !self.flush_one()? {
                if self.queue.is_idle() {
                    return Ok(());
                }
                // Another thread is flushing the last ones.
                self.wake.wait_for_room(Duration::from_millis(1));
            }
        }
    }

    /// The current catalog, or that of `cut`.
    fn capture(&self, last: &Superblock, cut: Option<&Cut<'_>>) -> Image {
        let mut found = Found {
            runs: BTreeMap::new(),
            oldest: Seq(self.snapshots.visible().0 + 1),
        };
        let (all, next_tree) = self.catalog.all_and_next();
        let there = |tree: &&Arc<Tree>| cut.is_none_or(|cut| tree.created <= cut.through);
        let trees = all.iter().filter(there);
        let trees: Vec<TreeImage> = trees
            .filter_map(|tree| capture_tree(tree, &mut found, cut.is_some()))
            .collect();
        let (last_seq, log_from) = match cut {
            Some(cut) => (cut.through, Seq(cut.through.0 + 1)),
            None => (self.commit.lock().last, found.oldest),
        };
        assert!(last.last_seq <= last_seq, "checkpoints ascend");
        assert!(
            log_from.0 <= last_seq.0 + 1,
            "I2: the log continues after what it covers"
        );
        Image {
            number: last.number + 1,
            last_seq,
            log_from: log_from.max(last.log_from),
            next_run: RunId(self.peek_run()),
            next_tree,
            runs: found.runs.into_values().collect(),
            trees,
        }
    }

    /// Reduce the log to a small segment, as far as the next checkpoint allows.
    pub(crate) fn shrink_log(&self) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        match log.shrink() {
            // The checkpoint makes room; this need not.
            Err(error) if error.kind() == ErrorKind::Full => Ok(()),
            other => other.inspect_err(|e| self.health.poison(e)),
        }
    }

    /// Truncate the data file after space was freed.
    pub(crate) fn cut_file(&self) -> Result<()> {
        let path = self.data_path();
        self.release_excess();
        self.space
            .cut(0, |length| self.file.set_len(vfs::Site("data.cut"), length))
            .map_err(|e| Error::io("cut the data file", &path, e))
    }
}

/// The content of the captured buckets.
struct Found {
    runs: BTreeMap<RunId, RunMeta>,
    /// The oldest commit that some bucket has only in memory.
    oldest: Seq,
}

impl Found {
    fn capture(&mut self, lo: &[u8], state: &State) -> BucketImage {
        debug_assert!(!state.retired, "I4: its runs have gone elsewhere");
        for run in state.deltas.iter().chain(state.base.iter()) {
            debug_assert!(run.meta().max_seq <= state.flushed, "I3 of the bucket");
            let meta = run.meta();
            self.runs.entry(meta.id).or_insert_with(|| meta.clone());
        }
        if let Some(first) = state.oldest_unflushed()
            && !planted(Plant::LogReleasedEarly)
        {
            debug_assert!(
                state.flushed < first,
                "I3 of the bucket: what is in memory is newer"
            );
            self.oldest = first.min(self.oldest);
        }
        let id = |run: &Arc<Run>| run.meta().id;
        BucketImage {
            lo: lo.into(),
            flushed: state.flushed,
            deltas: state.deltas.iter().map(id).collect(),
            base: state.base.iter().map(id).collect(),
        }
    }
}

/// Capture a tree. With `or_gone`, returns `None` if the tree was dropped and released.
fn capture_tree(tree: &Arc<Tree>, found: &mut Found, or_gone: bool) -> Option<TreeImage> {
    let buckets = loop {
        let mut tried = Found {
            runs: BTreeMap::new(),
            oldest: found.oldest,
        };
        let routing = tree.routing();
        let mut buckets = Vec::with_capacity(routing.buckets().len());
        for bucket in routing.buckets() {
            let state = bucket.state();
            if state.dropped && or_gone {
                return None;
            }
            if state.retired {
                // I4. The routing already has those in its place.
                break;
            }
            buckets.push(tried.capture(&bucket.lo, &state));
        }
        if buckets.len() == routing.buckets().len() {
            found.oldest = tried.oldest.min(found.oldest);
            found.runs.append(&mut tried.runs);
            break buckets;
        }
    };
    assert!(!buckets.is_empty(), "a tree has a bucket");
    Some(TreeImage {
        id: tree.id,
        name: tree.name.clone(),
        flags: TreeFlags {
            ascending: tree.options.ascending,
            point_lookups: tree.options.point_lookups,
        },
        buckets,
    })
}

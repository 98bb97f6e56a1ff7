//! Checkpoints: the catalog of all runs becomes durable, and the log before it is let go.
//!
//! A checkpoint is fuzzy: it captures each bucket as it is at some moment, while commits, flushes
//! and merges go on, and each bucket says up to which commit its runs are complete. There are no
//! dirty pages, so there is no storm of them: what is written is the catalog.
//!
//! - I1. Every commit whose changes are in a captured run is durable in the log before the catalog
//!   that names the run is: the log is synced after the capture.
//! - I2. The log is kept from the oldest commit that some captured bucket has in memory only.
//! - I3. Without a log the catalog is a cut: all buffers are frozen at one moment, and only those
//!   are flushed before the capture.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::Mutex;

use crate::checkpoint::{self, BucketImage, Image, Superblock, TreeFlags, TreeImage};
use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::run::{Run, RunMeta};
use crate::tree::{Routing, Tree};
use crate::types::{RunId, Seq};

/// Where the last checkpoint stands.
struct Last {
    superblock: Superblock,
    at: Duration,
    /// Bytes the log had taken in all.
    log_bytes: u64,
    /// The newest commit it covers.
    seq: Seq,
    /// The catalog has changed since, though perhaps nothing was committed.
    changes: u64,
}

/// The state of checkpoints; the lock lets one run at a time.
pub(crate) struct Checkpoints {
    last: Mutex<Last>,
}

impl Checkpoints {
    /// After the checkpoint `superblock`.
    pub(crate) fn new(superblock: Superblock, now: Duration) -> Checkpoints {
        let last = Last {
            seq: superblock.last_seq,
            superblock,
            at: now,
            log_bytes: 0,
            changes: 0,
        };
        Checkpoints {
            last: Mutex::new(last),
        }
    }

    /// The newest durable checkpoint.
    pub(crate) fn superblock(&self) -> Superblock {
        self.last.lock().superblock.clone()
    }
}

/// Freed extents that wait for a checkpoint may be this much before one is made for their sake.
const PENDING_MIN: u64 = 64 << 20;

impl Core {
    /// Whether a checkpoint is due: by time, by the length of the log, or by the space that waits
    /// for one. False while one is being made.
    pub(crate) fn checkpoint_due(&self) -> bool {
        let Some(last) = self.checkpoints.last.try_lock() else {
            return false;
        };
        let changes = self.changes();
        if last.changes == changes && last.seq == self.snapshots.visible() {
            return false;
        }
        let age = self.vfs.now().saturating_sub(last.at);
        let log = self.log_written().saturating_sub(last.log_bytes);
        let pending = self.space.pending_bytes();
        self.options.checkpoint_interval() <= age
            || self.options.checkpoint_bytes() <= log
            || PENDING_MIN.max(self.space.used_bytes() / 8) <= pending
    }

    /// Bytes written to the log since the store was opened.
    pub(crate) fn log_written(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.stats().bytes_written)
    }

    /// A number that grows whenever the catalog changes.
    fn changes(&self) -> u64 {
        let counters = &self.counters;
        counters.flushes.get()
            + counters.merges.get()
            + counters.splits.get()
            + counters.absorbed.get()
    }

    /// Make a checkpoint, after one that is being made.
    ///
    /// # Errors
    /// `Full`: the store goes on as it was. After a failed sync the store is closed for writes.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.health.check_writable()?;
        self.make_checkpoint()
    }

    /// The same, of a store that may be closing.
    pub(crate) fn make_checkpoint(&self) -> Result<()> {
        let mut last = self.checkpoints.last.lock();
        if self.log.is_none() {
            self.flush_cut()?;
        }
        let changes = self.changes();
        let log_bytes = self.log_written();
        let epoch = self.space.begin_checkpoint();
        let image = self.capture(&last.superblock);
        if let Some(log) = &self.log {
            log.sync().inspect_err(|e| self.health.poison(e))?;
            assert!(
                image.last_seq <= log.durable(),
                "I1: the log is synced after the capture"
            );
        }
        let path = self.data_path();
        let written = checkpoint::write(
            &*self.file,
            &path,
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
        let image_bytes = superblock.image.map_or(0, |place| place.length);
        self.counters
            .image_bytes
            .add(image_bytes + crate::checkpoint::DATA_START);
        self.counters.checkpoints.add(1);
        if let Some(log) = &self.log {
            log.release_before(image.log_from)?;
        }
        *last = Last {
            seq: image.last_seq,
            superblock,
            at: self.vfs.now(),
            log_bytes,
            changes,
        };
        // A smaller reserve than wished for is no failure; the next checkpoint asks again.
        let _ = checkpoint::keep_reserve(&*self.file, &path, &self.space, &last.superblock);
        Ok(())
    }

    /// Freeze everything at one moment and flush exactly that (I3). Under the checkpoint's lock.
    fn flush_cut(&self) -> Result<()> {
        {
            let committer = self.commit.lock();
            for (tree, bucket) in self.buckets() {
                self.freeze(&tree, &bucket, committer.last);
            }
            // Before anything later can be frozen.
            self.queue.hold_after(committer.last);
        }
        let result = self.flush_until_idle();
        self.queue.let_go();
        result
    }

    /// Flush until nothing that may be flushed waits.
    pub(crate) fn flush_until_idle(&self) -> Result<()> {
        loop {
            if !self.flush_one()? {
                if self.queue.is_idle() {
                    return Ok(());
                }
                // Another thread is at the last ones.
                self.wake.wait_for_room(Duration::from_millis(1));
            }
        }
    }

    /// The catalog as it is.
    fn capture(&self, last: &Superblock) -> Image {
        let start = Seq(self.snapshots.visible().0 + 1);
        let mut runs = BTreeMap::new();
        let mut oldest = start;
        let (all, next_tree) = self.catalog.capture();
        let trees = all
            .iter()
            .map(|tree| capture_tree(tree, &mut runs, &mut oldest))
            .collect();
        let last_seq = self.commit.lock().last;
        let log_from = if self.log.is_some() {
            oldest
        } else {
            Seq(last_seq.0 + 1).min(start)
        };
        Image {
            number: last.number + 1,
            last_seq,
            log_from: log_from.max(last.log_from),
            next_run: RunId(self.peek_run()),
            next_tree,
            runs: runs.into_values().collect(),
            trees,
        }
    }

    /// Space was freed: cut the end of the data file.
    pub(crate) fn cut_file(&self) -> Result<()> {
        let path = self.data_path();
        self.space
            .cut(0, |length| self.file.set_len(vfs::Site("data.cut"), length))
            .map_err(|e| Error::io("cut the data file", &path, e))
    }
}

fn capture_tree(
    tree: &Arc<Tree>,
    runs: &mut BTreeMap<RunId, RunMeta>,
    oldest: &mut Seq,
) -> TreeImage {
    let captured = loop {
        if let Some(captured) = capture_buckets(&tree.routing()) {
            break captured;
        }
    };
    *oldest = captured.oldest.unwrap_or(*oldest).min(*oldest);
    for run in captured.runs {
        runs.entry(run.meta().id)
            .or_insert_with(|| run.meta().clone());
    }
    TreeImage {
        id: tree.id,
        name: tree.name.clone(),
        flags: TreeFlags {
            ascending: tree.options.ascending,
            point_lookups: tree.options.point_lookups,
        },
        buckets: captured.buckets,
    }
}

struct Captured {
    buckets: Vec<BucketImage>,
    runs: Vec<Arc<Run>>,
    /// The oldest commit that is in memory only.
    oldest: Option<Seq>,
}

/// `None` when one of the buckets was replaced meanwhile: what it was merged or flushed into is
/// named by those in its place only, though its own state says that it is done.
fn capture_buckets(routing: &Routing) -> Option<Captured> {
    let mut captured = Captured {
        buckets: Vec::with_capacity(routing.buckets().len()),
        runs: Vec::new(),
        oldest: None,
    };
    for bucket in routing.buckets() {
        let state = bucket.state();
        if state.retired {
            return None;
        }
        let runs = state.deltas.iter().chain(state.base.iter());
        captured.runs.extend(runs.cloned());
        let unflushed = state.oldest_unflushed();
        captured.oldest = captured.oldest.into_iter().chain(unflushed).min();
        let id = |run: &Arc<Run>| run.meta().id;
        captured.buckets.push(BucketImage {
            lo: bucket.lo.as_ref().into(),
            flushed: state.flushed,
            deltas: state.deltas.iter().map(id).collect(),
            base: state.base.iter().map(id).collect(),
        });
    }
    Some(captured)
}

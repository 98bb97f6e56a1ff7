//! What is bounded stays bounded through random lives: not only answers are held against the model,
//! but also the runs a reader meets, memory, and the space of a store that has settled.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{Batch, Codec, Db, Durability, Stats, TreeOptions};
use sim::checker::Change;
use sim::{SimOptions, SimVfs};

use crate::rig::{DIRECTORY, Step, World, say};

/// The allocation unit.
const UNIT: u64 = 4096;
/// Memory in addition to the share of the buffers: a chunk of a commit that is applied at once, and
/// twice the longest value written here.
const AT_ONCE: u64 = 512 << 10;
/// Maximum memory of an empty buffer.
const EMPTY_BUFFER: u64 = 512;
/// Memory that transactions may hold however small the buffers are, plus one write.
const TRANSACTIONS: u64 = (256 << 10) + (64 << 10);

/// Maximum number of runs above the base in a bucket, according to `docs/betree.md`.
fn most_runs(k_cap: u32) -> usize {
    let k_cap = k_cap as usize;
    (2 * k_cap).max(k_cap + 8)
}

impl World {
    /// Check the bounds directly after a commit without faults. A batch that puts nothing may not
    /// be a commit, and then does not wait for merges.
    pub(crate) fn check_bounds(&self, changes: &[Change]) {
        let puts = |change: &Change| matches!(change, Change::Put(..));
        if self.faulty || self.db.is_none() || !changes.iter().any(puts) {
            return;
        }
        let Ok(stats) = self.db().stats() else {
            assert!(self.vfs.has_stopped(), "an open store has statistics");
            return;
        };
        let limit = most_runs(self.options.k_cap());
        let met = stats.runs_per_bucket.iter().rposition(|&count| 0 < count);
        let met = met.unwrap_or(0);
        assert!(met <= limit + 1, "{met} runs in a bucket, the base is one");
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of megabytes"
        )]
        let share = (self.options.memory() as f64 * self.options.buffer_share()) as u64;
        let most = share + AT_ONCE + EMPTY_BUFFER * stats.buckets;
        assert!(
            stats.buffered_bytes <= most,
            "{} bytes",
            stats.buffered_bytes
        );
        assert!(stats.transaction_bytes <= share / 2 + TRANSACTIONS);
        assert_eq!(stats.pinned_bytes, 0, "there are no readers");
    }

    /// Settle without snapshots: the store is as small as one that was loaded with the same
    /// entries at once, with the codec that compresses them least of those it was opened with.
    pub(crate) fn check_settled(&mut self) -> Step {
        self.held.clear();
        if self.is_down() || !self.settle()? || self.faulty {
            return Ok(());
        }
        let stats = match self.db().stats() {
            Ok(stats) => stats,
            Err(error) => return self.failed(error),
        };
        let fresh = |codec: &Codec| self.fresh(*codec).space.used_bytes;
        let fresh = self.codecs.iter().map(fresh).max();
        let fresh = fresh.expect("it was opened");
        say(|| format!("settled {:?}, fresh {fresh}", stats.space));
        assert_eq!((stats.debt_bytes, stats.delta_bytes), (0, 0), "all is done");
        let several = stats.runs_per_bucket.iter().skip(2).sum::<u64>();
        assert_eq!(several, 0, "a reader meets one run");
        let entries: u64 = self.ids.values().map(|&id| self.entries(id)).sum();
        let expected: usize = self.model.values().map(|tree| tree.len()).sum();
        assert_eq!(entries, expected as u64, "one version of each key");
        self.ids.values().for_each(|&id| self.check_joined(id));
        let buckets = stats.buckets;
        // A tenth, the unused ends of runs, and the image.
        let (used, least) = (stats.space.used_bytes, fresh);
        let most = least + least / 10 + UNIT * (buckets + 2);
        assert!(used <= most, "{used} bytes used, {least} by a fresh store");
        Ok(())
    }

    /// Check that small neighbours are joined: each two hold more than half a bucket together.
    fn check_joined(&self, id: betree::TreeId) {
        let stats = self.db().tree_stats(id, false);
        let stats = stats.expect("an open store has statistics");
        let (buckets, bytes, bucket) = (stats.buckets, stats.base_bytes, self.options.bucket());
        assert!(
            buckets * bucket <= 4 * bytes + bucket,
            "{buckets} buckets of {bucket} bytes for {bytes} bytes"
        );
    }

    fn entries(&self, id: betree::TreeId) -> u64 {
        let stats = self.db().tree_stats(id, false);
        stats.expect("an open store has statistics").entries
    }

    /// The statistics of a settled store that was loaded with the model at once.
    fn fresh(&self, codec: Codec) -> Stats {
        let disk = SimVfs::new(SimOptions::default());
        let options = self.options.clone().with_codec(codec);
        let db = Db::open_with(Arc::new(disk), Path::new(DIRECTORY), options).expect("open");
        for (name, entries) in &self.model {
            let tree = db.create_tree(name, TreeOptions::default());
            let tree = tree.expect("a new tree");
            let all: Vec<_> = entries.iter().collect();
            // Not in key order, so that merges split it.
            for first in 0..17 {
                let mut batch = Batch::new();
                for (key, value) in all.iter().skip(first).step_by(17) {
                    batch.put(tree, key, value);
                }
                db.write(&batch, Durability::None).expect("a load");
            }
        }
        assert!(db.settle(Duration::from_secs(3600)).expect("settle"));
        db.stats().expect("an open store has statistics")
    }
}

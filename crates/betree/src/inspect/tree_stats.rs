//! Statistics of one tree: estimated from the descriptions of its runs, or counted.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::db::{Core, Reader};
use crate::error::Result;
use crate::stats::TreeStats;
use crate::types::{Direction, TreeId};

impl Core {
    /// Statistics of `tree`. With `exact` the whole tree is read.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree; `Corrupt`, `Io`, `Closed`.
    pub(crate) fn tree_stats(self: &Arc<Self>, tree: TreeId, exact: bool) -> Result<TreeStats> {
        let reader = Reader::new(self)?;
        let mut stats = self.estimate(tree)?;
        if exact {
            let (start, end) = (Bound::Unbounded, Bound::Unbounded);
            let mut cursor = reader.cursor(tree, None, start, end, Direction::Forward)?;
            (stats.entries, stats.live_bytes) = (0, 0);
            while cursor.advance()? {
                stats.entries += 1;
                stats.live_bytes += (cursor.key().len() + cursor.value().len()) as u64;
            }
            stats.exact = true;
        }
        Ok(stats)
    }

    /// The estimate assumes that every tombstone deletes an existing entry and every put adds a new
    /// one: it is exact if nothing is updated and no missing key is deleted.
    fn estimate(&self, tree: TreeId) -> Result<TreeStats> {
        let tree = self.catalog.tree(tree)?;
        let mut stats = TreeStats {
            splits: tree.splits.get(),
            merges: tree.merges.get(),
            ..TreeStats::default()
        };
        let mut seen = BTreeSet::new();
        let mut buffers = BTreeSet::new();
        let (mut entries, mut dead, mut raw) = (0_u64, 0_u64, 0_u64);
        for bucket in tree.routing().buckets() {
            let state = bucket.state();
            stats.buckets += 1;
            let frozen = state.frozen.iter().map(|frozen| &frozen.buffer);
            for buffer in frozen.chain([&state.active]) {
                if buffers.insert(Arc::as_ptr(buffer) as usize) {
                    entries += buffer.entries() as u64;
                    stats.buffered_bytes += buffer.bytes() as u64;
                    // Twelve bytes of each entry are its slot, and a third of the rest is unused
                    // capacity.
                    raw += buffer.bytes() as u64 / 2;
                }
            }
            let base = state.base.iter().map(|run| (run, true));
            let deltas = state.deltas.iter().map(|run| (run, false));
            for (run, is_base) in base.chain(deltas) {
                let meta = run.meta();
                if !seen.insert(meta.id) {
                    continue;
                }
                stats.runs += 1;
                stats.allocated_bytes += meta.allocated();
                if is_base {
                    stats.base_bytes += meta.bytes;
                } else {
                    stats.delta_bytes += meta.bytes;
                }
                entries += meta.entries - meta.tombstones;
                dead += meta.tombstones;
                raw += meta.raw_bytes;
            }
        }
        stats.entries = entries.saturating_sub(dead);
        let all = (entries + dead).max(1) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of what was counted"
        )]
        let live = (raw as f64 * (stats.entries as f64 / all)) as u64;
        stats.live_bytes = live;
        assert!(
            stats.live_bytes <= raw.max(1),
            "what lives is a part of what is there"
        );
        Ok(stats)
    }
}

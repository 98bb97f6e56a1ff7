//! Bugs planted on purpose, to prove that the tests would find them.
//!
//! With the feature `plants`, which is for `cargo test` and nothing else, the variable
//! `BETREE_PLANT` of the environment switches one of them on for the whole process: one build holds
//! all of them. Without the feature [`planted`] is the constant `false`, and the compiler leaves
//! nothing of a plant behind.
//!
//! - I1. Every plant is in the table of `tests/plants`, which names the lane that finds it.

/// A bug that can be planted: what the engine then does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Plant {
    /// Names of log segments are not made durable.
    SkipDirectorySync,
    /// Commits at `group` and `sync` return before the log is synced.
    AcknowledgeBeforeSync,
    /// The two halves of the superblock are written without a sync between them.
    SuperblockAtOnce,
    /// The image is named by the superblock before the data file was synced.
    ImageBeforeDataSync,
    /// A split leaves the newest frozen buffer out of the last part.
    SplitLosesBuffer,
    /// Bucket boundaries drawn by a merge lie one key too high.
    PivotOffByOne,
    /// A scan shows the value below a tombstone.
    ScanForgetsTombstone,
    /// What a merge replaced is given out again before the next image is durable.
    ReuseBeforePublish,
    /// A sync of the log that failed is tried again.
    RetrySync,
    /// A transaction does not ask who else wrote its keys.
    SkipConflictCheck,
    /// A merge drops tombstones that old snapshots still need.
    DropTombstoneEarly,
    /// A flush that failed unmarks buckets that another thread is flushing by now.
    PutBackClearsMark,
    /// The filter of a run does not know its last key.
    FilterForgetsKey,
    /// Checksums of pages are not compared.
    SkipChecksum,
    /// Pages are decoded whichever run they belong to.
    SkipPageIdentity,
    /// Replay passes over the first record asked for.
    ReplaySkipsFirst,
    /// Replay applies the parts of a bulk commit that was never completed.
    HalfABulkCommit,
    /// Threads that wait for the sync of another are not woken.
    LostWakeUp,
    /// A snapshot is registered one commit too high.
    SnapshotOffByOne,
    /// The number of a dropped tree is given again.
    TreeNumberReused,
    /// A range delete removes the key at its excluded end, too.
    RangeDeleteTakesEnd,
    /// A split does not say that the parts share their deltas.
    SharingForgotten,
    /// The memory of a flushed buffer is given back in part.
    CounterDrift,
    /// The log is released up to the last commit, whatever is in memory only.
    LogReleasedEarly,
    /// After a failed write or sync the log continues.
    PoisonForgotten,
    /// A flushed run is taken for the oldest of its bucket.
    DeltaAtTheEnd,
    /// Readers see a commit before it is in the buffers.
    VisibleBeforeApplied,
    /// A commit goes where it was planned to, though buckets were replaced meanwhile.
    StalePlan,
    /// What is freed while an image is captured is freed by the image, which names it.
    EpochAfterCapture,
    /// Records whose durability nothing proves are not written again when they were replayed.
    ReplayNotCopied,
    /// A scan passes over the first key of a bucket that it enters.
    ScanSkipsFirst,
    /// The extents of a replaced image are freed twice.
    FreeTwice,
    /// An empty bucket is absorbed by a neighbour whose shared runs hold old versions of its keys.
    AbsorbIgnoresSharedRuns,
    /// Close neither waits for those who write the data file nor refuses those who come later.
    CloseForgetsWriters,
    /// A commit does not merge buckets that have no room for it.
    CommitsPassCrowds,
    /// What bases hold for snapshots that are gone is never merged.
    LeftoversStay,
}

/// Whether `plant` is switched on.
#[cfg(not(feature = "plants"))]
#[inline(always)]
pub(crate) fn planted(_plant: Plant) -> bool {
    false
}

#[cfg(feature = "plants")]
pub(crate) use switch::planted;
#[cfg(feature = "plants")]
pub use switch::{Planted, names};

#[cfg(feature = "plants")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Plant;

    /// The name of a plant, as `BETREE_PLANT` takes it.
    pub type Planted = &'static str;

    const ALL: [(Plant, Planted); 36] = [
        (Plant::SkipDirectorySync, "skip-directory-sync"),
        (Plant::AcknowledgeBeforeSync, "acknowledge-before-sync"),
        (Plant::SuperblockAtOnce, "superblock-at-once"),
        (Plant::ImageBeforeDataSync, "image-before-data-sync"),
        (Plant::SplitLosesBuffer, "split-loses-buffer"),
        (Plant::PivotOffByOne, "pivot-off-by-one"),
        (Plant::ScanForgetsTombstone, "scan-forgets-tombstone"),
        (Plant::ReuseBeforePublish, "reuse-before-publish"),
        (Plant::RetrySync, "retry-sync"),
        (Plant::SkipConflictCheck, "skip-conflict-check"),
        (Plant::DropTombstoneEarly, "drop-tombstone-early"),
        (Plant::PutBackClearsMark, "put-back-clears-mark"),
        (Plant::FilterForgetsKey, "filter-forgets-key"),
        (Plant::SkipChecksum, "skip-checksum"),
        (Plant::SkipPageIdentity, "skip-page-identity"),
        (Plant::ReplaySkipsFirst, "replay-skips-first"),
        (Plant::HalfABulkCommit, "half-a-bulk-commit"),
        (Plant::LostWakeUp, "lost-wake-up"),
        (Plant::SnapshotOffByOne, "snapshot-off-by-one"),
        (Plant::TreeNumberReused, "tree-number-reused"),
        (Plant::RangeDeleteTakesEnd, "range-delete-takes-end"),
        (Plant::SharingForgotten, "sharing-forgotten"),
        (Plant::CounterDrift, "counter-drift"),
        (Plant::LogReleasedEarly, "log-released-early"),
        (Plant::PoisonForgotten, "poison-forgotten"),
        (Plant::DeltaAtTheEnd, "delta-at-the-end"),
        (Plant::VisibleBeforeApplied, "visible-before-applied"),
        (Plant::StalePlan, "stale-plan"),
        (Plant::EpochAfterCapture, "epoch-after-capture"),
        (Plant::ReplayNotCopied, "replay-not-copied"),
        (Plant::ScanSkipsFirst, "scan-skips-first"),
        (Plant::FreeTwice, "free-twice"),
        (Plant::AbsorbIgnoresSharedRuns, "absorb-ignores-shared-runs"),
        (Plant::CloseForgetsWriters, "close-forgets-writers"),
        (Plant::CommitsPassCrowds, "commits-pass-crowds"),
        (Plant::LeftoversStay, "leftovers-stay"),
    ];

    /// The names of all plants.
    #[must_use]
    pub fn names() -> Vec<Planted> {
        ALL.iter().map(|(_, name)| *name).collect()
    }

    const UNKNOWN: u8 = u8::MAX;
    const NONE: u8 = u8::MAX - 1;

    /// The plant that is switched on. Read from the environment at the first question: it does
    /// not change afterwards.
    static ACTIVE: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Whether `plant` is switched on.
    pub(crate) fn planted(plant: Plant) -> bool {
        let mut active = ACTIVE.load(Ordering::Relaxed);
        if active == UNKNOWN {
            active = from_environment();
            ACTIVE.store(active, Ordering::Relaxed);
        }
        active == plant as u8
    }

    fn from_environment() -> u8 {
        let Ok(wanted) = std::env::var("BETREE_PLANT") else {
            return NONE;
        };
        let found = ALL.iter().find(|(_, name)| *name == wanted);
        let (plant, _) = found.unwrap_or_else(|| panic!("BETREE_PLANT={wanted}: no such plant"));
        *plant as u8
    }
}

//! Bugs planted on purpose, to prove that the tests find them.
//!
//! With the feature `plants`, which is for `cargo test` and nothing else, the variable
//! `BETREE_PLANT` of the environment switches one of them on for the whole process: one build holds
//! all of them. Without the feature [`planted`] is the constant `false`, and the compiler leaves
//! nothing of a plant behind.
//!
//! - I1. Every plant is in the table of `tests/plants`, which names the lane that finds it.

/// A bug that can be planted, described by the engine's wrong behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Plant {
    /// Names of log segments are not made durable.
    SkipDirectorySync,
    /// Commits at `group` and `sync` return before the log is synced.
    AcknowledgeBeforeSync,
    /// The two halves of the superblock are written without a sync between them.
    SuperblockAtOnce,
    /// The superblock refers to the image before the data file is synced.
    ImageBeforeDataSync,
    /// A split leaves the newest frozen buffer out of the last part.
    SplitLosesBuffer,
    /// Bucket bounds chosen by a merge are one key too high.
    PivotOffByOne,
    /// A scan returns the value below a tombstone.
    ScanForgetsTombstone,
    /// Space that a merge freed is reused before the next image is durable.
    ReuseBeforePublish,
    /// A failed sync of the log is retried.
    RetrySync,
    /// A transaction does not check for conflicts on the keys that it wrote.
    SkipConflictCheck,
    /// A merge drops tombstones that open snapshots still need.
    DropTombstoneEarly,
    /// A failed flush clears the mark of buckets that another thread is already flushing.
    PutBackClearsMark,
    /// The filter of a run lacks the run's last key.
    FilterForgetsKey,
    /// Checksums of pages are not compared.
    SkipChecksum,
    /// Pages are decoded without checking which run they belong to.
    SkipPageIdentity,
    /// Replay skips the first requested record.
    ReplaySkipsFirst,
    /// Replay applies the chunks of a bulk commit that was never completed.
    HalfABulkCommit,
    /// Threads that wait for another thread's sync are not woken.
    LostWakeUp,
    /// A snapshot is registered with a sequence number that is one too high.
    SnapshotOffByOne,
    /// The number of a dropped tree is reused.
    TreeNumberReused,
    /// A range delete also removes the key at its excluded end.
    RangeDeleteTakesEnd,
    /// A split does not record that the parts share their deltas.
    SharingForgotten,
    /// Only a part of a flushed buffer's memory is subtracted from the counter.
    CounterDrift,
    /// The log is released up to the last commit, although some commits are only in memory.
    LogReleasedEarly,
    /// The log continues after a failed write or sync.
    PoisonForgotten,
    /// A flushed run is inserted as the oldest of its bucket.
    DeltaAtTheEnd,
    /// Readers see a commit before it is in the buffers.
    VisibleBeforeApplied,
    /// A commit writes to the planned buckets although they were replaced in the meantime.
    StalePlan,
    /// Space freed while an image is captured is released by that image, which still refers to it.
    EpochAfterCapture,
    /// Replayed records without proof of durability are not written again.
    ReplayNotCopied,
    /// Records are taken for durable because the page cache has them.
    ProofReadsCache,
    /// A scan skips the first key of each bucket that it enters.
    ScanSkipsFirst,
    /// The extents of a replaced image are freed twice.
    FreeTwice,
    /// An empty bucket is absorbed by a neighbour whose shared runs hold old versions of its keys.
    AbsorbIgnoresSharedRuns,
    /// Close neither waits for threads that write the data file nor refuses later ones.
    CloseForgetsWriters,
    /// A commit does not merge buckets that are at the limit of runs.
    CommitsPassCrowds,
    /// Versions that bases kept for closed snapshots are never merged away.
    LeftoversStay,
    /// On a full disk no checkpoint is made before a lack of space is reported.
    FullFreesNothing,
    /// Commits are accepted although there is no room to flush them.
    CommitsNeedNoRoom,
    /// A merge may take the room that is kept for flushes.
    MergesTakeKeptRoom,
    /// A transaction that spills may take the room that is kept for flushes.
    SpillsTakeKeptRoom,
    /// A merge does not ask for room before it writes.
    MergesClaimNothing,
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

    /// The name of a plant, as in `BETREE_PLANT`.
    pub type Planted = &'static str;

    const ALL: [(Plant, Planted); 42] = [
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
        (Plant::ProofReadsCache, "proof-reads-cache"),
        (Plant::ScanSkipsFirst, "scan-skips-first"),
        (Plant::FreeTwice, "free-twice"),
        (Plant::AbsorbIgnoresSharedRuns, "absorb-ignores-shared-runs"),
        (Plant::CloseForgetsWriters, "close-forgets-writers"),
        (Plant::CommitsPassCrowds, "commits-pass-crowds"),
        (Plant::LeftoversStay, "leftovers-stay"),
        (Plant::FullFreesNothing, "full-frees-nothing"),
        (Plant::CommitsNeedNoRoom, "commits-need-no-room"),
        (Plant::MergesTakeKeptRoom, "merges-take-kept-room"),
        (Plant::SpillsTakeKeptRoom, "spills-take-kept-room"),
        (Plant::MergesClaimNothing, "merges-claim-nothing"),
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

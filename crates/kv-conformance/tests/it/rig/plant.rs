//! The bugs that can be planted.

/// A bug, planted in an otherwise correct engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// `delete` has no effect.
    DeleteLost,
    /// `delete` always returns that the key existed.
    DeleteAlwaysTrue,
    /// `insert` replaces an existing value.
    InsertOverwrites,
    /// A refused insert makes the transaction fail.
    ExistsSpoilsTransaction,
    /// An empty value reads as absent.
    EmptyValueAbsent,
    /// `get_into` keeps the old content of the buffer.
    BufferNotCleared,
    /// Values beyond 60 KB are cut.
    LongValueCut,
    /// `get_many` returns values in the wrong order.
    ManyReversed,
    /// A backward cursor skips its first entry.
    BackwardSkipsFirst,
    /// An excluded start is included.
    ExcludedStartIncluded,
    /// An included end is excluded.
    IncludedEndExcluded,
    /// `seek` goes beyond the key it finds.
    SeekPassesEqual,
    /// `seek` never goes back.
    SeekNeverBack,
    /// A cursor that has ended restarts.
    EndWraps,
    /// A cursor keeps its last key after its end.
    KeyAfterEnd,
    /// Point reads of a snapshot see later commits.
    SnapshotSeesLater,
    /// Cursors of a snapshot see later commits.
    CursorSeesLater,
    /// Cursors of a transaction do not see its writes.
    OwnWritesHidden,
    /// A transaction does not see its deletes by point reads.
    OwnDeletesHidden,
    /// A transaction with a conflict is committed.
    ConflictMissed,
    /// Any commit meanwhile is a conflict.
    ConflictInvented,
    /// Blind writes conflict.
    BlindConflicts,
    /// Rolling back a transaction commits it.
    RollbackLeaks,
    /// The changes of a batch are applied one by one.
    BatchTorn,
    /// A batch applies its deletes after its puts.
    BatchReordered,
    /// A range delete removes its excluded end.
    RangeDeleteTakesEnd,
    /// A range delete of a batch leaves one key.
    RangeDeleteLeavesOne,
    /// A commit at `sync` is refused.
    SyncRefused,
    /// The last key written is not stored at the close.
    LastWriteLost,
    /// Dropping the engine without closing it stores nothing.
    DropStoresNothing,
    /// A dropped tree exists again after reopening.
    DroppedTreeReturns,
    /// A stale handle reads as an empty tree.
    StaleHandleRead,
    /// The limits of keys and values are not enforced.
    LimitsIgnored,
    /// The names of trees are listed in the wrong order.
    ListingUnsorted,
    /// Creating a tree that exists opens it.
    CreateOpens,
    /// An exact count is off by one.
    CountOff,
    /// A counter falls.
    CounterFalls,
    /// The storage map shows more used than allocated bytes.
    MapOverfull,
    /// A backup omits the last tree.
    BackupIncomplete,
    /// A backup writes into a directory that is not empty.
    BackupIntrudes,
    /// A compaction loses a key.
    CompactionLosesKey,
    /// A compaction cannot be cancelled.
    CancelIgnored,
    /// Unknown options are ignored.
    OptionIgnored,
    /// The store of another engine is taken over.
    ForeignTaken,
}

impl Plant {
    /// Every bug.
    pub(crate) const ALL: [Plant; 44] = [
        Plant::DeleteLost,
        Plant::DeleteAlwaysTrue,
        Plant::InsertOverwrites,
        Plant::ExistsSpoilsTransaction,
        Plant::EmptyValueAbsent,
        Plant::BufferNotCleared,
        Plant::LongValueCut,
        Plant::ManyReversed,
        Plant::BackwardSkipsFirst,
        Plant::ExcludedStartIncluded,
        Plant::IncludedEndExcluded,
        Plant::SeekPassesEqual,
        Plant::SeekNeverBack,
        Plant::EndWraps,
        Plant::KeyAfterEnd,
        Plant::SnapshotSeesLater,
        Plant::CursorSeesLater,
        Plant::OwnWritesHidden,
        Plant::OwnDeletesHidden,
        Plant::ConflictMissed,
        Plant::ConflictInvented,
        Plant::BlindConflicts,
        Plant::RollbackLeaks,
        Plant::BatchTorn,
        Plant::BatchReordered,
        Plant::RangeDeleteTakesEnd,
        Plant::RangeDeleteLeavesOne,
        Plant::SyncRefused,
        Plant::LastWriteLost,
        Plant::DropStoresNothing,
        Plant::DroppedTreeReturns,
        Plant::StaleHandleRead,
        Plant::LimitsIgnored,
        Plant::ListingUnsorted,
        Plant::CreateOpens,
        Plant::CountOff,
        Plant::CounterFalls,
        Plant::MapOverfull,
        Plant::BackupIncomplete,
        Plant::BackupIntrudes,
        Plant::CompactionLosesKey,
        Plant::CancelIgnored,
        Plant::OptionIgnored,
        Plant::ForeignTaken,
    ];
}

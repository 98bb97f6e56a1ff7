//! The bugs that a rig can have.

/// A bug, planted in an otherwise correct engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// `delete` has no effect.
    DeleteLost,
    /// `delete` always returns that the key existed.
    DeleteAlwaysTrue,
    /// `insert` replaces an existing value.
    InsertOverwrites,
    /// After a refused insert, the transaction fails.
    ExistsSpoilsTransaction,
    /// An empty value is read as an absent key.
    EmptyValueAbsent,
    /// `get_into` keeps the old content of the buffer.
    BufferNotCleared,
    /// Values longer than 60 KB are truncated.
    LongValueCut,
    /// `get_many` returns values in the wrong order.
    ManyReversed,
    /// A backward cursor skips its first entry.
    BackwardSkipsFirst,
    /// An excluded start is included.
    ExcludedStartIncluded,
    /// An included end is excluded.
    IncludedEndExcluded,
    /// `seek` skips a key that is equal to the sought one.
    SeekPassesEqual,
    /// `seek` does not move backwards.
    SeekNeverBack,
    /// A cursor that has ended starts from the first entry again.
    EndWraps,
    /// A cursor that has ended still returns its last key.
    KeyAfterEnd,
    /// Point reads of a snapshot see later commits.
    SnapshotSeesLater,
    /// Cursors of a snapshot see later commits.
    CursorSeesLater,
    /// Cursors of a transaction do not see its own writes.
    OwnWritesHidden,
    /// Point reads of a transaction do not see its own deletes.
    OwnDeletesHidden,
    /// A transaction with a conflict is committed.
    ConflictMissed,
    /// Every commit of another transaction counts as a conflict.
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
    /// A range delete in a batch leaves one key of the range.
    RangeDeleteLeavesOne,
    /// A commit at `sync` is refused.
    SyncRefused,
    /// Closing does not store the last written key.
    LastWriteLost,
    /// Dropping the engine without closing it stores nothing.
    DropStoresNothing,
    /// A dropped tree exists again after reopening.
    DroppedTreeReturns,
    /// A handle of a dropped tree reads as an empty tree.
    StaleHandleRead,
    /// The maximum sizes of keys and values are not enforced.
    LimitsIgnored,
    /// The names of trees are listed in the wrong order.
    ListingUnsorted,
    /// Creating a tree that exists opens it.
    CreateOpens,
    /// An exact count of entries is off by one.
    CountOff,
    /// A counter decreases.
    CounterFalls,
    /// The storage map shows more used bytes than allocated bytes.
    MapOverfull,
    /// A backup omits the last tree.
    BackupIncomplete,
    /// A backup writes into a directory that is not empty.
    BackupIntrudes,
    /// A piece of a backup is identified by its length alone.
    PieceByLength,
    /// A piece that the sink has ends the file.
    PieceEndsFile,
    /// All stores have one lineage.
    LineageShared,
    /// No piece is ever known.
    PieceAlwaysNew,
    /// A compaction loses a key.
    CompactionLosesKey,
    /// A compaction cannot be cancelled.
    CancelIgnored,
    /// Unknown options are ignored.
    OptionIgnored,
    /// The store of another engine is opened.
    ForeignTaken,
}

impl Plant {
    /// All bugs.
    pub(crate) const ALL: [Plant; 48] = [
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
        Plant::PieceByLength,
        Plant::PieceEndsFile,
        Plant::LineageShared,
        Plant::PieceAlwaysNew,
        Plant::CompactionLosesKey,
        Plant::CancelIgnored,
        Plant::OptionIgnored,
        Plant::ForeignTaken,
    ];
}

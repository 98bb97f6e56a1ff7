//! Bugs planted on purpose, to prove that the exploration finds them. They exist in unit tests
//! only; elsewhere `Node::planted` is the constant `false`.
//!
//! - B1. The exploration finds every plant.

/// A bug that can be planted, described by the wrong behavior.
#[cfg_attr(not(test), expect(dead_code, reason = "only unit tests plant bugs"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Plant {
    /// A member votes for a second candidate of a term.
    VoteTwice,
    /// A vote is cast before it is durable.
    VoteBeforeDurable,
    /// A member votes for a candidate whose log is older than its own.
    VoteForOlderLog,
    /// A member votes for a candidate whose configuration is older than its own.
    VoteForOlderConfig,
    /// A dry run raises the term of the voter.
    DryRunRaisesTerm,
    /// A primary that learns of a newer term stays primary.
    PrimaryOutlivesTerm,
    /// A restarted primary resumes its term.
    ResumeTermAfterRestart,
    /// Entries of older terms are committed by counting.
    CommitOlderTerm,
    /// A member reports entries as durable that it has only written.
    ReportUnsynced,
    /// The primary counts its own entries before they are durable.
    CountOwnUnsynced,
    /// An arbiter counts as having every entry.
    CountArbiter,
    /// A member without persistence counts.
    CountVolatile,
    /// The primary counts a position that a member reported in another term.
    CountOtherTerm,
    /// Entries are appended though they do not follow the last one.
    AppendUnmatched,
    /// A member rolls back to follow a source whose log is older.
    RollBackToOlderLog,
    /// A member believes the commit point of a sync source whose log diverged.
    LearnFromDivergedSource,
    /// A member believes the commit point of a heartbeat though its own log diverged.
    LearnFromHeartbeat,
    /// A configuration is replaced before a majority has it.
    ReconfigBeforeMajority,
    /// A configuration is replaced before an entry of the term is committed in it.
    ReconfigBeforeCommit,
    /// Two voters change at once.
    ChangeTwoVoters,
}

#[cfg(test)]
impl Plant {
    /// All of them.
    pub(crate) const ALL: [Self; 20] = [
        Self::VoteTwice,
        Self::VoteBeforeDurable,
        Self::VoteForOlderLog,
        Self::VoteForOlderConfig,
        Self::DryRunRaisesTerm,
        Self::PrimaryOutlivesTerm,
        Self::ResumeTermAfterRestart,
        Self::CommitOlderTerm,
        Self::ReportUnsynced,
        Self::CountOwnUnsynced,
        Self::CountArbiter,
        Self::CountVolatile,
        Self::CountOtherTerm,
        Self::AppendUnmatched,
        Self::RollBackToOlderLog,
        Self::LearnFromDivergedSource,
        Self::LearnFromHeartbeat,
        Self::ReconfigBeforeMajority,
        Self::ReconfigBeforeCommit,
        Self::ChangeTwoVoters,
    ];
}

//! Bugs of replication planted on purpose, to prove that torture of a replica set finds them.
//!
//! With the feature `plants`, which is for `cargo test` and nothing else, the variable
//! `ROMANESCO_PLANT` of the environment switches one of them on for the whole process. Without the
//! feature [`planted`] is the constant `false`, and the compiler leaves nothing of a plant behind.

/// A bug that can be planted, described by the wrong behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A write with `majority` is acknowledged before a majority has it.
    AcknowledgeUncommitted,
    /// A read with `majority` does not wait for the commit point.
    ReadUncommitted,
    /// A linearizable read commits no entry behind it.
    ReadWithoutEntry,
    /// The commit point is that of the last entry.
    CommitFromTheFuture,
    /// A change stream shows what may be taken back.
    StreamUncommitted,
    /// A commit that a secondary refuses counts as rolled back.
    RefusedCommitRolledBack,
    /// A rollback leaves the documents as they are.
    RollbackForgetsUndo,
    /// A rollback leaves the records of retryable writes as they are.
    RollbackForgetsSessions,
    /// A secondary does not store the records of retryable writes.
    ApplyForgetsSessions,
    /// An initial sync ignores what is written while it copies.
    CopyForgetsEntries,
}

impl Plant {
    /// All of them, with their names in `ROMANESCO_PLANT`.
    pub const ALL: [(Plant, &'static str); 10] = [
        (Plant::AcknowledgeUncommitted, "acknowledge-uncommitted"),
        (Plant::ReadUncommitted, "read-uncommitted"),
        (Plant::ReadWithoutEntry, "read-without-entry"),
        (Plant::CommitFromTheFuture, "commit-from-the-future"),
        (Plant::StreamUncommitted, "stream-uncommitted"),
        (Plant::RefusedCommitRolledBack, "refused-commit-rolled-back"),
        (Plant::RollbackForgetsUndo, "rollback-forgets-undo"),
        (Plant::RollbackForgetsSessions, "rollback-forgets-sessions"),
        (Plant::ApplyForgetsSessions, "apply-forgets-sessions"),
        (Plant::CopyForgetsEntries, "copy-forgets-entries"),
    ];
}

/// Whether `plant` is switched on.
#[cfg(not(feature = "plants"))]
#[inline(always)]
#[must_use]
pub fn planted(_plant: Plant) -> bool {
    false
}

/// Whether `plant` is switched on.
///
/// # Panics
/// When `ROMANESCO_PLANT` names no plant.
#[cfg(feature = "plants")]
#[must_use]
pub fn planted(plant: Plant) -> bool {
    static ACTIVE: stdx::sync::OnceLock<Option<Plant>> = stdx::sync::OnceLock::new();
    let active = ACTIVE.get_or_init(|| {
        let wanted = std::env::var("ROMANESCO_PLANT").ok()?;
        let found = Plant::ALL.iter().find(|(_, name)| *name == wanted);
        let (plant, _) = found.expect("ROMANESCO_PLANT is the name of a plant");
        Some(*plant)
    });
    *active == Some(plant)
}

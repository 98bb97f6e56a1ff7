//! What a member of a replica set needs of its store.

use bson::{RawDocument, RawDocumentBuf};
use docdb::oplog::entry::OpTime;
use docdb::replica::copy::{Left, Origin, Portion};
use query::{Code, Error, Result};
use repl::log::Log;
use repl::position::{Position, Term};

use super::letter::EngineNote;

/// The store of a member.
///
/// Calls block. `append`, `sync`, `roll_back`, `lead` and `follow` come from one thread, `apply`
/// from another, and not during `roll_back`; `read` comes from any. A copy is made while the log is
/// empty, by calls of which one comes after another.
pub(crate) trait Storage: Send + Sync {
    /// Which entries the log has, and up to where they are committed, at the start.
    ///
    /// # Errors
    /// Those of the store.
    fn start(&self) -> Result<Started>;

    /// The last entry.
    fn last(&self) -> Position;

    /// The last entry that is applied; the last of all on a primary.
    fn applied(&self) -> Position;

    /// The engine and its limits.
    fn engine(&self) -> EngineNote;

    /// The bytes of all entries that the log has now.
    fn bytes(&self) -> u64;

    /// Entries after `after` up to `through`, which the log contains: at least one if there is one,
    /// then as many as fit into `bytes`.
    ///
    /// # Errors
    /// Those of the store.
    fn read(&self, after: Position, through: Position, bytes: usize) -> Result<Read>;

    /// Append entries that follow the last one.
    ///
    /// # Errors
    /// Those of the store.
    fn append(&self, entries: &[StoredEntry]) -> Result<()>;

    /// Make all entries durable.
    ///
    /// # Errors
    /// Those of the store.
    fn sync(&self) -> Result<()>;

    /// Apply the entries up to this one. `committed` says whether they are committed; otherwise it
    /// must be possible to undo them.
    ///
    /// # Errors
    /// Those of the store; an entry that cannot be applied.
    fn apply(&self, to: Position, committed: bool) -> Result<()>;

    /// All entries up to this one are committed: nothing needs to undo them any more.
    fn committed(&self, at: Position);

    /// Undo and remove the entries after this one.
    ///
    /// # Errors
    /// Those of the store.
    fn roll_back(&self, to: Position) -> Result<()>;

    /// Put an entry that begins a term, and let clients write entries of it. All entries are
    /// applied before.
    ///
    /// # Errors
    /// Those of the store.
    fn lead(&self, term: Term) -> Result<Position>;

    /// Let clients write no more; writes under way have ended when it returns. Returns the last
    /// entry.
    ///
    /// # Errors
    /// Those of the store.
    fn follow(&self) -> Result<Position>;

    /// The label of a copy of another member that is not complete: the store shows no entries.
    fn copying(&self) -> Option<RawDocumentBuf> {
        None
    }

    /// The position up to which such a copy is made, if it can be continued.
    fn copied(&self) -> Option<Position> {
        None
    }

    /// The position that must be committed before the data of a complete copy are shown.
    fn floor(&self) -> Position {
        Position::ZERO
    }

    /// Begin a copy. All data are removed.
    ///
    /// # Errors
    /// Those of the store; a malformed origin.
    fn begin_copy(&self, _label: &RawDocument, _origin: &Origin) -> Result<()> {
        Err(no_copy())
    }

    /// The position of the beginning of a copy, and what it lacks.
    fn copy_next(&self) -> Option<(OpTime, Option<Left>)> {
        None
    }

    /// Take a portion into a copy; returns its position.
    ///
    /// # Errors
    /// Those of the store; a malformed portion.
    fn take_portion(&self, _portion: &Portion) -> Result<Position> {
        Err(no_copy())
    }

    /// A copy lacks nothing any more. Returns its floor.
    ///
    /// # Errors
    /// Those of the store.
    fn complete_copy(&self) -> Result<Position> {
        Err(no_copy())
    }

    /// What is to be done from time to time.
    fn tend(&self) {}
}

fn no_copy() -> Error {
    Error::new(Code::COMMAND_NOT_SUPPORTED, "this store copies no other")
}

/// An entry as members store and send it: a BSON document, and what clients are not shown.
pub(crate) type StoredEntry = Vec<u8>;

/// The log of a store that was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Started {
    pub(crate) log: Log,
    /// The last entry that is known to be committed.
    pub(crate) commit: Position,
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Read {
    Entries(Vec<StoredEntry>),
    /// Some of the entries were removed.
    TooOld,
}

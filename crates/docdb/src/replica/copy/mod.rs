//! Initial sync: a member without data copies another one, its *source*, whatever the engines.
//!
//! ```text
//! source: a moment T --> entries after P up to T, and the next records as they are at T
//!                                   |                         |
//! copy:                  append and apply: it is at T --> put the records it lacks
//! ```
//!
//! The copy begins with the catalog of a moment (`Replica::origin`, `Replica::begin_copy`):
//! all collections and indexes, without documents. Then it asks for *portions*. The source reads
//! each one in a new snapshot, which has exactly the changes of the entries up to its time, and
//! holds nothing between two portions. A portion has all entries since the one before and the
//! next records of a collection, in the order of the records. The copy applies the entries first,
//! so that it is at the same time as the records, and puts the records in a transaction with the
//! position behind them. Entries change the catalog of the copy as that of any follower.
//!
//! - Y1. Every document of the copy is as the source had it at the applied position. The copy has
//!   all documents that the source had there, but for those of a collection that is not finished
//!   whose records are behind its position.
//! - Y2. So entries are applied exactly. An inserted document is put, wherever its record is at
//!   the source. A change of a document that is missing, in a collection that is not finished, is
//!   one of a document behind the position, and is skipped. Unique indexes hold at every moment,
//!   because the copy has a part of what the source had.
//! - Y3. A record that is read and whose document the copy has was inserted since the copy began,
//!   or read before: both must be equal, byte by byte. All others were there when the copy began,
//!   so their numbers are at most the last one of that moment, and the reading ends there. The
//!   copy keeps these numbers and gives higher ones to what is inserted, so a capped collection
//!   keeps its order.
//! - Y4. A store in which a copy is not finished says so in its catalog (`state`), from before
//!   the first change until after the last one. It has no undo records from before its end, so it
//!   cannot take back what is at or before its *floor*, the position of its end.
//!
//! Record numbers mean something at one source only, so a copy continues with the same source, or
//! restarts.

mod begin;
mod reset;
mod source;
mod state;
mod take;

use bson::Uuid;

use crate::oplog::entry::OpTime;
pub use source::Wanted;
pub(crate) use state::Copies;
pub use state::{Copying, Left, Phase};

/// What a copy begins with: the catalog of a source at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The last entry at that moment, as stored.
    pub entry: Vec<u8>,
    /// The replicated collections and views.
    pub catalog: Vec<Listed>,
}

/// A collection or a view of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The catalog's document.
    pub stored: Vec<u8>,
    /// The last record number; 0 for an empty or a clustered collection.
    pub last: i64,
    /// Documents and their bytes, approximately.
    pub documents: i64,
    /// See `documents`.
    pub bytes: i64,
}

/// What records belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A collection.
    Collection(Uuid),
    /// The records of sessions.
    Sessions,
    /// The pre-images of entries since the copy began.
    Images,
}

/// The entries after a position, and records at the last one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Portion {
    /// The entries, as stored.
    pub entries: Vec<Vec<u8>>,
    /// The position of the last of them; without any that after which was asked.
    pub at: OpTime,
    /// Whether these are all entries up to the moment; otherwise records come with a later portion.
    pub whole: bool,
    /// The records.
    pub records: Option<Records>,
}

/// Records of a part, in the order of their keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// What they belong to.
    pub part: Part,
    /// Keys and values.
    pub pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The key after which the next ones are.
    pub next: Vec<u8>,
    /// Whether these are the last.
    pub end: bool,
}

//! Collections of documents over the persistence API.
//!
//! Storage is accessed only through `kv`. All calls are synchronous.

mod aggregate;
mod catalog;
pub mod change;
mod check;
mod collate;
mod collection;
mod cursor;
mod ddl;
mod definition;
mod document;
mod entries;
mod error;
mod examined;
mod exec;
mod explain;
mod find;
mod follow;
pub mod index;
mod intent;
pub mod key;
pub mod limits;
#[cfg(test)]
mod looks;
mod map;
mod open;
pub mod oplog;
mod patience;
mod pause;
mod plan;
pub mod plant;
mod progress;
mod record;
pub mod replica;
mod session;
mod stats;
mod stop;
mod store;
mod ttl;
mod turn;
mod txn;
mod variables;
mod write;
mod writes;

pub use aggregate::{AggregateRequest, Parsed, Report};
pub use catalog::{Catalog, Named};
pub use collection::{Action, Capped, Collection, CollectionOptions, Level, View};
pub use cursor::{
    BATCH_BYTES, Batch, FIRST_BATCH, Figures, GetMore, IdleCursor, Killed, Origin, Owner,
};
pub use ddl::{CreateIndexesReply, IndexNames, check_user_write};
pub use document::check_document;
pub use examined::Examined;
pub use explain::Verbosity;
pub use find::{CountRequest, DistinctRequest, FindRequest, Matched, Matching};
pub use follow::{OplogPin, OplogReader};
pub use index::{Entry, Index, IndexSpec};
pub use progress::Stage;
pub use query::Namespace;
pub use record::RecordId;
pub use stats::{missing_coll_stats, scale_sizes};
pub use store::{ContentVersion, IDLE_LIMIT, Options, Store, Tuning, WorkFigures};
pub use ttl::{ExpiryFailure, OnExpiryFailure};
pub use txn::{Held, InTransaction, Op, SeenCatalog, SessionId, SessionRef, Work};
pub use variables::Let;
pub use write::{
    Applied, AppliedEntry, AppliedUpdate, DeleteReply, DeleteStatement, FindAndModify,
    FindAndModifyReply, InsertOptions, InsertReply, UpdateReply, UpdateStatement, WriteError,
};
pub use writes::Awaiting;

//! Collections of documents over the persistence API.
//!
//! Storage is seen only through `kv`; what is synchronous stays so.

mod catalog;
mod collate;
mod collection;
mod ddl;
mod document;
mod error;
pub mod index;
pub mod key;
pub mod limits;
mod op;
mod record;
mod store;
mod work;
mod write;

pub use catalog::{Catalog, Named};
pub use collection::{Action, Capped, Collection, CollectionOptions, Level, View};
pub use index::{Entry, Index, IndexSpec};
pub use op::{InTransaction, Op, SessionId, SessionRef};
pub use query::Namespace;
pub use record::RecordId;
pub use store::{Options, Store};
pub use work::Work;
pub use write::{InsertOptions, InsertReply, WriteError};

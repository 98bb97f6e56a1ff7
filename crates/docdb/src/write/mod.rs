//! Writes of documents.

mod apply;
mod delete;
mod find_and_modify;
mod insert;
mod merge;
mod portions;
mod seek;
mod statements;
mod update;
mod validate;

pub use apply::{Applied, AppliedEntry, AppliedUpdate};
pub use delete::{DeleteReply, DeleteStatement};
pub use find_and_modify::{FindAndModify, FindAndModifyReply};
pub use insert::{InsertOptions, InsertReply, WriteError};
pub(crate) use seek::{Seek, Selection};
pub(crate) use update::would_change;
pub use update::{UpdateReply, UpdateStatement};

//! The oplog: entries in MongoDB's shape, the order in which they become visible, and the segments
//! that store them.

mod applied;
mod collection;
pub mod entry;
mod former;
pub(crate) mod image;
mod log;
pub(crate) mod mark;
mod noted;
mod pending;
mod replayed;
pub(crate) mod segment;
pub(crate) mod segments;
pub mod slots;
mod stored;
mod synced;
pub(crate) mod undo;
mod written;

use query::Namespace;

pub(crate) use applied::Advance;
pub(crate) use collection::{fixed, namespace};
pub(crate) use former::{Formers, Kept, before_created, before_each};
pub(crate) use log::{Advanced, Log};
pub(crate) use noted::{Build as NotedBuild, Noted, in_full as spec_in_full};
pub(crate) use pending::{Pending, touch};
pub(crate) use replayed::{Replayed, replayed};
pub use segments::Limits;
pub(crate) use stored::{Retry, Stored, shown};
pub(crate) use undo::{Former, Undo, What};
pub(crate) use written::{note_read, note_written};
pub use written::{take_read, take_written};

/// Whether changes of a collection have entries: what belongs to one member, or is made from the
/// entries of others, has none.
pub(crate) fn is_replicated(ns: &Namespace) -> bool {
    ns.db != "local" && ns.coll != "system.profile" && !image::is_namespace(ns)
}

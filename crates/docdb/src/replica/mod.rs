//! The store as a member of a replica set: it appends the entries of another member to its oplog,
//! applies them, and takes back what a later primary has overruled.
//!
//! ```text
//! the source's oplog --> append --> written --> apply_to --> applied
//!                        (synced by the caller)  (committed entries only)
//! ```
//!
//! A member is *primary* or *follower*. A primary puts each entry with its change, so it has
//! applied all that is written. A follower appends first and applies what a majority has: of its
//! own it changes nothing that has entries. The protocol, which decides all of this, is `repl`; the
//! server does what it asks for through [`Replica`]:
//!
//! | effect of `repl` | call |
//! |---|---|
//! | `Write {after, ..}` | [`Replica::append`], then [`Replica::sync`] |
//! | `WriteNoop(position)` | [`Replica::lead`], then [`Replica::begin_term`] |
//! | the first own entry is committed | [`Replica::drop_temporary`] |
//! | `Committed(position)` | [`Replica::set_committed`], [`Replica::apply_to`] |
//! | `Role(..)` | [`Replica::follow`] when it is no primary any more |
//! | `Rollback(position)` | [`Replica::follow`], [`Replica::roll_back_to`] |
//!
//! A store takes back changes of its own only if it has kept undo records since before them
//! ([`Replica::keep_undo`]): while the set has more than one member that holds data.
//!
//! A copy of a store is brought to a later time by the entries of an archive ([`Replica::replay`]).
//!
//! Entries travel as they are stored ([`Replica::stored_after`]): the entry, and behind it the part
//! that clients are not shown (`oplog::stored`).
//!
//! A member without data copies another one first ([`copy`]).
//!
//! - Q1. Written entries have increasing times and terms that do not decrease; a batch that
//!   [`Replica::append`] refuses leaves nothing.
//! - Q2. What is applied and the mark of it change in one engine transaction. After a crash the
//!   store continues behind the mark: no entry is applied twice, and none is left out.
//! - Q3. A follower puts no entries of its own and changes no replicated collection but by entries.

mod append;
mod apply;
pub mod copy;
mod removed;
mod replay;
mod role;
mod rollback;
mod take_back;
mod undo;

use crate::oplog::slots::before;
pub use append::{APPEND_MAX, StoredEntry};
pub(crate) use copy::Copies;
pub use removed::Removed;
pub use replay::Replay;
pub(crate) use role::Locks;
pub use role::{Replica, Role};

//! Schema changes: collections, views and indexes.
//!
//! - D1. A change takes the latch of the collection exclusively, then the writer turn of an engine
//!   with one writer, then the store's lock of changes, and then begins its engine transaction. It
//!   swaps the catalog after the commit and releases the latch after that. Writers thus see the
//!   collection before or after the change, never in between. An operation that waits for a latch
//!   does not hold the lock of changes: a transaction may hold the latch for long, and changes of
//!   other collections continue meanwhile. Anything looked up before the wait is looked up again.
//! - D2. Trees are created before the catalog refers to them and dropped after it no longer does:
//!   trees that a crash leaves behind are dropped when the store is next opened.
//! - D3. An operation that holds one latch exclusively waits for a second only for a limited time,
//!   and then releases the first: writers of several collections take latches in an order of their
//!   own.

mod build;
mod change;
mod create;
mod drop;
mod former;
mod images;
mod indexes;
mod list;
mod modify;
mod rename;
mod transaction;
mod unique;
mod view;

pub(crate) use create::check_not_views;
pub use create::check_user_write;
pub use drop::IndexNames;
pub use indexes::CreateIndexesReply;
pub(crate) use view::too_deep;

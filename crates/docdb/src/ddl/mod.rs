//! Changes of what there is: collections, views and indexes.
//!
//! - D1. A change holds the latch of the collection alone, then the turn of an engine with one
//!   writer, then the store's lock of changes, then begins its engine transaction; it swaps the
//!   catalog after the commit and gives the latch back after that. Writers thus see the collection
//!   as it was or as it became, never between. Who waits for a latch holds no lock of changes: a
//!   transaction may have the latch for long, and changes of other collections go on meanwhile.
//!   What was looked up before is looked up again.
//! - D2. Trees are made before the catalog knows them and dropped after it has forgotten them: what
//!   a crash leaves is dropped at the next opening.
//! - D3. Who holds a latch alone waits for a second one only so long, and then gives back the
//!   first: writers of several collections take theirs in an order of their own.

mod build;
mod change;
mod create;
mod drop;
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

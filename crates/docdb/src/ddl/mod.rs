//! Changes of what there is: collections, views and indexes.
//!
//! - D1. A change holds the store's lock of changes, then the latch of the collection alone, then
//!   begins its engine transaction; it swaps the catalog after the commit and gives the latch back
//!   after that. Writers thus see the collection as it was or as it became, never between.
//! - D2. Trees are made before the catalog knows them and dropped after it has forgotten them: what
//!   a crash leaves is dropped at the next opening.

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

pub use drop::IndexNames;
pub use indexes::CreateIndexesReply;
pub(crate) use view::too_deep;

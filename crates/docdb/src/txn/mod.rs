//! Transactions: an operation, the engine transaction that it reads and writes in, and the catalog
//! as that transaction sees it.
//!
//! Below this module are the store, the writer turn and the intents of writers; above it are the
//! commands. A command gets its context as an [`Op`], reads in a [`View`] and writes in a [`Work`].

mod access;
mod catalog;
mod ends;
mod logged;
mod op;
mod view;
mod work;

pub(crate) use access::Changes;
pub(crate) use catalog::Created;
pub use catalog::{Held, SeenCatalog};
pub(crate) use ends::Ends;
pub(crate) use logged::{delta_of, former_records};
pub use op::{InTransaction, Op, SessionId, SessionRef};
pub(crate) use view::{View, with_view};
pub(crate) use work::Outrun;
pub use work::Work;

//! Initial sync between servers (`docdb::replica::copy` has how a store is copied).
//!
//! ```text
//! driver: STARTUP2, chooses a source --> task: replSetCopy {begin}, then a portion at a time
//! driver: takes the log, SECONDARY  <-- task: complete up to a position that the primary had
//! ```
//!
//! The member asks; the source answers from a snapshot of each request and keeps nothing but its
//! oplog, by a lease that each request renews. In these files: `letter` (the command and its reply
//! as BSON), `lease`, `task` (the member's side), `status` (`initialSyncStatus`). What the driver
//! does is in `driver::syncing`.
//!
//! - Z1. A source answers only with what survives a loss of its power, and refuses an answer if it
//!   has begun a rollback meanwhile. So what a member has copied are entries of the source's log,
//!   which the source has as long as no other primary overrules them.
//! - Z2. A member ends its initial sync only when it has what the primary had written at a time
//!   after the last record was copied: at least all that was committed then. It may have
//!   acknowledged some of that before it lost its data.
//! - Z3. A member shows its data only when the entry at the floor of its copy is committed. Until
//!   then it is STARTUP2 to clients; to the protocol it is a secondary that stores entries.

pub(crate) mod lease;
pub(crate) mod letter;
pub(crate) mod status;
pub(crate) mod task;

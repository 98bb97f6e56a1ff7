//! WiredTiger behind the persistence API.
//!
//! WiredTiger (<https://source.wiredtiger.com/>) is MongoDB's storage engine: a B-tree (or an LSM
//! of B-trees) with multi-version concurrency control in memory, checkpoints, and a redo log. This
//! crate links the library of the system, version 3.2 (the generation of MongoDB 4.2 and 4.4), when
//! the cargo feature `wiredtiger` is on. The library is GPL-2 or GPL-3: **a program built with that
//! feature is under the GPL**, which is why no default turns it on.
//!
//! Layers, lowest first; `unsafe` ends where the thin layer does:
//!
//! - the bindings (`sys`), made by `build.rs`;
//! - `compressors`, which the library calls, and `trampoline`, which registers them when a store is
//!   opened;
//! - the thin safe layer: `connection`, `session`, `cursor`, `handler` (owned handles, errors with
//!   the library's own message);
//! - the adapter: `catalog` (names), `pool` (sessions), `engine`, `view` and `walk` (snapshots and
//!   their cursors), `transaction`, `maintain`, `backup`, `stats`, `map`.
//!
//! Properties of this engine, for comparisons with others:
//!
//! - The first *updater* wins: the second transaction to write a key gets `Conflict` at the write,
//!   even if the first rolls back later.
//! - A transaction can also get `Conflict` because the cache is full of changes that open snapshots
//!   pin; a retry is right in this case, too.
//! - `delete_range` deletes key by key. WiredTiger's own `truncate` is faster, but its log record
//!   names a range, not keys: recovery would also remove keys that another transaction put into
//!   the range and committed meanwhile.
//! - `Durability::Interval` writes the log to the operating system in every commit and syncs it in
//!   the background. `Durability::None` leaves the commit in the log's buffer.
//! - A tree cannot be dropped while snapshots or transactions are open that pin its changes.
//! - The cache limit does not cover session and cursor memory, nor memory lost to fragmentation.

mod factory;
mod support;

#[cfg(not(feature = "wiredtiger"))]
mod absent;
#[cfg(not(feature = "wiredtiger"))]
use absent as library;

#[cfg(feature = "wiredtiger")]
mod linked;
#[cfg(feature = "wiredtiger")]
use linked as library;

pub use factory::factory;

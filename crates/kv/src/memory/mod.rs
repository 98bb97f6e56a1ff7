//! The in-memory engine: the reference for all others, and usable for data that may be lost.
//!
//! Every tree is one `BTreeMap` from key to a chain of versions. A commit takes the next sequence
//! number and puts its versions on top of the chains. A snapshot is a sequence number; of each
//! chain it sees the newest version that is not above this number.
//!
//! Invariants:
//!
//! - M1. Versions of a chain have strictly descending sequence numbers, none above the last commit.
//! - M2. A version is kept while a registered snapshot sees it. A tombstone on top of a chain is
//!   kept while a snapshot older than it is registered, because that snapshot's transaction must
//!   find the conflict.
//! - M3. The tally of a tree is the sum of the costs of its chains.
//! - M4. A transaction commits only when no key it wrote (except blindly) has a version above its
//!   snapshot: the first committer wins.
//!
//! Locks: `Store::state` (readers share it, a commit holds it exclusively) before `Store::live`
//! (the register of snapshots). No caller's code runs under either. A reader holds `Store::state`
//! while it reads one key or one chunk of a cursor, a commit until its changes are applied; a sweep
//! releases it between chunks.
//!
//! A write drops the dead versions of its key immediately. Keys that must keep old versions are
//! queued; when no snapshot is older than the queued version, commits and the end of the oldest
//! snapshot visit them again. While a snapshot stays open for long, versions that were only visible
//! to ended snapshots may stay until their key is written again or [`crate::Engine::compact`] is
//! called.
//!
//! Like any other engine, this one takes a directory and stores its identity file and its lock file
//! there, so that two stores never share it; the content is lost when the process ends. All
//! durability levels are accepted, and none survives that end ([`crate::Capabilities::persistent`]
//! is false).

mod chain;
mod cursor;
mod engine;
mod factory;
mod live;
mod snapshot;
mod state;
mod store;
mod transaction;
mod tree;

pub use factory::factory;

/// The engine's name.
const NAME: &str = "memory";

/// Maximum length of a key, in bytes: the length fits into two bytes, and no engine behind this API
/// accepts longer keys in practice.
const KEY_MAX: usize = 65_535;

/// Maximum length of a value, in bytes (1 GiB): far above any document, and small enough that one
/// value does not exhaust the memory.
const VALUE_MAX: usize = 1 << 30;

#[cfg(test)]
mod tests;

//! Looking at a store from outside while it works: statistics, the storage map, the check of
//! everything, and hot backup.
//!
//! All of it stands on one thing, the *look* ([`Look`]): what every bucket names, taken under the
//! commit lock in one step of pointer work (about 200 ns a bucket). Whatever replaces buckets or
//! publishes runs takes that lock, so a look is one moment of the store. It holds the runs it
//! names, so their extents cannot be given to others while it lives; they are read outside of all
//! locks.

mod at_rest;
mod backup;
mod laws;
mod look;
mod map;
mod stats;
mod tree_stats;
mod verify;

#[cfg(test)]
mod tests;

pub use at_rest::map_at_rest;
use look::Look;

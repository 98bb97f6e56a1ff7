//! RocksDB behind the persistence API.
//!
//! [`factory()`] is always there; the engine itself is compiled in by the cargo feature `rocksdb`.
//! That choice is made on one line below: `store` is either the engine or its stand-in.
//!
//! A store is a directory with our identity file and lock; RocksDB's own files are in `db` inside
//! it. How transactions are built on RocksDB's, and why, is in
//! `docs/decisions/0003-rocksdb-transactions.md`; how it is tuned is told in `store::tuning`.

mod factory;
#[cfg_attr(not(feature = "rocksdb"), path = "absent.rs")]
mod store;

pub use factory::factory;

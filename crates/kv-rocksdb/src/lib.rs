//! RocksDB behind the persistence API.
//!
//! [`factory()`] always exists; the engine itself is compiled in by the cargo feature `rocksdb`.
//! One line below makes that choice: `store` is either the engine or its replacement.
//!
//! A store is a directory with our identity file and lock; RocksDB's own files are in `db` inside
//! it. How transactions are built on RocksDB's, and why, is in
//! `docs/decisions/0003-rocksdb-transactions.md`; `store::tuning` explains how it is tuned.

mod factory;
#[cfg_attr(not(feature = "rocksdb"), path = "absent.rs")]
mod store;
mod support;

pub use factory::factory;

//! RocksDB behind the persistence API.
//!
//! [`factory()`] always exists; the engine itself is compiled in by the cargo feature `rocksdb`.
//! The declaration of `store` below makes that choice: `store` is either the engine or its
//! replacement.
//!
//! A store is a directory with our identity file and lock file; RocksDB's own files are in its
//! subdirectory `db`. `docs/decisions/0003-rocksdb-transactions.md` describes how our transactions
//! use those of RocksDB, and why; `store::tuning` explains how RocksDB is tuned.

mod factory;
#[cfg_attr(not(feature = "rocksdb"), path = "absent.rs")]
mod store;
mod support;

pub use factory::factory;

//! LMDB behind the persistence API.
//!
//! LMDB is a memory-mapped copy-on-write B-tree: one writer, any number of readers that never wait,
//! no log and no cache of its own. What that means for the contract of `kv` is said where it is
//! decided: the options in `factory`, what a commit costs and what a power loss may take in
//! `engine::durability`, how trees lie in the environment in `engine::catalog`.
//!
//! LMDB trusts its file. Pages carry no checksums, so damage inside a page may go unnoticed, or end
//! the process when the page is read; `verify` reads every tree and finds only what shows in the
//! order and the number of its keys.
//!
//! The cargo feature `lmdb` (default) compiles LMDB itself. Without it the factory is still there
//! and its `open` says what is missing.

mod factory;
mod settings;

#[cfg(feature = "lmdb")]
mod engine;
#[cfg(not(feature = "lmdb"))]
#[path = "missing.rs"]
mod engine;

/// The factory of this engine.
#[must_use]
pub fn factory() -> &'static dyn kv::Factory {
    &factory::Lmdb
}

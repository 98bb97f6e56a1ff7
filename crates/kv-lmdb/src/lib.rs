//! LMDB behind the persistence API.
//!
//! LMDB is a memory-mapped copy-on-write B-tree: one writer, any number of readers that never wait,
//! no log and no cache of its own. These modules document the consequences for the contract of
//! `kv`: options in `factory`, the cost of a commit and the loss at a power failure in
//! `engine::durability`, the layout of trees in the environment in `engine::catalog`.
//!
//! LMDB trusts its file. Pages have no checksums, so damage inside a page may stay undetected, or
//! crash the process when the page is read; `verify` reads every tree, and detects only wrong
//! orders and numbers of keys.
//!
//! The cargo feature `lmdb` (default) compiles LMDB itself. Without it the factory still exists,
//! and its `open` names the missing feature.

mod factory;
mod settings;
mod support;

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

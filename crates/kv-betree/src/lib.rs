//! betree, Romanesco's own engine, behind the persistence API.
//!
//! What `kv` asks of an engine is what `betree::Db` does, so the adapter only translates: options
//! in `settings`, handles and calls in `engine`, errors in `engine::errors`. The one thing it adds
//! is the identity file, which says whose the directory is.

mod engine;
mod factory;
mod settings;

/// The factory of this engine.
#[must_use]
pub fn factory() -> &'static dyn kv::Factory {
    &factory::Betree
}

//! betree, Romanesco's own engine, behind the persistence API.
//!
//! `betree::Db` does what `kv` requires of an engine, in the same words (`kv-types`), so the
//! adapter passes calls on (`engine`) and translates only options (`settings`), statistics and
//! maps. It adds the identity file, which names the engine of the directory.

use std::path::Path;
use std::sync::Arc;

use kv::{Engine, EngineOptions, Factory, Result};
use vfs::Vfs;

mod at_rest;
mod engine;
mod factory;
mod settings;

pub use at_rest::{AtRest, Bucket, map_at_rest};

/// Open a store on `vfs`, a file system that the caller provides: for tests that observe or stop
/// its operations. The identity file is still read and written through the operating system.
///
/// # Errors
/// As [`kv::Factory::open`] of the [`factory`].
pub fn open_with(
    vfs: Arc<dyn Vfs>,
    directory: &Path,
    options: &EngineOptions,
) -> Result<Box<dyn Engine>> {
    factory::Betree.check_own(options)?;
    // Before the key is read: a value that cannot be used is named with its option.
    let found = settings::read(options)?;
    let found = found.with_encryption(settings::master(options)?);
    engine::open(vfs, directory, found)
}

/// The factory of this engine.
#[must_use]
pub fn factory() -> &'static dyn kv::Factory {
    &factory::Betree
}

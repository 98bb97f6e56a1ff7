//! Replaces the engine when the cargo feature `rocksdb` is off.

use std::path::Path;

use kv::{Engine, EngineOptions, Factory, Result};

/// Whether the engine is compiled in.
pub(crate) const AVAILABLE: bool = false;

/// The version of RocksDB: `None`, because it is not compiled in.
pub(crate) fn version() -> Option<String> {
    None
}

/// Accepts all values: only the engine can check them.
pub(crate) fn check(_: &EngineOptions) -> Result<()> {
    Ok(())
}

/// Always fails with the factory's error "not compiled in".
pub(crate) fn open(
    factory: &dyn Factory,
    _directory: &Path,
    _options: &EngineOptions,
) -> Result<Box<dyn Engine>> {
    Err(factory.missing())
}

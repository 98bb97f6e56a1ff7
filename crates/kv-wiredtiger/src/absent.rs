//! Replaces the library when the feature `wiredtiger` is off.

use std::path::Path;

use kv::{Engine, EngineOptions, Result};

/// Whether the library is compiled in.
pub(crate) const AVAILABLE: bool = false;

/// The version of the library.
pub(crate) fn version() -> Option<String> {
    None
}

/// Accepts all values: only the library can check them.
pub(crate) fn check(_: &EngineOptions) -> Result<()> {
    Ok(())
}

/// Always fails: the library is not compiled in.
pub(crate) fn open(_: &Path, _: &EngineOptions) -> Result<Box<dyn Engine>> {
    Err(crate::factory().missing())
}

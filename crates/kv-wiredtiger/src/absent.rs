//! Replaces the library when the feature `wiredtiger` is off.

use std::path::Path;

use kv::{Engine, EngineOptions, Result};

/// Whether the library is compiled in.
pub(crate) const AVAILABLE: bool = false;

/// The version of the library.
pub(crate) fn version() -> Option<String> {
    None
}

/// Accepts all values: they can only be checked with the library.
pub(crate) fn check(_: &EngineOptions) -> Result<()> {
    Ok(())
}

/// Open a store.
pub(crate) fn open(_: &Path, _: &EngineOptions) -> Result<Box<dyn Engine>> {
    Err(crate::factory().missing())
}

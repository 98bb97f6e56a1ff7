//! Replaces the engine when the feature `lmdb` is off.

use std::path::Path;

use kv::{Engine, EngineOptions, Result};

use crate::settings::Settings;

pub(crate) const AVAILABLE: bool = false;

pub(crate) fn version() -> Option<String> {
    None
}

pub(crate) fn open(_: &Path, _: &EngineOptions, _: Settings) -> Result<Box<dyn Engine>> {
    Err(crate::factory().missing())
}

//! Placeholder while the workspace is laid.

pub mod envelope;
pub mod host;
pub mod probe;
pub mod sample;

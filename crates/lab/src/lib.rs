//! Placeholder while the workspace is laid.

pub mod envelope;
pub mod sample;

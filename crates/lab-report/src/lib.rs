//! Results of the laboratory, and what they say.
//!
//! A run leaves a directory of *records*; the *store* writes and reads them; *analysis* compares
//! them; *published* puts the articles beside them; *cost* gives dollars; a *report* shows all of
//! it in one HTML file, and *export* writes it for other programs. A *sweep* joins runs that differ
//! in the values of a setting. What these need to know of a
//! target or an experiment is in the records: no driver and no engine is linked.

pub mod analysis;
pub mod cost;
pub mod error;
pub mod export;
#[cfg(test)]
mod fixture;
mod format;
pub mod published;
pub mod record;
pub mod report;
pub mod store;
pub mod sweep;

pub use error::{Error, ErrorKind, Result, USAGE};

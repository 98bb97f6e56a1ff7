//! Runs: immutable sorted pieces of a tree in the data file.
//!
//! Written once by a [`RunWriter`], read by point ([`Run::get`]), in both directions
//! ([`RunCursor`]) and from end to end ([`RunScan`]), checked by [`Run::verify`].
//!
//! ```text
//! | page 0 | page 1 | ... | page n-1 | fence block | filter block | zeros to a whole unit |
//! 0                                  ^ fence_offset  ^ filter_offset                     ^ extents
//! ```
//!
//! Pages are packed back to back, so a page may begin and end anywhere, and lie in two extents.
//! The fence block finds the page of a key; the filter block, if there is one, says that a key is
//! not in the run. Both are read when first needed and live in the cache.
//!
//! In an encrypted store each page and each block is a [`frame`].

mod cursor;
mod frame;
mod handle;
mod leftover;
mod meta;
mod pages;
mod scan;
mod store;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use cursor::RunCursor;
pub(crate) use handle::Run;
pub(crate) use meta::RunMeta;
pub(crate) use scan::RunScan;
pub(crate) use store::{RunStore, Traffic, sites};
pub(crate) use writer::{RunOptions, RunWriter};

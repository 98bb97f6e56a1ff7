//! The engines, a file for each with its settings.

mod betree;
mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocks")]
mod rocks;

use crate::peer::Open;

/// The engines of this build.
#[cfg(not(feature = "rocks"))]
pub(crate) const NAMES: &[&str] = &["betree", "redb", "fjall", "heed"];
/// The engines of this build.
#[cfg(feature = "rocks")]
pub(crate) const NAMES: &[&str] = &["betree", "redb", "fjall", "heed", "rocksdb"];

/// What opens the engine of that name.
pub(crate) fn find(name: &str) -> Option<Open> {
    match name {
        "betree" => Some(betree::open),
        "redb" => Some(redb::open),
        "fjall" => Some(fjall::open),
        "heed" => Some(lmdb::open),
        #[cfg(feature = "rocks")]
        "rocksdb" => Some(rocks::open),
        _ => None,
    }
}

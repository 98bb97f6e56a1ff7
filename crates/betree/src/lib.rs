//! A write-optimised storage engine: a tree of buckets, each with a buffer in memory, sorted runs
//! of changes below it and a sorted base.

mod arena;
#[doc(hidden)]
pub mod bench_kernel;
mod buffer;
mod cache;
mod checkpoint;
mod cursor;
mod error;
mod log;
mod merge;
mod page;
mod run;
mod space;
mod types;

pub use error::{Error, ErrorKind, Result};
pub use page::Codec;
#[doc(hidden)]
pub use page::bench as page_bench;
pub use run::Direction;
pub use types::{Seq, TreeId};

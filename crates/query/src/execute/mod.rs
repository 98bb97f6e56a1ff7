//! Execution of the part of a pipeline that storage does not execute.
//!
//! Every stage pulls rows from the stage before it. No stage borrows storage or the host between
//! two rows, so a pipeline can wait for any time between the batches of a cursor. The memory that
//! it holds meanwhile is bounded by the host's memory limit, above which stages spill.

mod bucket_auto;
mod build;
mod facet;
mod graph;
mod group;
#[cfg(test)]
pub(crate) mod harness;
mod host;
mod lookup;
mod memory;
mod ranked;
mod runs;
mod sample;
mod simple;
mod sort;
mod sorter;
mod spill;
mod tally;
#[cfg(test)]
mod tests;
mod union;
mod unwind;
mod window;
mod write;

pub use build::{build, build_counted};
pub use host::{Host, Rows, Spill};
pub use memory::Excess;
pub use runs::{Decode, Runs};
pub use simple::Listed;
pub use sorter::{Codec, SortUsage, Sorted, Sorter};
pub use tally::Tally;

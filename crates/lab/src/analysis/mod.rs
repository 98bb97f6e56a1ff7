//! What the records of a run say: seconds, stalls, metrics, the run's summary.
//!
//! Everything here is a pure function of records: no clock, no files, and a fixed seed for each
//! bootstrap, so that the same records give the same words for ever.

mod metric;
mod second;
mod stall;
mod statistic;
mod summary;

#[cfg(test)]
pub(crate) mod fixture;

pub use metric::{Better, METRICS, Metric, metrics};
pub use second::{SecondStats, main_rates, second_stats};
pub use stall::stalls;
pub use summary::{summarize, summary_lines, summary_table};

//! What the records of a run say: seconds, stalls, metrics, the run's summary, comparisons, checks.
//!
//! Everything here is a pure function of records: no clock, no files, and a fixed seed for each
//! bootstrap, so that the same records give the same words for ever.

mod check;
mod clock;
mod compare;
mod difference;
mod equal_rows;
mod equal_targets;
mod escape;
mod flatness;
mod interval;
mod metric;
mod noise;
mod plateau;
mod rank;
mod render;
mod rule;
mod second;
mod side;
mod stall;
mod statistic;
mod summary;
mod sustained;
mod verdict;

#[cfg(test)]
mod documented;
#[cfg(test)]
mod simulated;

pub use check::{Check, CheckLine, CheckVerdict, Outcome, check};
pub(crate) use clock::Clock;
pub use compare::{Accept, Comparison, ComparisonRow, Pair, compare};
pub(crate) use equal_rows::EqualRows;
pub use equal_targets::{EqualTargets, equal_targets};
pub use escape::{escaped, limits_of_caps, writes_escape};
pub(crate) use flatness::Flatness;
pub use metric::{Better, METRICS, Metric, metrics};
pub use noise::noise_floor;
pub use plateau::{Plateau, REPEATS_MIN, Rates, Together, plateau};
pub use rule::{Rule, Threshold};
pub use second::{SecondStats, main_rates, second_stats};
pub use stall::stalls;
pub(crate) use statistic::{mean_between, median, quantile};
pub use summary::{separated, summarize, summary_lines, summary_table};
pub(crate) use sustained::STALLS_FROM;
pub use sustained::{NOT_REPEATED, Sustained, Tried, not_sustained, sustained};
pub use verdict::{DEFAULT_FLOOR, EQUAL, Verdict};

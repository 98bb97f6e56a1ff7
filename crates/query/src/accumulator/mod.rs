//! Accumulators: functions that `$group` computes over the documents of a group, and window
//! functions over those of a window.
//!
//! An [`Accumulator`] is the parsed specification, shared by all groups; a [`State`] is the
//! intermediate result of one group. States of the same accumulator can be merged, so that groups
//! may be computed in parts: the parts are merged in the order in which their documents came.

mod best;
mod gather;
mod moments;
mod number_sum;
mod parse;
mod quantile;
mod ranked;
mod state;

#[cfg(test)]
mod tests;

pub(crate) use best::Extreme;
pub(crate) use moments::Moments;
pub(crate) use number_sum::NumberSum;
pub use parse::Accumulator;
pub(crate) use parse::{check_n, names};
pub(crate) use quantile::{parse_method, percentiles, quantile_of};
pub(crate) use ranked::Order;
pub use state::State;
pub(crate) use state::merge_object;

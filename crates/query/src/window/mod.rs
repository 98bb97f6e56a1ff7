//! Stages over ordered partitions: `$setWindowFields`, `$fill`, `$densify`.
//!
//! All three sort their input by partition and then by `sortBy`, and return it in that order, one
//! partition at a time: functions read a partition as a slice of documents. `$densify` with the
//! bounds `full` reads all partitions before it returns the first row.

mod bounds;
mod densify;
mod fill;
mod function;
mod moving;
mod partition;
mod place;
mod series;
mod set_fields;
mod slope;
mod stage;

#[cfg(test)]
mod tests;

pub use densify::Densify;
pub use fill::Fill;
pub(crate) use function::names;
pub(crate) use partition::{Entry, Partition, Partitioning};
pub use set_fields::SetWindowFields;
pub(crate) use stage::Run;
pub use stage::WindowStage;

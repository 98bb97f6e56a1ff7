//! Pipelines: sequences of stages, checked as a whole, put into a better order, and divided between
//! storage and [`crate::execute`].

mod access;
mod dependency;
mod optimize;
mod pushdown;
mod raw;
mod spec;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use pushdown::Pushdown;
pub use raw::{check_options, distinct, duplicate, repeated};
pub use spec::Pipeline;

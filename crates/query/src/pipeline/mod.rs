//! Pipelines: sequences of stages, checked as a whole, put into a better order, and divided between
//! storage and [`crate::execute`].

mod access;
mod dependency;
mod optimize;
mod pushdown;
mod spec;
#[cfg(test)]
mod tests;

pub use crate::repeated::{check_pipeline, distinct, duplicate, repeated};
pub use access::Access;
pub use pushdown::Pushdown;
pub use spec::Pipeline;

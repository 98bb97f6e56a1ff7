//! Pipelines: sequences of stages that are checked as a whole, optimized, and divided between
//! storage and [`crate::execute`].

mod access;
mod dependency;
mod optimize;
mod pushdown;
mod spec;
#[cfg(test)]
mod tests;

pub use crate::repeated::{check_pipeline, distinct, duplicate, repeated};
pub use access::{Access, Followed};
pub use pushdown::Pushdown;
pub use spec::Pipeline;

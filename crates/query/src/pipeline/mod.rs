//! Pipelines: sequences of stages, checked as a whole, put into a better order, and divided between
//! storage and [`crate::execute`].

mod dependency;
mod optimize;
mod pushdown;
mod spec;
#[cfg(test)]
mod tests;

pub use pushdown::Pushdown;
pub use spec::Pipeline;

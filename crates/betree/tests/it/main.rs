//! The public library, against a model.

mod model;
mod queue;

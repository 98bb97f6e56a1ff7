//! The public library, against a model.

mod bulk;
mod model;
mod queue;

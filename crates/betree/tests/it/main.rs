//! The public library, against a model.

mod inspect;
mod model;
mod queue;

//! The public library, against a model.

mod bulk;
mod inspect;
mod model;
mod queue;

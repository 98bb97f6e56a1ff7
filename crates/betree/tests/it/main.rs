//! The public library, against a model.

mod backup;
mod inspect;
mod model;
mod queue;

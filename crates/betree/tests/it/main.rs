//! The public library, against a model.

mod backup;
mod bulk;
mod inspect;
mod model;
mod queue;

//! The public library, against a model.

mod backup;
mod bulk;
mod inspect;
mod isolation;
mod many_trees;
mod model;
mod queue;
mod snapshot_age;

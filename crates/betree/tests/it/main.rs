//! The public library, against a model.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod backup;
mod bounds;
mod bulk;
mod close;
mod compact;
mod crossed;
mod crowd;
mod encryption;
mod examples;
mod handles;
mod histories;
mod idle;
mod idle_cursors;
mod inspect;
mod isolation;
mod many_trees;
mod model;
mod queue;
mod refused;
mod seeds;
mod slow;
mod snapshot_age;

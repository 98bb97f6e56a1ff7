//! Backups of real stores: taken, damaged, verified, restored.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the whole crate is test code: a panic is how a test fails"
)]

mod chain;
mod damage;
mod place;
mod restored;
mod store;

//! The crate from outside.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod extremes;
mod fuzz;
mod generate;
mod samples;
mod words;

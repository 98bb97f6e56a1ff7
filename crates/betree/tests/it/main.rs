//! The public library, against a model.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod backup;
mod bulk;
mod inspect;
mod model;
mod queue;

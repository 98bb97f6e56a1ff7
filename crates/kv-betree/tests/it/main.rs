//! betree against the laws of every engine, and properties of this adapter.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod adapter;
mod laws;
mod statistics;
mod support;

//! betree against the laws every engine keeps, and what is particular to this adapter.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod adapter;
mod laws;
mod statistics;
mod support;

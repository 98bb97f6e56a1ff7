//! LMDB against the laws every engine keeps, and what is particular to this adapter.
#![cfg(feature = "lmdb")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod adapter;
mod catalog;
mod durability;
mod laws;
mod support;

//! LMDB against the laws of every engine, and properties of this adapter.
#![cfg(feature = "lmdb")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod adapter;
mod catalog;
mod durability;
mod laws;
mod support;

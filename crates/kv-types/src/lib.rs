//! The vocabulary of ordered, transactional key-value stores: what an engine, the interface above
//! it and their callers must agree on, defined once.
//!
//! - [`Durability`]: what a commit survives when the call returns.
//! - [`Error`] and [`ErrorKind`]: what went wrong, as one kind for each reaction of the caller.
//! - [`TreeId`] and [`TreeOptions`]: the handle of a tree, and how a tree is created.
//! - [`KeyRange`], [`Direction`] and [`Limits`]: which keys, in which order, how long.
//! - [`Batch`] and [`Change`]: changes collected without an engine, in an encoding that a redo log
//!   can store as it is.
//!
//! ```
//! use kv_types::{Batch, Change, KeyRange, TreeId};
//!
//! let fruit = TreeId(1);
//! let mut batch = Batch::new();
//! batch.put(fruit, b"apple", b"red");
//! batch.delete_range(fruit, KeyRange::half_open(b"b", b"d"));
//! let mut changes = batch.ops();
//! assert!(matches!(changes.next(), Some(Change::Put { key: b"apple", value: b"red", .. })));
//! assert!(matches!(changes.next(), Some(Change::DeleteRange { .. })));
//! assert_eq!((batch.len(), batch.byte_len()), (2, 10));
//! ```
//!
//! The crate has no threads, no input or output and, without the feature `serde`, no dependencies.

mod batch;
mod durability;
mod error;
mod range;
mod tree;

pub use batch::{Batch, Change, Counts, Ops};
pub use durability::Durability;
pub use error::{Error, ErrorKind, Result};
pub use range::{Direction, KeyRange, Limits};
pub use tree::{TreeId, TreeOptions};

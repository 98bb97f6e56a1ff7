//! Trees: the routing from keys to buckets, and the content of a bucket.
//!
//! Lock order: commit lock, then a bucket's state, then a buffer. A routing is replaced only under
//! the commit lock; a bucket's state is held for pointer work only, never across input or output.

mod bucket;
mod named;
mod routing;

pub(crate) use bucket::{Bucket, Short, State};
pub(crate) use named::Tree;
pub(crate) use routing::Routing;

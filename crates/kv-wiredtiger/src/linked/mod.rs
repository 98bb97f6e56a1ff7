//! The engine on top of the system's libwiredtiger.

mod backup;
mod catalog;
mod compressors;
mod config;
mod connection;
mod cursor;
mod engine;
mod error;
mod flusher;
mod group;
mod handler;
mod maintain;
mod map;
mod pool;
mod session;
mod shared;
mod stats;
mod sys;
mod trampoline;
mod transaction;
mod view;
mod walk;

pub(crate) use connection::version;
pub(crate) use engine::{check, open};

/// Whether the library is compiled in.
pub(crate) const AVAILABLE: bool = true;

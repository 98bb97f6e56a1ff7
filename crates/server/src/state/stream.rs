//! A backup that a client receives in parts.

use std::sync::mpsc::Receiver;
use std::time::Instant;

use query::Result;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64};

/// What its commands and the thread that copies the store share.
pub(crate) struct Stream {
    /// Random: another client does not guess it.
    pub(crate) id: i64,
    /// Who has begun it.
    pub(crate) user: Option<String>,
    /// The messages that wait for the client.
    pub(crate) messages: Mutex<Receiver<Result<Vec<u8>>>>,
    /// When the client has asked last.
    pub(crate) asked: Mutex<Instant>,
    /// Whether the client has ended it.
    pub(crate) ended: AtomicBool,
    /// Bytes of the store that are copied, and all.
    pub(crate) done: AtomicU64,
    /// See `done`.
    pub(crate) total: AtomicU64,
}

//! What is kept for those who watch the server: who may read the metrics, and the recent past that
//! the page shows.

mod gate;
mod history;
mod recent;

use std::time::Instant;

use hyper::body::Bytes;
use stdx::sync::Mutex;

pub(crate) use gate::Gate;
pub(crate) use history::{History, Sample, Stall};
pub(crate) use recent::{Recent, Slow};

/// The recent past.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) history: Mutex<History>,
    /// Slow commands.
    pub(crate) slow: Mutex<Recent>,
    /// The storage map, and when it was made.
    pub(crate) map: tokio::sync::Mutex<Option<(Instant, Bytes)>>,
}

//! Load: which clients run operations, at what rate, and how latency is recorded.

mod marks;
mod pace;
mod recorder;

pub use marks::Marks;
pub use pace::Pace;
pub use recorder::{HISTOGRAM_MAX_US, Recorder, latency_of, no_latencies};

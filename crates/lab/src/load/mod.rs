//! Load: who does operations, how fast, and how their latency is counted.

mod marks;
mod pace;
mod recorder;

pub use marks::Marks;
pub use pace::Pace;
pub use recorder::{HISTOGRAM_MAX_US, Recorder, latency_of, no_latencies};

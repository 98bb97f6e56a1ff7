//! Following the oplog: reading it, and keeping it within its limits.

mod clock;
mod confirm;
mod images;
mod reader;
mod retain;
mod seen;
mod shown;
#[cfg(test)]
mod tests;

pub use reader::{OplogPin, OplogReader};
pub(crate) use retain::start;

//! Limits around a worker process.

use serde::{Deserialize, Serialize};
use stdx::ByteSize;

/// Limits around a worker process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of the process and the page cache of its files.
    pub memory: Option<ByteSize>,
    /// Reads per second from the data's device.
    pub read_iops: Option<u64>,
    /// Writes per second to the data's device.
    pub write_iops: Option<u64>,
    /// Bytes per second read from the data's device.
    pub read_bps: Option<u64>,
    /// Bytes per second written to the data's device.
    pub write_bps: Option<u64>,
}

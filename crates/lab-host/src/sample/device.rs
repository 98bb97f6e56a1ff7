//! Counters of a block device (kernel: Documentation/block/stat.rst).

use std::path::Path;

use serde::{Deserialize, Serialize};
use vfs::DeviceId;

use super::source::Source;

/// The kernel's unit in these counters, independent of the disk's sector size.
const SECTOR: u64 = 512;

/// Completed I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIo {
    /// Reads, after merging.
    pub reads: u64,
    /// Writes, after merging.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes discarded.
    pub discard_bytes: Option<u64>,
    /// Cache flushes.
    pub flushes: Option<u64>,
    /// Total milliseconds of all reads.
    pub read_ms: Option<u64>,
    /// Total milliseconds of all writes.
    pub write_ms: Option<u64>,
    /// Milliseconds during which the device was busy.
    pub busy_ms: Option<u64>,
    /// Sum over all I/O of the milliseconds it was queued or in flight.
    pub queue_ms: Option<u64>,
}

/// The source of a sample's device counters; see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSource {
    /// Counters of the whole disk: complete, but they include the I/O of other users of the disk.
    WholeDisk,
    /// Counters of the worker's group: a lower bound, without the file system's journal and, in
    /// version 1, without buffered writes.
    Group,
    /// Neither the disk's counters nor the group's are visible.
    None,
}

/// The most reliable counters that are available, and their source.
pub(super) fn truth(
    disk: Option<DeviceIo>,
    group: Option<DeviceIo>,
) -> (Option<DeviceIo>, DeviceSource) {
    match (disk, group) {
        (Some(disk), _) => (Some(disk), DeviceSource::WholeDisk),
        (None, Some(group)) => (Some(group), DeviceSource::Group),
        (None, None) => (None, DeviceSource::None),
    }
}

/// `/sys/dev/block/M:m/stat` of one disk.
#[derive(Debug)]
pub(super) struct DiskStat(Source);

impl DiskStat {
    pub(super) fn new(sys_root: &Path, disk: DeviceId) -> DiskStat {
        DiskStat(Source::new(sys_root.join(format!("dev/block/{disk}/stat"))))
    }

    pub(super) fn read(&mut self) -> Option<DeviceIo> {
        parse(self.0.read()?)
    }
}

fn parse(text: &str) -> Option<DeviceIo> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let (reads, _, read_sectors, read_ms) = (next()?, next()?, next()?, next()?);
    let (writes, _, write_sectors, write_ms) = (next()?, next()?, next()?, next()?);
    let _in_flight = next()?;
    let (busy_ms, queue_ms) = (next()?, next()?);
    // Kernels before 4.18 provide no further fields; those before 5.5 have no flushes.
    let (_discards, _, discard_sectors, _) = (next(), next(), next(), next());
    let flushes = next();
    Some(DeviceIo {
        reads,
        writes,
        read_bytes: read_sectors.saturating_mul(SECTOR),
        write_bytes: write_sectors.saturating_mul(SECTOR),
        discard_bytes: discard_sectors.map(|s| s.saturating_mul(SECTOR)),
        flushes,
        read_ms: Some(read_ms),
        write_ms: Some(write_ms),
        busy_ms: Some(busy_ms),
        queue_ms: Some(queue_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_kernels_parse() {
        let new = "   99684    22937  7274162    43529    39356    40584 11532976    14205   \
                   0    25228    67201    11332       47  6996480     9420     3695       46\n";
        let io = parse(new).unwrap();
        assert_eq!((io.reads, io.writes), (99_684, 39_356));
        assert_eq!(
            (io.read_bytes, io.write_bytes),
            (7_274_162 * 512, 11_532_976 * 512)
        );
        assert_eq!(
            (io.discard_bytes, io.flushes),
            (Some(6_996_480 * 512), Some(3695))
        );
        assert_eq!((io.busy_ms, io.queue_ms), (Some(25_228), Some(67_201)));
        let old = parse("1 2 3 4 5 6 7 8 9 10 11\n").unwrap();
        assert_eq!((old.discard_bytes, old.flushes), (None, None));
        assert_eq!(parse("1 2 3"), None);
    }

    #[test]
    fn the_whole_disk_is_the_truth_where_visible() {
        let (disk, group) = (
            DeviceIo {
                reads: 2,
                ..DeviceIo::default()
            },
            DeviceIo::default(),
        );
        assert_eq!(
            truth(Some(disk), Some(group)),
            (Some(disk), DeviceSource::WholeDisk)
        );
        assert_eq!(truth(None, Some(group)), (Some(group), DeviceSource::Group));
        assert_eq!(truth(None, None), (None, DeviceSource::None));
    }
}

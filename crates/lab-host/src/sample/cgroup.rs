//! The counters of a worker's groups.

use std::path::Path;

use serde::{Deserialize, Serialize};
use vfs::DeviceId;

use super::device::DeviceIo;
use super::source::Source;
use crate::envelope::Version;

/// Memory charged to a group and its descendants, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMemory {
    /// All memory that counts against the limit.
    pub usage_bytes: Option<u64>,
    /// Maximum of `usage_bytes` so far.
    pub peak_bytes: Option<u64>,
    /// Anonymous memory: heaps and stacks, engine caches among them.
    pub anonymous_bytes: Option<u64>,
    /// Page cache: file contents.
    pub page_cache_bytes: Option<u64>,
    /// Page cache that is modified and not yet written to disk.
    pub dirty_bytes: Option<u64>,
    /// Page cache that is being written to disk.
    pub writeback_bytes: Option<u64>,
}

/// The memory files of one group.
#[derive(Debug)]
pub(super) struct GroupMemory {
    version: Version,
    usage: Source,
    peak: Source,
    stat: Source,
}

impl GroupMemory {
    pub(super) fn new(version: Version, group: &Path) -> GroupMemory {
        let (usage, peak) = match version {
            Version::V1 => ("memory.usage_in_bytes", "memory.max_usage_in_bytes"),
            Version::V2 => ("memory.current", "memory.peak"),
        };
        GroupMemory {
            version,
            usage: Source::in_dir(group, usage),
            peak: Source::in_dir(group, peak),
            stat: Source::in_dir(group, "memory.stat"),
        }
    }

    /// Read the group's memory counters; `None` when the group is gone.
    pub(super) fn read(&mut self) -> Option<CgroupMemory> {
        let mut memory = parse_stat(self.version, self.stat.read()?);
        memory.usage_bytes = self.usage.read().and_then(number);
        memory.peak_bytes = self.peak.read().and_then(number);
        Some(memory)
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn parse_stat(version: Version, text: &str) -> CgroupMemory {
    let mut memory = CgroupMemory::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else {
            continue;
        };
        let value = value.trim().parse().ok();
        match (version, name) {
            // Version 1 counts a page of shared memory as cache; so does version 2 as file.
            (Version::V1, "total_rss") | (Version::V2, "anon") => memory.anonymous_bytes = value,
            (Version::V1, "total_cache") | (Version::V2, "file") => memory.page_cache_bytes = value,
            (Version::V1, "total_dirty") | (Version::V2, "file_dirty") => {
                memory.dirty_bytes = value;
            }
            (Version::V1, "total_writeback") | (Version::V2, "file_writeback") => {
                memory.writeback_bytes = value;
            }
            _ => {}
        }
    }
    memory
}

/// The I/O counters of one group for one disk.
#[derive(Debug)]
pub(super) struct GroupIo {
    version: Version,
    disk: String,
    bytes: Source,
    operations: Source,
}

impl GroupIo {
    pub(super) fn new(version: Version, group: &Path, disk: DeviceId) -> GroupIo {
        let (bytes, operations) = match version {
            Version::V1 => (
                "blkio.throttle.io_service_bytes_recursive",
                "blkio.throttle.io_serviced_recursive",
            ),
            Version::V2 => ("io.stat", "io.stat"),
        };
        GroupIo {
            version,
            disk: disk.to_string(),
            bytes: Source::in_dir(group, bytes),
            operations: Source::in_dir(group, operations),
        }
    }

    /// Read the counters; `None` when the group is gone or the kernel has counted nothing for this
    /// disk. In version 1 the latter may also mean that the kernel does not count at all (S1).
    pub(super) fn read(&mut self) -> Option<DeviceIo> {
        match self.version {
            Version::V1 => {
                let bytes = parse_v1(self.bytes.read()?, &self.disk)?;
                let operations = parse_v1(self.operations.read()?, &self.disk)?;
                Some(DeviceIo {
                    reads: operations.0,
                    writes: operations.1,
                    read_bytes: bytes.0,
                    write_bytes: bytes.1,
                    ..DeviceIo::default()
                })
            }
            Version::V2 => parse_v2(self.bytes.read()?, &self.disk),
        }
    }
}

/// Parse the numbers of reads and writes from lines `major:minor Read n` and `major:minor Write n`.
fn parse_v1(text: &str, disk: &str) -> Option<(u64, u64)> {
    let find = |name: &str| {
        text.lines().find_map(|line| {
            let value = line.strip_prefix(disk)?.strip_prefix(' ')?;
            value.strip_prefix(name)?.trim().parse().ok()
        })
    };
    Some((find("Read ")?, find("Write ")?))
}

/// Parse the line `major:minor rbytes=n wbytes=n rios=n wios=n dbytes=n dios=n` of a disk.
fn parse_v2(text: &str, disk: &str) -> Option<DeviceIo> {
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(disk)?.strip_prefix(' '))?;
    let find = |name: &str| -> Option<u64> {
        line.split_ascii_whitespace().find_map(|field| {
            let (found, value) = field.split_once('=')?;
            (found == name).then(|| value.parse().ok())?
        })
    };
    Some(DeviceIo {
        reads: find("rios")?,
        writes: find("wios")?,
        read_bytes: find("rbytes")?,
        write_bytes: find("wbytes")?,
        discard_bytes: find("dbytes"),
        ..DeviceIo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_both_versions() {
        let v1 = "cache 1\nrss 2\ntotal_cache 100\ntotal_rss 200\ntotal_rss_huge 9\n\
                  total_dirty 30\ntotal_writeback 40\n";
        let v2 = "anon 200\nfile 100\nkernel 5\nfile_mapped 1\nfile_dirty 30\nfile_writeback 40\n";
        let expected = CgroupMemory {
            anonymous_bytes: Some(200),
            page_cache_bytes: Some(100),
            dirty_bytes: Some(30),
            writeback_bytes: Some(40),
            ..CgroupMemory::default()
        };
        assert_eq!(parse_stat(Version::V1, v1), expected);
        assert_eq!(parse_stat(Version::V2, v2), expected);
        assert_eq!(parse_stat(Version::V2, v1), CgroupMemory::default());
    }

    #[test]
    fn io_of_both_versions_by_disk() {
        let v1 = "8:0 Read 9\n8:0 Write 9\n254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 0\n\
                  254:0 Total 12288\nTotal 12288\n";
        assert_eq!(parse_v1(v1, "254:0"), Some((4096, 8192)));
        assert_eq!(parse_v1("Total 0\n", "254:0"), None);
        let v2 = "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n\
                  254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n";
        let io = parse_v2(v2, "254:0").unwrap();
        assert_eq!(
            (io.read_bytes, io.write_bytes, io.reads, io.writes),
            (4096, 8192, 1, 2)
        );
        assert_eq!(io.discard_bytes, Some(0));
        assert_eq!(parse_v2(v2, "254:1"), None);
        assert_eq!(parse_v2("254:0 \n", "254:0"), None);
    }
}

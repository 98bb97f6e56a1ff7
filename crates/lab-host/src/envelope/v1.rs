//! Control files of version 1 (kernel:
//! Documentation/admin-guide/cgroup-v1/{memory,blkio-controller}.rst).

use std::fs;
use std::path::{Path, PathBuf};

use lab_report::record::LimitKind;
use vfs::DeviceId;

use super::cgroups::Controller;
use super::error::Result;
use super::events::{MemoryEvents, field, number};
use super::group::{read_control, read_number, write_control};
use super::interface::{Cap, Interface, in_force};

/// How much the limit of memory and swap together exceeds that of memory, 1 MiB. With equal limits
/// the kernel reaches the limit with swap first, and does not count that in `memory.failcnt` (seen
/// on 6.18), so the reports would show no pressure. The kernel charges at most 256 KiB ahead, and 1
/// MiB is within the tolerance of the smallest limit.
const SWAP_SLACK: u64 = 1 << 20;

/// Version 1: a file for each limit.
pub(super) struct V1;

impl Interface for V1 {
    /// Every group of a hierarchy has its controller.
    fn delegate(&self, _: &Path, _: Controller) -> Result<()> {
        Ok(())
    }

    fn limit_memory(&self, group: &Path, bytes: u64) -> Result<(PathBuf, u64)> {
        let file = group.join("memory.limit_in_bytes");
        write_control(&file, &bytes.to_string())?;
        let memory_and_swap = group.join("memory.memsw.limit_in_bytes");
        if memory_and_swap.exists() {
            let total = bytes.saturating_add(SWAP_SLACK);
            write_control(&memory_and_swap, &total.to_string())?;
            in_force(&memory_and_swap, total, read_number(&memory_and_swap)?)?;
        }
        let swappiness = group.join("memory.swappiness");
        if swappiness.exists() {
            write_control(&swappiness, "0")?;
        }
        let own = read_number(&file)?;
        // An outer group may have a lower limit.
        let stat = read_control(&group.join("memory.stat"))?;
        let outer = field(&stat, "hierarchical_memory_limit").unwrap_or(own);
        Ok((file, own.min(outer)))
    }

    fn limit_io(&self, group: &Path, disk: DeviceId, caps: &[Cap]) -> Result<()> {
        caps.iter().try_for_each(|(kind, limit)| {
            // The kernel interprets 0 as no cap.
            let limit = limit.unwrap_or(0);
            let file = group.join(self.io_file(*kind));
            write_control(&file, &format!("{disk} {limit}"))
        })
    }

    fn io_file(&self, kind: LimitKind) -> &'static str {
        match kind {
            LimitKind::ReadIops => "blkio.throttle.read_iops_device",
            LimitKind::WriteIops => "blkio.throttle.write_iops_device",
            LimitKind::ReadBps => "blkio.throttle.read_bps_device",
            LimitKind::WriteBps => "blkio.throttle.write_bps_device",
            LimitKind::Memory => "memory.limit_in_bytes",
        }
    }

    /// Lines of `major:minor limit`.
    fn io_limit(&self, text: &str, disk: DeviceId, _: LimitKind) -> Option<u64> {
        field(text, &disk.to_string())
    }

    fn caps_buffered_writes(&self) -> bool {
        false
    }

    fn memory_events(&self, group: &Path) -> MemoryEvents {
        let control = fs::read_to_string(group.join("memory.oom_control"));
        MemoryEvents {
            limit_hits: number(group, "memory.failcnt"),
            oom_kills: field(&control.unwrap_or_default(), "oom_kill"),
            peak_bytes: number(group, "memory.max_usage_in_bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_lines_are_found_by_device() {
        let text = "8:0 100\n254:0 2500\n";
        let of = |text: &str, major, minor| {
            V1.io_limit(text, DeviceId { major, minor }, LimitKind::ReadBps)
        };
        assert_eq!(of(text, 254, 0), Some(2500));
        assert_eq!(of(text, 8, 1), None);
        assert_eq!(of("254:0\n", 254, 0), None);
    }
}

//! Limits in version 1 (kernel: Documentation/admin-guide/cgroup-v1/{memory,blkio-controller}.rst).

use std::path::Path;

use lab_report::record::{LimitKind, Limits};
use vfs::DeviceId;

use super::error::{EnvelopeError, Result};
use super::group::{Group, read_control, read_number, write_control};
use super::status::LimitStatus;
use super::within_tolerance;

/// How much memory and swap together may exceed memory, 1 MiB. With equal limits the kernel hits
/// the one with swap first and does not count that in `memory.failcnt` (seen on 6.18), so the
/// reports would show no pressure. A charge takes at most 256 KiB ahead, and 1 MiB is within the
/// tolerance of the smallest limit.
const SWAP_SLACK: u64 = 1 << 20;

/// Cap memory, and memory plus swap if the kernel accounts swap. Returns the limit in force.
pub(super) fn cap_memory(group: &Group, bytes: u64) -> Result<u64> {
    let file = group.path().join("memory.limit_in_bytes");
    write_control(&file, &bytes.to_string())?;
    let memory_and_swap = group.path().join("memory.memsw.limit_in_bytes");
    if memory_and_swap.exists() {
        let total = bytes.saturating_add(SWAP_SLACK);
        write_control(&memory_and_swap, &total.to_string())?;
        check(&memory_and_swap, total, read_number(&memory_and_swap)?)?;
    }
    let swappiness = group.path().join("memory.swappiness");
    if swappiness.exists() {
        write_control(&swappiness, "0")?;
    }
    let own = read_number(&file)?;
    // An outer group may have a lower limit.
    let stat = read_control(&group.path().join("memory.stat"))?;
    let outer = stat
        .lines()
        .find_map(|line| line.strip_prefix("hierarchical_memory_limit "))
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(own);
    check(&file, bytes, own.min(outer))
}

/// Cap I/O on `disk`. Returns one status for each of the four limits.
pub(super) fn cap_io(group: &Path, limits: &Limits, disk: DeviceId) -> Result<Vec<LimitStatus>> {
    let mut rows = Vec::with_capacity(4);
    for (kind, requested) in limits.io() {
        let Some(limit) = requested else {
            rows.push(LimitStatus::not_requested(kind));
            continue;
        };
        let file = group.join(file_of(kind));
        write_control(&file, &format!("{disk} {limit}"))?;
        let found = limit_of(&read_control(&file)?, disk);
        let effective = check(&file, limit, found.unwrap_or(u64::MAX))?;
        rows.push(LimitStatus::verified(kind, limit, effective));
    }
    Ok(rows)
}

/// Remove every cap on `disk`: the kernel interprets 0 as no cap.
pub(super) fn uncap_io(group: &Path, disk: DeviceId) -> Result<()> {
    for (kind, _) in Limits::default().io() {
        write_control(&group.join(file_of(kind)), &format!("{disk} 0"))?;
    }
    Ok(())
}

fn file_of(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::ReadIops => "blkio.throttle.read_iops_device",
        LimitKind::WriteIops => "blkio.throttle.write_iops_device",
        LimitKind::ReadBps => "blkio.throttle.read_bps_device",
        LimitKind::WriteBps => "blkio.throttle.write_bps_device",
        LimitKind::Memory => "memory.limit_in_bytes",
    }
}

/// The limit of `disk` in a throttle file: lines of `major:minor limit`.
fn limit_of(text: &str, disk: DeviceId) -> Option<u64> {
    let disk = disk.to_string();
    text.lines().find_map(|line| {
        let (device, limit) = line.split_once(' ')?;
        (device == disk).then(|| limit.trim().parse().ok())?
    })
}

fn check(file: &Path, wanted: u64, found: u64) -> Result<u64> {
    if within_tolerance(wanted, found) {
        return Ok(found);
    }
    let found = match found {
        u64::MAX => "no limit".to_owned(),
        n => n.to_string(),
    };
    Err(EnvelopeError::NotInForce {
        path: file.to_owned(),
        wanted,
        found,
        hint: "look for a tighter limit on an outer group, or run uncapped".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_lines_are_found_by_device() {
        let text = "8:0 100\n254:0 2500\n";
        let vda = DeviceId {
            major: 254,
            minor: 0,
        };
        assert_eq!(limit_of(text, vda), Some(2500));
        assert_eq!(limit_of(text, DeviceId { major: 8, minor: 1 }), None);
        assert_eq!(limit_of("254:0\n", vda), None);
    }
}

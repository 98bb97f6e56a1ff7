//! Control files of version 2 (kernel: Documentation/admin-guide/cgroup-v2.rst).

use std::fs;
use std::path::{Path, PathBuf};

use lab_report::record::LimitKind;
use vfs::DeviceId;

use super::cgroups::{Controller, Version};
use super::error::Result;
use super::events::{MemoryEvents, field, number};
use super::group::{read_control, read_number, write_control};
use super::interface::{Cap, Interface, in_force};

/// Version 2: one file for all I/O limits.
pub(super) struct V2;

impl Interface for V2 {
    /// The controller stays enabled afterwards, because other groups may depend on it by then.
    fn delegate(&self, parent: &Path, controller: Controller) -> Result<()> {
        let name = controller.name(Version::V2);
        let file = parent.join("cgroup.subtree_control");
        let enabled = read_control(&file)?;
        if enabled.split_whitespace().any(|word| word == name) {
            return Ok(());
        }
        write_control(&file, &format!("+{name}"))
    }

    fn limit_memory(&self, group: &Path, bytes: u64) -> Result<(PathBuf, u64)> {
        let file = group.join("memory.max");
        write_control(&file, &bytes.to_string())?;
        let swap = group.join("memory.swap.max");
        if swap.exists() {
            write_control(&swap, "0")?;
            in_force(&swap, 0, read_number(&swap)?)?;
        }
        let mut effective = read_number(&file)?;
        for outer in group.ancestors().skip(1) {
            // The root of the hierarchy has no limit, and directories above it do not have this
            // file.
            let Ok(text) = fs::read_to_string(outer.join("memory.max")) else {
                break;
            };
            effective = effective.min(text.trim().parse().unwrap_or(u64::MAX));
        }
        Ok((file, effective))
    }

    fn limit_io(&self, group: &Path, disk: DeviceId, caps: &[Cap]) -> Result<()> {
        if caps.is_empty() {
            return Ok(());
        }
        let mut line = disk.to_string();
        for (kind, limit) in caps {
            let limit = limit.map_or("max".to_owned(), |limit| limit.to_string());
            line.push_str(&format!(" {}={limit}", key_of(*kind)));
        }
        write_control(&group.join("io.max"), &line)
    }

    fn io_file(&self, _: LimitKind) -> &'static str {
        "io.max"
    }

    /// Lines of `major:minor rbps=n wbps=max ..`.
    fn io_limit(&self, text: &str, disk: DeviceId, kind: LimitKind) -> Option<u64> {
        let disk = disk.to_string();
        let line = text.lines().find(|l| l.split(' ').next() == Some(&disk))?;
        let value = line.split(' ').find_map(|field| {
            let (name, value) = field.split_once('=')?;
            (name == key_of(kind)).then_some(value)
        })?;
        value.trim().parse().ok()
    }

    fn caps_buffered_writes(&self) -> bool {
        true
    }

    fn memory_events(&self, group: &Path) -> MemoryEvents {
        let events = fs::read_to_string(group.join("memory.events")).unwrap_or_default();
        MemoryEvents {
            limit_hits: field(&events, "max"),
            oom_kills: field(&events, "oom_kill"),
            peak_bytes: number(group, "memory.peak"),
        }
    }
}

fn key_of(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::ReadIops => "riops",
        LimitKind::WriteIops => "wiops",
        LimitKind::ReadBps => "rbps",
        LimitKind::WriteBps => "wbps",
        LimitKind::Memory => "memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_max_lines_are_found_by_device_and_key() {
        let text = "8:16 rbps=2097152 wbps=max riops=max wiops=120\n";
        let of = |minor, kind| V2.io_limit(text, DeviceId { major: 8, minor }, kind);
        assert_eq!(of(16, LimitKind::WriteIops), Some(120));
        assert_eq!(of(16, LimitKind::WriteBps), None);
        assert_eq!(of(1, LimitKind::WriteIops), None);
    }
}

//! Limits in version 2 (kernel: Documentation/admin-guide/cgroup-v2.rst).

use std::fs;
use std::path::Path;

use lab_report::record::{LimitKind, Limits};
use vfs::DeviceId;

use super::cgroups::{Controller, Version};
use super::error::{EnvelopeError, Result};
use super::group::{Group, read_control, read_number, write_control};
use super::status::LimitStatus;
use super::within_tolerance;

/// Ensure that groups below `parent` get `controller`. It stays enabled afterwards, because other
/// groups may depend on it by then.
pub(super) fn delegate(parent: &Path, controller: Controller) -> Result<()> {
    let name = controller.name(Version::V2);
    let file = parent.join("cgroup.subtree_control");
    let enabled = read_control(&file)?;
    if enabled.split_whitespace().any(|word| word == name) {
        return Ok(());
    }
    write_control(&file, &format!("+{name}"))
}

/// Cap memory and disable swap. Returns the limit in force, the limits of outer groups included.
pub(super) fn cap_memory(group: &Group, bytes: u64) -> Result<u64> {
    let file = group.path().join("memory.max");
    write_control(&file, &bytes.to_string())?;
    let swap = group.path().join("memory.swap.max");
    if swap.exists() {
        write_control(&swap, "0")?;
        let found = read_number(&swap)?;
        if found != 0 {
            return Err(not_in_force(&swap, 0, found));
        }
    }
    let mut effective = read_number(&file)?;
    for outer in group.path().ancestors().skip(1) {
        // The root of the hierarchy has no limit, and directories above it do not have this file.
        let Ok(text) = fs::read_to_string(outer.join("memory.max")) else {
            break;
        };
        effective = effective.min(text.trim().parse().unwrap_or(u64::MAX));
    }
    if within_tolerance(bytes, effective) {
        return Ok(effective);
    }
    Err(not_in_force(&file, bytes, effective))
}

/// Cap I/O on `disk`. Returns one status for each of the four limits.
pub(super) fn cap_io(group: &Path, limits: &Limits, disk: DeviceId) -> Result<Vec<LimitStatus>> {
    let file = group.join("io.max");
    let mut line = disk.to_string();
    for (kind, requested) in limits.io() {
        if let Some(limit) = requested {
            line.push_str(&format!(" {}={limit}", key_of(kind)));
        }
    }
    if line.contains('=') {
        write_control(&file, &line)?;
    }
    let text = read_control(&file)?;
    let mut rows = Vec::with_capacity(4);
    for (kind, requested) in limits.io() {
        let Some(limit) = requested else {
            rows.push(LimitStatus::not_requested(kind));
            continue;
        };
        let found = limit_of(&text, disk, key_of(kind)).unwrap_or(u64::MAX);
        if !within_tolerance(limit, found) {
            return Err(not_in_force(&file, limit, found));
        }
        rows.push(LimitStatus::verified(kind, limit, found));
    }
    Ok(rows)
}

/// Remove every cap on `disk`.
pub(super) fn uncap_io(group: &Path, disk: DeviceId) -> Result<()> {
    let mut line = disk.to_string();
    for (kind, _) in Limits::default().io() {
        line.push_str(&format!(" {}=max", key_of(kind)));
    }
    write_control(&group.join("io.max"), &line)
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

/// The limit `key` of `disk` in `io.max`: lines of `major:minor rbps=n wbps=max ..`.
fn limit_of(text: &str, disk: DeviceId, key: &str) -> Option<u64> {
    let disk = disk.to_string();
    let line = text.lines().find(|l| l.split(' ').next() == Some(&disk))?;
    let value = line.split(' ').find_map(|field| {
        let (name, value) = field.split_once('=')?;
        (name == key).then_some(value)
    })?;
    value.trim().parse().ok()
}

fn not_in_force(file: &Path, wanted: u64, found: u64) -> EnvelopeError {
    let found = match found {
        u64::MAX => "no limit".to_owned(),
        n => n.to_string(),
    };
    EnvelopeError::NotInForce {
        path: file.to_owned(),
        wanted,
        found,
        hint: "look for a tighter limit on an outer group, or run uncapped".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_max_lines_are_found_by_device_and_key() {
        let text = "8:16 rbps=2097152 wbps=max riops=max wiops=120\n";
        let sdb = DeviceId {
            major: 8,
            minor: 16,
        };
        assert_eq!(limit_of(text, sdb, "wiops"), Some(120));
        assert_eq!(limit_of(text, sdb, "wbps"), None);
        assert_eq!(
            limit_of(text, DeviceId { major: 8, minor: 1 }, "wiops"),
            None
        );
    }
}

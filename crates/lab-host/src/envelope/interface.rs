//! Limits of a group, whatever the version of its interface: written, then read back.

use std::path::{Path, PathBuf};

use lab_report::record::{LimitKind, Limits};
use vfs::DeviceId;

use super::TOLERANCE_PERCENT;
use super::cgroups::{Controller, Version};
use super::error::{EnvelopeError, Result};
use super::events::MemoryEvents;
use super::group::{Group, read_control};
use super::status::LimitStatus;
use super::v1::V1;
use super::v2::V2;

/// The control files of one version.
pub(super) trait Interface {
    /// Ensure that groups below `parent` get `controller`.
    fn delegate(&self, parent: &Path, controller: Controller) -> Result<()>;

    /// Write a memory limit and keep memory from being replaced by swap. Returns the file of the
    /// limit and the limit in force, outer groups included.
    fn limit_memory(&self, group: &Path, bytes: u64) -> Result<(PathBuf, u64)>;

    /// Write I/O limits of `disk`; `None` removes one.
    fn limit_io(&self, group: &Path, disk: DeviceId, caps: &[Cap]) -> Result<()>;

    /// The file of an I/O limit.
    fn io_file(&self, kind: LimitKind) -> &'static str;

    /// The limit of `disk` in the contents of that file.
    fn io_limit(&self, text: &str, disk: DeviceId, kind: LimitKind) -> Option<u64>;

    /// Whether an I/O limit covers writes that the kernel's flusher submits.
    fn caps_buffered_writes(&self) -> bool;

    /// Events at the memory limit; fields are `None` for what the kernel does not show.
    fn memory_events(&self, group: &Path) -> MemoryEvents;
}

/// An I/O limit and its value.
pub(super) type Cap = (LimitKind, Option<u64>);

impl Version {
    pub(super) fn interface(self) -> &'static dyn Interface {
        match self {
            Version::V1 => &V1,
            Version::V2 => &V2,
        }
    }

    /// Cap memory, swap included. Returns the limit in force.
    pub(super) fn cap_memory(self, group: &Group, bytes: u64) -> Result<u64> {
        let (file, effective) = self.interface().limit_memory(group.path(), bytes)?;
        in_force(&file, bytes, effective)
    }

    /// Cap I/O on `disk`. Returns one status for each of the four limits.
    pub(super) fn cap_io(
        self,
        group: &Path,
        limits: &Limits,
        disk: DeviceId,
    ) -> Result<Vec<LimitStatus>> {
        let interface = self.interface();
        let mut caps = limits.io().to_vec();
        caps.retain(|(_, limit)| limit.is_some());
        interface.limit_io(group, disk, &caps)?;
        let row = |(kind, requested): Cap| {
            let Some(limit) = requested else {
                return Ok(LimitStatus::not_requested(kind));
            };
            let file = group.join(interface.io_file(kind));
            let found = interface.io_limit(&read_control(&file)?, disk, kind);
            let effective = in_force(&file, limit, found.unwrap_or(u64::MAX))?;
            Ok(LimitStatus::verified(kind, limit, effective))
        };
        limits.io().into_iter().map(row).collect()
    }

    /// Remove every cap on `disk`.
    pub(super) fn uncap_io(self, group: &Path, disk: DeviceId) -> Result<()> {
        let caps = Limits::default().io();
        self.interface().limit_io(group, disk, &caps)
    }
}

/// Check that the value read back from `file` is the wanted one (I1). Returns that value.
pub(super) fn in_force(file: &Path, wanted: u64, found: u64) -> Result<u64> {
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

fn within_tolerance(wanted: u64, effective: u64) -> bool {
    let allowed = u128::from(wanted) * u128::from(TOLERANCE_PERCENT);
    u128::from(wanted.abs_diff(effective)) * 100 <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerance_is_two_percent_either_way() {
        assert!(within_tolerance(1000, 1020) && within_tolerance(1000, 980));
        assert!(
            !within_tolerance(1000, 1021) && !within_tolerance(1000, 979),
            "I1: not verified"
        );
        assert!(!within_tolerance(1000, u64::MAX) && within_tolerance(0, 0));
    }
}

//! The envelope: limits on memory, I/O operations and bandwidth, enforced by the kernel on a
//! worker process and everything it starts.
//!
//! A worker runs in control groups (Linux cgroups, version 1 or 2) made for it alone and named
//! `romanesco-<pid of the laboratory>-<n>`. Invariants:
//!
//! - I1. A limit is reported as verified only after it was read back from the kernel, within
//!   [`TOLERANCE_PERCENT`] of the requested value, outer groups included.
//! - I2. A limit that cannot be enforced is in [`EnvelopeStatus`] with the reason; it is never
//!   silently absent.
//! - I3. The groups lie below the group this process is in (or the nearest ancestor that can
//!   hold them), so limits set from outside stay in force.
//! - I4. Dropping the envelope ends what still runs in its groups and removes them; after a
//!   `kill -9` of the laboratory, [`remove_stale`] of the next run does.
//!
//! What the memory limit covers: anonymous memory *and* the page cache of the files that the worker
//! accesses, so engine cache plus page cache share one budget. The worker cannot use swap (in
//! version 1: at most 1 MiB), since swapping would give it memory at the price of I/O that is not
//! counted. Memory used before [`Envelope::admit`] stays charged to the process's previous group:
//! admit a worker before it opens its store.
//!
//! What the I/O limits cover: version 1 throttles the I/O that a process submits itself, that is,
//! reads and direct writes; buffered writes are submitted by the kernel's flusher and are *not*
//! capped. Version 2 with the memory controller also caps buffered writes.

mod cgroups;
mod device;
mod error;
mod events;
mod group;
mod interface;
pub(crate) mod mounts;
mod stale;
mod status;
mod v1;
mod v2;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use vfs::DeviceId;

pub use cgroups::{Access, Cgroups, Controller, Version};
pub use device::{data_device, device_name, whole_disk};
pub use error::{EnvelopeError, Result};
pub use events::MemoryEvents;
pub use stale::remove_stale;
pub use status::{EnvelopeStatus, LimitStatus, Mode, Outcome};

use group::Group;
use lab_report::record::{BUFFERED_WRITES, LimitKind, Limits};

/// Maximum difference between a requested limit and the value read back from the kernel, in
/// percent. Memory limits are rounded to pages (4 KiB; 64 KiB on some machines: 0.1 % of the
/// smallest limit).
pub const TOLERANCE_PERCENT: u64 = 2;

/// The next `<n>` in the name of a group of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The groups of one worker and the limits in force there; see the module documentation.
#[derive(Debug)]
#[must_use = "dropping the envelope kills what runs in it"]
pub struct Envelope {
    memory: Option<(Version, Group)>,
    /// The group of the I/O controller; `None` also when `memory` is the group of both controllers.
    io: Option<(Version, Group)>,
    io_shares_memory_group: bool,
    proc_root: PathBuf,
    status: EnvelopeStatus,
}

impl Envelope {
    /// Create the groups, write the limits, and read them back.
    ///
    /// `device` holds the data (see [`vfs::device_of`]); for a partition the whole disk is capped,
    /// because the kernel throttles whole disks. Limits whose controller is not usable are no
    /// errors: [`Envelope::status`] reports them as not capped, so check
    /// [`EnvelopeStatus::fully_enforced`]. Groups are created for usable controllers even without
    /// limits, because sampling reads their counters.
    ///
    /// # Errors
    /// [`EnvelopeError::Limit`] if the limits are not sensible, [`EnvelopeError::Io`] if the kernel
    /// rejects a group or a limit, [`EnvelopeError::NotInForce`] if a different value is read back.
    /// No group is left behind.
    pub fn create(
        cgroups: &Cgroups,
        limits: &Limits,
        device: Option<DeviceId>,
    ) -> Result<Envelope> {
        limits.check().map_err(EnvelopeError::Limit)?;
        let name = format!(
            "{}{}-{}",
            group::PREFIX,
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let mut envelope = Envelope {
            memory: None,
            io: None,
            io_shares_memory_group: false,
            proc_root: cgroups.proc_root().to_owned(),
            status: EnvelopeStatus::new(cgroups.mode()),
        };
        envelope.make_groups(cgroups, &name)?;
        envelope.cap_memory(cgroups, limits)?;
        envelope.cap_io(cgroups, limits, device)?;
        Ok(envelope)
    }

    /// An envelope without groups: the worker runs uncapped, and every limit of `limits` is
    /// reported as not capped for `reason`.
    pub fn uncapped(limits: &Limits, reason: &str) -> Envelope {
        let mut status = EnvelopeStatus::new(Mode::None);
        status.warnings.push(format!("uncapped: {reason}"));
        for (kind, requested) in limits.each() {
            status
                .limits
                .push(LimitStatus::not_capped(kind, requested, reason));
        }
        Envelope {
            memory: None,
            io: None,
            io_shares_memory_group: false,
            proc_root: PathBuf::from("/proc"),
            status,
        }
    }

    /// Replace the I/O limits and read them back. The memory limit stays.
    ///
    /// # Errors
    /// As [`Envelope::create`].
    pub fn recap(
        &mut self,
        cgroups: &Cgroups,
        limits: &Limits,
        device: Option<DeviceId>,
    ) -> Result<()> {
        limits.check().map_err(EnvelopeError::Limit)?;
        self.status
            .limits
            .retain(|row| row.limit == LimitKind::Memory);
        let place = self.io_group().map(|(v, path)| (v, path.to_owned()));
        let disk = device.and_then(|d| whole_disk(cgroups.sys_root(), d).ok());
        if let (Some((version, path)), Some(disk)) = (place, disk) {
            version.uncap_io(&path, disk)?;
        }
        self.cap_io(cgroups, limits, device)?;
        let mut seen = Vec::new();
        self.status.warnings.retain(|warning| {
            let new = !seen.contains(warning);
            seen.push(warning.clone());
            new
        });
        Ok(())
    }

    /// Move process `pid`, with all its threads, into the groups. Children that it starts later are
    /// created in them. Without groups this has no effect.
    ///
    /// # Errors
    /// [`EnvelopeError::Gone`] if there is no such process, [`EnvelopeError::Io`] if the kernel
    /// rejects the move, [`EnvelopeError::NotAdmitted`] if `/proc/PID/cgroup` does not confirm it.
    pub fn admit(&self, pid: u32) -> Result<()> {
        for (version, controller, group) in self.groups() {
            group.admit(pid)?;
            group.confirm(pid, version, controller, &self.proc_root)?;
        }
        Ok(())
    }

    /// Which limits are in force and which are not, for the report.
    #[must_use]
    pub fn status(&self) -> &EnvelopeStatus {
        &self.status
    }

    /// Events at the memory limit so far; `None` without a memory group.
    #[must_use]
    pub fn memory_events(&self) -> Option<MemoryEvents> {
        let (version, group) = self.memory.as_ref()?;
        events::read(*version, group.path())
    }

    /// The group that accounts memory, and its version.
    #[must_use]
    pub fn memory_group(&self) -> Option<(Version, &Path)> {
        self.memory.as_ref().map(|(v, g)| (*v, g.path()))
    }

    /// The group that accounts I/O, and its version.
    #[must_use]
    pub fn io_group(&self) -> Option<(Version, &Path)> {
        if self.io_shares_memory_group {
            return self.memory_group();
        }
        self.io.as_ref().map(|(v, g)| (*v, g.path()))
    }

    fn groups(&self) -> impl Iterator<Item = (Version, Controller, &Group)> {
        let memory = self.memory.iter().map(|(v, g)| (*v, Controller::Memory, g));
        let io = self.io.iter().map(|(v, g)| (*v, Controller::Io, g));
        memory.chain(io)
    }

    fn make_groups(&mut self, cgroups: &Cgroups, name: &str) -> Result<()> {
        if let Access::Usable { version, parent } = cgroups.access(Controller::Memory) {
            version.interface().delegate(parent, Controller::Memory)?;
            let group = Group::create(cgroups, parent, name)?;
            self.status.groups.push(group.path().to_owned());
            self.memory = Some((*version, group));
        }
        let Access::Usable { version, parent } = cgroups.access(Controller::Io) else {
            return Ok(());
        };
        version.interface().delegate(parent, Controller::Io)?;
        let shared = (self.memory_group(), *version);
        if matches!(shared, (Some((Version::V2, _)), Version::V2)) {
            // Version 2 has one hierarchy, so detection found the same parent for both controllers.
            self.io_shares_memory_group = true;
            return Ok(());
        }
        let group = Group::create(cgroups, parent, name)?;
        self.status.groups.push(group.path().to_owned());
        self.io = Some((*version, group));
        Ok(())
    }

    fn cap_memory(&mut self, cgroups: &Cgroups, limits: &Limits) -> Result<()> {
        let requested = limits.memory.map(|m| m.bytes());
        let status = match (requested, self.memory.as_ref()) {
            (None, _) => LimitStatus::not_requested(LimitKind::Memory),
            (Some(bytes), Some((version, group))) => {
                let effective = version.cap_memory(group, bytes)?;
                LimitStatus::verified(LimitKind::Memory, bytes, effective)
            }
            (Some(_), None) => {
                let reason = cgroups.access(Controller::Memory).reason();
                self.status
                    .warnings
                    .push(format!("memory is not capped: {reason}"));
                LimitStatus::not_capped(LimitKind::Memory, requested, reason)
            }
        };
        self.status.limits.push(status);
        Ok(())
    }

    fn cap_io(
        &mut self,
        cgroups: &Cgroups,
        limits: &Limits,
        device: Option<DeviceId>,
    ) -> Result<()> {
        let disk = device
            .ok_or_else(|| "the device of the data directory is not known".to_owned())
            .and_then(|d| whole_disk(cgroups.sys_root(), d));
        self.status.device = disk.as_ref().ok().map(DeviceId::to_string);
        let wanted = limits.io().iter().any(|(_, limit)| limit.is_some());
        let place = self.io_group().map(|(v, path)| (v, path.to_owned()));
        let mut rows = Vec::new();
        match (place, disk) {
            (Some((version, path)), Ok(disk)) => {
                rows = version.cap_io(&path, limits, disk)?;
                if wanted && !version.interface().caps_buffered_writes() {
                    self.status.warnings.push(BUFFERED_WRITES.to_owned());
                }
            }
            (None, _) => {
                let reason = cgroups.access(Controller::Io).reason();
                self.refuse_io(limits, &mut rows, reason);
            }
            (Some(_), Err(reason)) => self.refuse_io(limits, &mut rows, &reason),
        }
        self.status.limits.append(&mut rows);
        Ok(())
    }

    fn refuse_io(&mut self, limits: &Limits, rows: &mut Vec<LimitStatus>, reason: &str) {
        for (kind, requested) in limits.io() {
            rows.push(LimitStatus::not_capped(kind, requested, reason));
        }
        if rows.iter().any(|row| row.requested.is_some()) {
            self.status
                .warnings
                .push(format!("I/O is not capped: {reason}"));
        }
    }
}

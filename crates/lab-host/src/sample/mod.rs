//! Kernel counters of a worker: processor, memory, I/O, pressure, sizes.
//!
//! A [`Sampler`] reads all of them at once as an [`OsSample`]: counters and gauges with their
//! current values; the difference of two samples is an [`OsDelta`]. Invariants:
//!
//! - S1. What the kernel does not show is `None`, never 0.
//! - S2. Counters never run backwards while the process lives, although threads end meanwhile.
//! - S3. A sample never fails: a process that is gone leaves `None`.
//!
//! Which device counters are reliable: `/proc/PID/io` counts buffered writes when pages are
//! dirtied, not when they reach the device, and omits what the file system adds. Group counters
//! omit even more: version 1 charges writeback by the flusher to the root group, and its throttle
//! counts nothing until a limit was set on the device once; version 2 charges writeback to the
//! writer; and both charge a journal that a kernel thread writes to that thread. So the counters of
//! the *whole disk* are authoritative for bytes and operations ([`DeviceSource::WholeDisk`]): they
//! omit nothing. They do include the I/O of other users of the disk, but a run needs an otherwise
//! idle disk anyway. Group counters are reported beside them, and are used as a lower bound only if
//! no disk is visible.

mod cgroup;
mod delta;
mod device;
mod family;
mod machine;
mod pressure;
mod process;
mod source;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vfs::DeviceId;

use crate::envelope::{Envelope, device_name, whole_disk};

pub use cgroup::CgroupMemory;
pub use delta::OsDelta;
pub use device::{DeviceIo, DeviceSource};
pub use machine::{MachineDelta, MachineSample};
pub use pressure::{Pressure, PressureTotals};
pub use process::{ContextSwitches, ProcessIo, ProcessSample, SelfUsage, self_usage};

use cgroup::{GroupIo, GroupMemory};
use device::DiskStat;
use family::Family;
use machine::Machine;
use pressure::PressureFiles;

/// All kernel counters and gauges at one moment. Counters count from the start of the process,
/// group or machine that they belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OsSample {
    /// Time since the creation of the sampler.
    pub at: Duration,
    /// The process; `None` once it has ended.
    pub process: Option<ProcessSample>,
    /// Memory of the worker's group.
    pub memory: Option<CgroupMemory>,
    /// The device that holds the data, by the source named in `device_source`.
    pub device: Option<DeviceIo>,
    /// The source of `device`.
    pub device_source: DeviceSource,
    /// The group's own counters of the same device: without journal, and in version 1 without
    /// buffered writes.
    pub group_io: Option<DeviceIo>,
    /// Pressure stall information of the whole system.
    pub pressure: Pressure,
    /// Pressure stall information of the worker's group (version 2 only).
    pub group_pressure: Pressure,
    /// The machine, and what other programs do on it.
    pub machine: Option<MachineSample>,
    /// Files of the data directory.
    pub data: Option<DataSize>,
}

/// Number and sizes of the files below the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSize {
    /// Number of files.
    pub files: u64,
    /// The sum of their lengths, in bytes.
    pub length_bytes: u64,
    /// The disk space that they occupy, in bytes.
    pub allocated_bytes: u64,
}

/// Reads samples of one worker. Keeps files open and reuses its buffer, so that sampling stays
/// cheap; use it from one thread.
#[derive(Debug)]
pub struct Sampler {
    started: std::time::Instant,
    process: Family,
    memory: Option<GroupMemory>,
    group_io: Option<GroupIo>,
    disk: Option<DiskStat>,
    pressure: PressureFiles,
    group_pressure: PressureFiles,
    machine: Machine,
    data_dir: PathBuf,
    disk_name: Option<String>,
}

/// The files of a process. Without a process, id 0 is used, which no process has, so that nothing
/// is read.
fn process(pid: Option<u32>) -> Family {
    Family::new(Path::new("/proc"), pid.unwrap_or(0))
}

impl Sampler {
    /// A sampler of process `pid` (`None` if it is not visible) running in `envelope`, with its
    /// data in `data_dir` on `device`.
    #[must_use]
    pub fn new(
        pid: Option<u32>,
        envelope: &Envelope,
        data_dir: &Path,
        device: Option<DeviceId>,
    ) -> Sampler {
        let sys = Path::new("/sys");
        let disk = device.and_then(|d| whole_disk(sys, d).ok());
        let io_group = envelope.io_group();
        // A measured server may run already, as the child of another program.
        let roots: Vec<u32> = pid.into_iter().chain([std::process::id()]).collect();
        Sampler {
            started: stdx::time::now(),
            process: process(pid),
            memory: envelope
                .memory_group()
                .map(|(v, path)| GroupMemory::new(v, path)),
            group_io: io_group
                .zip(disk)
                .map(|((version, path), disk)| GroupIo::new(version, path, disk)),
            disk: disk.map(|d| DiskStat::new(sys, d)),
            pressure: PressureFiles::of_system(Path::new("/proc")),
            group_pressure: PressureFiles::of_group(envelope.memory_group()),
            machine: Machine::new(Path::new("/proc"), &roots),
            data_dir: data_dir.to_owned(),
            disk_name: disk.and_then(|d| device_name(sys, d)),
        }
    }

    /// The name of the disk whose counters are read, such as `vda`.
    #[must_use]
    pub fn disk_name(&self) -> Option<&str> {
        self.disk_name.as_deref()
    }

    /// Take a sample.
    pub fn sample(&mut self) -> OsSample {
        let disk = self.disk.as_mut().and_then(DiskStat::read);
        let group_io = self.group_io.as_mut().and_then(GroupIo::read);
        let (device, device_source) = device::truth(disk, group_io);
        OsSample {
            at: stdx::time::now().duration_since(self.started),
            process: self.process.read(),
            memory: self.memory.as_mut().and_then(GroupMemory::read),
            device,
            device_source,
            group_io,
            pressure: self.pressure.read(),
            group_pressure: self.group_pressure.read(),
            machine: self.machine.read(),
            data: vfs::usage(&self.data_dir).ok().map(|usage| DataSize {
                files: usage.files,
                length_bytes: usage.length_bytes,
                allocated_bytes: usage.allocated_bytes,
            }),
        }
    }
}

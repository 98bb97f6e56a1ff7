//! The difference between two samples.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::device::DeviceIo;
use super::machine::MachineDelta;
use super::pressure::{Pressure, PressureTotals};
use super::process::{ContextSwitches, ProcessIo};
use super::{DeviceSource, OsSample};

/// The increase of every counter from one sample to a later one. Gauges (memory, sizes) are in the
/// samples themselves. `None` if either sample lacks the counter, or if it decreased (because it
/// belongs to another process or group, or has wrapped).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OsDelta {
    /// Time between the two samples.
    pub elapsed: Duration,
    /// Processor seconds in user mode.
    pub cpu_user_s: Option<f64>,
    /// Processor seconds in the kernel.
    pub cpu_system_s: Option<f64>,
    /// Page faults that needed I/O.
    pub major_faults: Option<u64>,
    /// Context switches.
    pub switches: Option<ContextSwitches>,
    /// The process's own I/O counters.
    pub process_io: Option<ProcessIo>,
    /// Counters of the device, from the source in `device_source`.
    pub device: Option<DeviceIo>,
    /// The source of `device`.
    pub device_source: DeviceSource,
    /// The group's own counters of the device. The kernel shows them from the group's first I/O on,
    /// so a count missing in the earlier sample is taken as zero.
    pub group_io: Option<DeviceIo>,
    /// Microseconds of stalls in the whole system, by resource.
    pub pressure: Pressure,
    /// Microseconds of stalls in the worker's group, by resource.
    pub group_pressure: Pressure,
    /// What other programs did on the machine.
    pub machine: Option<MachineDelta>,
    /// Growth of the data's disk space, in bytes; negative if it shrank.
    pub allocated_bytes: Option<i64>,
}

impl OsSample {
    /// The difference from `earlier` to this sample.
    #[must_use]
    pub fn since(&self, earlier: &OsSample) -> OsDelta {
        let process = self.process.as_ref().zip(earlier.process.as_ref());
        let seconds = |now: f64, then: f64| (now >= then).then_some(now - then);
        let data = self.data.zip(earlier.data);
        let same_source = self.device_source == earlier.device_source;
        let device = self.device.zip(earlier.device).filter(|_| same_source);
        let group_before = earlier.group_io.unwrap_or_default();
        OsDelta {
            elapsed: self.at.saturating_sub(earlier.at),
            cpu_user_s: process.and_then(|(n, t)| seconds(n.cpu_user_s, t.cpu_user_s)),
            cpu_system_s: process.and_then(|(n, t)| seconds(n.cpu_system_s, t.cpu_system_s)),
            major_faults: process.and_then(|(n, t)| n.major_faults.checked_sub(t.major_faults)),
            switches: process
                .and_then(|(n, t)| n.switches.zip(t.switches))
                .and_then(|(n, t)| switches_since(n, t)),
            process_io: process
                .and_then(|(n, t)| n.io.zip(t.io))
                .and_then(|(n, t)| process_io_since(n, t)),
            device: device.and_then(|(now, then)| device_since(now, then)),
            device_source: self.device_source,
            group_io: self
                .group_io
                .and_then(|now| device_since(now, group_before)),
            pressure: pressure_since(self.pressure, earlier.pressure),
            group_pressure: pressure_since(self.group_pressure, earlier.group_pressure),
            machine: self
                .machine
                .as_ref()
                .zip(earlier.machine.as_ref())
                .and_then(|(now, then)| now.since(then)),
            allocated_bytes: data.and_then(|(now, then)| {
                now.allocated_bytes
                    .checked_signed_diff(then.allocated_bytes)
            }),
        }
    }
}

fn switches_since(now: ContextSwitches, then: ContextSwitches) -> Option<ContextSwitches> {
    Some(ContextSwitches {
        voluntary: now.voluntary.checked_sub(then.voluntary)?,
        involuntary: now.involuntary.checked_sub(then.involuntary)?,
    })
}

fn process_io_since(now: ProcessIo, then: ProcessIo) -> Option<ProcessIo> {
    Some(ProcessIo {
        read_bytes: now.read_bytes.checked_sub(then.read_bytes)?,
        write_bytes: now.write_bytes.checked_sub(then.write_bytes)?,
        cancelled_write_bytes: now
            .cancelled_write_bytes
            .checked_sub(then.cancelled_write_bytes)?,
        read_calls: now.read_calls.checked_sub(then.read_calls)?,
        write_calls: now.write_calls.checked_sub(then.write_calls)?,
    })
}

fn device_since(now: DeviceIo, then: DeviceIo) -> Option<DeviceIo> {
    let optional = |now: Option<u64>, then: Option<u64>| now.zip(then)?.0.checked_sub(then?);
    Some(DeviceIo {
        reads: now.reads.checked_sub(then.reads)?,
        writes: now.writes.checked_sub(then.writes)?,
        read_bytes: now.read_bytes.checked_sub(then.read_bytes)?,
        write_bytes: now.write_bytes.checked_sub(then.write_bytes)?,
        discard_bytes: optional(now.discard_bytes, then.discard_bytes),
        flushes: optional(now.flushes, then.flushes),
        read_ms: optional(now.read_ms, then.read_ms),
        write_ms: optional(now.write_ms, then.write_ms),
        busy_ms: optional(now.busy_ms, then.busy_ms),
        queue_ms: optional(now.queue_ms, then.queue_ms),
    })
}

fn pressure_since(now: Pressure, then: Pressure) -> Pressure {
    let totals = |now: Option<PressureTotals>, then: Option<PressureTotals>| {
        let (now, then) = now.zip(then)?;
        let full = now.full_us.zip(then.full_us);
        Some(PressureTotals {
            some_us: now.some_us.checked_sub(then.some_us)?,
            full_us: full.and_then(|(n, t)| n.checked_sub(t)),
        })
    };
    Pressure {
        cpu: totals(now.cpu, then.cpu),
        io: totals(now.io, then.io),
        memory: totals(now.memory, then.memory),
    }
}

//! The resource limits of a run.

use std::fmt;

use serde::{Deserialize, Serialize};
use stdx::ByteSize;

/// The smallest memory limit, 64 MiB. A worker holds 30 to 40 MiB before its engine caches one
/// page: program text, thread stacks, allocator arenas, histograms. Below twice that, the run
/// measures the kernel reclaiming program text, or ends by the OOM killer, whatever the engine.
pub const MEMORY_MIN: ByteSize = ByteSize::mib(64);

/// The largest limit on operations per second: the kernel keeps 32 bits, and all of them set means
/// unlimited.
pub const IOPS_MAX: u64 = (u32::MAX - 1) as u64;

/// The warning that every report of an I/O cap under control groups v1 must show.
pub const BUFFERED_WRITES: &str = "cgroup v1 caps what the process itself submits: reads, \
    direct writes and the writes of its own syncs; buffered writes that the kernel writes out \
    later are not capped; a fair comparison needs direct I/O on every target";

/// The limits of a run; `None` leaves that resource unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Anonymous memory and page cache together.
    pub memory: Option<ByteSize>,
    /// Reads per second from the device.
    pub read_iops: Option<u64>,
    /// Writes per second to the device.
    pub write_iops: Option<u64>,
    /// Bytes per second read from the device.
    pub read_bps: Option<u64>,
    /// Bytes per second written to the device.
    pub write_bps: Option<u64>,
}

impl Limits {
    /// The limits of a step with its own caps on reads and on writes per second, and on the bytes
    /// of each: the lower ones apply.
    #[must_use]
    pub fn within(self, iops: Option<u64>, bytes: Option<u64>) -> Limits {
        let lower = |own: Option<u64>, cap: Option<u64>| match (own, cap) {
            (Some(own), Some(cap)) => Some(own.min(cap)),
            (own, cap) => own.or(cap),
        };
        Limits {
            read_iops: lower(self.read_iops, iops),
            write_iops: lower(self.write_iops, iops),
            read_bps: lower(self.read_bps, bytes),
            write_bps: lower(self.write_bps, bytes),
            ..self
        }
    }

    /// Refuse limits that no run can work with.
    ///
    /// # Errors
    /// A sentence, when memory is below [`MEMORY_MIN`] or another limit is 0 or a limit on
    /// operations above [`IOPS_MAX`].
    pub fn check(&self) -> Result<(), String> {
        if let Some(memory) = self.memory
            && memory < MEMORY_MIN
        {
            return Err(format!(
                "a memory limit of {memory} is below the minimum of {MEMORY_MIN}: a worker needs \
                 about half of that before its engine caches anything; ask for {MEMORY_MIN} or more"
            ));
        }
        for (kind, limit) in self.each() {
            if limit == Some(0) {
                return Err(format!(
                    "a {kind} limit of 0 would stop the run (and the kernel reads 0 as unlimited); \
                     leave the limit out or ask for 1 or more"
                ));
            }
            let is_iops = matches!(kind, LimitKind::ReadIops | LimitKind::WriteIops);
            if is_iops && limit.is_some_and(|n| n > IOPS_MAX) {
                return Err(format!(
                    "a {kind} limit above {IOPS_MAX} is none to the kernel; leave the limit out"
                ));
            }
        }
        Ok(())
    }

    /// True when nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Limits::default()
    }

    /// Every limit with its kind, in the order reports print them.
    #[must_use]
    pub fn each(&self) -> [(LimitKind, Option<u64>); 5] {
        [
            (LimitKind::Memory, self.memory.map(ByteSize::bytes)),
            (LimitKind::ReadIops, self.read_iops),
            (LimitKind::WriteIops, self.write_iops),
            (LimitKind::ReadBps, self.read_bps),
            (LimitKind::WriteBps, self.write_bps),
        ]
    }

    /// The limits on the device: all of [`Limits::each`] but memory.
    #[must_use]
    pub fn io(&self) -> [(LimitKind, Option<u64>); 4] {
        let [_, read_iops, write_iops, read_bps, write_bps] = self.each();
        [read_iops, write_iops, read_bps, write_bps]
    }
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Bytes of memory, page cache included.
    Memory,
    /// Device reads per second.
    ReadIops,
    /// Device writes per second.
    WriteIops,
    /// Device bytes read per second.
    ReadBps,
    /// Device bytes written per second.
    WriteBps,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LimitKind::Memory => "memory",
            LimitKind::ReadIops => "read IOPS",
            LimitKind::WriteIops => "write IOPS",
            LimitKind::ReadBps => "read B/s",
            LimitKind::WriteBps => "write B/s",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_refused_and_the_minimum_named() {
        let limits = Limits {
            memory: Some(ByteSize::mib(63)),
            ..Limits::default()
        };
        let message = limits.check().unwrap_err();
        assert!(
            message.contains("63M") && message.contains("64M"),
            "{message}"
        );
        let enough = Limits {
            memory: Some(MEMORY_MIN),
            ..Limits::default()
        };
        enough.check().unwrap();
    }

    #[test]
    fn zero_is_refused_and_named() {
        let limits = Limits {
            write_iops: Some(0),
            ..Limits::default()
        };
        let message = limits.check().unwrap_err();
        assert!(message.contains("write IOPS"), "{message}");
        Limits::default().check().unwrap();
        let endless = Limits {
            read_iops: Some(IOPS_MAX + 1),
            ..Limits::default()
        };
        assert!(endless.check().unwrap_err().contains("read IOPS"));
        assert!(Limits::default().is_unlimited() && !limits.is_unlimited());
    }

    #[test]
    fn the_cap_of_a_step_does_not_loosen_that_of_the_run() {
        let run = Limits {
            memory: Some(MEMORY_MIN),
            read_iops: Some(100),
            write_iops: Some(300),
            ..Limits::default()
        };
        let step = run.within(Some(200), None);
        assert_eq!((step.read_iops, step.write_iops), (Some(100), Some(200)));
        assert_eq!((step.memory, run.within(None, None)), (run.memory, run));
        let alone = Limits::default().within(Some(200), Some(5000));
        assert_eq!((alone.read_iops, alone.write_iops), (Some(200), Some(200)));
        assert_eq!((alone.read_bps, alone.write_bps), (Some(5000), Some(5000)));
    }
}

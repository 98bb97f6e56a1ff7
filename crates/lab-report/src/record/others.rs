//! What other programs did on the machine during a step, and when that disturbs it.
//!
//! - O1. A step is disturbed by what could by itself explain a difference of the size that verdicts
//!   turn on: 5 % ([`crate::analysis::EQUAL`], also the largest noise floor that is stored). So
//!   other programs may use 5 % of the machine's processor time, and move 5 % as many bytes as the
//!   device of the run moved.
//! - O2. Time that the hypervisor gave to others counts from 2 %: it comes in slices of several
//!   milliseconds that stop everything at once, so it shows in latencies before it does in rates.
//! - O3. Bytes count from [`BYTES_LEAST`] a second on: a step in memory moves almost none, and the
//!   logs of an idle machine would disturb it.
//! - O4. Steps below [`JUDGED_SECONDS`] are not judged: the kernel counts time in ticks of 10 ms.
//! - O5. Pressure (PSI) is recorded and decides nothing: the run itself causes most of it.

use serde::{Deserialize, Serialize};

use crate::format;

/// Share of the machine's processor time that other programs may use (O1).
pub const CPU_SHARE: f64 = 0.05;

/// Bytes that other programs may move, relative to the bytes the device moved (O1).
const BYTES_SHARE: f64 = 0.05;

/// Share of the machine's processor time that the hypervisor may take (O2).
pub const STEAL_SHARE: f64 = 0.02;

/// Bytes a second below which those of other programs do not count (O3): 1 MiB.
pub const BYTES_LEAST: f64 = 1_048_576.0;

/// Minimum duration of a step that is judged, in seconds (O4).
pub const JUDGED_SECONDS: f64 = 2.0;

/// Another program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Busiest {
    /// Its name, without arguments.
    pub name: String,
    /// Its share of the machine's processor time, 0 to 1.
    pub cpu: f64,
}

/// What other programs did during a step. Shares are of the machine's processor time, 0 to 1, over
/// the load; bytes are over the load and its settling. `None`: the machine does not show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Seconds of the load.
    pub seconds: f64,
    /// Seconds of the load and its settling.
    pub seconds_settled: f64,
    /// Number of processors.
    pub cpus: u32,
    /// The share that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// The share that other programs used.
    pub cpu: Option<f64>,
    /// The other program that used most of it, if one that lived long enough was seen.
    pub busiest: Option<Busiest>,
    /// Bytes that other programs read from disks or wrote to them.
    pub bytes: Option<u64>,
    /// Bytes that the device of the run moved, all programs together.
    pub device_bytes: Option<u64>,
    /// Share of the load in which some task of the machine waited for a processor (PSI).
    pub psi_cpu: Option<f64>,
    /// The same for I/O.
    pub psi_io: Option<f64>,
    /// The same for memory.
    pub psi_memory: Option<f64>,
    /// Why the step is disturbed; empty if it is not.
    pub disturbed: Vec<String>,
}

impl Others {
    /// These numbers with the reasons for which they disturb the step.
    #[must_use]
    pub fn judged(mut self) -> Others {
        self.disturbed = match JUDGED_SECONDS <= self.seconds {
            true => [self.by_steal(), self.by_cpu(), self.by_bytes()]
                .into_iter()
                .flatten()
                .collect(),
            false => Vec::new(),
        };
        self
    }

    fn by_steal(&self) -> Option<String> {
        let share = self.steal.filter(|&share| STEAL_SHARE < share)?;
        Some(format!(
            "the hypervisor took {} of the CPU time",
            format::percent(share)
        ))
    }

    fn by_cpu(&self) -> Option<String> {
        let share = self.cpu.filter(|&share| CPU_SHARE < share)?;
        let most = self.busiest.as_ref().filter(|most| share / 4.0 < most.cpu);
        let most = most.map_or(String::new(), |most| format!(", most of all {}", most.name));
        Some(format!(
            "other programs used {} of the CPU time{most}",
            format::percent(share)
        ))
    }

    fn by_bytes(&self) -> Option<String> {
        let bytes = self.bytes? as f64;
        let device = self.device_bytes.unwrap_or(0) as f64;
        let rate = bytes / self.seconds_settled.max(self.seconds);
        (BYTES_LEAST <= rate && device * BYTES_SHARE < bytes).then(|| {
            format!(
                "other programs read and wrote {} ({}/s)",
                format::bytes(bytes),
                format::bytes(rate)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Others {
        Others {
            seconds: 30.0,
            seconds_settled: 40.0,
            cpus: 2,
            steal: Some(0.02),
            cpu: Some(0.05),
            bytes: Some(50 << 20),
            device_bytes: Some(1000 << 20),
            ..Others::default()
        }
    }

    #[test]
    fn a_step_is_disturbed_beyond_each_threshold() {
        assert_eq!(quiet().judged().disturbed, Vec::<String>::new(), "O1, O2");
        let reason = |others: Others| others.judged().disturbed.join("; ");
        let busy = reason(Others {
            cpu: Some(0.31),
            busiest: Some(Busiest {
                name: "rustc".to_owned(),
                cpu: 0.2,
            }),
            ..quiet()
        });
        assert_eq!(
            busy, "other programs used 31 % of the CPU time, most of all rustc",
            "O1"
        );
        let stolen = reason(Others {
            steal: Some(0.04),
            ..quiet()
        });
        assert!(stolen.starts_with("the hypervisor took 4"), "O2: {stolen}");
        let written = reason(Others {
            bytes: Some(60 << 20),
            ..quiet()
        });
        assert!(
            written.starts_with("other programs read and wrote"),
            "O1: {written}"
        );
    }

    #[test]
    fn few_bytes_and_short_steps_are_not_judged() {
        let little = Others {
            bytes: Some(39 << 20),
            device_bytes: Some(0),
            ..quiet()
        };
        assert!(little.judged().disturbed.is_empty(), "O3");
        let short = Others {
            seconds: 1.9,
            cpu: Some(0.9),
            ..quiet()
        };
        assert!(short.judged().disturbed.is_empty(), "O4");
        let pressed = Others {
            psi_cpu: Some(0.9),
            psi_io: Some(0.9),
            ..quiet()
        };
        assert!(pressed.judged().disturbed.is_empty(), "O5: pressure");
        let unseen = Others {
            steal: None,
            cpu: None,
            bytes: None,
            ..quiet()
        };
        assert!(unseen.judged().disturbed.is_empty());
    }
}

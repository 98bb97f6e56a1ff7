//! The machine of a result: facts that explain the numbers, and warnings about conditions that
//! distort them.
//!
//! No fact identifies a person or gives access to the machine: the host is named by a hash of its
//! machine id, processes by their short names, and no environment variables are read.

mod busy;
mod capture;
mod cpu;
mod storage;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use stdx::ByteSize;

use crate::envelope::{Cgroups, Mode};

pub use busy::BusyProcess;
pub use capture::capture_env;
pub use cpu::Cpu;
pub use storage::Storage;
pub(crate) use storage::existing;

/// The load average above which the machine is not idle enough for measurements.
const LOAD_MAX: f64 = 0.5;

/// Number of cores that the load generator needs to have a core to itself.
const CORES_MIN: usize = 3;

/// The machine at the time of collection. Unknown facts are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Identifies the machine: the same after a reboot, different between machines, and reveals
    /// neither name nor machine id.
    pub fingerprint: String,
    /// The processor.
    pub cpu: Cpu,
    /// Installed memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory available without swapping, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap, in bytes; 0 when off.
    pub swap_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The distribution's name and release, in its own words.
    pub distribution: Option<String>,
    /// The name of the hypervisor, or `hypervisor` if only its presence is visible; `None` on bare
    /// metal as far as can be detected.
    pub virtualisation: Option<String>,
    /// The storage of the data directory.
    pub storage: Storage,
    /// Settings in `/proc/sys/vm` that decide when dirty pages are written and memory is reclaimed.
    pub vm: BTreeMap<String, String>,
    /// The transparent huge page setting in force, such as `madvise`.
    pub transparent_huge_pages: Option<String>,
    /// The usable control groups.
    pub cgroups: Mode,
    /// Maximum number of open files of a process; `None` for no limit.
    pub open_files: Option<u64>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// The kernel's clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// Other processes that used more than a tenth of a core during the collection.
    pub busy: Vec<BusyProcess>,
}

impl HostFacts {
    /// Collect facts about this machine and the storage of `data_dir`. Takes a quarter of a second,
    /// during which it measures the CPU use of other processes.
    #[must_use]
    pub fn collect(data_dir: &Path) -> HostFacts {
        let busy = busy::Watch::start();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        HostFacts {
            fingerprint: fingerprint(),
            virtualisation: virtualisation(&cpuinfo),
            cpu: Cpu::collect(&cpuinfo),
            memory_bytes: meminfo_bytes(&meminfo, "MemTotal:"),
            memory_available_bytes: meminfo_bytes(&meminfo, "MemAvailable:"),
            swap_bytes: meminfo_bytes(&meminfo, "SwapTotal:"),
            kernel: line("/proc/sys/kernel/osrelease"),
            distribution: distribution(),
            storage: Storage::collect(data_dir),
            vm: vm_settings(),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|text| chosen(&text)),
            cgroups: Cgroups::detect().mode(),
            open_files: getrlimit(Resource::Nofile).current,
            load: line("/proc/loadavg").and_then(|text| parse_load(&text)),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            busy: busy.finish(),
        }
    }

    /// Warnings about conditions of this machine that distort measurements.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some([load, ..]) = self.load
            && load > LOAD_MAX
        {
            warnings.push(format!(
                "the load average was {load:.2} before the run: something else was running"
            ));
        }
        for process in &self.busy {
            warnings.push(format!(
                "process {} ({}) used {:.0} % of a core before the run",
                process.pid, process.name, process.cpu_percent
            ));
        }
        if self.cpu.cores < CORES_MIN {
            warnings.push(format!(
                "{} cores: the load generator shares them with the engine",
                self.cpu.cores
            ));
        }
        if let Some(what) = &self.virtualisation {
            warnings.push(format!(
                "a virtual machine ({what}): neighbours may interfere"
            ));
        }
        if self.cgroups == Mode::None {
            warnings.push("no cgroups: nothing can be capped".to_owned());
        }
        if self.swap_bytes.unwrap_or(0) > 0 {
            warnings.push("swap is on: uncapped processes may be swapped out".to_owned());
        }
        warnings.extend(self.storage.warnings());
        warnings
    }
}

/// The first line of a file, trimmed; `None` if it is missing or empty.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The word in brackets of `always [madvise] never`, or the whole text.
fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(word, _)| word).to_owned()
}

/// A stable name of this machine that does not reveal its machine id: 16 hexadecimal digits of a
/// hash of the id with a key of this program, as machine-id(5) requires of applications. If there
/// is no id, the host name is hashed instead.
#[must_use]
pub fn fingerprint() -> String {
    let id = line("/etc/machine-id")
        .or_else(|| line("/proc/sys/kernel/hostname"))
        .unwrap_or_default();
    fingerprint_of(&id)
}

fn fingerprint_of(id: &str) -> String {
    let keyed = format!("romanesco host fingerprint\n{id}");
    format!("{:016x}", stdx::hash::hash64(keyed.as_bytes()))
}

fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

fn parse_load(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn virtualisation(cpuinfo: &str) -> Option<String> {
    let flagged = cpuinfo
        .lines()
        .find(|l| l.starts_with("flags"))
        .is_some_and(|l| l.split_whitespace().any(|flag| flag == "hypervisor"));
    if !flagged {
        return None;
    }
    let vendor = line("/sys/class/dmi/id/sys_vendor");
    let product = line("/sys/class/dmi/id/product_name");
    let named: Vec<String> = [vendor, product].into_iter().flatten().collect();
    if named.is_empty() {
        return Some("hypervisor".to_owned());
    }
    Some(named.join(" "))
}

fn vm_settings() -> BTreeMap<String, String> {
    let wanted = |name: &str| {
        name.starts_with("dirty")
            || matches!(
                name,
                "swappiness"
                    | "overcommit_memory"
                    | "overcommit_ratio"
                    | "min_free_kbytes"
                    | "vfs_cache_pressure"
                    | "zone_reclaim_mode"
                    | "nr_hugepages"
            )
    };
    let mut settings = BTreeMap::new();
    for entry in fs::read_dir("/proc/sys/vm").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if wanted(&name)
            && let Some(value) = line(entry.path())
        {
            settings.insert(name, value);
        }
    }
    settings
}

impl HostFacts {
    /// One line for tables: processor, cores, memory, kernel, storage.
    #[must_use]
    pub fn summary(&self) -> String {
        let unknown = || "unknown".to_owned();
        let memory = self
            .memory_bytes
            .map_or_else(unknown, |m| ByteSize(m).to_string());
        format!(
            "{}, {} cores, {memory} memory, Linux {}, {}",
            self.cpu.model.clone().unwrap_or_else(unknown),
            self.cpu.cores,
            self.kernel.clone().unwrap_or_else(unknown),
            self.storage.summary()
        )
    }
}

#[cfg(test)]
mod tests;

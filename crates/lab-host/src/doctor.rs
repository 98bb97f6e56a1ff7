//! Reports what works on this machine, what does not, and how to fix it.
//!
//! Every finding states the fact, its consequence for results, and how to change it. The
//! examination changes nothing except for a probe file of 4 KiB that is deleted at once.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use comfy_table::{ContentArrangement, Table, presets};
use kv::Factory;
use lab_report::record::MEMORY_MIN;
use rustix::process::{Resource, geteuid, getrlimit};
use serde::{Deserialize, Serialize};
use stdx::ByteSize;

use crate::envelope::{Access, Cgroups, Controller, Version, data_device, device_name, whole_disk};
use crate::host::Storage;
use crate::probe;

/// Free space required by the quick presets, 5 GiB: three targets of a few hundred MiB live data
/// each, times a space amplification of two, plus results.
const FREE_MIN: u64 = 5 << 30;

/// Minimum limit of open files; below it, engines with many small files fail: RocksDB's default
/// database keeps about 1000 files open under load.
const OPEN_FILES_MIN: u64 = 4096;

/// Effect of a finding on results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No problem.
    Ok,
    /// Runs work, with a restriction that results state.
    Warn,
    /// A requirement of runs is not met.
    Fail,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        })
    }
}

/// One result of the examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The part of the machine or program that the finding is about.
    pub area: String,
    /// Effect of the fact on results.
    pub status: Status,
    /// The fact.
    pub what: String,
    /// The consequence for results; empty if there is none.
    pub consequence: String,
    /// The remedy; empty if none is needed.
    pub remedy: String,
}

impl Finding {
    fn ok(area: &str, what: impl Into<String>) -> Finding {
        Finding {
            area: area.to_owned(),
            status: Status::Ok,
            what: what.into(),
            consequence: String::new(),
            remedy: String::new(),
        }
    }

    fn bad(status: Status, area: &str, what: impl Into<String>) -> Finding {
        Finding {
            status,
            ..Finding::ok(area, what)
        }
    }

    fn so(mut self, consequence: &str, remedy: &str) -> Finding {
        self.consequence = consequence.to_owned();
        self.remedy = remedy.to_owned();
        self
    }
}

/// Examines a machine.
#[derive(Debug)]
pub struct Doctor {
    cgroups: Cgroups,
    proc_root: PathBuf,
    sys_root: PathBuf,
}

impl Default for Doctor {
    fn default() -> Doctor {
        Doctor::at(Path::new("/proc"), Path::new("/sys"))
    }
}

impl Doctor {
    /// A doctor that reads `/proc` and `/sys` at other paths.
    #[must_use]
    pub fn at(proc_root: &Path, sys_root: &Path) -> Doctor {
        Doctor {
            cgroups: Cgroups::detect_at(proc_root, sys_root),
            proc_root: proc_root.to_owned(),
            sys_root: sys_root.to_owned(),
        }
    }

    /// Examine everything that a run with its data in `data_dir` depends on. `engines` are all
    /// engines of this program, compiled in or not.
    #[must_use]
    pub fn examine(&self, data_dir: &Path, engines: &[&dyn Factory]) -> Vec<Finding> {
        let mut findings = vec![
            self.rights(),
            self.memory_cap(),
            self.io_cap(),
            self.device(data_dir),
        ];
        findings.extend(directory(data_dir));
        findings.extend([self.pressure(), self.swap(), open_files()]);
        findings.extend(engines.iter().map(|engine| engine_finding(*engine)));
        findings
    }

    fn rights(&self) -> Finding {
        if geteuid().is_root() {
            return Finding::ok("rights", "running as root");
        }
        let usable = |c| self.cgroups.access(c).is_usable();
        if usable(Controller::Memory) && usable(Controller::Io) {
            return Finding::ok("rights", "not root, but control groups are delegated to us");
        }
        Finding::bad(Status::Warn, "rights", "not running as root").so(
            "caps need control groups we may write to, and the page cache cannot be dropped",
            "run as root, or under systemd-run --user --scope -p Delegate=yes",
        )
    }

    fn memory_cap(&self) -> Finding {
        const AREA: &str = "memory cap";
        match self.cgroups.access(Controller::Memory) {
            Access::Usable { version, parent } => {
                let version = version_name(*version);
                let what = format!(
                    "{version} below {} (at least {MEMORY_MIN} a worker)",
                    parent.display()
                );
                Finding::ok(AREA, what)
            }
            Access::Unusable { reason } => Finding::bad(Status::Warn, AREA, reason).so(
                "engine and page cache cannot be limited together: data that fit memory are cached",
                "see what; else use data several times larger than memory",
            ),
        }
    }

    fn io_cap(&self) -> Finding {
        const AREA: &str = "I/O cap";
        match self.cgroups.access(Controller::Io) {
            Access::Usable { version, parent } => {
                let what = format!("{} below {}", version_name(*version), parent.display());
                if *version == Version::V2 {
                    return Finding::ok(AREA, what);
                }
                Finding::bad(Status::Warn, AREA, what).so(
                    "reads, direct writes and syncs are capped, buffered writes are not",
                    "use direct I/O on every target, or boot with cgroup v2",
                )
            }
            Access::Unusable { reason } => Finding::bad(Status::Warn, AREA, reason).so(
                "IOPS and bandwidth cannot be limited: runs say uncapped",
                "see what; experiments about IOPS need it",
            ),
        }
    }

    fn device(&self, data_dir: &Path) -> Finding {
        const AREA: &str = "device";
        let storage = Storage::collect(data_dir);
        let existing = crate::host::existing(data_dir).unwrap_or_else(|| data_dir.to_owned());
        let disk = data_device(&existing).and_then(|d| whole_disk(&self.sys_root, d));
        match disk {
            Ok(disk) => {
                let name = device_name(&self.sys_root, disk).unwrap_or_default();
                Finding::ok(AREA, format!("{name} ({disk}): {}", storage.summary()))
            }
            Err(reason) => Finding::bad(Status::Warn, AREA, reason).so(
                "device I/O can be neither counted nor capped",
                "choose a data directory on a disk",
            ),
        }
    }

    fn pressure(&self) -> Finding {
        const AREA: &str = "pressure";
        if self.proc_root.join("pressure/io").exists() {
            return Finding::ok(AREA, "pressure stall information is there");
        }
        Finding::bad(Status::Warn, AREA, "no pressure stall information").so(
            "stalls are found but their cause is known less well",
            "boot with psi=1, or use a kernel with CONFIG_PSI",
        )
    }

    fn swap(&self) -> Finding {
        const AREA: &str = "swap";
        let text = fs::read_to_string(self.proc_root.join("swaps")).unwrap_or_default();
        // The first line is a header.
        if text.lines().count() <= 1 {
            return Finding::ok(AREA, "off");
        }
        let memory = self.cgroups.access(Controller::Memory);
        if memory.is_usable() {
            return Finding::ok(AREA, "on, closed to capped workers");
        }
        Finding::bad(Status::Warn, AREA, "on, and workers cannot be kept from it").so(
            "an engine may be swapped out, which shows as stalls",
            "swapoff -a",
        )
    }
}

fn version_name(version: Version) -> &'static str {
    match version {
        Version::V1 => "cgroup v1",
        Version::V2 => "cgroup v2",
    }
}

/// Free space and direct I/O of the data directory.
fn directory(data_dir: &Path) -> Vec<Finding> {
    let Some(directory) = crate::host::existing(data_dir) else {
        let what = format!("no directory at or above {}", data_dir.display());
        let finding = Finding::bad(Status::Fail, "free space", what);
        return vec![finding.so("nothing can be stored", "name another data directory")];
    };
    vec![free_space(&directory), direct_io(&directory)]
}

fn free_space(directory: &Path) -> Finding {
    const AREA: &str = "free space";
    let shown = directory.display();
    match vfs::free_bytes(directory) {
        Ok(free) if free >= FREE_MIN => Finding::ok(AREA, format!("{} at {shown}", ByteSize(free))),
        Ok(free) => {
            let what = format!("{} at {shown}", ByteSize(free));
            Finding::bad(Status::Warn, AREA, what).so(
                "runs of the quick preset may fill the disk and fail",
                "free some space, name another data directory, or lower --scale",
            )
        }
        Err(e) => Finding::bad(Status::Fail, AREA, format!("{shown}: {e}"))
            .so("nothing can be stored", "name another data directory"),
    }
}

fn direct_io(directory: &Path) -> Finding {
    const AREA: &str = "direct I/O";
    match probe::direct_io_works(directory) {
        Ok(()) => Finding::ok(AREA, format!("works at {}", directory.display())),
        Err(reason) => Finding::bad(Status::Warn, AREA, reason).so(
            "engines use the page cache, the device probe measures memory, and cgroup v1 caps no \
             writes",
            "choose a data directory on ext4, xfs or btrfs that this user may write",
        ),
    }
}

fn open_files() -> Finding {
    const AREA: &str = "open files";
    let limit = getrlimit(Resource::Nofile);
    match limit.current {
        Some(current) if current < OPEN_FILES_MIN => {
            let maximum = limit
                .maximum
                .map_or("unlimited".to_owned(), |m| m.to_string());
            let what = format!("{current} allowed (hard limit {maximum})");
            Finding::bad(Status::Warn, AREA, what).so(
                "engines that keep many files open may fail in long runs",
                "ulimit -n 65536",
            )
        }
        Some(current) => Finding::ok(AREA, format!("{current} allowed")),
        None => Finding::ok(AREA, "unlimited"),
    }
}

fn engine_finding(engine: &dyn Factory) -> Finding {
    let area = format!("engine {}", engine.name());
    if engine.available() {
        let version = engine.version().unwrap_or_default();
        return Finding::ok(&area, format!("{} {version}", engine.about()).trim_end());
    }
    let feature = engine.feature().unwrap_or("default");
    Finding::bad(Status::Warn, &area, "not compiled in").so(
        "it cannot be a target",
        &format!("build with --features {feature} (or all-engines)"),
    )
}

/// The worst status among findings; `Ok` when there are none.
#[must_use]
pub fn worst(findings: &[Finding]) -> Status {
    findings
        .iter()
        .map(|f| f.status)
        .max()
        .unwrap_or(Status::Ok)
}

/// The width of a table that goes to no terminal: what a terminal and a mail have at least.
const COLUMNS: u16 = 80;

/// Findings as a plain table, `width` columns wide: as the terminal when `None`, or 80 without one.
#[must_use]
pub fn render(findings: &[Finding], width: Option<u16>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["status", "area", "what", "so", "remedy"]);
    if let Some(width) = width.or(table.width().is_none().then_some(COLUMNS)) {
        table.set_width(width);
    }
    for finding in findings {
        table.add_row([
            &finding.status.to_string(),
            &finding.area,
            &finding.what,
            &finding.consequence,
            &finding.remedy,
        ]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests;

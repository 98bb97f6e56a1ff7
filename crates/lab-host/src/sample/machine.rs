//! What other programs do on the machine meanwhile: processor time that is not of the run, time
//! that the hypervisor took, and bytes that other processes read and wrote.
//!
//! The processes of a run are the laboratory's own process, all its descendants (workers, servers
//! that it started), and a server that is measured although it was running already.
//!
//! - M1. Processor time of other processes is that of the whole machine (`/proc/stat`) minus that
//!   of the run and of the kernel's threads. A sum over the visible processes would miss the short
//!   ones: those of a compilation begin and end between two samples.
//! - M2. The kernel's threads are not other programs: they write out what the run has written.
//!   Where they cannot be seen (in a container), only time in user mode counts, which they never
//!   use: a lower bound. Time in interrupts is left out.
//! - M3. Bytes are those that the processes themselves count (`/proc/PID/io`). Control groups do
//!   not help: in version 1 they miss buffered writes, and in both the journal (see the parent
//!   module), so the device's bytes minus the group's are not those of others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::source::Source;

/// The parent of all threads of the kernel.
const KTHREADD: (u32, &str) = (2, "kthreadd");

/// Counters of the machine and of the processes outside of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSample {
    /// Processor seconds of all kinds, idle ones included, over all processors.
    pub all_s: f64,
    /// Number of processors.
    pub cpus: u32,
    /// Processor seconds that the hypervisor gave to others.
    pub steal_s: Option<f64>,
    /// Processor seconds of programs in user mode, over the machine.
    pub user_s: f64,
    /// Processor seconds of programs and kernel threads in the kernel, over the machine.
    pub system_s: f64,
    /// Of these, the run's in user mode.
    pub own_user_s: f64,
    /// The run's in the kernel.
    pub own_system_s: f64,
    /// Those of the kernel's threads; `None` where they cannot be seen (M2).
    pub kernel_s: Option<f64>,
    /// Bytes that other processes fetched from storage or caused to be written (M3); `None` without
    /// the permission to read them.
    pub others_bytes: Option<u64>,
    /// Processor seconds of the visible other processes, by name.
    pub others: BTreeMap<String, f64>,
}

/// Growth of a [`MachineSample`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineDelta {
    /// Number of processors.
    pub cpus: u32,
    /// Share of the machine's processor time that the hypervisor gave to others, 0 to 1.
    pub steal: Option<f64>,
    /// Share of the machine's processor time that other processes used, 0 to 1.
    pub cpu: Option<f64>,
    /// Bytes that other processes moved.
    pub bytes: Option<u64>,
    /// The visible other process with the most processor time, and its share of the machine's;
    /// processes of one name count together.
    pub busiest: Option<(String, f64)>,
}

impl MachineSample {
    /// The difference from `earlier`; `None` if no time has passed.
    #[must_use]
    pub fn since(&self, earlier: &MachineSample) -> Option<MachineDelta> {
        let all = self.all_s - earlier.all_s;
        if all <= 0.0 {
            return None;
        }
        let grown = |of: fn(&MachineSample) -> f64| of(self) - of(earlier);
        let user = grown(|s| s.user_s) - grown(|s| s.own_user_s);
        let system = grown(|s| s.system_s) - grown(|s| s.own_system_s);
        let kernel = self.kernel_s.zip(earlier.kernel_s);
        // M2. A kernel thread that ended takes its count with it.
        let others = match kernel {
            Some((now, then)) => user + system - (now - then).max(0.0),
            None => user,
        };
        let steal = self.steal_s.zip(earlier.steal_s);
        let steal = steal.map(|(now, then)| now - then);
        let bytes = self.others_bytes.zip(earlier.others_bytes);
        Some(MachineDelta {
            cpus: self.cpus,
            steal: steal.map(|steal| (steal / all).clamp(0.0, 1.0)),
            cpu: Some((others / all).clamp(0.0, 1.0)),
            bytes: bytes.map(|(now, then)| now.saturating_sub(then)),
            busiest: self.busiest(earlier, all),
        })
    }

    fn busiest(&self, earlier: &MachineSample, all: f64) -> Option<(String, f64)> {
        // A process that changed its name brings the time under its former name along.
        let grown = self.others.iter().map(|(name, now)| {
            let then = earlier.others.get(name).copied().unwrap_or(0.0);
            (name, now - then)
        });
        let most = grown.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (0.0 < most.1).then(|| (most.0.clone(), (most.1 / all).min(1.0)))
    }
}

/// Reads [`MachineSample`]s.
#[derive(Debug)]
pub(super) struct Machine {
    proc_root: PathBuf,
    stat: Source,
    /// The first processes of the run.
    roots: Vec<u32>,
    /// The bytes last reported, so that they never decrease: the count of a process whose parent
    /// does not wait for it is lost with it (S2).
    bytes: u64,
    /// The sum over the processes, when `bytes` was reported.
    summed: u64,
}

impl Machine {
    pub(super) fn new(proc_root: &Path, roots: &[u32]) -> Machine {
        Machine {
            proc_root: proc_root.to_owned(),
            stat: Source::in_dir(proc_root, "stat"),
            roots: roots.to_vec(),
            bytes: 0,
            summed: 0,
        }
    }

    pub(super) fn read(&mut self) -> Option<MachineSample> {
        let mut sample = parse_machine(self.stat.read()?)?;
        let processes = self.processes();
        let kernel_seen = processes
            .get(&KTHREADD.0)
            .is_some_and(|process| process.name == KTHREADD.1);
        sample.kernel_s = kernel_seen.then_some(0.0);
        let (mut bytes, mut readable) = (0_u64, false);
        for (pid, process) in &processes {
            if self.is_own(*pid, &processes) {
                sample.own_user_s += process.user_s + process.waited_user_s;
                sample.own_system_s += process.system_s + process.waited_system_s;
            } else if kernel_seen && (*pid == KTHREADD.0 || process.parent == KTHREADD.0) {
                sample.kernel_s = sample.kernel_s.map(|s| s + process.system_s);
            } else {
                let seconds = process.user_s + process.system_s;
                *sample.others.entry(process.name.clone()).or_default() += seconds;
                if let Some(moved) = self.moved(*pid) {
                    readable = true;
                    bytes = bytes.saturating_add(moved);
                }
            }
        }
        self.bytes += bytes.saturating_sub(self.summed);
        self.summed = bytes;
        sample.others_bytes = readable.then_some(self.bytes);
        Some(sample)
    }

    fn is_own(&self, pid: u32, processes: &BTreeMap<u32, Process>) -> bool {
        let (mut at, mut seen) = (pid, BTreeSet::new());
        while seen.insert(at) {
            if self.roots.contains(&at) {
                return true;
            }
            match processes.get(&at) {
                Some(process) => at = process.parent,
                None => return false,
            }
        }
        false
    }

    fn processes(&self) -> BTreeMap<u32, Process> {
        let entries = fs::read_dir(&self.proc_root).into_iter().flatten();
        let pids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| {
            let path = self.proc_root.join(format!("{pid}/stat"));
            Some((pid, parse_process(&fs::read_to_string(path).ok()?)?))
        })
        .collect()
    }

    /// The bytes that a process fetched from storage, or dirtied and did not throw away.
    fn moved(&self, pid: u32) -> Option<u64> {
        let text = fs::read_to_string(self.proc_root.join(format!("{pid}/io"))).ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|l| l.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        let cancelled = number("cancelled_write_bytes:")?;
        let written = number("write_bytes:")?.saturating_sub(cancelled);
        Some(number("read_bytes:")?.saturating_add(written))
    }
}

/// A process, in seconds.
#[derive(Clone, Debug, PartialEq)]
struct Process {
    name: String,
    parent: u32,
    user_s: f64,
    system_s: f64,
    waited_user_s: f64,
    waited_system_s: f64,
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Parse `/proc/PID/stat`; see proc(5). The name in parentheses may hold anything.
fn parse_process(text: &str) -> Option<Process> {
    let (head, tail) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // The first field after the name is number 3.
    let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    Some(Process {
        name: name.to_owned(),
        parent: u32::try_from(field(4)?).ok()?,
        user_s: seconds(field(14)?),
        system_s: seconds(field(15)?),
        waited_user_s: seconds(field(16)?),
        waited_system_s: seconds(field(17)?),
    })
}

/// Parse `/proc/stat`: `cpu user nice system idle iowait irq softirq steal guest guest_nice`, of
/// which user contains guest. Kernels before 2.6.11 have no steal.
fn parse_machine(text: &str) -> Option<MachineSample> {
    let line = text.lines().find(|l| l.starts_with("cpu "))?;
    let mut fields = line.split_ascii_whitespace().skip(1);
    let mut next = || Some(seconds(fields.next()?.parse().ok()?));
    let (user, nice, system) = (next()?, next()?, next()?);
    let (idle, iowait, irq, softirq) = (next()?, next()?, next()?, next()?);
    let steal = next();
    let is_cpu = |l: &&str| {
        let number = l.strip_prefix("cpu").unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit())
    };
    let cpus = text.lines().filter(is_cpu).count();
    Some(MachineSample {
        all_s: user + nice + system + idle + iowait + irq + softirq + steal.unwrap_or(0.0),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        steal_s: steal,
        user_s: user + nice,
        system_s: system,
        ..MachineSample::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory like `/proc`; all times in ticks.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Fake {
            let fake = Fake(tempfile::tempdir().unwrap());
            fake.process((1, "init", 0), [0; 4]);
            fake.process((10, "romanesco", 1), [100, 0, 0, 0]);
            fake.process((11, "worker", 10), [500, 100, 0, 0]);
            fake.process((12, "postgres", 11), [50, 0, 0, 0]);
            fake.process((20, "cc1 (x)", 1), [1000, 0, 0, 0]);
            fake
        }

        fn process(&self, (pid, name, parent): (u32, &str, u32), [u, s, cu, cs]: [u64; 4]) {
            let dir = self.0.path().join(pid.to_string());
            fs::create_dir_all(&dir).unwrap();
            let stat =
                format!("{pid} ({name}) S {parent} 2 3 0 -1 4 95 0 7 0 {u} {s} {cu} {cs} 20");
            fs::write(dir.join("stat"), stat).unwrap();
        }

        fn io(&self, pid: u32, read: u64, write: u64, cancelled: u64) {
            let text = format!(
                "rchar: 1\nread_bytes: {read}\nwrite_bytes: {write}\n\
                 cancelled_write_bytes: {cancelled}\n"
            );
            fs::write(self.0.path().join(format!("{pid}/io")), text).unwrap();
        }

        fn machine(&self, [user, system, idle, steal]: [u64; 4]) {
            let text = format!(
                "cpu  {user} 0 {system} {idle} 0 0 0 {steal} 0 0\ncpu0 1\ncpu1 1\nintr 5\n"
            );
            fs::write(self.0.path().join("stat"), text).unwrap();
        }

        fn reader(&self) -> Machine {
            Machine::new(self.0.path(), &[10])
        }
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-9)
    }

    #[test]
    fn time_of_others_is_that_of_the_machine_without_the_run_and_the_kernel() {
        let fake = Fake::new();
        fake.process((2, "kthreadd", 0), [0; 4]);
        fake.process((30, "kworker/0:1", 2), [0, 40, 0, 0]);
        fake.machine([2000, 500, 1000, 0]);
        let mut reader = fake.reader();
        let before = reader.read().unwrap();
        assert_eq!(before.cpus, 2);
        assert_eq!(before.since(&before), None);
        // Of 1000 ticks the run used 300 + 50 (a child of it that ended: 20 more), a kernel thread
        // 60, others 200, and the hypervisor took 40.
        fake.process((11, "worker", 10), [800, 150, 0, 0]);
        fake.process((10, "romanesco", 1), [100, 0, 15, 5]);
        fake.process((30, "kworker/0:1", 2), [0, 100, 0, 0]);
        fake.process((20, "cc1 (x)", 1), [1090, 0, 0, 0]);
        fake.machine([2000 + 315 + 150, 500 + 55 + 60 + 50, 1000 + 330, 40]);
        let delta = reader.read().unwrap().since(&before).unwrap();
        assert!(near(delta.cpu, 0.2), "M1: {delta:?}");
        assert!(near(delta.steal, 0.04), "{delta:?}");
        let (name, share) = delta.busiest.unwrap();
        assert_eq!(name, "cc1 (x)");
        assert!(near(Some(share), 0.09), "{share}");
    }

    #[test]
    fn without_a_view_of_kernel_threads_only_user_time_counts() {
        let fake = Fake::new();
        fake.machine([2000, 500, 1000, 0]);
        let mut reader = fake.reader();
        let before = reader.read().unwrap();
        assert_eq!(before.kernel_s, None);
        fake.machine([2050, 1000, 1450, 0]);
        let delta = reader.read().unwrap().since(&before).unwrap();
        assert!(near(delta.cpu, 0.05), "M2: {delta:?}");
    }

    #[test]
    fn bytes_of_others_grow_and_those_of_the_run_do_not_count() {
        let fake = Fake::new();
        fake.machine([2000, 500, 1000, 0]);
        let mut reader = fake.reader();
        assert_eq!(reader.read().unwrap().others_bytes, None, "S1");
        fake.io(20, 1000, 500, 100);
        fake.io(11, 1 << 30, 1 << 30, 0);
        let before = reader.read().unwrap();
        fake.machine([2100, 500, 1000, 0]);
        fake.io(20, 3000, 500, 100);
        let after = reader.read().unwrap();
        assert_eq!(after.since(&before).unwrap().bytes, Some(2000), "M3");
        // The process ends, and nothing waits for it.
        fs::remove_file(fake.0.path().join("20/io")).unwrap();
        fake.io(1, 10, 0, 0);
        let gone = reader.read().unwrap();
        assert_eq!(gone.others_bytes, after.others_bytes, "S2");
        fake.io(1, 60, 0, 0);
        let last = reader.read().unwrap();
        assert_eq!(last.others_bytes, after.others_bytes.map(|b| b + 50));
    }

    #[test]
    fn this_machine_can_be_read() {
        let mut reader = Machine::new(Path::new("/proc"), &[std::process::id()]);
        let sample = reader.read().unwrap();
        assert!(0.0 < sample.all_s && 0 < sample.cpus);
        assert!(sample.own_user_s + sample.own_system_s <= sample.user_s + sample.system_s);
    }
}

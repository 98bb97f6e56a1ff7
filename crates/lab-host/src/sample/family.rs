//! A process with its children: PostgreSQL has one child process per connection. A sample sums all
//! of them, as the sample of a server with threads sums its threads.
//!
//! The kernel adds the processor time and I/O of an ended process to the parent that waited for it;
//! the last context switches read of an ended process stay in the sum, so that this counter does
//! not decrease either (S2). Memory that processes share is counted once, as the largest amount
//! that any one of them shares.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::process::{ContextSwitches, ProcessFiles, ProcessIo, ProcessSample};
use super::source::Source;

/// The files of a process and of its children.
#[derive(Debug)]
pub(super) struct Family {
    proc_root: PathBuf,
    first: Member,
    children: Source,
    others: HashMap<u32, Member>,
    ended: Option<ContextSwitches>,
    /// Processor seconds last reported, so that they never decrease: the time of a process that
    /// ends between two readings may be missing from one sample, until its parent has waited for
    /// it.
    reported: (f64, f64),
}

#[derive(Debug)]
struct Member {
    files: ProcessFiles,
    memory: Source,
    last: ProcessSample,
}

impl Member {
    fn new(proc_root: &Path, pid: u32) -> Member {
        Member {
            files: ProcessFiles::new(proc_root, pid),
            memory: Source::in_dir(&proc_root.join(pid.to_string()), "statm"),
            last: ProcessSample::default(),
        }
    }

    fn read(&mut self) -> Option<ProcessSample> {
        self.last = self.files.read()?;
        Some(self.last)
    }

    /// Resident bytes shared with other processes: field 3 of statm, see proc(5).
    fn shared(&mut self) -> u64 {
        let pages = self.memory.read().and_then(|text| {
            let mut fields = text.split_ascii_whitespace();
            fields.nth(2)?.parse::<u64>().ok()
        });
        pages.unwrap_or(0) * rustix::param::page_size() as u64
    }
}

impl Family {
    pub(super) fn new(proc_root: &Path, pid: u32) -> Family {
        let task = proc_root.join(format!("{pid}/task/{pid}"));
        Family {
            proc_root: proc_root.to_owned(),
            first: Member::new(proc_root, pid),
            children: Source::in_dir(&task, "children"),
            others: HashMap::new(),
            ended: None,
            reported: (0.0, 0.0),
        }
    }

    /// Read all processes; `None` once the first process has ended.
    pub(super) fn read(&mut self) -> Option<ProcessSample> {
        let mut first = self.first.read()?;
        let (user, system) = self.first.files.waited_for().unwrap_or_default();
        first.cpu_user_s += user;
        first.cpu_system_s += system;
        let text = self.children.read().unwrap_or_default();
        let pids: Vec<u32> = text
            .split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect();
        let ended = &mut self.ended;
        self.others.retain(|pid, member| {
            let lives = pids.contains(pid);
            if !lives {
                *ended = either(*ended, member.last.switches, ContextSwitches::plus);
            }
            lives
        });
        let mut sum = first;
        sum.switches = either(first.switches, self.ended, ContextSwitches::plus);
        if pids.is_empty() {
            return Some(self.forwards(sum));
        }
        let mut shared = self.first.shared();
        let mut own = first.rss_bytes.saturating_sub(shared);
        for pid in pids {
            let proc_root = &self.proc_root;
            let member = self.others.entry(pid);
            let member = member.or_insert_with(|| Member::new(proc_root, pid));
            // The process may end between listing and reading: then its last sample is used.
            let sample = member.read().unwrap_or(member.last);
            let with_others = member.shared();
            own += sample.rss_bytes.saturating_sub(with_others);
            shared = shared.max(with_others);
            sum = counted(sum, sample);
            sum.threads += sample.threads;
        }
        sum.rss_bytes = own + shared;
        Some(self.forwards(sum))
    }

    fn forwards(&mut self, mut sum: ProcessSample) -> ProcessSample {
        let (user, system) = self.reported;
        sum.cpu_user_s = sum.cpu_user_s.max(user);
        sum.cpu_system_s = sum.cpu_system_s.max(system);
        self.reported = (sum.cpu_user_s, sum.cpu_system_s);
        sum
    }
}

/// `sample` with the counters of `other` added; its gauges are unchanged.
fn counted(sample: ProcessSample, other: ProcessSample) -> ProcessSample {
    ProcessSample {
        cpu_user_s: sample.cpu_user_s + other.cpu_user_s,
        cpu_system_s: sample.cpu_system_s + other.cpu_system_s,
        major_faults: sample.major_faults + other.major_faults,
        switches: either(sample.switches, other.switches, ContextSwitches::plus),
        io: either(sample.io, other.io, ProcessIo::plus),
        ..sample
    }
}

fn either<T>(a: Option<T>, b: Option<T>, plus: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(plus(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_children_counted_stays_when_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let process = |pid: u32, ticks: u64, waited: u64, (rss, shared): (u64, u64)| {
            let task = root.join(format!("{pid}/task/{pid}"));
            fs::create_dir_all(&task).unwrap();
            let stat = format!(
                "{pid} (p) S 1 2 3 0 -1 4 95 0 7 0 {ticks} 0 {waited} 0 20 0 1 0 9 8 {rss} 1"
            );
            fs::write(root.join(format!("{pid}/stat")), stat).unwrap();
            fs::write(
                root.join(format!("{pid}/statm")),
                format!("9 {rss} {shared} 1"),
            )
            .unwrap();
        };
        let children = |text: &str| fs::write(root.join("5/task/5/children"), text).unwrap();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let page = rustix::param::page_size() as u64;
        let mut family = Family::new(root, 5);
        assert_eq!(family.read(), None);
        process(5, 100, 7, (10, 8));
        process(6, 50, 0, (30, 25));
        children("6 ");
        let both = family.read().unwrap();
        assert_eq!((both.cpu_user_s * ticks).round(), 157.0);
        assert_eq!(
            (both.rss_bytes, both.threads),
            (32 * page, 2),
            "shared once"
        );
        children("");
        process(5, 110, 60, (10, 8));
        let one = family.read().unwrap();
        assert_eq!((one.cpu_user_s * ticks).round(), 170.0);
        assert_eq!(one.rss_bytes, 10 * page);
        process(5, 111, 0, (10, 8));
        let missed = family.read().unwrap();
        assert_eq!(
            (missed.cpu_user_s * ticks).round(),
            170.0,
            "S2: not backwards"
        );
    }
}

//! One process: processor time, context switches, memory, its own I/O counters. See proc(5).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::source::Source;

/// Kernel counters and gauges of one process, over all its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Processor seconds in user mode.
    pub cpu_user_s: f64,
    /// Processor seconds in the kernel.
    pub cpu_system_s: f64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Current number of threads.
    pub threads: u64,
    /// Current resident memory, in bytes.
    pub rss_bytes: u64,
    /// Current address space, in bytes.
    pub virtual_bytes: u64,
    /// Context switches.
    pub switches: Option<ContextSwitches>,
    /// The process's own I/O counters; `None` without permission to read them.
    pub io: Option<ProcessIo>,
}

/// Context switches of all threads, including ended threads as far as they were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSwitches {
    /// Switches because the thread blocked.
    pub voluntary: u64,
    /// Switches because another thread preempted it.
    pub involuntary: u64,
}

/// The contents of `/proc/PID/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIo {
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes that the process caused to be written to storage: counted when pages are dirtied, not
    /// when they are written.
    pub write_bytes: u64,
    /// Bytes of dirtied pages that never had to be written, because their files were truncated.
    pub cancelled_write_bytes: u64,
    /// Read system calls.
    pub read_calls: u64,
    /// Write system calls.
    pub write_calls: u64,
}

/// The files of one process.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    stat: Source,
    io: Source,
    tasks: PathBuf,
    last_seen: HashMap<u32, ContextSwitches>,
    ended: ContextSwitches,
    text: Vec<u8>,
}

impl ProcessFiles {
    pub(super) fn new(proc_root: &Path, pid: u32) -> ProcessFiles {
        let directory = proc_root.join(pid.to_string());
        ProcessFiles {
            stat: Source::in_dir(&directory, "stat"),
            io: Source::in_dir(&directory, "io"),
            tasks: directory.join("task"),
            last_seen: HashMap::new(),
            ended: ContextSwitches::default(),
            text: Vec::new(),
        }
    }

    pub(super) fn read(&mut self) -> Option<ProcessSample> {
        let mut sample = parse_stat(self.stat.read()?)?;
        sample.io = self.io.read().and_then(parse_io);
        sample.switches = self.switches();
        Some(sample)
    }

    /// Processor seconds, user and system, of the ended child processes that the process has waited
    /// for.
    pub(super) fn waited_for(&mut self) -> Option<(f64, f64)> {
        parse_waited_for(self.stat.read()?)
    }

    /// The sum over the threads. The last count read of a thread that ended stays in the sum, so
    /// that the sum never decreases (S2).
    fn switches(&mut self) -> Option<ContextSwitches> {
        let entries = fs::read_dir(&self.tasks).ok()?;
        let mut seen = HashMap::with_capacity(self.last_seen.len());
        let mut sum = self.ended;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(tid) = name.to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            // A thread may end between listing and reading: then its last count is used.
            let path = entry.path().join("status");
            if let Some(switches) = read_status(&path, &mut self.text) {
                sum = sum.plus(switches);
                seen.insert(tid, switches);
            }
        }
        for (tid, switches) in &self.last_seen {
            if !seen.contains_key(tid) {
                self.ended = self.ended.plus(*switches);
                sum = sum.plus(*switches);
            }
        }
        self.last_seen = seen;
        Some(sum)
    }
}

impl ContextSwitches {
    pub(super) fn plus(self, other: ContextSwitches) -> ContextSwitches {
        ContextSwitches {
            voluntary: self.voluntary.saturating_add(other.voluntary),
            involuntary: self.involuntary.saturating_add(other.involuntary),
        }
    }
}

impl ProcessIo {
    pub(super) fn plus(self, other: ProcessIo) -> ProcessIo {
        ProcessIo {
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            write_bytes: self.write_bytes.saturating_add(other.write_bytes),
            cancelled_write_bytes: self
                .cancelled_write_bytes
                .saturating_add(other.cancelled_write_bytes),
            read_calls: self.read_calls.saturating_add(other.read_calls),
            write_calls: self.write_calls.saturating_add(other.write_calls),
        }
    }
}

fn read_status(path: &Path, text: &mut Vec<u8>) -> Option<ContextSwitches> {
    use std::io::Read;
    text.clear();
    fs::File::open(path).ok()?.read_to_end(text).ok()?;
    parse_status(std::str::from_utf8(text).ok()?)
}

fn parse_status(text: &str) -> Option<ContextSwitches> {
    // The two counters are on the last two lines, so search from the end.
    let number = |name: &str| {
        let line = text.lines().rev().find_map(|l| l.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(ContextSwitches {
        voluntary: number("voluntary_ctxt_switches:")?,
        involuntary: number("nonvoluntary_ctxt_switches:")?,
    })
}

/// Parse `/proc/PID/stat`. The name in parentheses may hold anything, parentheses included.
fn parse_stat(text: &str) -> Option<ProcessSample> {
    let (_, after_name) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // The first field after the name is number 3 in proc(5).
    let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    Some(ProcessSample {
        cpu_user_s: seconds(field(14)?),
        cpu_system_s: seconds(field(15)?),
        major_faults: field(12)?,
        threads: field(20)?,
        rss_bytes: field(24)?.saturating_mul(rustix::param::page_size() as u64),
        virtual_bytes: field(23)?,
        switches: None,
        io: None,
    })
}

/// The processor time of waited-for children: fields 16 and 17 of `/proc/PID/stat`, see proc(5).
fn parse_waited_for(text: &str) -> Option<(f64, f64)> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(13);
    let ticks_a_second = rustix::param::clock_ticks_per_second() as f64;
    let mut next = || Some(fields.next()?.parse::<f64>().ok()? / ticks_a_second);
    Some((next()?, next()?))
}

fn parse_io(text: &str) -> Option<ProcessIo> {
    let number = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(ProcessIo {
        read_bytes: number("read_bytes:")?,
        write_bytes: number("write_bytes:")?,
        cancelled_write_bytes: number("cancelled_write_bytes:")?,
        read_calls: number("syscr:")?,
        write_calls: number("syscw:")?,
    })
}

/// Resource usage of this process itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfUsage {
    /// Processor seconds, user and system.
    pub cpu_s: f64,
    /// Peak resident memory so far, in bytes.
    pub rss_peak_bytes: Option<u64>,
}

/// Resource usage of this process (the laboratory) so far; `None` without `/proc`.
#[must_use]
pub fn self_usage() -> Option<SelfUsage> {
    let stat = parse_stat(&fs::read_to_string("/proc/self/stat").ok()?)?;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib: Option<u64> = peak.and_then(|p| p.trim().strip_suffix("kB")?.trim().parse().ok());
    Some(SelfUsage {
        cpu_s: stat.cpu_user_s + stat.cpu_system_s,
        rss_peak_bytes: kib.map(|k| k.saturating_mul(1024)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_parses_with_a_hostile_name() {
        let tail = "S 1 2 3 0 -1 4194304 95 0 7 0 250 50 0 0 20 0 31 0 144730 3133440 350 1 2";
        let sample = parse_stat(&format!("15068 (a) b (c)) {tail}")).unwrap();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(
            (sample.cpu_user_s, sample.cpu_system_s),
            (250.0 / ticks, 50.0 / ticks)
        );
        assert_eq!((sample.major_faults, sample.threads), (7, 31));
        let page = rustix::param::page_size() as u64;
        assert_eq!(
            (sample.virtual_bytes, sample.rss_bytes),
            (3_133_440, 350 * page)
        );
        assert_eq!(parse_stat("15068 (a) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn io_parses_and_partial_text_is_none() {
        let text = "rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 2\nread_bytes: 4096\n\
                    write_bytes: 8192\ncancelled_write_bytes: 3\n";
        let io = parse_io(text).unwrap();
        assert_eq!((io.read_bytes, io.write_bytes), (4096, 8192));
        assert_eq!((io.read_calls, io.write_calls), (10, 2));
        assert_eq!(io.cancelled_write_bytes, 3);
        assert_eq!(parse_io("rchar: 1\n"), None);
    }

    #[test]
    fn switches_of_ended_threads_stay_in_the_sum() {
        let dir = tempfile::tempdir().unwrap();
        let task = |tid: u32, voluntary: u64| {
            let path = dir.path().join(format!("9/task/{tid}"));
            fs::create_dir_all(&path).unwrap();
            let text = format!(
                "Name:\tx\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t1\n"
            );
            fs::write(path.join("status"), text).unwrap();
        };
        let mut files = ProcessFiles::new(dir.path(), 9);
        assert_eq!(files.switches(), None);
        task(9, 10);
        task(10, 5);
        let sum = |files: &mut ProcessFiles| files.switches().unwrap().voluntary;
        assert_eq!(sum(&mut files), 15);
        fs::remove_dir_all(dir.path().join("9/task/10")).unwrap();
        task(9, 11);
        assert_eq!(sum(&mut files), 16);
        task(11, 100);
        assert_eq!(sum(&mut files), 116);
        assert_eq!(sum(&mut files), 116);
    }

    #[test]
    fn this_process_has_used_something() {
        let usage = self_usage().unwrap();
        assert!(usage.rss_peak_bytes.unwrap() > 1 << 20);
    }
}

//! Metrics of the process, under the names that Prometheus' client libraries give them, and of the
//! machine: processors, memory, the disk of the data directory, and the kernel's count of the time
//! that tasks waited for each of them (pressure stall information).
//!
//! Everything is read from `/proc`. What the kernel does not report is left out; its family
//! remains, without samples.

use std::fs;
use std::path::Path;

use super::float::{float, unsigned};
use super::text::{Kind, Text};
use crate::config::Memory;
use crate::server::Server;

/// Bytes of a sector in `/proc/diskstats`, whatever the device has.
const SECTOR: f64 = 512.0;

/// The columns of the first line of `/proc/stat`.
const MODES: [&str; 8] = [
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
];

pub(super) fn append(server: &Server, text: &mut Text) {
    process(text);
    processors(text);
    memory(text);
    disk(&server.config.db_path, text);
    pressure(text);
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn ticks() -> f64 {
    unsigned(rustix::param::clock_ticks_per_second()).max(1.0)
}

fn number(word: Option<&&str>) -> f64 {
    word.and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// The words of `/proc/self/stat` after the name, which may contain spaces.
fn process(text: &mut Text) {
    let stat = read("/proc/self/stat");
    let words: Vec<&str> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let at = |column: usize| number(words.get(column - 3));
    let used = (at(14) + at(15)) / ticks();
    let help = "Processor time of the process.";
    text.foreign("process_cpu_seconds_total", Kind::Counter, help)
        .sample(&[], used);
    let page = unsigned(u64::try_from(rustix::param::page_size()).unwrap_or(4_096));
    text.foreign(
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Resident memory.",
    )
    .sample(&[], at(24) * page);
    text.foreign(
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Virtual memory.",
    )
    .sample(&[], at(23));
    text.foreign("process_threads", Kind::Gauge, "Threads of the process.")
        .sample(&[], at(20));
    let begun = read("/proc/stat");
    let begun = begun.lines().find_map(|line| line.strip_prefix("btime "));
    let begun: f64 = begun
        .and_then(|word| word.trim().parse().ok())
        .unwrap_or(0.0);
    let help = "Start of the process in seconds since 1970.";
    text.foreign("process_start_time_seconds", Kind::Gauge, help)
        .sample(&[], begun + at(22) / ticks());
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    text.foreign("process_open_fds", Kind::Gauge, "Open file descriptors.")
        .sample(&[], super::float::size(open));
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let help = "Maximum number of open file descriptors.";
    text.foreign("process_max_fds", Kind::Gauge, help);
    if let Some(most) = most {
        text.sample(&[], unsigned(most));
    }
}

fn processors(text: &mut Text) {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let help = "Processors that the process may use.";
    let count = super::float::size(count);
    text.one("host_processors", Kind::Gauge, help, count);
    let stat = read("/proc/stat");
    let help = "Processor time of the machine, by mode.";
    text.family("host_cpu_seconds_total", Kind::Counter, help);
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    for (mode, word) in MODES.iter().zip(line.unwrap_or("").split_whitespace()) {
        let value = number(Some(&word)) / ticks();
        text.sample(&[("mode", mode)], value);
    }
}

fn memory(text: &mut Text) {
    let own = Memory::read();
    let help = "Memory that the process may use: the limit of its control group or the machine's.";
    text.one("memory_limit_bytes", Kind::Gauge, help, unsigned(own.limit));
    let all = read("/proc/meminfo");
    let bytes = |name: &str| {
        let line = all.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        number(word.as_ref()) * 1_024.0
    };
    text.family("host_memory_bytes", Kind::Gauge, "Memory of the machine.");
    for (state, name) in [("total", "MemTotal:"), ("available", "MemAvailable:")] {
        text.sample(&[("state", state)], bytes(name));
    }
    let help = "Swap space of the machine.";
    text.family("host_swap_bytes", Kind::Gauge, help);
    for (state, name) in [("total", "SwapTotal:"), ("free", "SwapFree:")] {
        text.sample(&[("state", state)], bytes(name));
    }
}

/// The file system of the data directory, and its device if it has one of its own.
fn disk(path: &Path, text: &mut Text) {
    let help = "The file system of the data directory.";
    text.family("data_filesystem_bytes", Kind::Gauge, help);
    if let Ok(whole) = vfs::file_system(path) {
        text.sample(&[("state", "total")], unsigned(whole.total_bytes))
            .sample(&[("state", "used")], unsigned(whole.used_bytes));
    }
    let device = vfs::device_of(path).ok();
    let all = read("/proc/diskstats");
    let words: Vec<&str> = all
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| {
            device.is_some_and(|device| {
                let numbers = (device.major.to_string(), device.minor.to_string());
                words.first() == Some(&numbers.0.as_str())
                    && words.get(1) == Some(&numbers.1.as_str())
            })
        })
        .unwrap_or_default();
    let at = |column: usize| (!words.is_empty()).then(|| number(words.get(column)));
    let mut family = |name: &str, help: &str, values: [(&str, Option<f64>); 2]| {
        text.family(name, Kind::Counter, help);
        for (direction, value) in values {
            if let Some(value) = value {
                text.sample(&[("direction", direction)], value);
            }
        }
    };
    family(
        "host_disk_bytes_total",
        "Bytes of the device of the data directory.",
        [
            ("read", at(5).map(|n| n * SECTOR)),
            ("write", at(9).map(|n| n * SECTOR)),
        ],
    );
    family(
        "host_disk_operations_total",
        "Operations of the device of the data directory.",
        [("read", at(3)), ("write", at(7))],
    );
    let help = "Time in which the device of the data directory was busy.";
    text.family("host_disk_busy_seconds_total", Kind::Counter, help);
    if let Some(millis) = at(12) {
        text.sample(&[], millis / 1e3);
    }
}

fn pressure(text: &mut Text) {
    let help = "Time in which some task of the machine waited for the resource.";
    text.family("host_pressure_seconds_total", Kind::Counter, help);
    for resource in ["cpu", "memory", "io"] {
        let all = read(&format!("/proc/pressure/{resource}"));
        let line = all.lines().find_map(|line| line.strip_prefix("some "));
        let total = line.and_then(|line| line.rsplit_once("total="));
        if let Some(micros) = total.and_then(|(_, micros)| micros.trim().parse().ok()) {
            text.sample(&[("resource", resource)], float(micros) / 1e6);
        }
    }
}

//! Metrics of the process, under the names that Prometheus' client libraries give them, and of the
//! machine: processors, memory, the disk of the data directory, and the kernel's count of the time
//! that tasks waited for each of them (pressure stall information).
//!
//! What the kernel does not report is left out; its family remains, without samples.

use std::fs;
use std::path::Path;

use super::float::{float, size, unsigned};
use super::text::{Kind, Label, Text};
use crate::config::Memory;
use crate::kernel::{self, Disk, Machine, Process, kibibytes};
use crate::server::Server;

pub(super) fn append(server: &Server, text: &mut Text) {
    let machine = Machine::read();
    process(&machine, text);
    processors(&machine, text);
    memory(text);
    disk(&server.config.db_path, text);
    pressure(text);
}

fn ticks() -> f64 {
    unsigned(rustix::param::clock_ticks_per_second()).max(1.0)
}

/// Add a sample, if it has a value.
fn add(text: &mut Text, labels: &[Label<'_>], value: Option<f64>) {
    if let Some(value) = value {
        text.sample(labels, value);
    }
}

fn process(machine: &Machine, text: &mut Text) {
    let own = Process::read();
    let at = |column: usize| own.column(column).map(unsigned);
    let used = at(14).zip(at(15));
    let used = used.map(|(user, system)| (user + system) / ticks());
    let page = size(rustix::param::page_size());
    let begun = machine.number("btime").map(unsigned).zip(at(22));
    let begun = begun.map(|(machine, own)| machine + own / ticks());
    let open = fs::read_dir("/proc/self/fd").ok();
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    for (name, kind, help, value) in [
        (
            "process_cpu_seconds_total",
            Kind::Counter,
            "Processor time of the process.",
            used,
        ),
        (
            "process_resident_memory_bytes",
            Kind::Gauge,
            "Resident memory.",
            at(24).map(|pages| pages * page),
        ),
        (
            "process_virtual_memory_bytes",
            Kind::Gauge,
            "Virtual memory.",
            at(23),
        ),
        (
            "process_threads",
            Kind::Gauge,
            "Threads of the process.",
            at(20),
        ),
        (
            "process_start_time_seconds",
            Kind::Gauge,
            "Start of the process in seconds since 1970.",
            begun,
        ),
        (
            "process_open_fds",
            Kind::Gauge,
            "Open file descriptors.",
            open.map(|open| size(open.count())),
        ),
        (
            "process_max_fds",
            Kind::Gauge,
            "Maximum number of open file descriptors.",
            most.map(unsigned),
        ),
    ] {
        text.foreign(name, kind, help);
        add(text, &[], value);
    }
}

fn processors(machine: &Machine, text: &mut Text) {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let help = "Processors that the process may use.";
    text.one("host_processors", Kind::Gauge, help, size(count));
    let help = "Processor time of the machine, by mode.";
    text.family("host_cpu_seconds_total", Kind::Counter, help);
    for (mode, time) in machine.ticks() {
        // The time of guests is also in that of their users.
        if !mode.starts_with("guest") {
            text.sample(&[("mode", mode)], unsigned(time) / ticks());
        }
    }
}

fn memory(text: &mut Text) {
    let own = Memory::read();
    let help = "Memory that the process may use: the limit of its control group or the machine's.";
    text.one("memory_limit_bytes", Kind::Gauge, help, unsigned(own.limit));
    let all = kernel::text("/proc/meminfo");
    let bytes = |name: &str| kibibytes(&all, name).map(|n| unsigned(n) * 1_024.0);
    text.family("host_memory_bytes", Kind::Gauge, "Memory of the machine.");
    for (state, name) in [("total", "MemTotal"), ("available", "MemAvailable")] {
        add(text, &[("state", state)], bytes(name));
    }
    let help = "Swap space of the machine.";
    text.family("host_swap_bytes", Kind::Gauge, help);
    for (state, name) in [("total", "SwapTotal"), ("free", "SwapFree")] {
        add(text, &[("state", state)], bytes(name));
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
    let disk = vfs::device_of(path).ok().and_then(Disk::read);
    let mut family = |name: &str, help: &str, counts: Option<[u64; 2]>| {
        text.family(name, Kind::Counter, help);
        for (direction, count) in ["read", "write"].iter().zip(counts.iter().flatten()) {
            text.sample(&[("direction", direction)], unsigned(*count));
        }
    };
    let help = "Bytes of the device of the data directory.";
    let bytes = disk.as_ref().map(|disk| disk.bytes);
    family("host_disk_bytes_total", help, bytes);
    let help = "Operations of the device of the data directory.";
    let operations = disk.as_ref().map(|disk| disk.operations);
    family("host_disk_operations_total", help, operations);
    let help = "Time in which the device of the data directory was busy.";
    text.family("host_disk_busy_seconds_total", Kind::Counter, help);
    let busy = disk.map(|disk| unsigned(disk.busy_ms) / 1e3);
    add(text, &[], busy);
}

fn pressure(text: &mut Text) {
    let help = "Time in which some task of the machine waited for the resource.";
    text.family("host_pressure_seconds_total", Kind::Counter, help);
    for resource in ["cpu", "memory", "io"] {
        let all = kernel::text(&format!("/proc/pressure/{resource}"));
        let line = all.lines().find_map(|line| line.strip_prefix("some "));
        let total = line.and_then(|line| line.rsplit_once("total="));
        if let Some(micros) = total.and_then(|(_, micros)| micros.trim().parse().ok()) {
            text.sample(&[("resource", resource)], float(micros) / 1e6);
        }
    }
}

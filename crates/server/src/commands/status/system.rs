//! Processors and memory of the machine, in the form that monitoring tools expect in
//! `getDiagnosticData`.

use std::fs;

use wire::Builder;

/// The columns of the first line of `/proc/stat`, which are in hundredths of a second.
const CPU: &[&str] = &[
    "user_ms",
    "nice_ms",
    "system_ms",
    "idle_ms",
    "iowait_ms",
    "irq_ms",
    "softirq_ms",
    "steal_ms",
    "guest_ms",
    "guest_nice_ms",
];

/// The lines of `/proc/meminfo` that are shown.
const MEMORY: &[&str] = &[
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapTotal",
    "SwapFree",
    "Active",
    "Inactive",
    "Dirty",
];

/// Append the kernel's statistics.
pub(super) fn metrics(reply: &mut Builder) {
    reply.open_document("cpu");
    cpu(reply, &fs::read_to_string("/proc/stat").unwrap_or_default());
    reply.close().open_document("memory");
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().trim_end_matches(':');
        let size = words.next().and_then(|size| size.parse().ok());
        if let Some(size) = size.filter(|_| MEMORY.contains(&name)) {
            reply.long(&format!("{name}_kb"), size);
        }
    }
    reply.close();
}

fn cpu(reply: &mut Builder, text: &str) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let mut first = words.clone().map(|word| word.parse::<i64>().unwrap_or(0));
        match name {
            "cpu" => {
                for (name, hundredths) in CPU.iter().zip(first) {
                    reply.long(name, hundredths.saturating_mul(10));
                }
            }
            "ctxt" | "btime" | "processes" | "procs_running" | "procs_blocked" => {
                reply.long(name, first.next().unwrap_or(0));
            }
            _ => {}
        }
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    reply.int("num_cpus", i32::try_from(processors).unwrap_or(i32::MAX));
}

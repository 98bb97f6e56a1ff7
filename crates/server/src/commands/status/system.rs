//! Processors and memory of the machine, in the form that monitoring tools expect in
//! `getDiagnosticData`.

use wire::Builder;

use crate::kernel::{self, Machine, kibibytes};
use crate::long::long;

/// The lines of `/proc/stat` that are shown.
const COUNTS: &[&str] = &[
    "ctxt",
    "btime",
    "processes",
    "procs_running",
    "procs_blocked",
];

/// The lines of `/proc/meminfo` that are shown.
const MEMORY: &[&str] = &[
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "Active",
    "Inactive",
    "SwapTotal",
    "SwapFree",
    "Dirty",
];

/// Append the kernel's statistics.
pub(super) fn metrics(reply: &mut Builder) {
    reply.open_document("cpu");
    cpu(reply, &Machine::read());
    reply.close().open_document("memory");
    let text = kernel::text("/proc/meminfo");
    for name in MEMORY {
        if let Some(size) = kibibytes(&text, name) {
            reply.long(&format!("{name}_kb"), long(size));
        }
    }
    reply.close();
}

fn cpu(reply: &mut Builder, machine: &Machine) {
    // A tick is a hundredth of a second.
    for (mode, ticks) in machine.ticks() {
        reply.long(&format!("{mode}_ms"), long(ticks).saturating_mul(10));
    }
    for name in COUNTS {
        if let Some(count) = machine.number(name) {
            reply.long(name, long(count));
        }
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    reply.int("num_cpus", i32::try_from(processors).unwrap_or(i32::MAX));
}

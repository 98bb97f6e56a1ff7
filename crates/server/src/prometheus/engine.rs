//! Metrics of the storage engine: bytes by reason, waits, cache, and the work that is owed.

use kv::{EngineStats, IoCount};

use super::float::unsigned;
use super::text::{Kind, Text};
use crate::commands::reason;

fn traffic(name: &'static str, help: &str, counts: &[IoCount], engine: &str, text: &mut Text) {
    text.family(name, Kind::Counter, help);
    for count in counts {
        let reason = reason(count);
        let labels = [("engine", engine), ("reason", reason.as_str())];
        text.sample(&labels, unsigned(count.bytes));
    }
}

pub(super) fn append(name: &str, stats: &EngineStats, text: &mut Text) {
    let written = "Bytes the engine wrote, by reason.";
    traffic(
        "engine_written_bytes_total",
        written,
        &stats.written,
        name,
        text,
    );
    let read = "Bytes the engine read, by reason.";
    traffic("engine_read_bytes_total", read, &stats.read, name, text);
    text.family("engine_stalls_total", Kind::Counter, "Waits, by reason.");
    for stall in &stats.stalls {
        let labels = [("engine", name), ("reason", stall.reason.as_str())];
        text.sample(&labels, unsigned(stall.count));
    }
    let help = "Seconds waited, by reason.";
    text.family("engine_stall_seconds_total", Kind::Counter, help);
    for stall in &stats.stalls {
        if let Some(micros) = stall.micros {
            let labels = [("engine", name), ("reason", stall.reason.as_str())];
            text.sample(&labels, unsigned(micros) / 1e6);
        }
    }
    if let Some(cache) = &stats.cache {
        let of = |state| [("engine", name), ("state", state)];
        text.family("engine_cache_bytes", Kind::Gauge, "The engine's cache.")
            .sample(&of("capacity"), unsigned(cache.capacity_bytes))
            .sample(&of("used"), unsigned(cache.used_bytes))
            .sample(&of("dirty"), unsigned(cache.dirty_bytes));
        let of = |result| [("engine", name), ("result", result)];
        let help = "Lookups in the engine's cache.";
        text.family("engine_cache_lookups_total", Kind::Counter, help)
            .sample(&of("hit"), unsigned(cache.hits))
            .sample(&of("miss"), unsigned(cache.misses));
    }
    if let Some(debt) = stats.debt_bytes {
        let help = "Bytes whose background work is owed.";
        text.family("engine_debt_bytes", Kind::Gauge, help)
            .sample(&[("engine", name)], unsigned(debt));
    }
    let help = "Background work in progress, 1 for each kind that runs.";
    text.family("engine_activity", Kind::Gauge, help);
    for activity in &stats.activity {
        text.sample(&[("engine", name), ("activity", activity.as_str())], 1.0);
    }
    // Counters and gauges share the family: only the engine's names tell them apart.
    let help = "Statistics under the engine's own names.";
    text.family("engine_figure", Kind::Gauge, help);
    for (counter, value) in &stats.counters {
        let labels = [("engine", name), ("name", counter.as_str())];
        text.sample(&labels, unsigned(*value));
    }
}

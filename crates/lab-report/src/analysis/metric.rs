//! The metrics of a step: one table of names, units and directions, and the numbers of a step by
//! name.
//!
//! "Per row" is per main operation of the step: rows written, or queries of a query step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{Main, QuerySummary, StepSummary};

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It is descriptive: neither direction is better.
    Neither,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in records and rules.
    pub name: &'static str,
    /// Its unit: `s`, `ms`, `us`, `bytes`, `1/s`, `rows`, `ratio`, `1` (a count).
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// One line for people.
    pub doc: &'static str,
}

/// Every metric, in the order tables show them.
pub const METRICS: [Metric; 37] = [
    metric("rows", "rows", Better::Neither, "Rows written."),
    metric(
        "seconds",
        "s",
        Better::Lower,
        "Seconds from the first operation to the end of the last, without settling.",
    ),
    metric(
        "rate_mean",
        "1/s",
        Better::Higher,
        "Main operations per second over the step.",
    ),
    metric(
        "rate_first_tenth",
        "1/s",
        Better::Higher,
        "Rate over the first tenth of the main operations.",
    ),
    metric(
        "rate_last_tenth",
        "1/s",
        Better::Higher,
        "Rate over the last tenth of the main operations.",
    ),
    metric(
        "flatness",
        "ratio",
        Better::Higher,
        "Rate of the last tenth by that of the first: 1 is flat, below 1 falls.",
    ),
    metric(
        "worst_second",
        "1/s",
        Better::Higher,
        "Rate in the worst whole second.",
    ),
    metric(
        "median_second",
        "1/s",
        Better::Higher,
        "Median of the rates of whole seconds.",
    ),
    metric(
        "stall_seconds",
        "s",
        Better::Lower,
        "Seconds that were stalls.",
    ),
    metric(
        "latency_p50_ms",
        "ms",
        Better::Lower,
        "Median latency of the main operation.",
    ),
    metric(
        "latency_p99_ms",
        "ms",
        Better::Lower,
        "99th percentile of the latency of the main operation.",
    ),
    metric(
        "latency_p999_ms",
        "ms",
        Better::Lower,
        "99.9th percentile of the latency of the main operation.",
    ),
    metric(
        "latency_max_ms",
        "ms",
        Better::Lower,
        "Longest latency of the main operation.",
    ),
    metric(
        "device_write_bytes",
        "bytes",
        Better::Lower,
        "Bytes written to the device, settling included.",
    ),
    metric(
        "device_read_bytes",
        "bytes",
        Better::Lower,
        "Bytes read from the device, settling included.",
    ),
    metric(
        "logical_bytes",
        "bytes",
        Better::Neither,
        "Bytes of keys and values written, index entries included.",
    ),
    metric(
        "live_bytes",
        "bytes",
        Better::Neither,
        "Bytes of live keys and values in the store at the end.",
    ),
    metric(
        "file_bytes",
        "bytes",
        Better::Lower,
        "Size of the files after settling (allocated).",
    ),
    metric(
        "cpu_seconds",
        "s",
        Better::Lower,
        "CPU of the worker, or of the server where the target is one, settling included.",
    ),
    metric(
        "client_cpu_seconds",
        "s",
        Better::Neither,
        "CPU of the load generator: within cpu_seconds, or beside it where the target is a server.",
    ),
    metric(
        "lab_cpu_seconds",
        "s",
        Better::Neither,
        "CPU of the lab's own process.",
    ),
    metric(
        "settle_seconds",
        "s",
        Better::Lower,
        "Seconds the settle phase took.",
    ),
    metric(
        "debt_bytes",
        "bytes",
        Better::Lower,
        "Durability debt when the load ended, before settling.",
    ),
    metric(
        "write_amplification",
        "ratio",
        Better::Lower,
        "device_write_bytes / logical_bytes.",
    ),
    metric(
        "read_amplification",
        "ratio",
        Better::Lower,
        "device_read_bytes / logical_bytes.",
    ),
    metric(
        "space_amplification",
        "ratio",
        Better::Lower,
        "file_bytes / live_bytes.",
    ),
    metric(
        "cpu_us_per_row",
        "us",
        Better::Lower,
        "cpu_seconds per main operation, in microseconds.",
    ),
    metric(
        "device_write_bytes_per_row",
        "bytes",
        Better::Lower,
        "device_write_bytes per main operation.",
    ),
    metric(
        "device_read_bytes_per_row",
        "bytes",
        Better::Lower,
        "device_read_bytes per main operation.",
    ),
    metric(
        "device_write_ios_per_row",
        "1",
        Better::Lower,
        "Device writes per main operation.",
    ),
    metric(
        "device_read_ios_per_row",
        "1",
        Better::Lower,
        "Device reads per main operation.",
    ),
    metric(
        "switches_per_row",
        "1",
        Better::Lower,
        "Context switches per main operation.",
    ),
    metric(
        "query_rate",
        "1/s",
        Better::Higher,
        "Queries per second over the step.",
    ),
    metric(
        "query_p50_ms",
        "ms",
        Better::Lower,
        "Median latency of the queries.",
    ),
    metric(
        "query_p99_ms",
        "ms",
        Better::Lower,
        "99th percentile of the latency of the queries.",
    ),
    metric(
        "cgroup_memory_max",
        "bytes",
        Better::Neither,
        "Peak memory charged to the cgroup, page cache included.",
    ),
    metric(
        "rss_max",
        "bytes",
        Better::Lower,
        "Peak resident memory of the worker.",
    ),
];

const fn metric(
    name: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
) -> Metric {
    Metric {
        name,
        unit,
        better,
        doc,
    }
}

impl Metric {
    /// The metric of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Metric> {
        METRICS.into_iter().find(|m| m.name == name)
    }
}

/// The metrics of one step by name: every name of [`METRICS`]. `None` if not measured, or if a
/// ratio has no denominator.
#[must_use]
pub fn metrics(step: &StepSummary) -> BTreeMap<String, Option<f64>> {
    let all = throughput(step)
        .into_iter()
        .chain(latency(step))
        .chain(bytes(step));
    let all = all
        .chain(cost(step))
        .chain(per_operation(step))
        .chain(query(step.queries.as_ref()));
    all.map(|(name, value)| (name.to_owned(), value.filter(|v| v.is_finite())))
        .collect()
}

type Named = (&'static str, Option<f64>);

fn throughput(step: &StepSummary) -> [Named; 9] {
    [
        ("rows", count(step.rows)),
        ("seconds", Some(step.seconds)),
        ("rate_mean", Some(step.rate_mean)),
        ("rate_first_tenth", Some(step.rate_first_tenth)),
        ("rate_last_tenth", Some(step.rate_last_tenth)),
        (
            "flatness",
            ratio(Some(step.rate_last_tenth), Some(step.rate_first_tenth)),
        ),
        ("worst_second", Some(step.worst_second)),
        ("median_second", Some(step.median_second)),
        ("stall_seconds", count(step.stall_seconds)),
    ]
}

fn latency(step: &StepSummary) -> [Named; 4] {
    let of = step.latency_ms;
    let measured = |ms: f64| (0 < of.count).then_some(ms);
    [
        ("latency_p50_ms", measured(of.p50)),
        ("latency_p99_ms", measured(of.p99)),
        ("latency_p999_ms", measured(of.p999)),
        ("latency_max_ms", measured(of.max)),
    ]
}

fn bytes(step: &StepSummary) -> [Named; 8] {
    let written = step.device_write_bytes.and_then(count);
    let read = step.device_read_bytes.and_then(count);
    let logical = count(step.logical_bytes);
    let files = count(step.file_bytes);
    [
        ("device_write_bytes", written),
        ("device_read_bytes", read),
        ("logical_bytes", logical),
        ("live_bytes", count(step.live_bytes)),
        ("file_bytes", files),
        ("write_amplification", ratio(written, logical)),
        ("read_amplification", ratio(read, logical)),
        ("space_amplification", ratio(files, count(step.live_bytes))),
    ]
}

fn cost(step: &StepSummary) -> [Named; 7] {
    [
        ("cpu_seconds", step.cpu_seconds),
        ("client_cpu_seconds", Some(step.client_cpu_seconds)),
        ("lab_cpu_seconds", Some(step.lab_cpu_seconds)),
        (
            "settle_seconds",
            (!step.settle_unknown).then_some(step.settle_seconds),
        ),
        ("debt_bytes", step.debt_bytes.and_then(count)),
        ("cgroup_memory_max", step.cgroup_memory_max.and_then(count)),
        ("rss_max", step.rss_max.and_then(count)),
    ]
}

fn per_operation(step: &StepSummary) -> [Named; 6] {
    let done = match step.main {
        Main::Rows => step.rows,
        Main::Queries => step.queries.as_ref().map_or(0, |q| q.queries),
    };
    let per = |n: Option<u64>| ratio(n.and_then(count), count(done));
    [
        (
            "cpu_us_per_row",
            ratio(step.cpu_seconds.map(|s| s * 1e6), count(done)),
        ),
        ("device_write_bytes_per_row", per(step.device_write_bytes)),
        ("device_read_bytes_per_row", per(step.device_read_bytes)),
        ("device_write_ios_per_row", per(step.device_write_ios)),
        ("device_read_ios_per_row", per(step.device_read_ios)),
        ("switches_per_row", per(step.switches)),
    ]
}

fn query(queries: Option<&QuerySummary>) -> [Named; 3] {
    let measured = queries.filter(|q| 0 < q.latency_ms.count);
    [
        ("query_rate", queries.map(|q| q.rate_mean)),
        ("query_p50_ms", measured.map(|q| q.latency_ms.p50)),
        ("query_p99_ms", measured.map(|q| q.latency_ms.p99)),
    ]
}

fn count(n: u64) -> Option<f64> {
    Some(n as f64)
}

/// `None` if a side is missing or the denominator is not positive.
fn ratio(over: Option<f64>, under: Option<f64>) -> Option<f64> {
    let under = under.filter(|&u| 0.0 < u)?;
    Some(over? / under)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::step;

    #[test]
    fn every_name_of_the_table_is_there_and_no_other() {
        let found = metrics(&step("lmdb", 1, 1000.0));
        let mut names: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
        names.sort_unstable();
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), names);
    }

    #[test]
    fn ratios_are_per_main_operation() {
        let mut s = step("lmdb", 1, 1000.0);
        s.rows = 10_000;
        s.rate_first_tenth = 2000.0;
        s.rate_last_tenth = 500.0;
        s.logical_bytes = 1000;
        s.device_write_bytes = Some(5000);
        s.device_read_bytes = None;
        s.file_bytes = 3000;
        s.live_bytes = 2000;
        s.cpu_seconds = Some(0.5);
        s.switches = Some(20_000);
        let found = metrics(&s);
        assert_eq!(found["flatness"], Some(0.25));
        assert_eq!(found["write_amplification"], Some(5.0));
        assert_eq!(found["read_amplification"], None);
        assert_eq!(found["space_amplification"], Some(1.5));
        assert_eq!(found["cpu_us_per_row"], Some(50.0));
        assert_eq!(found["device_write_bytes_per_row"], Some(0.5));
        assert_eq!(found["switches_per_row"], Some(2.0));
        assert_eq!(found["query_rate"], None);
        s.main = Main::Queries;
        assert_eq!(metrics(&s)["cpu_us_per_row"], None);
        s.queries = Some(QuerySummary {
            queries: 100,
            rate_mean: 9.0,
            ..QuerySummary::default()
        });
        let found = metrics(&s);
        assert_eq!(found["cpu_us_per_row"], Some(5000.0));
        assert_eq!(
            (found["query_rate"], found["query_p99_ms"]),
            (Some(9.0), None)
        );
    }
}

//! The metrics of the summary: their names in the records, how they are called, shown and judged.

use super::format;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

/// One metric.
pub(crate) struct Metric {
    /// Its name in `summary.json`.
    pub(crate) name: &'static str,
    /// What it is called in the report.
    pub(crate) label: &'static str,
    /// Its unit as shown.
    pub(crate) unit: &'static str,
    /// One sentence: what it means.
    pub(crate) about: &'static str,
    /// Which way is better.
    pub(crate) better: Better,
    /// What the recorded number is divided by for showing.
    pub(crate) divisor: f64,
    /// The group in the matrix.
    pub(crate) group: &'static str,
}

impl Metric {
    const fn new(
        name: &'static str,
        label: &'static str,
        unit: &'static str,
        group: &'static str,
        better: Better,
        about: &'static str,
    ) -> Metric {
        Metric {
            name,
            label,
            unit,
            about,
            better,
            divisor: 1.0,
            group,
        }
    }

    const fn in_units_of(mut self, divisor: f64) -> Metric {
        self.divisor = divisor;
        self
    }

    /// The number as text, without its unit.
    pub(crate) fn text(&self, value: Option<f64>) -> String {
        format::maybe(value.map(|v| v / self.divisor))
    }
}

use Better::{Higher, Lower};

const RATE: &str = "Rate";
const LATENCY: &str = "Latency";
const COST: &str = "Cost per row";
const AMPLIFICATION: &str = "Amplification";
const AFTER: &str = "Afterwards";

/// The rows of the summary matrix.
pub(crate) const METRICS: [Metric; 20] = [
    Metric::new(
        "rate_mean",
        "Rate, mean",
        "rows/s",
        RATE,
        Higher,
        "Operations over seconds.",
    ),
    Metric::new(
        "rate_first_tenth",
        "First tenth",
        "rows/s",
        RATE,
        Higher,
        "Rate over the first tenth of the operations.",
    ),
    Metric::new(
        "rate_last_tenth",
        "Last tenth",
        "rows/s",
        RATE,
        Higher,
        "Rate over the last tenth of the operations: what a longer run would see.",
    ),
    Metric::new(
        "median_second",
        "Median second",
        "rows/s",
        RATE,
        Higher,
        "Median of whole seconds.",
    ),
    Metric::new(
        "worst_second",
        "Worst second",
        "rows/s",
        RATE,
        Higher,
        "The slowest whole second.",
    ),
    Metric::new(
        "stall_seconds",
        "Stalled",
        "s",
        RATE,
        Lower,
        "Seconds that were stalls.",
    ),
    Metric::new(
        "query_rate",
        "Queries",
        "q/s",
        RATE,
        Higher,
        "Queries per second meanwhile.",
    ),
    Metric::new(
        "latency_p50_ms",
        "Commit p50",
        "ms",
        LATENCY,
        Lower,
        "Median latency.",
    ),
    Metric::new(
        "latency_p99_ms",
        "Commit p99",
        "ms",
        LATENCY,
        Lower,
        "99 % took at most.",
    ),
    Metric::new(
        "latency_max_ms",
        "Commit max",
        "ms",
        LATENCY,
        Lower,
        "The slowest one.",
    ),
    Metric::new(
        "query_p99_ms",
        "Query p99",
        "ms",
        LATENCY,
        Lower,
        "99 % of queries took at most.",
    ),
    Metric::new(
        "device_write_bytes_per_row",
        "Written",
        "KB/row",
        COST,
        Lower,
        "Bytes the device wrote, settling included, per row.",
    )
    .in_units_of(1e3),
    Metric::new(
        "device_read_bytes_per_row",
        "Read",
        "KB/row",
        COST,
        Lower,
        "Bytes the device read, settling included, per row.",
    )
    .in_units_of(1e3),
    Metric::new(
        "cpu_us_per_row",
        "CPU",
        "us/row",
        COST,
        Lower,
        "CPU of the worker per row.",
    ),
    Metric::new(
        "switches_per_row",
        "Switches",
        "/row",
        COST,
        Lower,
        "Context switches per row.",
    ),
    Metric::new(
        "write_amplification",
        "Write",
        "x",
        AMPLIFICATION,
        Lower,
        "Device bytes written over logical bytes written.",
    ),
    Metric::new(
        "read_amplification",
        "Read",
        "x",
        AMPLIFICATION,
        Lower,
        "Device bytes read over logical bytes.",
    ),
    Metric::new(
        "space_amplification",
        "Space",
        "x",
        AMPLIFICATION,
        Lower,
        "Bytes of files over bytes of live keys and values.",
    ),
    Metric::new(
        "debt_bytes",
        "Debt",
        "MB",
        AFTER,
        Lower,
        "Work owed when the load ended.",
    )
    .in_units_of(1e6),
    Metric::new(
        "settle_seconds",
        "Settling",
        "s",
        AFTER,
        Lower,
        "Seconds until the debt was paid.",
    ),
];

/// A metric by its name in the records.
pub(crate) fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|m| m.name == name)
}

//! Labels and scales of the metrics on the page. The meaning of each metric, and its better
//! direction, are defined in [`crate::analysis::METRICS`].

use crate::analysis::{Better, Metric};
use crate::record::Operation;

use crate::format;

/// One metric of the summary matrix.
pub(crate) struct Shown {
    /// Its name in `summary.json`.
    pub(crate) name: &'static str,
    label: &'static str,
    unit: &'static str,
    /// Divisor of the recorded number for display.
    pub(crate) divisor: f64,
    group: &'static str,
}

const fn shown(
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    group: &'static str,
) -> Shown {
    Shown {
        name,
        label,
        unit,
        divisor: 1.0,
        group,
    }
}

const RATE: &str = "Rate";
const LATENCY: &str = "Latency";
const COST: &str = "Cost per row";
const AMPLIFICATION: &str = "Amplification";
const AFTER: &str = "Afterwards";

/// The rows of the summary matrix.
pub(crate) const SHOWN: [Shown; 20] = [
    shown("rate_mean", "Rate, mean", "rows/s", RATE),
    shown("rate_first_tenth", "First tenth", "rows/s", RATE),
    shown("rate_last_tenth", "Last tenth", "rows/s", RATE),
    shown("median_second", "Median second", "rows/s", RATE),
    shown("worst_second", "Worst second", "rows/s", RATE),
    shown("stall_seconds", "Stalled", "s", RATE),
    shown("query_rate", "Queries", "q/s", RATE),
    shown("latency_p50_ms", "Commit p50", "ms", LATENCY),
    shown("latency_p99_ms", "Commit p99", "ms", LATENCY),
    shown("latency_max_ms", "Commit max", "ms", LATENCY),
    shown("query_p99_ms", "Query p99", "ms", LATENCY),
    shown("device_write_bytes_per_row", "Written", "KB/row", COST).in_units_of(1e3),
    shown("device_read_bytes_per_row", "Read", "KB/row", COST).in_units_of(1e3),
    shown("cpu_us_per_row", "CPU", "us/row", COST),
    shown("switches_per_row", "Switches", "/row", COST),
    shown("write_amplification", "Write", "x", AMPLIFICATION),
    shown("read_amplification", "Read", "x", AMPLIFICATION),
    shown("space_amplification", "Space", "x", AMPLIFICATION),
    shown("debt_bytes", "Debt", "MB", AFTER).in_units_of(1e6),
    shown("settle_seconds", "Settling", "s", AFTER),
];

impl Shown {
    const fn in_units_of(mut self, divisor: f64) -> Shown {
        self.divisor = divisor;
        self
    }

    /// The metric with this name in the records.
    pub(crate) fn named(name: &str) -> Option<&'static Shown> {
        SHOWN.iter().find(|m| m.name == name)
    }

    /// Which way is better.
    pub(crate) fn better(&self) -> Better {
        Metric::named(self.name).map_or(Better::Neither, |m| m.better)
    }

    /// Its meaning, in one sentence.
    pub(crate) fn about(&self) -> &'static str {
        Metric::named(self.name).map_or("", |m| m.doc)
    }

    /// Its label, in terms of the step's operations.
    pub(crate) fn label(&self, operation: Operation) -> String {
        spoken(self.label, operation)
    }

    /// Its unit as shown.
    pub(crate) fn unit(&self, operation: Operation) -> String {
        spoken(self.unit, operation)
    }

    /// Its group.
    pub(crate) fn group(&self, operation: Operation) -> String {
        spoken(self.group, operation)
    }

    /// The number as text, without its unit.
    pub(crate) fn text(&self, value: Option<f64>) -> String {
        format::maybe(value.map(|v| v / self.divisor))
    }
}

/// Replace rows and commits in a text by another operation.
fn spoken(text: &str, operation: Operation) -> String {
    match text {
        "rows/s" => operation.per_second.to_owned(),
        COST => format!("Cost per {}", operation.one),
        _ => text
            .replace("Commit", operation.latency)
            .replace("/row", &format!("/{}", operation.one)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_shown_is_one_of_the_lab() {
        for shown in &SHOWN {
            let metric = Metric::named(shown.name).expect(shown.name);
            assert_ne!(metric.better, Better::Neither, "{}", shown.name);
        }
    }

    #[test]
    fn steps_speak_of_what_they_count() {
        let all = |name| Shown::named(name).unwrap();
        let (query, request) = (Operation::QUERY, Operation::REQUEST);
        assert_eq!(all("rate_mean").unit(query), "queries/s");
        assert_eq!(all("rate_mean").unit(request), "requests/s");
        assert_eq!(all("latency_p99_ms").label(query), "Query p99");
        assert_eq!(all("latency_p99_ms").label(Operation::ROW), "Commit p99");
        let cost = all("device_read_bytes_per_row");
        assert_eq!(cost.group(request), "Cost per request");
        assert_eq!(cost.unit(request), "KB/request");
        assert_eq!(cost.unit(Operation::ROW), "KB/row");
    }
}

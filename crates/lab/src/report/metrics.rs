//! How the page calls and scales the metrics it shows. What a metric is and which way it is better
//! is said in one place, [`crate::analysis::METRICS`].

use crate::analysis::{Better, Metric};

use super::format;

/// One metric of the summary matrix.
pub(crate) struct Shown {
    /// Its name in `summary.json`.
    pub(crate) name: &'static str,
    label: &'static str,
    unit: &'static str,
    /// What the recorded number is divided by for showing.
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

    /// A metric by its name in the records.
    pub(crate) fn named(name: &str) -> Option<&'static Shown> {
        SHOWN.iter().find(|m| m.name == name)
    }

    /// Which way is better.
    pub(crate) fn better(&self) -> Better {
        Metric::named(self.name).map_or(Better::Neither, |m| m.better)
    }

    /// One sentence: what it means.
    pub(crate) fn about(&self) -> &'static str {
        Metric::named(self.name).map_or("", |m| m.doc)
    }

    /// What it is called. In steps of `queries` the main operation is a query.
    pub(crate) fn label(&self, queries: bool) -> String {
        of_queries(self.label, queries)
    }

    /// Its unit as shown.
    pub(crate) fn unit(&self, queries: bool) -> String {
        of_queries(self.unit, queries)
    }

    /// The group it stands in.
    pub(crate) fn group(&self, queries: bool) -> String {
        of_queries(self.group, queries)
    }

    /// The number as text, without its unit.
    pub(crate) fn text(&self, value: Option<f64>) -> String {
        format::maybe(value.map(|v| v / self.divisor))
    }
}

/// A text about rows and commits as one about queries.
fn of_queries(text: &str, queries: bool) -> String {
    if !queries {
        return text.to_owned();
    }
    let text = text.replace("Commit", "Query");
    match text.as_str() {
        "rows/s" => "queries/s".to_owned(),
        COST => "Cost per query".to_owned(),
        _ => text.replace("/row", "/query"),
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
    fn query_steps_speak_of_queries() {
        let all = |name| Shown::named(name).unwrap();
        assert_eq!(all("rate_mean").unit(true), "queries/s");
        assert_eq!(all("latency_p99_ms").label(true), "Query p99");
        let cost = all("device_read_bytes_per_row");
        let said = (cost.group(true), cost.unit(true), cost.unit(false));
        assert_eq!(
            said,
            ("Cost per query".into(), "KB/query".into(), "KB/row".into())
        );
    }
}

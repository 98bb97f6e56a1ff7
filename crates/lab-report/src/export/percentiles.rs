//! Latency percentiles as HdrHistogram's tools write them (`outputPercentileDistribution`), which
//! <https://hdrhistogram.github.io/HdrHistogram/plotFiles.html> plots.

use std::fmt::Write;

use hdrhistogram::Histogram;

use crate::error::{Error, Result};
use crate::record::RunRecord;

/// Lines for each halving of the distance to 100 %: what the original tools take by default.
const TICKS: u32 = 5;

/// The distribution of each step, after a comment that names it. Values are microseconds.
pub(super) fn text(run: &RunRecord) -> Result<String> {
    let mut text = String::new();
    for step in &run.steps {
        let kinds = [("main", &step.histogram), ("query", &step.query_histogram)];
        for (kind, histogram) in kinds {
            if let Some(histogram) = histogram.as_ref().filter(|h| !h.is_empty()) {
                let name = &step.directory;
                distribution(&mut text, &format!("{name} {kind}"), histogram)
                    .map_err(|e| Error::environment(format!("cannot export {name}: {e}")))?;
            }
        }
    }
    if text.is_empty() {
        return Err(Error::environment(format!(
            "{} has no latency histogram: no step is done; continue it by `romanesco lab resume`",
            run.manifest.run
        )));
    }
    Ok(text)
}

fn distribution(
    text: &mut String,
    name: &str,
    histogram: &Histogram<u64>,
) -> std::result::Result<(), std::fmt::Error> {
    writeln!(text, "# {name}, microseconds")?;
    writeln!(
        text,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0u64;
    for line in histogram.iter_quantiles(TICKS) {
        total = total.saturating_add(line.count_since_last_iteration());
        let value = histogram.highest_equivalent(line.value_iterated_to()) as f64;
        let quantile = line.quantile_iterated_to();
        write!(text, "{value:12.3} {quantile:1.12} {total:10}")?;
        if quantile < 1.0 {
            writeln!(text, " {:14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(text)?;
        }
    }
    let (mean, deviation) = (histogram.mean(), histogram.stdev());
    writeln!(
        text,
        "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]"
    )?;
    let (max, count) = (histogram.max() as f64, histogram.len());
    writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]")?;
    let (buckets, values) = (histogram.buckets(), histogram.distinct_values());
    writeln!(
        text,
        "#[Buckets = {buckets:12}, SubBuckets     = {values:12}]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{run, step};

    #[test]
    fn percentiles_of_ten_values() {
        let mut run = run("r", &["lmdb"], 1, vec![step("lmdb", 1, 100.0)]);
        assert!(
            text(&run)
                .unwrap_err()
                .message
                .contains("no latency histogram")
        );
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 1_000_000, 3).unwrap();
        for value in 1..=10 {
            histogram.record(value * 10).unwrap();
        }
        run.steps[0].histogram = Some(histogram);
        let text = text(&run).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "# 001_lmdb_r1_load main, microseconds");
        assert_eq!(lines[1].split_whitespace().count(), 4);
        assert_eq!(lines[2], "");
        assert_eq!(
            lines[3],
            "      10.000 0.000000000000          1           1.00"
        );
        let half = lines
            .iter()
            .find(|l| l.contains(" 0.500000000000 "))
            .unwrap();
        assert_eq!(
            *half,
            "      50.000 0.500000000000          5           2.00"
        );
        let last = lines
            .iter()
            .find(|l| l.contains(" 1.000000000000 "))
            .unwrap();
        assert_eq!(*last, "     100.000 1.000000000000         10");
        assert!(
            text.contains("#[Max     =      100.000, Total count    =           10]"),
            "{text}"
        );
        assert!(text.contains("#[Mean    =       55.000,"), "{text}");
    }
}

//! The comparison of two targets on the page, from [`crate::analysis::compare`]: the same numbers
//! and words that `romanesco lab compare` prints. Nothing is judged here.

use std::collections::BTreeMap;

use crate::analysis::{Accept, ComparisonRow, Pair, Verdict, compare};
use crate::record::RunRecord;

use crate::format;

/// An interval whose ends differ by this factor says nothing, whatever its digits.
const WIDE: f64 = 100.0;

/// Every target of a run against every other one, by step.
#[derive(Default)]
pub(crate) struct Comparisons {
    /// By step, target and base.
    pairs: BTreeMap<(String, String, String), Pair>,
}

impl Comparisons {
    pub(crate) fn of(run: &RunRecord) -> Comparisons {
        let mut pairs = BTreeMap::new();
        for base in &run.manifest.plan.targets {
            // A run with one target has no comparison, which its headline states.
            let accept = Accept {
                differing_plans: true,
                single_repeats: false,
            };
            let Ok(found) = compare(std::slice::from_ref(run), Some(&base.name), accept) else {
                continue;
            };
            for pair in found.pairs {
                let key = (pair.step.clone(), pair.target.clone(), pair.base.clone());
                pairs.insert(key, pair);
            }
        }
        Comparisons { pairs }
    }

    /// A metric of `target` against `base`; `None` when neither has it.
    pub(crate) fn row(
        &self,
        step: &str,
        metric: &str,
        target: &str,
        base: &str,
    ) -> Option<&ComparisonRow> {
        let key = (step.to_owned(), target.to_owned(), base.to_owned());
        let rows = &self.pairs.get(&key)?.rows;
        rows.iter().find(|row| row.metric == metric)
    }
}

/// The style class of a verdict; neutral without a verdict.
pub(crate) fn class(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Faster | Verdict::Better) => "good",
        Some(Verdict::Slower | Verdict::Worse) => "bad",
        Some(Verdict::Invalid) => "invalid",
        Some(Verdict::NoDifference | Verdict::Inconclusive) | None => "same",
    }
}

/// `95 % interval 1.60 to 2.01`; `None` where no interval is known.
pub(crate) fn interval(row: &ComparisonRow) -> Option<String> {
    let (low, high) = (row.low?, row.high?);
    Some(match is_wide(low, high) {
        true => "95 % interval too wide to show".to_owned(),
        false => format!("95 % interval {} to {}", times(low), times(high)),
    })
}

/// Whether the ends of an interval are so far apart that their digits say nothing.
pub(crate) fn is_wide(low: f64, high: f64) -> bool {
    low * WIDE <= high
}

/// The weaknesses of a comparison, as words for badges. `floor_known`: the host was calibrated for
/// the metric.
pub(crate) fn caveats(row: &ComparisonRow, floor_known: bool) -> Vec<String> {
    let mut caveats = Vec::new();
    if !floor_known {
        let floor = format::percent(row.floor);
        caveats.push(format!("uncalibrated: floor of {floor} assumed"));
    }
    if row.within_run {
        caveats.push("within-run".to_owned());
    }
    caveats
}

/// A ratio with its significant digits.
pub(crate) fn times(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else if value >= 0.1 || value == 0.0 {
        2
    } else if value >= 0.01 {
        3
    } else {
        return format::number(value);
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{run, step};

    #[test]
    fn the_page_compares_as_the_command_does() {
        let mut steps: Vec<_> = (1..)
            .zip([100.0, 101.0, 102.0])
            .map(|(r, rate): (u32, f64)| step("lmdb", r, rate))
            .collect();
        steps.extend(
            (1..)
                .zip([130.0, 131.0, 132.0])
                .map(|(r, rate)| step("rocksdb", r, rate)),
        );
        let record = run("r", &["lmdb", "rocksdb"], 3, steps);
        let command = compare(std::slice::from_ref(&record), None, Accept::default()).unwrap();
        let page = Comparisons::of(&record);
        for row in &command.pairs[0].rows {
            let here = page.row("load", &row.metric, "rocksdb", "lmdb");
            assert_eq!(here, Some(row));
        }
        let back = page.row("load", "rate_mean", "lmdb", "rocksdb").unwrap();
        assert_eq!(back.verdict, Some(Verdict::Slower));
        assert_eq!(class(back.verdict), "bad");
        assert!(interval(back).unwrap().starts_with("95 % interval 0.7"));
        let wide = ComparisonRow {
            low: Some(1e-9),
            high: Some(1e9),
            ..back.clone()
        };
        assert_eq!(interval(&wide).unwrap(), "95 % interval too wide to show");
        assert_eq!(
            caveats(back, false),
            ["uncalibrated: floor of 2.0 % assumed"]
        );
    }

    #[test]
    fn a_run_of_one_target_has_no_comparisons() {
        let record = run("r", &["lmdb"], 1, vec![step("lmdb", 1, 100.0)]);
        assert!(Comparisons::of(&record).pairs.is_empty());
    }

    #[test]
    fn ratios_keep_the_digits_that_count() {
        let texts = [1479.4, 93.28, 1.664, 0.0176, 0.00612, 0.0].map(times);
        assert_eq!(texts, ["1479", "93.3", "1.66", "0.018", "0.0061", "0.00"]);
    }
}

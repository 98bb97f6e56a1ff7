//! The noise floor: the difference between results of equal runs.

use std::collections::BTreeMap;

use super::metric::{METRICS, metrics};
use super::statistic::median;
use crate::record::StepSummary;

/// Minimum floor: half a percent. A few equal repeats prove no less.
const FLOOR_MIN: f64 = 0.005;

/// The floor of each metric from A/A repeats of one target: half of (largest - least) / median,
/// relative (0.03 = 3 %), at least 0.5 %; the largest over the steps when there are several. Left
/// out are metrics measured in fewer than 2 valid repeats, and those whose median is 0 while their
/// values differ: no relative floor is known for them.
#[must_use]
pub fn noise_floor(repeats: &[StepSummary]) -> BTreeMap<String, f64> {
    let mut steps: BTreeMap<&str, Vec<BTreeMap<String, Option<f64>>>> = BTreeMap::new();
    for repeat in repeats.iter().filter(|r| r.valid) {
        steps.entry(&repeat.step).or_default().push(metrics(repeat));
    }
    let mut floors: BTreeMap<String, f64> = BTreeMap::new();
    for each in steps.values() {
        for metric in METRICS {
            let values = each
                .iter()
                .filter_map(|m| m.get(metric.name).copied().flatten());
            if let Some(floor) = floor(&values.collect::<Vec<f64>>()) {
                let known = floors.entry(metric.name.to_owned()).or_insert(floor);
                *known = known.max(floor);
            }
        }
    }
    floors
}

fn floor(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let largest = values.iter().copied().max_by(f64::total_cmp)?;
    if least == largest {
        return Some(FLOOR_MIN);
    }
    let middle = median(values).filter(|&m| m != 0.0)?;
    Some(((largest - least) / 2.0 / middle.abs()).max(FLOOR_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::step;

    #[test]
    fn half_the_range_by_the_median() {
        let repeats: Vec<StepSummary> = [98.0, 100.0, 104.0]
            .map(|rate| step("lmdb", 1, rate))
            .to_vec();
        let found = noise_floor(&repeats);
        assert_eq!(found["rate_mean"], 0.03);
        assert_eq!(found["write_amplification"], FLOOR_MIN);
        assert!(!found.contains_key("query_rate"));
        assert!(noise_floor(&repeats[..1]).is_empty());
    }

    #[test]
    fn steps_are_not_mixed_and_invalid_repeats_do_not_count() {
        let mut repeats: Vec<StepSummary> = [100.0, 102.0, 500.0].map(|r| step("a", 1, r)).to_vec();
        repeats[2].valid = false;
        for rate in [10.0, 11.0] {
            let mut other = step("a", 1, rate);
            other.step = "query".into();
            repeats.push(other);
        }
        let found = noise_floor(&repeats);
        assert!(
            (found["rate_mean"] - 0.5 / 10.5).abs() < 1e-12,
            "{}",
            found["rate_mean"]
        );
    }

    #[test]
    fn no_floor_where_the_median_is_zero() {
        assert_eq!(floor(&[0.0, 0.0, 2.0]), None);
        assert_eq!(floor(&[0.0, 0.0]), Some(FLOOR_MIN));
    }
}

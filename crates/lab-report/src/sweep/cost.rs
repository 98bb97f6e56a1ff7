//! The price of a cell: of the volumes it was capped as, or of the cheapest that give what it used.

use serde::Serialize;

use crate::cost::{self, Cost, CostOptions, Mode, Requirement, price_of, size_and_rate};
use crate::record::{NamedVolume, Prices, RunRecord, SweepRecord};

/// Hours and seconds of a month.
const MONTH_HOURS: f64 = 730.0;
const MONTH_SECONDS: f64 = MONTH_HOURS * 3600.0;

/// What one target in one step of a cell costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellCost {
    /// The volumes.
    pub volume: String,
    /// Dollars per month for storage.
    pub storage: Option<f64>,
    /// Dollars per month in all.
    pub total: Option<f64>,
    /// Dollars for a million operations.
    pub per_million: Option<f64>,
    /// Why it has no price.
    pub reason: Option<String>,
}

/// The estimate of a run, with its own prices.
pub(super) fn costs(run: &RunRecord) -> Cost {
    cost::estimate(run, &prices(run), &CostOptions::default())
}

fn prices(run: &RunRecord) -> Prices {
    run.prices.clone().unwrap_or_else(Prices::default_prices)
}

/// One line about the prices of a sweep.
pub(super) fn prices_text(record: &SweepRecord) -> String {
    let run = record.runs.iter().find_map(|run| run.as_ref().ok());
    let prices = run.map_or_else(Prices::default_prices, prices);
    format!(
        "Prices {} of {}, {} ({}); {}: {} dollars an hour, {}.",
        prices.name,
        prices.date,
        prices.region,
        prices.source,
        prices.instance.name,
        prices.instance.dollars_per_hour,
        prices.instance.terms
    )
}

impl CellCost {
    /// The cost of a target in a step.
    pub(super) fn of(run: &RunRecord, cost: &Cost, target: &str, step: &str) -> CellCost {
        match &run.manifest.plan.volume {
            Some(volume) => {
                let size_and_rate = size_and_rate(run, target, step);
                CellCost::provisioned(&cost.prices, volume, size_and_rate)
            }
            None => CellCost::required(cost, target, step),
        }
    }

    /// The volumes that the caps of the run were named after, as large as the data need.
    fn provisioned(
        prices: &Prices,
        named: &NamedVolume,
        size_and_rate: Option<(f64, f64)>,
    ) -> CellCost {
        let mut found = CellCost {
            volume: named.name.clone(),
            ..CellCost::default()
        };
        let kind = prices.volumes.iter().find(|v| v.name == named.kind);
        let (Some(kind), Some((gb, rate))) = (kind, size_and_rate) else {
            found.reason = Some("no valid step with data on disk".to_owned());
            return found;
        };
        let required = Requirement {
            gb,
            iops: named.iops as f64,
            mb: named.bytes_per_second as f64 / 1e6,
        };
        match price_of(kind, named.volumes, &required) {
            Some(priced) => {
                let instance = prices.instance.dollars_per_hour * MONTH_HOURS;
                found.storage = Some(priced.dollars);
                found.total = Some(priced.dollars + instance);
                found.per_million = per_million(found.total, rate);
            }
            None => found.reason = Some(format!("{} do not hold the data", named.name)),
        }
        found
    }

    /// The cheapest volumes that give what was used, and a fifth more.
    fn required(cost: &Cost, target: &str, step: &str) -> CellCost {
        let lines = cost.lines.iter();
        let own: Vec<_> = lines
            .filter(|l| l.target == target && l.step == step && l.mode == Mode::Required)
            .collect();
        let priced = own.iter().filter(|l| l.total.is_some());
        let cheapest = priced.min_by(|a, b| {
            let total = |l: &cost::CostLine| l.total.unwrap_or(f64::INFINITY);
            total(a).total_cmp(&total(b))
        });
        match (cheapest, own.first()) {
            (Some(line), _) => CellCost {
                volume: match line.volumes {
                    Some(n) if 1 < n => format!("{n} x {}", line.volume),
                    _ => line.volume.clone(),
                },
                storage: line.storage,
                total: line.total,
                per_million: line.dollars_per_million,
                reason: None,
            },
            (None, line) => CellCost {
                reason: line.and_then(|l| l.reason.clone()),
                ..CellCost::default()
            },
        }
    }
}

fn per_million(total: Option<f64>, rate: f64) -> Option<f64> {
    let total = total.filter(|_| 0.0 < rate)?;
    Some(total / (rate * MONTH_SECONDS) * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// A run of 100 rows/s with 200 MB of data.
    fn run() -> RunRecord {
        let mut step = fixture::step("lmdb", 1, 100.0);
        (step.file_bytes, step.file_bytes_max) = (200_000_000, 200_000_000);
        (step.live_bytes, step.logical_bytes) = (200_000_000, 200_000_000);
        let mut run = fixture::run("r", &["lmdb"], 1, vec![step]);
        let text = Prices::text("aws-2018-article").unwrap();
        run.prices = Some(Prices::parse(&text).unwrap());
        run
    }

    #[test]
    fn a_named_volume_is_priced_as_it_was_capped() {
        let mut run = run();
        let of = |run: &RunRecord| CellCost::of(run, &costs(run), "lmdb", "load");
        let named = |name: &str| NamedVolume::parse(name, run.prices.as_ref().unwrap()).unwrap();
        let (io1, gp2) = (named("io1-5000"), named("2xgp2"));
        run.manifest.plan.volume = Some(io1);
        let found = of(&run);
        // 5000 operations need 100 GB: 12.5 dollars, and 325 for the operations.
        assert_eq!(found.storage.map(f64::round), Some(338.0));
        let month = 0.899_657 * 730.0 + 337.5;
        let million = month / (100.0 * 2_628_000.0) * 1e6;
        assert!(
            (found.per_million.unwrap() - million).abs() < 1e-6,
            "{found:?}"
        );
        run.manifest.plan.volume = Some(gp2);
        // Two of 3334 GB.
        assert_eq!(of(&run).storage.map(f64::round), Some(667.0));
    }

    #[test]
    fn without_a_named_volume_the_cheapest_that_suffices_is_priced() {
        let run = run();
        let found = CellCost::of(&run, &costs(&run), "lmdb", "load");
        assert_eq!(found.volume, "gp2");
        assert!(found.per_million.is_some_and(|d| 0.0 < d), "{found:?}");
        let missing = CellCost::of(&run, &costs(&run), "other", "load");
        assert_eq!((missing.total, missing.reason), (None, None));
    }
}

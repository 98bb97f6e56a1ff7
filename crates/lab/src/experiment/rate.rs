//! How fast loads go: as fast as they can, at a rate, or at the highest rate that can be sustained.
//!
//! `auto` has two phases, since a closed loop cannot tell what a rate costs in latency: the load in
//! a closed loop finds the most there is, then open loops at shares of it, one after the other on
//! the same store, each with latency counted from the intended start. The highest that is kept
//! with the p99 within its limit and no stall is the answer ([`crate::analysis::sustained`]).

use std::str::FromStr;

use serde::Deserialize;

use crate::record::{LoadKind, Preset, Setting, Share, StepPlan};
use crate::workload::iibench::Work;

/// The shares of the closed loop's rate that are tried, in per cent.
const SHARES: [u8; 5] = [50, 70, 80, 90, 95];

/// The pace of loads.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Rate {
    /// Closed loop.
    Max,
    /// Closed loop, then open loops at shares of its rate.
    Auto,
    /// Open loop: rows per second.
    PerSecond(f64),
}

/// As it stands in `lab.toml`: a number or a word.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Word(String),
}

impl TryFrom<Written> for Rate {
    type Error = String;

    fn try_from(written: Written) -> Result<Rate, String> {
        match written {
            Written::Number(rate) => Ok(Rate::PerSecond(rate)),
            Written::Word(word) => word.parse(),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        match text {
            "max" => Ok(Rate::Max),
            "auto" => Ok(Rate::Auto),
            _ => match text.parse() {
                Ok(rate) if f64::is_finite(rate) => Ok(Rate::PerSecond(rate)),
                _ => Err(format!(
                    "not a rate: {text:?}; use rows per second, max, or auto"
                )),
            },
        }
    }
}

/// Seconds of each open loop.
fn seconds(preset: Preset) -> f64 {
    match preset {
        Preset::Smoke => 2.0,
        Preset::Quick => 30.0,
        Preset::Standard => 120.0,
        Preset::Published => 1800.0,
    }
}

/// The open loops after the last load, each repeating its work; none where nothing is loaded.
pub(super) fn open_loops(
    steps: &[StepPlan],
    preset: Preset,
    time: Option<f64>,
    poisson: bool,
) -> Vec<StepPlan> {
    let work = |s: &StepPlan| serde_json::from_value::<Work>(s.work.clone()).ok();
    let mut loads = steps.iter().rev();
    let Some(base) = loads.find(|s| matches!(work(s), Some(Work::Load { .. }))) else {
        return Vec::new();
    };
    let mut again = work(base);
    if let Some(Work::Load { interval_rows, .. }) = &mut again {
        *interval_rows = 0;
    }
    let one = |percent: u8| StepPlan {
        name: format!("{}-{percent}", base.name),
        about: format!(
            "as {}, open loop at {percent} % of its rate, for the highest rate that is sustained",
            base.name
        ),
        work: serde_json::to_value(&again).expect("plain data"),
        operations: 0,
        seconds_max: time.unwrap_or_else(|| seconds(preset)),
        // Known when the closed loop is done.
        load: LoadKind::Open { rate: 0.0, poisson },
        settle: base.settle,
        setting: Setting {
            share: Some(Share {
                of: base.name.clone(),
                percent,
            }),
            ..Setting::default()
        },
    };
    SHARES.iter().map(|percent| one(*percent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::experiment;

    #[test]
    fn rates_are_read() {
        assert_eq!("max".parse(), Ok(Rate::Max));
        assert_eq!("auto".parse(), Ok(Rate::Auto));
        assert_eq!("1e3".parse(), Ok(Rate::PerSecond(1000.0)));
        assert!("fast".parse::<Rate>().unwrap_err().contains("auto"));
        assert!("inf".parse::<Rate>().is_err());
    }

    #[test]
    fn the_last_load_is_repeated_in_open_loops() {
        let experiment = experiment("iibench-steps").unwrap();
        let sizes = (experiment.sizes)(Preset::Smoke);
        let steps = (experiment.steps)(&sizes, &experiment.params);
        let open = open_loops(&steps, Preset::Smoke, None, true);
        let names: Vec<&str> = open.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            ["l.i2-50", "l.i2-70", "l.i2-80", "l.i2-90", "l.i2-95"]
        );
        for step in &open {
            let share = step.setting.share.as_ref().unwrap();
            assert_eq!((share.of.as_str(), step.operations), ("l.i2", 0));
        }
        assert!(open_loops(&[], Preset::Smoke, None, true).is_empty());
    }
}

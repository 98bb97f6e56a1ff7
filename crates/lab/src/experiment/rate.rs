//! The rate of loads and mixes: the maximum, a given rate, or the highest sustainable rate.
//!
//! `auto` has two phases, since a closed loop cannot show the latency at a given rate. The
//! closed-loop step finds the maximum rate. Then open loops run at shares of this rate, one after
//! the other on the same store, each with latency measured from the intended start. The result is
//! the highest rate that is reached with the p99 within its limit and without a stall
//! ([`lab_report::analysis::sustained`]).
//!
//! The steps that are repeated as open loops are the last load of an experiment with rows, and each
//! measured mix. Of equal mixes with equal settings only the last is measured, since those before
//! it warm the caches.

use std::str::FromStr;

use serde::Deserialize;

use lab_report::record::{LoadKind, Preset, Setting, Share, StepPlan, Work};

/// Rates of the open loops, as percentages of the closed loop's rate.
const SHARES: [u8; 5] = [50, 70, 80, 90, 95];

/// How loads and mixes are paced.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Rate {
    /// Closed loop.
    Max,
    /// Closed loop, then open loops at shares of its rate.
    Auto,
    /// Open loop: rows per second for loads, operations per second for mixes.
    PerSecond(f64),
}

/// The form in `lab.toml`: a number or a word.
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
                    "not a rate: {text:?}; use rows or operations per second, max, or auto"
                )),
            },
        }
    }
}

/// Duration of each open loop of a load, in seconds.
fn seconds(preset: Preset) -> f64 {
    match preset {
        Preset::Smoke => 2.0,
        Preset::Quick => 30.0,
        Preset::Standard => 120.0,
        Preset::Published => 1800.0,
    }
}

pub(super) fn is_mix(step: &StepPlan) -> bool {
    matches!(Work::of(step), Some(Work::Program(task)) if task.is_mix())
}

/// The mixes that are measured: of equal mixes with equal settings the last.
pub(super) fn mixes(steps: &[StepPlan]) -> Vec<&StepPlan> {
    let all: Vec<&StepPlan> = steps.iter().filter(|s| is_mix(s)).collect();
    let last = |(place, step): &(usize, &&StepPlan)| {
        let mut after = all.iter().skip(place + 1);
        !after.any(|other| other.setting == step.setting && other.work == step.work)
    };
    all.iter()
        .enumerate()
        .filter(last)
        .map(|(_, s)| *s)
        .collect()
}

/// The open loops for these steps, in order, at shares of the steps' rates; empty if no step is
/// repeated.
pub(super) fn open_loops(
    steps: &[StepPlan],
    preset: Preset,
    time: Option<f64>,
    poisson: bool,
) -> Vec<StepPlan> {
    let mut loads = steps.iter().rev();
    let load = loads.find_map(|step| match Work::of(step)? {
        mut load @ Work::Load { .. } => {
            if let Work::Load { interval_rows, .. } = &mut load {
                *interval_rows = 0;
            }
            let again = StepPlan {
                work: serde_json::to_value(&load).expect("plain data"),
                seconds_max: time.unwrap_or_else(|| seconds(preset)),
                setting: Setting::default(),
                ..step.clone()
            };
            Some(again)
        }
        _ => None,
    });
    // A repeated mix has the duration, the clients and the caps of the original.
    let repeated = load.into_iter().chain(mixes(steps).into_iter().cloned());
    repeated.flat_map(|step| shares(&step, poisson)).collect()
}

/// The open loops at shares of the rate of `step`.
fn shares(step: &StepPlan, poisson: bool) -> impl Iterator<Item = StepPlan> + use<> {
    let step = step.clone();
    SHARES.into_iter().map(move |percent| StepPlan {
        name: format!("{}-{percent}", step.name),
        about: format!(
            "as {}, open loop at {percent} % of its rate, for the highest rate that is sustained",
            step.name
        ),
        operations: 0,
        // The rate is set when the closed loop has ended.
        load: LoadKind::Open { rate: 0.0, poisson },
        setting: Setting {
            share: Some(Share {
                of: step.name.clone(),
                percent,
            }),
            ..step.setting.clone()
        },
        ..step.clone()
    })
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

    #[test]
    fn every_mix_that_is_measured_is_repeated_with_its_clients_and_caps() {
        let of = |name: &str| {
            let program = experiment(name).unwrap().program.unwrap();
            let sizes = (experiment(name).unwrap().sizes)(Preset::Smoke);
            let steps = (program.steps)(&sizes, program.variants[0]);
            let open = open_loops(&steps, Preset::Smoke, None, true);
            (steps, open)
        };
        for (name, repeated) in [
            ("tpcc", &["no-cap", "iops-5000"][..]),
            // Steps that warm the caches are not repeated.
            ("linkbench", &["requests"]),
            ("oltp-read-only", &["clients-1", "clients-4"]),
            (
                "ycsb",
                &[
                    "workload-a",
                    "workload-b",
                    "workload-c",
                    "workload-f",
                    "workload-d",
                    "workload-e",
                ],
            ),
            ("many-tables", &[]),
        ] {
            let (steps, open) = of(name);
            let names: Vec<String> = repeated
                .iter()
                .flat_map(|base| SHARES.map(|percent| format!("{base}-{percent}")))
                .collect();
            assert_eq!(
                open.iter().map(|s| s.name.clone()).collect::<Vec<_>>(),
                names
            );
            for step in &open {
                let share = step.setting.share.as_ref().unwrap();
                let base = steps.iter().find(|s| s.name == share.of).unwrap();
                assert_eq!((&step.work, step.settle), (&base.work, base.settle));
                assert_eq!(step.setting.clients, base.setting.clients);
                assert_eq!(step.setting.iops, base.setting.iops);
                assert!((step.seconds_max - base.seconds_max).abs() < 1e-9);
                assert!(matches!(step.load, LoadKind::Open { .. }));
            }
        }
    }
}

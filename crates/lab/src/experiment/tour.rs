//! The reduced quick preset of `lab run all`, the tour: the default engines and one server complete
//! all experiments within an hour on two cores. An experiment that is run alone has the time that
//! it needs; the tour only shows which experiments deserve a longer run.

use lab_report::record::Preset;

use super::Experiment;
use super::settings::Settings;

/// Maximum seconds of a settle phase on a tour.
const SETTLE: f64 = 15.0;

/// The reduced sizes of one experiment.
struct Leg {
    name: &'static str,
    /// Share of the preset's rows. If the load must complete, this is the number that the slowest
    /// B-tree loads in the time limit; if the time limit may end the load, all of them.
    scale: f64,
    /// Maximum duration of a step, in seconds.
    seconds: f64,
}

const LEGS: &[Leg] = &[
    leg("iibench-classic", 1.0, 60.0),
    leg("iibench-steps", 0.3, 8.0),
    leg("iibench-reads", 0.5, 25.0),
    leg("redo-log", 0.5, 8.0),
    leg("insert-vs-threads", 1.0, 35.0),
    leg("many-tables", 0.5, 8.0),
    leg("tpcc", 0.67, 8.0),
    leg("linkbench", 0.4, 20.0),
    leg("oltp-read-only", 0.25, 6.0),
    leg("ycsb", 0.4, 6.0),
    leg("fill-factor", 0.25, 6.0),
    leg("compression", 0.3, 6.0),
];

const fn leg(name: &'static str, scale: f64, seconds: f64) -> Leg {
    Leg {
        name,
        scale,
        seconds,
    }
}

/// The settings of an experiment on the tour: reduced for the quick preset, else unchanged.
/// Settings that the user made take precedence.
#[must_use]
pub fn tour(experiment: &Experiment, mut settings: Settings) -> Settings {
    let quick = settings.preset.is_none_or(|preset| preset == Preset::Quick);
    let leg = LEGS.iter().find(|leg| leg.name == experiment.name);
    let Some(leg) = leg.filter(|_| quick) else {
        return settings;
    };
    if settings.rows.is_none() {
        settings.scale = settings.scale.or(Some(leg.scale));
    }
    settings.time = settings.time.or(Some(leg.seconds));
    settings.settle = settings.settle.or(Some(SETTLE));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{experiments, plan};

    #[test]
    fn every_experiment_has_its_leg_and_what_the_user_set_stays() {
        for experiment in experiments() {
            assert!(
                LEGS.iter().any(|leg| leg.name == experiment.name),
                "{}",
                experiment.name
            );
            let short = tour(experiment, Settings::default());
            assert!(short.time.is_some_and(|t| t <= 60.0) && short.scale.is_some());
            let own = Settings {
                rows: Some(5000),
                time: Some(99.0),
                settle: Some(1.0),
                ..Settings::default()
            };
            let kept = tour(experiment, own);
            assert_eq!(
                (kept.scale, kept.rows, kept.time, kept.settle),
                (None, Some(5000), Some(99.0), Some(1.0))
            );
            let smoke = Settings {
                preset: Some(Preset::Smoke),
                ..Settings::default()
            };
            assert_eq!(tour(experiment, smoke).time, None);
        }
    }

    #[test]
    fn a_tour_can_be_planned() {
        let place = tempfile::tempdir().unwrap();
        for experiment in experiments() {
            let settings = tour(experiment, Settings::default());
            let plan = plan(experiment, &settings, place.path()).unwrap();
            assert!(!plan.steps.is_empty(), "{}", experiment.name);
        }
    }
}

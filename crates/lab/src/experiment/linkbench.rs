//! `linkbench`: a social graph is loaded, then queried and changed by ten kinds of requests.

use lab_report::record::linkbench::Mix;
use lab_report::record::{Preset, Setting, StepPlan, Task};

use super::programmed::{NO_ROWS, no_steps, step};
use super::{Experiment, Programmed, Sizes};
use crate::workload::linkbench::Params;
use crate::workload::program::Spec;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "linkbench",
    about: "load a social graph, then read and change it by ten kinds of requests",
    source: "LinkBench (Armstrong et al., SIGMOD 2013) and its published runs on InnoDB and TokuDB",
    params: NO_ROWS,
    fixed: &[],
    sizes,
    steps: no_steps,
    program: Some(Programmed {
        variants: &["facebook", "callaghan"],
        clients: 8,
        direct: false,
        cut: false,
        spec,
        steps,
        capped: None,
        crowded: None,
    }),
};

fn sizes(preset: Preset) -> Sizes {
    let of = Sizes::once;
    match preset {
        Preset::Smoke => of(1000, 128, 32, 300.0, 1.0),
        Preset::Quick => of(150_000, 128, 48, 900.0, 30.0),
        Preset::Standard => of(1_000_000, 384, 128, 7200.0, 600.0),
        Preset::Published => of(100_000_000, 20 << 10, 12 << 10, 10.0 * 86_400.0, 86_400.0),
    }
}

fn spec(sizes: &Sizes, variant: &str, seed: u64) -> Spec {
    Spec::Linkbench(Params {
        seed,
        nodes: sizes.rows,
        mix: match variant {
            "callaghan" => Mix::Callaghan,
            _ => Mix::Facebook,
        },
    })
}

fn steps(sizes: &Sizes, variant: &str) -> Vec<StepPlan> {
    let load = format!("load {} nodes with about nine links each", sizes.rows);
    let mix = |name: &str, about: String, seconds| {
        step(name, about, Task::MIX, seconds, Setting::default())
    };
    let warm = "requests until caches have what they will have".to_owned();
    vec![
        step(
            "load",
            load,
            Task::Fill { tables: 0 },
            sizes.load_seconds,
            Setting::default(),
        ),
        mix("warm", warm, sizes.query_seconds / 3.0),
        mix(
            "requests",
            format!("requests in the mix of {variant}"),
            sizes.query_seconds,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_comes_after_what_warms() {
        let steps = steps(&sizes(Preset::Quick), "callaghan");
        let names: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["load", "warm", "requests"]);
        assert!(steps[1].seconds_max < steps[2].seconds_max);
        assert!(steps[2].about.contains("callaghan"));
    }
}

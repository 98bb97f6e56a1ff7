//! Experiments, as plans of steps. An experiment does not depend on the engine.

mod article;
mod classic;
mod compression;
mod fill_factor;
mod insert_threads;
mod linkbench;
mod many_tables;
pub(crate) mod oltp;
mod plan;
mod programmed;
mod rate;
mod reads;
mod redo_log;
mod settings;
mod steps;
mod sweep;
mod tour;
pub(crate) mod tpcc;
mod ycsb;

pub use article::{Article, articles, as_article};
pub use plan::plan;
pub use programmed::{Capped, Crowded, Programmed};
pub use rate::Rate;
pub use settings::{Settings, pair};
pub use sweep::{SweepPlan, sweep, swept_settings};
pub use tour::tour;

use lab_report::error::{Error, Result, unknown};
use lab_report::record::{Preset, StepPlan};
use serde::Serialize;

use crate::workload::iibench::{Payload, Shape};

/// The sizes of an experiment in a preset; the user can override each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// Rows of the first load.
    pub rows: u64,
    /// The memory cap in MiB.
    pub memory_mib: u64,
    /// Memory for the engine's cache and write buffers in MiB.
    pub cache_mib: u64,
    /// Maximum duration of a load step, in seconds.
    pub load_seconds: f64,
    /// Duration of a query step, in seconds.
    pub query_seconds: f64,
    /// Number of repeats.
    pub repeats: u32,
    /// Number of rows that the rounds of `fill-factor` exchange for each loaded row; 0 in other
    /// experiments.
    pub exchanged: f64,
}

impl Sizes {
    /// Sizes for a single repeat.
    pub(super) const fn once(
        rows: u64,
        memory_mib: u64,
        cache_mib: u64,
        load_seconds: f64,
        query_seconds: f64,
    ) -> Sizes {
        Sizes {
            rows,
            memory_mib,
            cache_mib,
            load_seconds,
            query_seconds,
            repeats: 1,
            exchanged: 0.0,
        }
    }
}

/// The parameters of the insert benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Params {
    /// The shape of the index keys.
    pub shape: Shape,
    /// The payload of a row.
    pub payload: Payload,
    /// Number of rows in one transaction of the load.
    pub batch: u32,
    /// Range queries per second during the load of the classic experiment; 0 for no queries.
    pub queries: f64,
    /// Number of indexes, of the three, that have entries.
    pub indexes: u8,
}

/// A setting that an experiment sets itself, step by step, so that the user cannot set it for the
/// run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// `--durability`.
    Durability,
    /// `--clients`.
    Clients,
    /// `--rate`.
    Rate,
    /// `--codec`.
    Codec,
    /// `--payload`.
    Payload,
    /// `--batch`.
    Batch,
}

/// An experiment.
pub struct Experiment {
    /// Name of the experiment on the command line.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Source of its procedure.
    pub source: &'static str,
    /// Default parameters.
    pub params: Params,
    /// Settings that the experiment sets itself.
    pub fixed: &'static [Fixed],
    /// The sizes of each preset.
    pub sizes: fn(Preset) -> Sizes,
    /// The steps for given sizes and parameters.
    pub steps: fn(&Sizes, &Params) -> Vec<StepPlan>,
    /// If the workload declares its own tables: what replaces the parameters and the steps.
    pub program: Option<Programmed>,
}

/// Every experiment.
#[must_use]
pub fn experiments() -> &'static [Experiment] {
    const ALL: [Experiment; 12] = [
        classic::EXPERIMENT,
        steps::EXPERIMENT,
        reads::EXPERIMENT,
        redo_log::EXPERIMENT,
        insert_threads::EXPERIMENT,
        many_tables::EXPERIMENT,
        tpcc::EXPERIMENT,
        linkbench::EXPERIMENT,
        oltp::EXPERIMENT,
        ycsb::EXPERIMENT,
        fill_factor::EXPERIMENT,
        compression::EXPERIMENT,
    ];
    &ALL
}

/// The experiment with that name.
///
/// # Errors
/// A message that suggests the nearest name.
pub fn experiment(name: &str) -> Result<&'static Experiment> {
    let names: Vec<&str> = experiments().iter().map(|e| e.name).collect();
    let found = experiments().iter().find(|e| e.name == name);
    found.ok_or_else(|| Error::usage(unknown("experiment", name, &names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab_report::record::experiment::{Known, repeatable};
    use lab_report::record::{Main, Operation};

    #[test]
    fn each_mix_has_its_word_and_rows_and_queries_have_theirs() {
        for (name, word) in [
            ("tpcc", "transactions/s"),
            ("linkbench", "requests/s"),
            ("oltp-read-only", "transactions/s"),
            ("ycsb", "requests/s"),
        ] {
            let found = experiment(name).unwrap();
            let program = found.program.unwrap();
            let steps = (program.steps)(&(found.sizes)(Preset::Smoke), program.variants[0]);
            let (load, mix) = (&steps[0], &steps[1]);
            assert_eq!(Operation::of(name, load, Main::Rows).per_second, "rows/s");
            assert_eq!(Operation::of(name, mix, Main::Queries).per_second, word);
            assert_eq!(Operation::of_mix(name, load), None);
            // An unknown experiment.
            let unknown = Operation::of("iibench-newer", mix, Main::Queries);
            assert_eq!(unknown, Operation::QUERY);
        }
    }

    #[test]
    fn readers_of_results_know_every_experiment() {
        for experiment in experiments() {
            let name = experiment.name;
            let known = Known::named(name).expect(name);
            assert_eq!(known.mix.is_some(), experiment.program.is_some(), "{name}");
            assert_eq!(
                known.own_rates,
                experiment.fixed.contains(&Fixed::Rate),
                "{name}"
            );
        }
    }

    #[test]
    fn rates_are_sought_only_where_an_experiment_takes_them() {
        for experiment in experiments() {
            let settings = Settings {
                targets: Some(crate::targets::parse_targets("memory").unwrap()),
                ..Settings::default()
            };
            let plan = plan(experiment, &settings, std::path::Path::new("run")).unwrap();
            let open = rate::open_loops(&plan.steps, plan.preset, None, false);
            let sought = !experiment.fixed.contains(&Fixed::Rate) && !open.is_empty();
            assert_eq!(repeatable(&plan), sought, "{}", experiment.name);
        }
        for name in ["fill-factor", "redo-log", "many-tables"] {
            assert!(
                experiment(name).unwrap().fixed.contains(&Fixed::Rate),
                "{name}"
            );
        }
    }
}

//! `iibench-reads`: load as the classic experiment does, settle, then read without writing: scan
//! all rows and indexes, get rows by primary key, and read short ranges of the indexes.
//!
//! The experiment measures the read cost of a settled store when the data do not fit memory: the
//! summary shows CPU time and device reads per operation beside the rates.

use lab_report::record::{LoadKind, Preset, Setting, StepPlan, Work};

use super::{Experiment, Params, Sizes, classic};
use crate::workload::iibench::{Payload, Shape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "iibench-reads",
    about: "load with three secondary indexes and settle, then scan, get and range-read",
    source: "the load of the insert benchmark (index keys as of today), then its queries without \
             writes beside them",
    params: Params {
        shape: Shape::Current,
        payload: Payload::CLASSIC,
        batch: 1000,
        queries: 0.0,
        indexes: 3,
    },
    fixed: &[],
    sizes,
    steps,
    program: None,
};

fn sizes(preset: Preset) -> Sizes {
    let query_seconds = match preset {
        Preset::Smoke => 1.0,
        Preset::Quick => 20.0,
        Preset::Standard => 120.0,
        Preset::Published => 1800.0,
    };
    Sizes {
        query_seconds,
        ..(classic::EXPERIMENT.sizes)(preset)
    }
}

fn steps(sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let mut steps = (classic::EXPERIMENT.steps)(sizes, params);
    let mut read = |name: &str, about: &str, work: Work, seconds_max: f64| {
        steps.push(StepPlan {
            name: name.to_owned(),
            about: about.to_owned(),
            work: serde_json::to_value(work).expect("plain data"),
            operations: 0,
            seconds_max,
            load: LoadKind::Closed,
            settle: false,
            setting: Setting::default(),
        });
    };
    let query = |point| Work::Query {
        point,
        write_rate: 0.0,
        batch: 1,
    };
    let about = "read the rows and each index from end to end, a thousand entries a query";
    read("scan", about, Work::Scan, sizes.load_seconds);
    let about = "get rows by primary key, at random from the younger half";
    read("point", about, query(true), sizes.query_seconds);
    let about = "range queries of 10 entries from random places of the indexes";
    read("range", about, query(false), sizes.query_seconds);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_settles_comes_before_reads_that_write_nothing() {
        let steps = steps(&sizes(Preset::Smoke), &EXPERIMENT.params);
        let names: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["load", "scan", "point", "range"]);
        assert!(steps[0].settle);
        for step in &steps[1..] {
            let work: Work = serde_json::from_value(step.work.clone()).unwrap();
            let silent = match work {
                Work::Scan => true,
                Work::Query { write_rate, .. } => write_rate == 0.0,
                Work::Load { .. } | Work::BuildIndexes | Work::Rebuild | Work::Program(_) => false,
            };
            assert!(silent, "{}", step.name);
        }
    }
}

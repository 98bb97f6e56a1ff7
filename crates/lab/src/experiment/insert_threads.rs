//! `insert-vs-threads`: ten writers and three indexes, with data that fit memory in the first
//! minute and then far exceed it.

use lab_report::record::experiment::insert_threads::{BEYOND, FIRST};
use lab_report::record::{LoadKind, Preset, Setting, StepPlan, Work};

use super::{Experiment, Fixed, Params, Sizes, classic};
use crate::workload::iibench::{Payload, Shape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "insert-vs-threads",
    about: "insert by ten clients with three indexes: a first minute in memory, then far beyond it",
    source: "Vadim Tkachenko's insert benchmark (Percona, December 2015): 1 B rows, 3 indexes, 10 \
             threads, cache 10 GB of 20 GB in all, one SATA SSD",
    params: Params {
        shape: Shape::Classic,
        payload: Payload::CLASSIC,
        batch: 1000,
        queries: 0.0,
        indexes: 3,
    },
    fixed: &[Fixed::Clients, Fixed::Rate],
    sizes,
    steps,
    program: None,
};

/// Number of writers, as in the article.
const WRITERS: u32 = 10;

/// Number of intervals of the interval table.
const INTERVALS: u64 = 12;

/// Sizes as in the classic experiment, except that `query_seconds` is the duration of the first
/// minute.
fn sizes(preset: Preset) -> Sizes {
    let (query_seconds, memory_mib, cache_mib) = match preset {
        Preset::Smoke => (2.0, 128, 32),
        Preset::Quick => (20.0, 256, 128),
        Preset::Standard => (60.0, 512, 256),
        Preset::Published => (60.0, 20 << 10, 10 << 10),
    };
    let classic = (classic::EXPERIMENT.sizes)(preset);
    Sizes {
        query_seconds,
        memory_mib,
        cache_mib,
        rows: match preset {
            Preset::Published => 1_000_000_000,
            _ => classic.rows,
        },
        ..classic
    }
}

fn steps(sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let step = |name: &str, about: String, operations, seconds_max, intervals| {
        let work = Work::Load {
            batch: params.batch,
            indexes: true,
            deletes: false,
            interval_rows: intervals,
            queries: None,
        };
        StepPlan {
            name: name.to_owned(),
            about,
            work: serde_json::to_value(work).expect("plain data"),
            operations,
            seconds_max,
            load: LoadKind::Closed,
            settle: name != FIRST,
            setting: Setting {
                clients: Some(WRITERS),
                ..Setting::default()
            },
        }
    };
    // With its index entries a row of the presets has 236 bytes, so this number of rows fits half
    // of the memory cap.
    let fit = (sizes.memory_mib << 19) / 236;
    let first = fit.min(sizes.rows / 4);
    let about = format!("insert {first} rows, which memory holds, by {WRITERS} clients");
    let beyond = format!(
        "insert {} rows more by {WRITERS} clients",
        sizes.rows - first
    );
    let rest = sizes.rows - first;
    vec![
        step(FIRST, about, first, sizes.query_seconds, (first / 4).max(1)),
        step(
            BEYOND,
            beyond,
            rest,
            sizes.load_seconds,
            (rest / INTERVALS).max(1),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_writers_first_within_memory_and_then_beyond() {
        for preset in [Preset::Quick, Preset::Standard, Preset::Published] {
            let sizes = sizes(preset);
            let steps = steps(&sizes, &EXPERIMENT.params);
            assert!(steps.iter().all(|s| s.setting.clients == Some(10)));
            assert!(steps[0].operations * 236 <= sizes.memory_mib << 19);
            assert!(4 * (sizes.memory_mib << 20) <= sizes.rows * 236);
        }
    }
}

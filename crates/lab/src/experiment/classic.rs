//! `iibench-classic`: the insert benchmark as published in 2014: one load with three secondary
//! indexes, an interval table, and the question whether the rate stays constant when the data
//! outgrow memory.

use lab_report::record::{LoadKind, Preset, Setting, SideQueries, StepPlan, Work};

use super::{Experiment, Params, Sizes};
use crate::workload::iibench::{Payload, Shape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "iibench-classic",
    about: "insert rows with three secondary indexes until data outgrow memory",
    source: "iibench-mongodb and the insert benchmark articles of 2014 (one client, 1000 rows a \
             transaction, three secondary indexes)",
    params: Params {
        shape: Shape::Classic,
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

/// Number of intervals of the interval table.
const INTERVALS: u64 = 12;

fn sizes(preset: Preset) -> Sizes {
    // Rows * 236 bytes are at least four times the memory cap, except in `smoke`.
    match preset {
        Preset::Smoke => Sizes {
            rows: 240_000,
            memory_mib: 128,
            cache_mib: 32,
            load_seconds: 12.0,
            query_seconds: 0.0,
            repeats: 1,
            exchanged: 0.0,
        },
        Preset::Quick => Sizes {
            rows: 4_800_000,
            memory_mib: 256,
            cache_mib: 128,
            load_seconds: 240.0,
            query_seconds: 0.0,
            repeats: 1,
            exchanged: 0.0,
        },
        Preset::Standard => Sizes {
            rows: 30_000_000,
            memory_mib: 512,
            cache_mib: 256,
            load_seconds: 1200.0,
            query_seconds: 0.0,
            repeats: 1,
            exchanged: 0.0,
        },
        Preset::Published => Sizes {
            rows: 2_000_000_000,
            memory_mib: 72 << 10,
            cache_mib: 48 << 10,
            load_seconds: 20.0 * 86_400.0,
            query_seconds: 0.0,
            repeats: 1,
            exchanged: 0.0,
        },
    }
}

fn steps(sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let queries = SideQueries {
        rate: params.queries,
        from_interval: 3,
    };
    let work = Work::Load {
        batch: params.batch,
        indexes: true,
        deletes: false,
        interval_rows: (sizes.rows / INTERVALS).max(1),
        queries: (params.queries > 0.0).then_some(queries),
    };
    vec![StepPlan {
        name: "load".to_owned(),
        about: format!(
            "insert {} rows, {} in a transaction",
            sizes.rows, params.batch
        ),
        work: serde_json::to_value(work).expect("plain data"),
        operations: sizes.rows,
        seconds_max: sizes.load_seconds,
        load: LoadKind::Closed,
        settle: true,
        setting: Setting::default(),
    }]
}

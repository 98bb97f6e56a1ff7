//! `iibench-steps`: the insert benchmark in its current form: load without indexes, build them,
//! insert and delete at a constant size in ever smaller transactions, then query during background
//! writes.

use lab_report::record::{LoadKind, Preset, Setting, StepPlan, Work};

use super::{Experiment, Params, Sizes};
use crate::workload::iibench::{Payload, Shape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "iibench-steps",
    about: "load, index, insert and delete at constant size, query under background writes",
    source: "the insert benchmark of mdcallag/mytools (l.i0, l.x, l.i1, l.i2, qr and qp steps)",
    params: Params {
        shape: Shape::Current,
        payload: Payload::CURRENT,
        batch: 100,
        queries: 0.0,
        indexes: 3,
    },
    fixed: &[],
    sizes,
    steps,
    program: None,
};

/// Background inserts and deletes per second of the query steps.
const WRITE_RATES: [u32; 3] = [100, 500, 1000];

/// Minimum of the time limit for building the indexes, in seconds: however short the loads are, the
/// following steps need complete indexes.
const BUILD_SECONDS: f64 = 300.0;

/// Number of rows in one transaction: of l.i1, of l.i2, and of the background writes.
const BATCH_I1: u32 = 50;
const BATCH_I2: u32 = 5;
const BATCH_BACKGROUND: u32 = 50;

fn sizes(preset: Preset) -> Sizes {
    let of = Sizes::once;
    match preset {
        Preset::Smoke => of(60_000, 128, 32, 8.0, 1.0),
        Preset::Quick => of(1_000_000, 128, 32, 90.0, 15.0),
        Preset::Standard => of(20_000_000, 512, 256, 1200.0, 120.0),
        Preset::Published => of(800_000_000, 32 << 10, 24 << 10, 20.0 * 86_400.0, 1800.0),
    }
}

fn steps(sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let more = sizes.rows / 4;
    let mut steps = vec![
        load("l.i0", sizes, sizes.rows, params.batch, false),
        StepPlan {
            name: "l.x".to_owned(),
            about: "build the three indexes".to_owned(),
            work: value(Work::BuildIndexes),
            operations: sizes.rows,
            seconds_max: (sizes.load_seconds * 4.0).max(BUILD_SECONDS),
            load: LoadKind::Closed,
            settle: true,
            setting: Setting::default(),
        },
        load(
            "l.i1",
            sizes,
            more / 5 * 4,
            BATCH_I1.min(params.batch),
            true,
        ),
        load("l.i2", sizes, more / 5, BATCH_I2.min(params.batch), true),
    ];
    for rate in WRITE_RATES {
        for (prefix, kind, point) in [("qr", "range", false), ("qp", "point", true)] {
            let write_rate = f64::from(rate);
            let batch = BATCH_BACKGROUND;
            steps.push(StepPlan {
                name: format!("{prefix}{rate}"),
                about: format!("{kind} queries while {rate} rows/s are inserted and deleted"),
                work: value(Work::Query {
                    point,
                    write_rate,
                    batch,
                }),
                operations: 0,
                seconds_max: sizes.query_seconds,
                load: LoadKind::Closed,
                settle: false,
                setting: Setting::default(),
            });
        }
    }
    steps
}

fn load(name: &str, sizes: &Sizes, rows: u64, batch: u32, after: bool) -> StepPlan {
    let rows = rows.max(u64::from(batch));
    let work = Work::Load {
        batch,
        indexes: after,
        deletes: after,
        interval_rows: (rows / 10).max(1),
        queries: None,
    };
    let about = if after {
        format!("insert {rows} rows, {batch} in a transaction, and delete as many of the oldest")
    } else {
        format!("insert {rows} rows without indexes, {batch} in a transaction")
    };
    StepPlan {
        name: name.to_owned(),
        about,
        work: value(work),
        operations: rows,
        seconds_max: sizes.load_seconds,
        load: LoadKind::Closed,
        settle: true,
        setting: Setting::default(),
    }
}

fn value(work: Work) -> serde_json::Value {
    serde_json::to_value(work).expect("plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_loads_leave_the_build_of_the_indexes_its_time() {
        let long = |load_seconds| {
            let short = Sizes {
                load_seconds,
                ..sizes(Preset::Smoke)
            };
            let steps = steps(&short, &EXPERIMENT.params);
            assert_eq!(steps[0].seconds_max, load_seconds);
            steps[1].seconds_max
        };
        assert_eq!(long(0.3), BUILD_SECONDS);
        assert_eq!(long(90.0), 360.0);
    }
}

//! `compression`: the compression ratios of codecs on real pages of an engine, and their cost
//! inside the engine.
//!
//! The rows of the stores differ only in the share of the payload that is constant; each codec of
//! an engine gets a fresh store. After the load without compression all codecs compress the pages
//! of the engine's files at several block sizes, and every block must be restored exactly.

use lab_report::record::experiment::compression::{COMPRESSORS, CONSTANT};
use lab_report::record::{LoadKind, Preset, Setting, StepPlan, Work};

use super::{Experiment, Fixed, Params, Sizes};
use crate::workload::iibench::{Payload, RowParams, Shape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "compression",
    about: "codecs on real pages at 4 to 128 KiB, and inside the engines at three payloads",
    source: "the comparison of compression algorithms of 2016 and its correction a month later \
             (block sizes by codecs; verify round trips)",
    program: None,
    params: Params {
        shape: Shape::Classic,
        payload: payload(50),
        batch: 100,
        queries: 0.0,
        indexes: 0,
    },
    fixed: &[Fixed::Rate, Fixed::Codec, Fixed::Payload],
    sizes,
    steps,
};

/// Runs with fewer rows than this have only one payload.
const FEW: u64 = 50_000;

/// Size of a payload, in bytes.
const BYTES: u32 = 1000;

const fn payload(constant: u8) -> Payload {
    Payload {
        min: BYTES,
        max: BYTES,
        constant,
    }
}

fn sizes(preset: Preset) -> Sizes {
    let of = Sizes::once;
    match preset {
        Preset::Smoke => of(10_000, 128, 32, 5.0, 0.5),
        Preset::Quick => of(300_000, 128, 64, 60.0, 5.0),
        Preset::Standard => of(2_000_000, 512, 256, 600.0, 60.0),
        Preset::Published => of(10_000_000, 4096, 2048, 86_400.0, 600.0),
    }
}

fn steps(sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let constants = CONSTANT.into_iter();
    let constants = constants.take(if sizes.rows < FEW { 1 } else { CONSTANT.len() });
    let mut steps = Vec::new();
    for constant in constants {
        for compressor in COMPRESSORS {
            steps.push(load(constant, compressor, sizes, params));
            steps.push(point(constant, compressor, sizes));
        }
    }
    steps
}

/// The setting that all steps on one store share.
fn setting(constant: u8, compressor: &str) -> Setting {
    // The seed is set by the run.
    let rows = RowParams {
        seed: 0,
        shape: Shape::Classic,
        payload: payload(constant),
        indexes: 0,
    };
    Setting {
        compressor: Some(compressor.to_owned()),
        params: Some(serde_json::to_value(rows).expect("plain data")),
        ..Setting::default()
    }
}

fn load(constant: u8, compressor: &str, sizes: &Sizes, params: &Params) -> StepPlan {
    let work = Work::Load {
        batch: params.batch,
        indexes: false,
        deletes: false,
        interval_rows: (sizes.rows / 10).max(1),
        queries: None,
    };
    let rows = sizes.rows;
    // The measurements of all codecs and block sizes, compressing and decompressing, together take
    // about as long as one or two query steps.
    let each = sizes.query_seconds / 25.0;
    StepPlan {
        name: format!("load-{constant}-{compressor}"),
        about: format!(
            "insert {rows} rows, {constant} % of whose payload is the same in all, codec \
             {compressor}"
        ),
        work: serde_json::to_value(work).expect("plain data"),
        operations: rows,
        seconds_max: sizes.load_seconds,
        load: LoadKind::Closed,
        settle: true,
        setting: Setting {
            fresh: true,
            codecs: (compressor == "none").then_some(each),
            ..setting(constant, compressor)
        },
    }
}

fn point(constant: u8, compressor: &str, sizes: &Sizes) -> StepPlan {
    let work = Work::Query {
        point: true,
        write_rate: 0.0,
        batch: 1,
    };
    StepPlan {
        name: format!("point-{constant}-{compressor}"),
        about: format!("get rows by primary key, the store read cold, codec {compressor}"),
        work: serde_json::to_value(work).expect("plain data"),
        operations: 0,
        seconds_max: sizes.query_seconds,
        load: LoadKind::Closed,
        settle: false,
        setting: Setting {
            cold: true,
            ..setting(constant, compressor)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_codec_has_a_fresh_store_and_is_read_cold() {
        let steps = steps(&sizes(Preset::Quick), &EXPERIMENT.params);
        assert_eq!(steps.len(), 30);
        for pair in steps.chunks(2) {
            assert!(pair[0].setting.fresh && pair[1].setting.cold);
            assert_eq!(pair[0].setting.compressor, pair[1].setting.compressor);
            assert_eq!(pair[0].setting.params, pair[1].setting.params);
        }
        let tried = steps.iter().filter(|s| s.setting.codecs.is_some());
        assert_eq!(tried.count(), 3);
    }
}

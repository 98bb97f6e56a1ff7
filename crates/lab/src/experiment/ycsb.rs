//! `ycsb`: records are loaded, then read and changed by YCSB's six core workloads.

use lab_report::record::ycsb::{Core, Requests};
use lab_report::record::{Preset, Setting, StepPlan, Task};

use super::programmed::{NO_ROWS, no_steps, step};
use super::{Experiment, Programmed, Sizes};
use crate::workload::program::Spec;
use crate::workload::ycsb::Params;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "ycsb",
    about: "load records, then read, update, insert and scan them in YCSB's workloads A to F",
    source: "YCSB (Cooper et al., SoCC 2010), core workloads A to F of version 0.17",
    params: NO_ROWS,
    fixed: &[],
    sizes,
    steps: no_steps,
    program: Some(Programmed {
        variants: &VARIANTS,
        clients: 8,
        direct: false,
        cut: false,
        spec,
        steps,
        capped: None,
        crowded: None,
    }),
};

/// The distribution of requests on records of 1 KB, or the size of records that are requested by
/// Zipf's law.
const VARIANTS: [&str; 7] = [
    "zipfian",
    "uniform",
    "latest",
    "hotspot",
    "100-bytes",
    "10-kb",
    "100-kb",
];

/// Bytes of a field of the records of 1 KB.
const FIELD_BYTES: u32 = 100;

fn sizes(preset: Preset) -> Sizes {
    let of = Sizes::once;
    match preset {
        Preset::Smoke => of(1000, 128, 32, 300.0, 1.0),
        Preset::Quick => of(300_000, 192, 64, 900.0, 15.0),
        Preset::Standard => of(2_000_000, 768, 256, 7200.0, 300.0),
        // The paper's records of one server, and its memory.
        Preset::Published => of(20_000_000, 8 << 10, 5 << 10, 86_400.0, 1800.0),
    }
}

/// Records of a variant: `rows` of 1 KB, or as many bytes in records of another size.
fn params(rows: u64, variant: &str, seed: u64) -> Params {
    let (requests, field_bytes) = match variant {
        "uniform" => (Requests::Uniform, FIELD_BYTES),
        "latest" => (Requests::Latest, FIELD_BYTES),
        "hotspot" => (Requests::Hotspot, FIELD_BYTES),
        "100-bytes" => (Requests::Zipfian, FIELD_BYTES / 10),
        "10-kb" => (Requests::Zipfian, FIELD_BYTES * 10),
        "100-kb" => (Requests::Zipfian, FIELD_BYTES * 100),
        _ => (Requests::Zipfian, FIELD_BYTES),
    };
    let records = rows.saturating_mul(u64::from(FIELD_BYTES)) / u64::from(field_bytes);
    Params {
        seed,
        records: records.max(2),
        field_bytes,
        requests,
    }
}

fn spec(sizes: &Sizes, variant: &str, seed: u64) -> Spec {
    Spec::Ycsb(params(sizes.rows, variant, seed))
}

fn steps(sizes: &Sizes, variant: &str) -> Vec<StepPlan> {
    let Params {
        records,
        field_bytes,
        ..
    } = params(sizes.rows, variant, 0);
    let load = format!("load {records} records of ten fields of {field_bytes} bytes");
    let fill = Task::Fill { tables: 0 };
    let setting = Setting::default;
    let mut steps = vec![step("load", load, fill, sizes.load_seconds, setting())];
    for (mix, core) in (0..).zip(Core::ALL) {
        let about = core.about().to_owned();
        let task = Task::Mix { mix };
        steps.push(step(
            core.step(),
            about,
            task,
            sizes.query_seconds,
            setting(),
        ));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adds_no_records_comes_first() {
        let steps = steps(&sizes(Preset::Quick), "zipfian");
        let names: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
        let letters = ["a", "b", "c", "f", "d", "e"].map(|letter| format!("workload-{letter}"));
        assert_eq!(
            (names[0], &names[1..]),
            ("load", &letters.each_ref().map(String::as_str)[..])
        );
    }

    #[test]
    fn variants_have_as_many_bytes_in_records_of_other_sizes() {
        for variant in VARIANTS {
            let params = params(100_000, variant, 1);
            assert_eq!(
                params.records * u64::from(params.field_bytes),
                10_000_000,
                "{variant}"
            );
        }
        let distributions = VARIANTS.map(|variant| params(10, variant, 1).requests);
        assert_eq!(
            distributions[1..4],
            [Requests::Uniform, Requests::Latest, Requests::Hotspot]
        );
    }
}

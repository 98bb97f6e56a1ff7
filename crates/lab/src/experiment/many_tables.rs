//! `many-tables`: the same rows spread over an increasing number of tables, inserted one by one
//! into a random table; then a cold scan of all tables.

use lab_report::record::experiment::many_tables::SEEKS;
use lab_report::record::{Preset, Setting, StepPlan, Task};

use super::programmed::{NO_ROWS, no_steps, step};
use super::{Experiment, Fixed, Programmed, Sizes};
use crate::workload::many_tables::Params;
use crate::workload::program::Spec;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "many-tables",
    about: "insert rows into a random one of 1 to 1000 tables, then scan them all, cold",
    source: "Percona's article on many growing tables of 2008 (10 M inserts into 1 to 10 000 \
             tables, then full scans)",
    params: NO_ROWS,
    fixed: &[Fixed::Rate],
    sizes,
    steps: no_steps,
    program: Some(Programmed {
        variants: &["thousand", "full", "disk"],
        clients: 1,
        direct: false,
        cut: true,
        spec,
        steps,
        capped: None,
        crowded: None,
    }),
};

/// The numbers of tables that are measured.
pub(crate) const TABLES: [u64; 5] = [1, 10, 100, 1000, 10_000];

fn sizes(preset: Preset) -> Sizes {
    let of = |rows, memory_mib, cache_mib, load_seconds| {
        Sizes::once(rows, memory_mib, cache_mib, load_seconds, load_seconds)
    };
    match preset {
        Preset::Smoke => of(2000, 128, 32, 5.0),
        Preset::Quick => of(100_000, 192, 64, 40.0),
        Preset::Standard => of(1_000_000, 256, 128, 600.0),
        Preset::Published => of(10_000_000, 12_288, 8192, 86_400.0),
    }
}

fn spec(sizes: &Sizes, _variant: &str, seed: u64) -> Spec {
    Spec::ManyTables(Params {
        seed,
        rows: sizes.rows,
    })
}

fn steps(sizes: &Sizes, variant: &str) -> Vec<StepPlan> {
    let most = if variant == "full" { 10_000 } else { 1000 };
    // At least ten rows per table on average; with fewer, the result would be meaningless.
    let some = TABLES
        .into_iter()
        .filter(|n| *n <= most && n * 10 <= sizes.rows);
    let each = some.flat_map(|tables| {
        let insert = step(
            &format!("insert-{tables}"),
            format!(
                "insert {} rows, each into a random one of {tables} tables",
                sizes.rows
            ),
            Task::Fill { tables },
            sizes.load_seconds,
            Setting {
                fresh: true,
                ..Setting::default()
            },
        );
        let scan = step(
            &format!("scan-{tables}"),
            format!("scan {tables} tables one after the other, cold"),
            Task::Scan { tables },
            sizes.query_seconds,
            Setting {
                cold: true,
                ..Setting::default()
            },
        );
        let disk = StepPlan {
            name: format!("disk-{tables}"),
            about: format!("the same within {SEEKS} reads a second, as of a disk that seeks"),
            setting: Setting {
                iops: Some(SEEKS),
                ..scan.setting.clone()
            },
            ..scan.clone()
        };
        let insert = StepPlan {
            operations: sizes.rows,
            ..insert
        };
        [
            Some(insert),
            Some(scan),
            (variant == "disk").then_some(disk),
        ]
    });
    each.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_load_and_a_cold_scan_for_each_number_of_tables() {
        let names = |preset, variant| -> Vec<String> {
            steps(&sizes(preset), variant)
                .into_iter()
                .map(|s| s.name)
                .collect()
        };
        assert_eq!(names(Preset::Quick, "thousand").len(), 8);
        assert_eq!(names(Preset::Quick, "full").len(), 10);
        let smoke = names(Preset::Smoke, "full");
        assert_eq!(
            smoke,
            [
                "insert-1",
                "scan-1",
                "insert-10",
                "scan-10",
                "insert-100",
                "scan-100"
            ]
        );
        let steps = steps(&sizes(Preset::Quick), "thousand");
        let alternate = steps.chunks(2).all(|p| match p {
            [insert, scan] => insert.setting.fresh && scan.setting.cold && !scan.settle,
            _ => false,
        });
        assert!(alternate);
    }

    #[test]
    fn a_disk_that_seeks_scans_once_more_and_cold_within_its_reads() {
        let all = steps(&sizes(Preset::Quick), "disk");
        assert_eq!(all.len(), 12);
        for three in all.chunks(3) {
            let [_, scan, disk] = three else {
                panic!("{three:?}");
            };
            assert_eq!((scan.setting.iops, disk.setting.iops), (None, Some(SEEKS)));
            assert!(disk.setting.cold && disk.name.starts_with("disk-"));
            assert_eq!(disk.work, scan.work);
        }
    }
}

//! The article on many growing tables of 2008.

use super::programs::{Column, curve, curves, grid, number, published, steps};
use super::shape::Measured;
use super::{Beside, Grid, Shape, ratio, targets, words};
use crate::record::RunRecord;
use crate::record::experiment::many_tables::SEEKS;

const SOURCE: &str = "Percona's article on many growing tables, 2008: 10 M inserts in all, each \
                      into a random table, then a full scan of all of them; \
                      MyISAM with 64 open tables";

/// Tables, inserts per second, rows scanned per second.
type Then = (f64, f64, f64);

/// `MyISAM`'s.
const MYISAM: [Then; 5] = [
    (1.0, 9498.0, 45_142.0),
    (10.0, 8401.0, 18_971.0),
    (100.0, 6689.0, 2213.0),
    (1000.0, 5180.0, 1347.0),
    (10_000.0, 263.0, 1169.0),
];

/// The columns of inserts and of scans.
const INSERTS: [Column; 9] = [
    ("create s", "create_seconds", 1.0),
    ("inserts/s", "rate_mean", 1.0),
    ("p99 ms", "latency_p99_ms", 1.0),
    ("max ms", "latency_max_ms", 1.0),
    ("CPU us/insert", "cpu_us_per_row", 1.0),
    ("B written/insert", "device_write_bytes_per_row", 1.0),
    ("files MB", "file_bytes", 1e-6),
    ("size/data", "space_amplification", 1.0),
    ("resident MB", "rss_max", 1e-6),
];
const SCANS: [Column; 4] = [
    ("rows/s", "entries_per_second", 1.0),
    ("MB/s of data", "scan_mb_per_second", 1.0),
    ("MB read", "device_read_bytes", 1e-6),
    ("CPU us/1000 rows", "cpu_us_per_row", 1.0),
];

pub(super) fn beside(run: &RunRecord) -> Beside {
    let disk = steps(run, "disk-");
    let mut beside = fast(run);
    if !disk.is_empty() {
        let caption = format!("Scans, cold, within {SEEKS} reads a second");
        beside.measured.push(grid(run, &caption, &disk, &SCANS));
        let title = format!("Rows scanned/s within {SEEKS} reads/s by number of tables");
        let then: Vec<(f64, f64)> = MYISAM.iter().map(|m| (m.0, m.2)).collect();
        beside.plots.push(curves(
            run,
            [&title, "tables", "rows/s"],
            &disk,
            "entries_per_second",
            vec![curve("MyISAM, 2008", &then)],
        ));
        let within = format!("the scan rate collapses within {SEEKS} reads a second");
        let collapses = targets(run)
            .into_iter()
            .filter_map(|t| collapse(run, t, &disk, &within));
        beside.shapes.extend(collapses);
        beside.notes.push(format!(
            "A disk of 2008 moved its head for each read that did not follow on the last one, some \
             {SEEKS} times a second; a cap on reads stands for that (variant disk). Scans within \
             it are nearer to what was published than those at the pace of a device that does not \
             seek."
        ));
    }
    beside
}

fn fast(run: &RunRecord) -> Beside {
    let (inserts, scans) = (steps(run, "insert-"), steps(run, "scan-"));
    let myisam =
        |of: fn(&Then) -> (f64, f64)| -> Vec<(f64, f64)> { MYISAM.iter().map(of).collect() };
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![
            grid(
                run,
                "Inserts; the number of a step is that of tables",
                &inserts,
                &INSERTS,
            ),
            grid(run, "Scans, cold", &scans, &SCANS),
        ],
        published: then(),
        plots: vec![
            curves(
                run,
                ["Inserts/s by number of tables", "tables", "inserts/s"],
                &inserts,
                "rate_mean",
                vec![curve("MyISAM, 2008", &myisam(|m| (m.0, m.1)))],
            ),
            curves(
                run,
                ["Rows scanned/s by number of tables", "tables", "rows/s"],
                &scans,
                "entries_per_second",
                vec![curve("MyISAM, 2008", &myisam(|m| (m.0, m.2)))],
            ),
        ],
        shapes: targets(run)
            .into_iter()
            .flat_map(|t| shapes(run, t, &inserts, &scans))
            .collect(),
        notes: pages(run)
            .into_iter()
            .chain(words(&[
            "A scan begins with the store reopened and its files dropped from the page cache \
             (posix_fadvise, which concerns these files alone; the caches of the whole machine are \
             left as they are).",
            "MyISAM keeps each table in a file of its own and appends to all of them at once: its \
             tables lie interleaved on the disk. An engine that keeps all tables in one tree or \
             one log does not have that problem, and its shape does not come out.",
        ])).collect(),
    }
}

/// A note about the meaning of a read, if it differs between the targets.
fn pages(run: &RunRecord) -> Option<String> {
    let names = |direct: bool| -> Vec<&str> {
        let all = run.targets.iter().filter(|t| t.direct_io == direct);
        all.map(|t| t.name.as_str()).collect()
    };
    let (direct, cached) = (names(true), names(false));
    if direct.is_empty() || cached.is_empty() {
        return None;
    }
    Some(format!(
        "Cold reads are not the same thing everywhere: {} read past the page cache (O_DIRECT), a \
         page of their own at a time (InnoDB 16 KiB) and ahead only as they see to it themselves; \
         {} through it, in pages of 4 KiB, of which the kernel reads more ahead where files are \
         read in order unless the engine asks it not to. Compare rows/s and MB read, not \
         the number of reads.",
        direct.join(", "),
        cached.join(", "),
    ))
}

/// The table of the article.
fn then() -> Grid {
    let rows: Vec<(String, [f64; 2])> = MYISAM
        .iter()
        .map(|(tables, inserts, scans)| (format!("MyISAM, {tables} tables"), [*inserts, *scans]))
        .collect();
    let rows: Vec<(&str, [f64; 2])> = rows.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    published(
        "Published in 2008, on other machines: shapes only",
        &["inserts/s", "rows scanned/s"],
        &rows,
    )
}

/// The ratios of the rates of inserts and scans with the most tables to those with one table.
fn shapes(run: &RunRecord, target: &str, inserts: &[&str], scans: &[&str]) -> Vec<Shape> {
    let figures: (&str, fn(&Then) -> f64) = ("rate_mean", |m| m.1);
    let inserts = ends(run, target, inserts, "inserts slow down", figures);
    let scans = collapse(run, target, scans, "the scan rate collapses");
    inserts.into_iter().chain(scans).collect()
}

fn collapse(run: &RunRecord, target: &str, scans: &[&str], claim: &str) -> Option<Shape> {
    let figures: (&str, fn(&Then) -> f64) = ("entries_per_second", |m| m.2);
    ends(run, target, scans, claim, figures)
}

/// The ratio of a number with the most tables to that with one table, published and measured.
fn ends(
    run: &RunRecord,
    target: &str,
    steps: &[&str],
    claim: &str,
    (name, of): (&str, fn(&Then) -> f64),
) -> Option<Shape> {
    let (first, last) = (steps.first()?, steps.last()?);
    let most = number(last)?;
    let then = |tables: f64| {
        MYISAM
            .iter()
            .find(|m| m.0.total_cmp(&tables).is_eq())
            .map(of)
    };
    let published = ratio(then(most), then(1.0))?;
    let measured = Measured::of(run, &[(target, *first), (target, *last)], |repeat| {
        let now = |step: &str| repeat.figure(target, step, name);
        ratio(now(last), now(first))
    });
    Some(Shape::new(
        target,
        &format!("{claim} (with {most} tables by with one)"),
        published,
        &measured,
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::published::Reproduced;
    use crate::record::StepSummary;

    #[test]
    fn cold_reads_are_explained_where_targets_differ() {
        let steps = ["mariadb", "lmdb"].map(|target| fixture::step(target, 1, 9.0));
        let mut run = fixture::run("run", &["mariadb", "lmdb"], 1, steps.to_vec());
        let direct_note = |run: &RunRecord| {
            let notes = beside(run).notes;
            notes.into_iter().find(|note| note.contains("O_DIRECT"))
        };
        assert_eq!(direct_note(&run), None);
        run.targets = vec![
            fixture::target_record("mariadb", true),
            fixture::target_record("lmdb", false),
        ];
        let note = direct_note(&run).unwrap();
        assert!(note.contains("mariadb read past the page cache"), "{note}");
        assert!(
            note.contains("lmdb through it, in pages of 4 KiB"),
            "{note}"
        );
    }

    #[test]
    fn scans_within_a_cap_are_judged_apart() {
        let step = |name: &str, scanned: f64| StepSummary {
            step: name.to_owned(),
            extra: BTreeMap::from([("entries_per_second".to_owned(), scanned)]),
            ..fixture::step("betree", 1, 1.0)
        };
        let all = vec![
            step("scan-1", 50_000.0),
            step("disk-1", 20_000.0),
            step("scan-100", 49_000.0),
            step("disk-100", 1000.0),
        ];
        let mut run = fixture::run("run", &["betree"], 3, fixture::repeated(&all));
        let plan = run.manifest.plan.steps[0].clone();
        let planned = all.iter().map(|s| crate::record::StepPlan {
            name: s.step.clone(),
            ..plan.clone()
        });
        run.manifest.plan.steps = planned.collect();
        let repeated = fixture::repeated(&all).into_iter();
        let with_rates: Vec<_> = repeated.map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &with_rates, true);
        let beside = beside(&run);
        assert_eq!((beside.measured.len(), beside.plots.len()), (3, 3));
        let shown = beside.measured[2].lines[1].values[1].clone();
        assert_eq!(shown, super::super::Value::Number(Some(1000.0)));
        let judged: Vec<Option<f64>> = beside.shapes.iter().map(|s| s.measured).collect();
        assert_eq!(judged, [Some(0.98), Some(0.05)]);
        let verdicts: Vec<Reproduced> = beside.shapes.iter().map(|s| s.verdict).collect();
        assert_eq!(verdicts, [Reproduced::No, Reproduced::Yes]);
        assert!(beside.shapes[1].claim.contains("within 200 reads"));
    }

    #[test]
    fn the_collapse_is_looked_for_between_the_ends() {
        let step = |name: &str, rate: f64, scanned: f64| StepSummary {
            step: name.to_owned(),
            extra: BTreeMap::from([("entries_per_second".to_owned(), scanned)]),
            ..fixture::step("betree", 1, rate)
        };
        let all = vec![
            step("insert-1", 9000.0, 0.0),
            step("scan-1", 50.0, 50_000.0),
            step("insert-100", 8800.0, 0.0),
            step("scan-100", 5.0, 5000.0),
        ];
        let mut run = fixture::run("run", &["betree"], 3, fixture::repeated(&all));
        let plan = run.manifest.plan.steps[0].clone();
        let named = |s: &StepSummary| {
            let mut plan = plan.clone();
            plan.name.clone_from(&s.step);
            plan
        };
        run.manifest.plan.steps = all.iter().map(named).collect();
        let repeated = fixture::repeated(&all).into_iter();
        let with_rates: Vec<_> = repeated.map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &with_rates, true);
        let beside = beside(&run);
        let verdicts: Vec<Reproduced> = beside.shapes.iter().map(|s| s.verdict).collect();
        assert_eq!(verdicts, [Reproduced::No, Reproduced::Weaker]);
        assert_eq!(beside.shapes[1].measured, Some(0.1));
        for grid in beside.measured.iter().chain([&beside.published]) {
            assert!(
                grid.lines
                    .iter()
                    .all(|l| l.values.len() == grid.columns.len())
            );
        }
    }
}

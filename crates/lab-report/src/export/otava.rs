//! The CSV of Apache Otava, which finds changes in a history of results
//! (<https://otava.apache.org>): `time`, `commit`, then a column for each metric.
//!
//! Rows of several runs may be put one below the other as long as the targets and steps are the
//! same.

use std::collections::BTreeMap;

use crate::analysis::{METRICS, metrics};
use crate::error::{Error, Result};
use crate::record::{RunRecord, StepRecord, StepSummary};

/// A row for each repeat with a valid step. Its time is when its last step was done.
pub(super) fn text(run: &RunRecord) -> Result<String> {
    let plan = &run.manifest.plan;
    let mut head = vec!["time".to_owned(), "commit".to_owned()];
    for target in &plan.targets {
        for step in &plan.steps {
            head.extend(
                METRICS
                    .iter()
                    .map(|m| column(&target.name, &step.name, m.name)),
            );
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed =
        |e: csv::Error| Error::environment(format!("cannot export {}: {e}", run.manifest.run));
    writer.write_record(&head).map_err(failed)?;
    let mut rows = 0;
    for repeat in 1..=plan.repeats {
        if let Some(row) = row(run, repeat, &head) {
            writer.write_record(&row).map_err(failed)?;
            rows += 1;
        }
    }
    if rows == 0 {
        return Err(Error::environment(format!(
            "{} has no valid step to export; see `romanesco lab report`",
            run.manifest.run
        )));
    }
    let bytes = writer
        .into_inner()
        .expect("memory does not fail to be written");
    Ok(String::from_utf8(bytes).expect("made of strings"))
}

fn column(target: &str, step: &str, metric: &str) -> String {
    format!("{target}.{step}.{metric}")
}

fn row(run: &RunRecord, repeat: u32, head: &[String]) -> Option<Vec<String>> {
    let of = |s: &StepSummary| s.repeat == repeat && s.valid;
    let done = |s: &'_ StepRecord| s.summary.clone().filter(|s| of(s));
    let mut cells: BTreeMap<String, String> = BTreeMap::new();
    let mut time = None;
    for record in &run.steps {
        let Some(summary) = done(record) else {
            continue;
        };
        time = time.max(Some(record.status.at.clone()));
        for (metric, value) in metrics(&summary) {
            if let Some(value) = value {
                cells.insert(
                    column(&summary.target, &summary.step, &metric),
                    value.to_string(),
                );
            }
        }
    }
    let names = head.iter().skip(2);
    let values = names.map(|name| cells.get(name).cloned().unwrap_or_default());
    Some(
        [time?, run.manifest.commit.clone()]
            .into_iter()
            .chain(values)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{run, step};

    #[test]
    fn a_row_for_each_repeat() {
        let mut wrong = step("rocksdb", 2, 60.0);
        wrong.valid = false;
        let steps = vec![
            step("lmdb", 1, 100.0),
            step("rocksdb", 1, 50.5),
            step("lmdb", 2, 90.0),
            wrong,
        ];
        let run = run("r", &["lmdb", "rocksdb"], 3, steps);
        let text = text(&run).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
        assert_eq!(lines.len(), 3, "repeat 3 is not done");
        assert_eq!(lines[0][..2], ["time", "commit"]);
        assert_eq!(lines[1][..2], ["2026-11-21T19:06:00Z", "abcdef"]);
        let place = |name| lines[0].iter().position(|&c| c == name).unwrap();
        let (lmdb, rocksdb) = (
            place("lmdb.load.rate_mean"),
            place("rocksdb.load.rate_mean"),
        );
        assert_eq!((lines[1][lmdb], lines[1][rocksdb]), ("100", "50.5"));
        assert_eq!((lines[2][lmdb], lines[2][rocksdb]), ("90", ""));
        let nothing = crate::fixture::run("r", &["lmdb"], 1, Vec::new());
        assert!(super::text(&nothing).is_err());
    }
}

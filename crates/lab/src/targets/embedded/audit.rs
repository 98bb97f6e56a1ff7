//! Compares the contents of a killed store with what was acknowledged before the kill.
//!
//! Rows are scanned once in the order of their numbers. Each is generated again and compared, and
//! the hashes of its index keys are summed and compared with those of the index trees; this also
//! finds a row without its entries, or entries without their row.

use kv::{Direction, KeyRange};
use stdx::{hash, time};

use super::{Embedded, text};
use crate::protocol::{Audit, Told};
use crate::targets::findings::Findings;
use crate::workload::iibench::Row;

/// Compare the store with the rows acknowledged to each client.
pub(super) fn audit(database: &Embedded, told: &[Told]) -> Result<Audit, String> {
    let start = time::now();
    let mut scan = Scan::default();
    scan.rows(database)?;
    scan.indexes(database)?;
    let mut audit = reconcile(told, &scan.found);
    audit.faults.extend(scan.findings.faults);
    audit.seconds = start.elapsed().as_secs_f64();
    Ok(audit)
}

/// Compare the rows found, in ascending order, with those acknowledged to each client.
pub(in crate::targets) fn reconcile(told: &[Told], found: &[u64]) -> Audit {
    let there = |id: &u64| found.binary_search(id).is_ok();
    let mut audit = Audit {
        found: found.len() as u64,
        ..Audit::default()
    };
    for Told { rows, due } in told {
        let lost_of = |first| rows.iter().take(first).filter(|id| !there(id)).count();
        let outlived = rows.iter().rposition(&there).map_or(0, lost_of);
        let due = rows.len().min(*due);
        audit.acknowledged += due as u64;
        audit.lost += lost_of(due) as u64;
        audit.gaps += outlived as u64;
        audit.unacknowledged += (rows.len() - lost_of(rows.len())) as u64;
    }
    audit.unacknowledged = audit.found.saturating_sub(audit.unacknowledged);
    // Each client has at most one commit in progress.
    if audit.unacknowledged > told.len() as u64 {
        audit.faults.push(format!(
            "{} rows are there that were not acknowledged, and {} clients can have had no more \
             than one commit under way each",
            audit.unacknowledged,
            told.len()
        ));
    }
    audit
}

#[derive(Default)]
struct Scan {
    found: Vec<u64>,
    findings: Findings,
    sums: [u64; 3],
}

impl Scan {
    fn rows(&mut self, database: &Embedded) -> Result<(), String> {
        let snapshot = database.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(database.rows, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let mut row = Row::default();
        while cursor.advance().map_err(text)? {
            let Ok(key) = <[u8; 8]>::try_from(cursor.key()) else {
                let key = cursor.key().escape_ascii().to_string();
                self.findings
                    .fault(format!("there is the key \"{key}\", which is no row's"));
                continue;
            };
            let id = u64::from_be_bytes(key);
            self.found.push(id);
            database.generator.row(id, &mut row);
            if cursor.value() != row.value {
                self.findings.fault(format!("row {id} has a wrong value"));
            }
            for (sum, key) in self.sums.iter_mut().zip(row.index_keys()) {
                *sum = sum.wrapping_add(hash::hash64(key));
            }
        }
        Ok(())
    }

    fn indexes(&mut self, database: &Embedded) -> Result<(), String> {
        let kept = usize::from(database.generator.params().indexes);
        let made = database.indexes.get();
        let trees = made.into_iter().flatten().copied().take(kept);
        let snapshot = database.engine.begin_read().map_err(text)?;
        for (index, (tree, expected)) in trees.zip(self.sums).enumerate() {
            let mut cursor = snapshot
                .cursor(tree, KeyRange::ALL, Direction::Forward)
                .map_err(text)?;
            let (mut count, mut sum) = (0u64, 0u64);
            while cursor.advance().map_err(text)? {
                count += 1;
                sum = sum.wrapping_add(hash::hash64(cursor.key()));
            }
            let rows = self.found.len() as u64;
            if count != rows || sum != expected {
                let name = index + 1;
                self.findings.fault(format!(
                    "index {name} has {count} entries that do not fit the {rows} rows"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_gaps_and_commits_under_way_are_told_apart() {
        let client = Told::of;
        let figures = |told: &[Told], found: &[u64]| {
            let a = reconcile(told, found);
            (a.acknowledged, a.lost, a.gaps, a.unacknowledged)
        };
        let told = [client(&[0, 2, 4, 6], 4), client(&[1, 3, 5], 3)];
        let audit = |found: &[u64]| figures(&told, found);
        assert_eq!(audit(&[0, 1, 2, 3, 4, 5, 6]), (7, 0, 0, 0));
        assert_eq!(audit(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), (7, 0, 0, 2));
        // The last commit of each client is lost: no later commit survived.
        assert_eq!(audit(&[0, 1, 2, 3, 4]), (7, 2, 0, 0));
        // Row 2 is lost, and rows 4 and 6 of the same client are present.
        assert_eq!(audit(&[0, 1, 3, 4, 5, 6]), (7, 1, 1, 0));
        assert_eq!(audit(&[]), (7, 7, 0, 0));

        // Rows 6, 3 and 5 were acknowledged during the power cut.
        let told = [client(&[0, 2, 4, 6], 3), client(&[1, 3, 5], 1)];
        assert_eq!(figures(&told, &[0, 1, 2, 4]), (4, 0, 0, 0));
        assert_eq!(figures(&told, &[0, 1, 2, 3, 4, 5, 6]), (4, 0, 0, 0));
        assert_eq!(figures(&told, &[0, 2]), (4, 2, 0, 0));
        assert_eq!(figures(&told, &[0, 1, 2, 4, 5]), (4, 0, 1, 0));
    }
}

//! Compares the contents of any target with the workload's model, over its [`Connection`].
//!
//! An engine in this process is compared row by row. Of a server, rows and index entries are
//! counted, and a sample of the rows is compared. After a kill all rows of either are compared.
//!
//! - K1. Each index is counted through itself and compared with the rows: by number of entries and,
//!   where the target has one, by a digest. So a row without its entries is found, and so is an
//!   entry without its row.

use lab_report::error::{Error, Result};
use lab_report::record::Integrity;
use stdx::{Rng, time};

use super::database::{Connection, Database, Live, Part};
use crate::protocol::{Acknowledged, Audit};
use crate::workload::iibench::Generator;

/// Number of rows that are compared if not all are, drawn at random; the first and the last are
/// always among them.
const SAMPLE: u64 = 2000;

/// Maximum number of faults whose text is kept.
const FAULTS_MAX: usize = 10;

/// Compare the contents with those that the workload wrote: the rows of `live`.
#[must_use]
pub fn verify(database: &dyn Database, generator: &Generator, live: Live) -> Integrity {
    let start = time::now();
    let checked = database.keeps();
    let mut findings = Findings::default();
    if checked && let Err(error) = compare(database, generator, live, &mut findings) {
        findings.fault(error.message);
    }
    Integrity {
        checked,
        rows_expected: live.rows(),
        rows_found: findings.found,
        faults: findings.faults,
        seconds: start.elapsed().as_secs_f64(),
    }
}

/// Compare the contents that a killed process left with the commits acknowledged to each client.
///
/// # Errors
/// A message for the user.
pub fn audit(
    database: &dyn Database,
    generator: &Generator,
    clients: &[Acknowledged],
) -> Result<Audit> {
    let start = time::now();
    let mut connection = database.connect()?;
    let (mut findings, mut found, mut sums) = (Findings::default(), Vec::new(), [0; 3]);
    connection.rows(&mut |row| {
        add(&mut sums, row.digests);
        match row.id {
            None => findings.fault("there is a row without a number".to_owned()),
            Some(id) => {
                found.push(id);
                if !row.right {
                    findings.fault(format!("row {id} has a wrong value"));
                }
            }
        }
        true
    })?;
    let indexes = usize::from(generator.params().indexes);
    for (index, sum) in sums.into_iter().enumerate().take(indexes) {
        let counted = connection.count(Part::Index(index))?;
        if (counted.entries, counted.digest) != (found.len() as u64, sum) {
            findings.fault(format!(
                "index {} has {} entries that do not fit the {} rows",
                index + 1,
                counted.entries,
                found.len()
            ));
        }
    }
    let mut audit = reconcile(clients, &found);
    audit.faults.extend(findings.faults);
    audit.seconds = start.elapsed().as_secs_f64();
    Ok(audit)
}

/// Compare the rows found, in ascending order, with those acknowledged to each client.
fn reconcile(clients: &[Acknowledged], found: &[u64]) -> Audit {
    let present = |id: &u64| found.binary_search(id).is_ok();
    let mut audit = Audit {
        found: found.len() as u64,
        ..Audit::default()
    };
    for Acknowledged { rows, due } in clients {
        let lost_of = |first| rows.iter().take(first).filter(|id| !present(id)).count();
        let outlived = rows.iter().rposition(&present).map_or(0, lost_of);
        let due = rows.len().min(*due);
        audit.acknowledged += due as u64;
        audit.lost += lost_of(due) as u64;
        audit.gaps += outlived as u64;
        audit.unacknowledged += (rows.len() - lost_of(rows.len())) as u64;
    }
    audit.unacknowledged = audit.found.saturating_sub(audit.unacknowledged);
    // Each client has at most one commit in progress.
    if audit.unacknowledged > clients.len() as u64 {
        audit.faults.push(format!(
            "{} rows were not acknowledged, and {} clients can have had no more than one commit \
             in progress each",
            audit.unacknowledged,
            clients.len()
        ));
    }
    audit
}

fn compare(
    database: &dyn Database,
    generator: &Generator,
    live: Live,
    findings: &mut Findings,
) -> Result<()> {
    let mut connection = database.connect()?;
    let remote = database.server().is_some();
    let sums = if remote {
        let rows = connection.count(Part::Rows)?;
        findings.rows(rows.entries, live);
        [rows.digest; 3]
    } else {
        every_row(connection.as_mut(), generator, live, findings)?
    };
    let indexes = match live.indexed {
        true => usize::from(generator.params().indexes),
        false => 0,
    };
    for (index, sum) in sums.into_iter().enumerate().take(indexes) {
        let counted = connection.count(Part::Index(index))?;
        let name = index + 1;
        if counted.entries != live.rows() {
            findings.fault(format!(
                "index {name} has {} entries, and there should be {}",
                counted.entries,
                live.rows()
            ));
        } else if counted.digest != sum {
            findings.fault(format!("index {name} has wrong keys (the digest differs)"));
        }
    }
    if remote {
        sample(connection.as_mut(), generator, live, findings)?;
    }
    Ok(())
}

/// Compare all rows; returns the digest that each index should have.
fn every_row(
    connection: &mut dyn Connection,
    generator: &Generator,
    live: Live,
    findings: &mut Findings,
) -> Result<[u64; 3]> {
    let (mut found, mut sums, mut stray) = (0, [0; 3], None);
    connection.rows(&mut |row| {
        let expected = match row.id {
            Some(id) if generator.scattered() => id,
            _ => live.low + found,
        };
        if row.id != Some(expected) || !(live.low..live.high).contains(&expected) {
            stray = Some((expected, row.id));
            return false;
        }
        found += 1;
        if !row.right {
            findings.fault(format!("row {expected} has a wrong value"));
        }
        add(&mut sums, row.digests);
        true
    })?;
    if let Some((expected, id)) = stray {
        let other = id.map_or("one without a number".to_owned(), |id| format!("row {id}"));
        findings.fault(format!("instead of row {expected} there is {other}"));
        return Err(Error::target("the rows after it were not compared"));
    }
    findings.rows(found, live);
    Ok(sums)
}

fn add(sums: &mut [u64; 3], digests: [u64; 3]) {
    for (sum, digest) in sums.iter_mut().zip(digests) {
        *sum = sum.wrapping_add(digest);
    }
}

/// Compare a sample of the rows.
fn sample(
    connection: &mut dyn Connection,
    generator: &Generator,
    live: Live,
    findings: &mut Findings,
) -> Result<()> {
    let Live { low, high, .. } = live;
    let mut rng = Rng::new(generator.params().seed ^ high);
    for number in 0..SAMPLE.min(live.rows()) {
        let id = match number {
            0 => low,
            1 => high - 1,
            _ => low + rng.below(high - low),
        };
        if !connection.get(id)? {
            findings.fault(format!("row {id} is missing"));
        } else if !connection.matches(id) {
            findings.fault(format!("row {id} has a wrong value"));
        }
    }
    Ok(())
}

/// The number of rows found, and the first [`FAULTS_MAX`] faults.
#[derive(Default)]
struct Findings {
    found: u64,
    faults: Vec<String>,
}

impl Findings {
    fn fault(&mut self, message: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(message);
        }
    }

    /// Record that `found` rows were found.
    fn rows(&mut self, found: u64, live: Live) {
        self.found = found;
        let rows = live.rows();
        if found != rows {
            self.fault(format!("{found} rows, and there should be {rows}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_gaps_and_commits_in_progress_are_distinguished() {
        let client = Acknowledged::of;
        let numbers = |clients: &[Acknowledged], found: &[u64]| {
            let a = reconcile(clients, found);
            (a.acknowledged, a.lost, a.gaps, a.unacknowledged)
        };
        let clients = [client(&[0, 2, 4, 6], 4), client(&[1, 3, 5], 3)];
        let audit = |found: &[u64]| numbers(&clients, found);
        assert_eq!(audit(&[0, 1, 2, 3, 4, 5, 6]), (7, 0, 0, 0));
        assert_eq!(audit(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), (7, 0, 0, 2));
        // The last commit of each client is lost: no later commit survived.
        assert_eq!(audit(&[0, 1, 2, 3, 4]), (7, 2, 0, 0));
        // Row 2 is lost, and rows 4 and 6 of the same client are present.
        assert_eq!(audit(&[0, 1, 3, 4, 5, 6]), (7, 1, 1, 0));
        assert_eq!(audit(&[]), (7, 7, 0, 0));

        // Rows 6, 3 and 5 were acknowledged during the power cut.
        let clients = [client(&[0, 2, 4, 6], 3), client(&[1, 3, 5], 1)];
        assert_eq!(numbers(&clients, &[0, 1, 2, 4]), (4, 0, 0, 0));
        assert_eq!(numbers(&clients, &[0, 1, 2, 3, 4, 5, 6]), (4, 0, 0, 0));
        assert_eq!(numbers(&clients, &[0, 2]), (4, 2, 0, 0));
        assert_eq!(numbers(&clients, &[0, 1, 2, 4, 5]), (4, 0, 1, 0));
    }
}

//! Results of comparing any target with the workload's model.

use lab_report::record::Integrity;
use stdx::{Rng, time};

use super::database::Live;

/// Number of rows that are compared if not all are, drawn at random; the first and the last are
/// always among them.
const SAMPLE: u64 = 2000;

/// Maximum number of faults whose text is kept.
pub(super) const FAULTS_MAX: usize = 10;

/// The rows that were found, and their faults.
#[derive(Default)]
pub(super) struct Findings {
    /// Number of rows found.
    pub found: u64,
    /// The first [`FAULTS_MAX`] faults.
    pub faults: Vec<String>,
}

/// Result for one row of the sample.
pub(super) enum Found {
    /// As expected.
    Right,
    /// Present, with another value.
    Wrong,
    /// No such row.
    Missing,
}

impl Findings {
    /// Run the comparison; an error that stops it is a fault, too.
    pub(super) fn of(
        live: Live,
        compare: impl FnOnce(&mut Findings) -> Result<(), String>,
    ) -> Integrity {
        let start = time::now();
        let mut findings = Findings::default();
        if let Err(message) = compare(&mut findings) {
            findings.fault(message);
        }
        Integrity {
            checked: true,
            rows_expected: live.rows(),
            rows_found: findings.found,
            faults: findings.faults,
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    pub(super) fn fault(&mut self, message: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(message);
        }
    }

    /// Record that `found` rows were found.
    pub(super) fn rows(&mut self, found: u64, live: Live) {
        self.found = found;
        let rows = live.rows();
        if found != rows {
            self.fault(format!("{found} rows, and there should be {rows}"));
        }
    }

    /// Record that index `index`, from 0, has `entries` entries; returns whether that is the number
    /// of rows.
    pub(super) fn entries(&mut self, index: usize, entries: u64, live: Live) -> bool {
        let (name, rows) = (index + 1, live.rows());
        if entries != rows {
            self.fault(format!(
                "index {name} has {entries} entries, and there should be {rows}"
            ));
        }
        entries == rows
    }

    /// Compare a sample of the rows.
    pub(super) fn sample(
        &mut self,
        live: Live,
        seed: u64,
        mut look: impl FnMut(u64) -> Result<Found, String>,
    ) -> Result<(), String> {
        let Live { low, high, .. } = live;
        if low == high {
            return Ok(());
        }
        let mut rng = Rng::new(seed ^ high);
        for turn in 0..SAMPLE.min(high - low) {
            let id = match turn {
                0 => low,
                1 => high - 1,
                _ => low + rng.below(high - low),
            };
            match look(id)? {
                Found::Missing => self.fault(format!("row {id} is missing")),
                Found::Wrong => self.fault(format!("row {id} has a wrong value")),
                Found::Right => {}
            }
        }
        Ok(())
    }
}

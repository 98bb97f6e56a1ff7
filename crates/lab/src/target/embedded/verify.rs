//! Is the store what the workload's model says? Every row is made again and compared; the index
//! trees are compared by number and by the sum of the hashes of their keys.

use kv::{Direction, KeyRange, TreeId};
use stdx::{hash, time};

use super::{Embedded, text};
use crate::record::Integrity;
use crate::target::database::Live;
use crate::workload::iibench::Row;

/// Faults that are told word for word.
const FAULTS_MAX: usize = 10;

/// Compare all of it.
pub(super) fn verify(database: &Embedded, live: Live) -> Integrity {
    let start = time::now();
    let mut check = Check {
        faults: Vec::new(),
        found: 0,
        sums: [0; 3],
        live,
    };
    if database.keeps
        && let Err(message) = check.run(database)
    {
        check.fault(message);
    }
    Integrity {
        checked: database.keeps,
        rows_expected: live.rows(),
        rows_found: check.found,
        faults: check.faults,
        seconds: start.elapsed().as_secs_f64(),
    }
}

/// The number of the row with this key.
fn number(database: &Embedded, key: &[u8]) -> u64 {
    let key = key.first_chunk().copied().map_or(0, u64::from_be_bytes);
    database.generator.id(key)
}

struct Check {
    faults: Vec<String>,
    found: u64,
    sums: [u64; 3],
    live: Live,
}

impl Check {
    fn fault(&mut self, message: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(message);
        }
    }

    fn run(&mut self, database: &Embedded) -> Result<(), String> {
        self.rows(database)?;
        let Some(trees) = database.indexes().filter(|_| self.live.indexed) else {
            return Ok(());
        };
        let kept = usize::from(database.generator.params().indexes);
        for (index, (tree, sum)) in trees.into_iter().zip(self.sums).take(kept).enumerate() {
            self.index(database, index, tree, sum)?;
        }
        Ok(())
    }

    fn rows(&mut self, database: &Embedded) -> Result<(), String> {
        let snapshot = database.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(database.rows, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let mut row = Row::default();
        let live = self.live;
        while cursor.advance().map_err(text)? {
            let expected = match database.generator.scattered() {
                true => number(database, cursor.key()),
                false => live.low + self.found,
            };
            self.found += 1;
            database.generator.row(expected, &mut row);
            if cursor.key() != row.key || !(live.low..live.high).contains(&expected) {
                let key = cursor.key().escape_ascii().to_string();
                self.fault(format!(
                    "instead of row {expected} there is the key \"{key}\""
                ));
                return Err("the rows after it were not compared".to_owned());
            }
            if cursor.value() != row.value {
                self.fault(format!("row {expected} has a wrong value"));
            }
            for (sum, key) in self.sums.iter_mut().zip(row.index_keys()) {
                *sum = sum.wrapping_add(hash::hash64(key));
            }
        }
        if self.found != live.rows() {
            self.fault(format!(
                "{} rows, and there should be {}",
                self.found,
                live.rows()
            ));
        }
        Ok(())
    }

    fn index(
        &mut self,
        database: &Embedded,
        index: usize,
        tree: TreeId,
        expected: u64,
    ) -> Result<(), String> {
        let snapshot = database.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(tree, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let (mut count, mut sum) = (0u64, 0u64);
        while cursor.advance().map_err(text)? {
            count += 1;
            sum = sum.wrapping_add(hash::hash64(cursor.key()));
        }
        let name = index + 1;
        if count != self.live.rows() {
            let rows = self.live.rows();
            self.fault(format!(
                "index {name} has {count} entries, and there should be {rows}"
            ));
        } else if sum != expected {
            self.fault(format!("index {name} has wrong keys (the digest differs)"));
        }
        Ok(())
    }
}

//! Compares the store with the workload's model. Every row is generated again and compared; the
//! index trees are compared by number of entries and by the sum of the hashes of their keys.

use kv::{Direction, KeyRange, TreeId};
use lab_report::record::Integrity;
use stdx::hash;

use super::{Embedded, text};
use crate::targets::database::Live;
use crate::targets::findings::Findings;
use crate::workload::iibench::Row;

/// Compare the whole store.
pub(super) fn verify(database: &Embedded, live: Live) -> Integrity {
    let integrity = Findings::of(live, |findings| {
        let mut check = Check {
            findings,
            sums: [0; 3],
            live,
        };
        match database.keeps {
            true => check.run(database),
            false => Ok(()),
        }
    });
    Integrity {
        checked: database.keeps,
        ..integrity
    }
}

/// The number of the row with this key.
fn number(database: &Embedded, key: &[u8]) -> u64 {
    let key = key.first_chunk().copied().map_or(0, u64::from_be_bytes);
    database.generator.id(key)
}

struct Check<'f> {
    findings: &'f mut Findings,
    sums: [u64; 3],
    live: Live,
}

impl Check<'_> {
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
        let mut found = 0;
        while cursor.advance().map_err(text)? {
            let expected = match database.generator.scattered() {
                true => number(database, cursor.key()),
                false => live.low + found,
            };
            found += 1;
            database.generator.row(expected, &mut row);
            if cursor.key() != row.key || !(live.low..live.high).contains(&expected) {
                let key = cursor.key().escape_ascii().to_string();
                self.findings.fault(format!(
                    "instead of row {expected} there is the key \"{key}\""
                ));
                return Err("the rows after it were not compared".to_owned());
            }
            if cursor.value() != row.value {
                self.findings
                    .fault(format!("row {expected} has a wrong value"));
            }
            for (sum, key) in self.sums.iter_mut().zip(row.index_keys()) {
                *sum = sum.wrapping_add(hash::hash64(key));
            }
        }
        self.findings.rows(found, live);
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
        if self.findings.entries(index, count, self.live) && sum != expected {
            let name = index + 1;
            self.findings
                .fault(format!("index {name} has wrong keys (the digest differs)"));
        }
        Ok(())
    }
}

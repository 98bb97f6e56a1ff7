//! Is the store what the workload's model says? Every row is made again and compared; the index
//! trees are compared by number and by the sum of the hashes of their keys.

use kv::{Direction, KeyRange, TreeId};
use stdx::{hash, time};

use super::session::{Session, text};
use crate::record::Integrity;
use crate::workload::iibench::Row;

/// Faults that are told word for word.
const FAULTS_MAX: usize = 10;

/// Compare all of it.
pub(super) fn verify(session: &Session) -> Integrity {
    let start = time::now();
    let mut check = Check {
        faults: Vec::new(),
        found: 0,
        sums: [0; 3],
    };
    if session.keeps
        && let Err(message) = check.run(session)
    {
        check.fault(message);
    }
    Integrity {
        checked: session.keeps,
        rows_expected: session.live.rows(),
        rows_found: check.found,
        faults: check.faults,
        seconds: start.elapsed().as_secs_f64(),
    }
}

struct Check {
    faults: Vec<String>,
    found: u64,
    sums: [u64; 3],
}

impl Check {
    fn fault(&mut self, message: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(message);
        }
    }

    fn run(&mut self, session: &Session) -> Result<(), String> {
        self.rows(session)?;
        let Some(trees) = session.indexes.filter(|_| session.live.indexed) else {
            return Ok(());
        };
        let kept = usize::from(session.generator.params().indexes);
        for (index, (tree, sum)) in trees.into_iter().zip(self.sums).take(kept).enumerate() {
            self.index(session, index, tree, sum)?;
        }
        Ok(())
    }

    fn rows(&mut self, session: &Session) -> Result<(), String> {
        let snapshot = session.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(session.rows, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let mut row = Row::default();
        let live = session.live;
        while cursor.advance().map_err(text)? {
            let expected = live.low + self.found;
            self.found += 1;
            session.generator.row(expected, &mut row);
            if cursor.key() != row.key {
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
        session: &Session,
        index: usize,
        tree: TreeId,
        expected: u64,
    ) -> Result<(), String> {
        let snapshot = session.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(tree, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let (mut count, mut sum) = (0u64, 0u64);
        while cursor.advance().map_err(text)? {
            count += 1;
            sum = sum.wrapping_add(hash::hash64(cursor.key()));
        }
        let name = index + 1;
        if count != session.live.rows() {
            let rows = session.live.rows();
            self.fault(format!(
                "index {name} has {count} entries, and there should be {rows}"
            ));
        } else if sum != expected {
            self.fault(format!("index {name} has wrong keys (the digest differs)"));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use kv::{Batch, Durability};

    use super::*;
    use crate::record::LoadKind;
    use crate::worker::protocol::{Open, Step};
    use crate::worker::step;
    use crate::workload::iibench::{Payload, RowParams, Shape, Work};

    /// A store with 500 rows.
    pub(in crate::worker) fn loaded(dir: &Path) -> Session {
        let mut session = Session::open(&Open {
            engine: "memory".to_owned(),
            directory: dir.to_owned(),
            options: kv::EngineOptions::default(),
            durability: Durability::None,
            rows: RowParams {
                seed: 3,
                shape: Shape::Classic,
                payload: Payload::CLASSIC,
                indexes: 3,
            },
        })
        .unwrap();
        let plan = Step {
            work: Work::Load {
                batch: 100,
                indexes: true,
                deletes: false,
                interval_rows: 100,
                queries: None,
            },
            operations: 500,
            seconds_max: 1e6,
            load: LoadKind::Closed,
            clients: 1,
            acknowledged: None,
        };
        let finished = step::run(&mut session, &plan, &|_| ()).unwrap();
        assert_eq!((finished.rows, finished.logical_bytes), (500, 500 * 236));
        session
    }

    /// What is said after one entry was changed behind the workload's back.
    fn faults(corrupt: impl FnOnce(&Session, &Row, &mut Batch)) -> String {
        let dir = tempfile::tempdir().unwrap();
        let session = loaded(dir.path());
        assert_eq!(verify(&session).faults, Vec::<String>::new());
        let mut row = Row::default();
        session.generator.row(123, &mut row);
        let mut batch = Batch::new();
        corrupt(&session, &row, &mut batch);
        session.engine.write(&batch, Durability::None).unwrap();
        verify(&session).faults.join("; ")
    }

    #[test]
    fn every_change_behind_the_workload_is_found() {
        let lost = faults(|s, row, batch| batch.delete(s.rows, &row.key));
        assert!(lost.contains("instead of row 123"), "{lost}");
        let changed = faults(|s, row, batch| batch.put(s.rows, &row.key, b"other"));
        assert!(changed.contains("row 123 has a wrong value"), "{changed}");
        let more = faults(|s, _, batch| batch.put(s.rows, &[0xFF; 8], b""));
        assert!(
            more.contains("501 rows") || more.contains("instead of"),
            "{more}"
        );
        let index = |s: &Session| s.indexes.unwrap()[1];
        let key = |row: &Row| row.index_keys().nth(1).unwrap().to_vec();
        let short = faults(|s, row, batch| batch.delete(index(s), &key(row)));
        assert!(short.contains("index 2 has 499 entries"), "{short}");
        let swapped = faults(|s, row, batch| {
            batch.delete(index(s), &key(row));
            batch.put(index(s), b"planted", b"");
        });
        assert!(swapped.contains("index 2 has wrong keys"), "{swapped}");
    }
}

//! A store modified without the workload's knowledge, and operations on it.

use std::cell::RefCell;
use std::path::Path;

use kv::{Batch, Durability, EngineOptions};

use super::verify::verify;
use super::{Embedded, open};
use crate::protocol::{self, Open};
use crate::targets::database::{Database, Live, Meter};
use crate::workload::iibench::{Payload, Row, RowParams, Shape};

const LIVE: Live = Live {
    low: 0,
    high: 500,
    indexed: true,
};

/// Records the reports it receives.
#[derive(Default)]
struct Told {
    wrong: RefCell<Vec<String>>,
    entries: RefCell<Vec<u64>>,
}

impl Meter for Told {
    fn stopped(&self) -> bool {
        false
    }
    fn generate(&self, make: &mut dyn FnMut()) {
        make();
    }
    fn begin(&self) {}
    fn end(&self) {}
    fn wrote(&self, _rows: u64, _bytes: u64) {}
    fn met(&self, entries: u64) {
        self.entries.borrow_mut().push(entries);
    }
    fn wrong(&self, message: String) {
        self.wrong.borrow_mut().push(message);
    }
}

/// A store with 500 rows.
fn loaded(dir: &Path) -> Embedded {
    let database = open(&Open {
        found: false,
        uri: None,
        engine: "memory".to_owned(),
        directory: dir.to_owned(),
        options: EngineOptions::default(),
        durability: Durability::None,
        rows: RowParams {
            seed: 3,
            shape: Shape::Classic,
            payload: Payload::CLASSIC,
            indexes: 3,
        },
        program: None,
        there: 0,
        clients: 1,
        keep: false,
    })
    .unwrap();
    database.create_indexes().unwrap();
    let mut client = database.connect().unwrap();
    client.fill(0..500, true);
    assert_eq!(client.insert().unwrap(), 500 * 236);
    drop(client);
    database
}

/// The faults found after one entry was changed without the workload's knowledge.
fn faults(corrupt: impl FnOnce(&Embedded, &Row, &mut Batch)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let database = loaded(dir.path());
    assert_eq!(verify(&database, LIVE).faults, Vec::<String>::new());
    let mut row = Row::default();
    database.generator.row(123, &mut row);
    let mut batch = Batch::new();
    corrupt(&database, &row, &mut batch);
    database.engine.write(&batch, Durability::None).unwrap();
    verify(&database, LIVE).faults.join("; ")
}

#[test]
fn every_change_behind_the_workload_is_found() {
    let lost = faults(|d, row, batch| batch.delete(d.rows, &row.key));
    assert!(lost.contains("instead of row 123"), "{lost}");
    let changed = faults(|d, row, batch| batch.put(d.rows, &row.key, b"other"));
    assert!(changed.contains("row 123 has a wrong value"), "{changed}");
    let more = faults(|d, _, batch| batch.put(d.rows, &[0xFF; 8], b""));
    assert!(
        more.contains("501 rows") || more.contains("instead of"),
        "{more}"
    );
    let index = |d: &Embedded| d.indexes().unwrap()[1];
    let key = |row: &Row| row.index_keys().nth(1).unwrap().to_vec();
    let short = faults(|d, row, batch| batch.delete(index(d), &key(row)));
    assert!(short.contains("index 2 has 499 entries"), "{short}");
    let swapped = faults(|d, row, batch| {
        batch.delete(index(d), &key(row));
        batch.put(index(d), b"planted", b"");
    });
    assert!(swapped.contains("index 2 has wrong keys"), "{swapped}");
}

#[test]
fn a_scan_reads_all_four_trees_piece_by_piece() {
    let dir = tempfile::tempdir().unwrap();
    let database = loaded(dir.path());
    let told = Told::default();
    let mut client = database.connect().unwrap();
    for part in 0..4 {
        assert_eq!(client.scan(part, 300, &told).unwrap(), 500);
    }
    assert_eq!(told.entries.take(), [300, 200].repeat(4));
    assert!(client.scan(4, 300, &told).is_err());
}

#[test]
fn a_missing_or_changed_row_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let database = loaded(dir.path());
    let told = Told::default();
    let mut client = database.connect().unwrap();
    assert!(client.point(7, &told).unwrap());
    assert_eq!(client.range(2, 99, 7, 10, &told).unwrap(), 10);
    assert_eq!(told.wrong.take(), Vec::<String>::new());

    let mut batch = Batch::new();
    batch.delete(database.rows, &7u64.to_be_bytes());
    batch.put(database.rows, &8u64.to_be_bytes(), b"other");
    database.engine.write(&batch, Durability::None).unwrap();
    assert!(!client.point(7, &told).unwrap());
    assert!(client.point(8, &told).unwrap());
    client.delete(0..10, true, &told).unwrap();
    let wrong = told.wrong.take().join("; ");
    for part in [
        "row 8 has a wrong value",
        "row 7 was to be deleted",
        "9 of 10",
    ] {
        assert!(wrong.contains(part), "{wrong}");
    }
}

#[test]
fn an_audit_finds_lost_rows_torn_commits_and_rows_nobody_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let mut database = loaded(dir.path());
    let all: Vec<u64> = (0..500).collect();
    let told = |rows, due| [protocol::Told::of(rows, due)];
    let whole = database.audit(&told(&all, 500)).unwrap();
    assert_eq!((whole.found, whole.lost, whole.unacknowledged), (500, 0, 0));
    assert_eq!(whole.faults, Vec::<String>::new());
    let fewer = database.audit(&told(&all[..498], 498)).unwrap();
    assert_eq!(fewer.unacknowledged, 2);
    assert!(fewer.faults[0].contains("no more than one"), "{fewer:?}");

    let mut row = Row::default();
    database.generator.row(499, &mut row);
    let mut batch = Batch::new();
    batch.delete(database.rows, &row.key);
    database.engine.write(&batch, Durability::None).unwrap();
    let torn = database.audit(&told(&all, 500)).unwrap();
    assert_eq!((torn.found, torn.lost, torn.gaps), (499, 1, 0));
    assert!(
        torn.faults[0].contains("index 1 has 500 entries"),
        "{torn:?}"
    );
}

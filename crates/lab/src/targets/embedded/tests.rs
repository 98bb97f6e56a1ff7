//! Tests of a store that is modified without the workload's knowledge, and of operations on it.

use std::cell::RefCell;
use std::path::Path;

use kv::{Batch, Durability, EngineOptions};

use super::{Embedded, open};
use crate::protocol::{Acknowledged, Open};
use crate::targets::check;
use crate::targets::database::{Database, Deleted, Live, Meter, Part, Ranged};
use crate::workload::iibench::{Payload, Row, RowParams, Shape};

const LIVE: Live = Live {
    low: 0,
    high: 500,
    indexed: true,
};

/// Records the entries that a scan reports.
#[derive(Default)]
struct Entries(RefCell<Vec<u64>>);

impl Meter for Entries {
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
        self.0.borrow_mut().push(entries);
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
        rows_present: 0,
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

fn verify(database: &Embedded) -> Vec<String> {
    check::verify(database, &database.generator, LIVE).faults
}

/// The faults found after one entry was changed without the workload's knowledge.
fn faults(corrupt: impl FnOnce(&Embedded, &Row, &mut Batch)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let database = loaded(dir.path());
    assert_eq!(verify(&database), Vec::<String>::new());
    let mut row = Row::default();
    database.generator.row(123, &mut row);
    let mut batch = Batch::new();
    corrupt(&database, &row, &mut batch);
    database.engine.write(&batch, Durability::None).unwrap();
    verify(&database).join("; ")
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
    let entries = Entries::default();
    let mut client = database.connect().unwrap();
    let indexes = (0..3).map(Part::Index);
    for part in [Part::Rows].into_iter().chain(indexes) {
        assert_eq!(client.scan(part, 300, &entries).unwrap(), 500);
    }
    assert_eq!(entries.0.take(), [300, 200].repeat(4));
    assert!(client.scan(Part::Index(3), 300, &entries).is_err());
}

#[test]
fn a_missing_or_changed_row_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let database = loaded(dir.path());
    let mut client = database.connect().unwrap();
    assert!(client.get(7).unwrap() && client.matches(7));
    assert!(!client.matches(8));
    let ten = Ranged {
        entries: 10,
        in_order: true,
    };
    assert_eq!(client.range(2, 99, 7, 10).unwrap(), ten);

    let mut batch = Batch::new();
    batch.delete(database.rows, &7u64.to_be_bytes());
    batch.put(database.rows, &8u64.to_be_bytes(), b"other");
    database.engine.write(&batch, Durability::None).unwrap();
    assert!(!client.get(7).unwrap());
    assert!(client.get(8).unwrap() && !client.matches(8));
    let Deleted { found, bytes } = client.delete(0..10, true).unwrap();
    // The keys of ten rows and of their index entries.
    assert_eq!((found, bytes), (9, 10 * (8 + 20 + 24 + 28)));
}

#[test]
fn connections_do_not_share_the_rows_they_are_about_to_insert() {
    let dir = tempfile::tempdir().unwrap();
    let database = loaded(dir.path());
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    one.fill(500..510, true);
    other.fill(510..530, true);
    assert_eq!(one.insert().unwrap(), 10 * 236, "D1: its own rows");
    assert_eq!(other.insert().unwrap(), 20 * 236, "D1: its own rows");
    assert!(one.get(3).unwrap() && other.get(4).unwrap());
    assert!(one.matches(3) && other.matches(4), "D1: its own buffer");
    let live = Live { high: 530, ..LIVE };
    let checked = check::verify(&database, &database.generator, live);
    assert_eq!(checked.faults, Vec::<String>::new());
}

#[test]
fn an_audit_finds_lost_rows_torn_commits_and_rows_no_client_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let database = loaded(dir.path());
    let all: Vec<u64> = (0..500).collect();
    let audit = |rows: &[u64]| {
        let clients = [Acknowledged::of(rows, rows.len())];
        check::audit(&database, &database.generator, &clients).unwrap()
    };
    let whole = audit(&all);
    assert_eq!((whole.found, whole.lost, whole.unacknowledged), (500, 0, 0));
    assert_eq!(whole.faults, Vec::<String>::new());
    let fewer = audit(&all[..498]);
    assert_eq!(fewer.unacknowledged, 2);
    assert!(fewer.faults[0].contains("no more than one"), "{fewer:?}");

    let mut row = Row::default();
    database.generator.row(499, &mut row);
    let mut batch = Batch::new();
    batch.delete(database.rows, &row.key);
    database.engine.write(&batch, Durability::None).unwrap();
    let torn = audit(&all);
    assert_eq!((torn.found, torn.lost, torn.gaps), (499, 1, 0));
    // K1: the entries without their row are found.
    assert!(
        torn.faults[0].contains("index 1 has 500 entries"),
        "{torn:?}"
    );
}

#[test]
fn a_full_disk_is_an_error_of_the_machine_and_other_errors_are_the_engines() {
    use lab_report::ErrorKind;

    let kind = |of: kv::ErrorKind| super::text(kv::Error::new(of, "no")).kind();
    assert_eq!(kind(kv::ErrorKind::Full), ErrorKind::Environment);
    assert_eq!(kind(kv::ErrorKind::Io), ErrorKind::Environment);
    assert_eq!(kind(kv::ErrorKind::Corrupt), ErrorKind::Target);
}

//! YCSB's core workloads (Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC
//! 2010): one table of records with a text key and ten fields, and operations on single records and
//! short ranges. [`Core`] has the mixes.
//!
//! Keys and values are those of the original in form: `user` and a scattered 64-bit number in
//! decimal, and printable characters with 6 random bits each. Differences:
//!
//! - Popular records are scattered over the keys by a permutation. The original takes a hash modulo
//!   the number of records, so that some records are as popular as several ranks together, and
//!   others are never requested.
//! - A step requests the records that exist when it begins; what it inserts itself is requested by
//!   the distribution `latest` only. The original reserves room for the expected inserts.
//! - The original's driver deletes and reloads the records before workload E. Here E follows D,
//!   with the records that D has added.
//! - A value holds the version with which it was written, so that every value can be checked.

mod numbers;
mod requests;
mod values;

use lab_report::record::Task;
use lab_report::record::ycsb::{Core, KINDS, Requests};
use serde::{Deserialize, Serialize};

use self::numbers::Numbers;
use super::program::{Checked, Client, ClientSlot, Done, Program};
use super::table::{Column, Row, Table, Value, at};
use crate::workload::scatter;
use crate::workload::tables::{Answer, Range, TableClient};

/// Number of fields of a record.
const FIELDS: usize = 10;

/// Names of the fields.
const NAMES: [&str; FIELDS] = [
    "field0", "field1", "field2", "field3", "field4", "field5", "field6", "field7", "field8",
    "field9",
];

/// Maximum length of a key: `user` and 20 digits.
const KEY_MAX: u32 = 24;

/// Number of records in one insert of the load.
const CHUNK: u64 = 500;

/// Maximum bytes of one insert of the load.
const CHUNK_BYTES: u64 = 1 << 20;

/// Parameters of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// The seed.
    pub seed: u64,
    /// Number of records loaded.
    pub records: u64,
    /// Bytes of each of the ten fields, at least 8.
    pub field_bytes: u32,
    /// Which records are requested.
    pub requests: Requests,
}

impl Params {
    /// Bytes of all loaded records.
    #[must_use]
    pub fn data_bytes(self) -> u64 {
        self.records * self.record_bytes()
    }

    fn record_bytes(self) -> u64 {
        u64::from(KEY_MAX) + FIELDS as u64 * u64::from(self.field_bytes)
    }

    /// Number of records in one insert of the load.
    fn chunk(self) -> u64 {
        (CHUNK_BYTES / self.record_bytes()).clamp(1, CHUNK)
    }
}

/// The workload.
#[derive(Debug)]
pub struct Ycsb {
    params: Params,
    numbers: Numbers,
}

impl Ycsb {
    /// The workload with these parameters.
    #[must_use]
    pub fn new(params: Params) -> Ycsb {
        Ycsb {
            params,
            numbers: Numbers::default(),
        }
    }

    /// The key of record `number`.
    fn key(&self, number: u64) -> String {
        format!("user{}", scatter::key(number, self.params.seed))
    }

    /// Record `number`, each field with this version.
    fn record(&self, number: u64, version: u32) -> Row {
        let key = self.key(number);
        let mut row = Vec::with_capacity(1 + FIELDS);
        for field in 0..FIELDS {
            row.push(self.value(&key, field, version));
        }
        row.insert(0, Value::Text(key));
        row
    }

    fn value(&self, key: &str, field: usize, version: u32) -> Value {
        let (seed, bytes) = (self.params.seed, self.params.field_bytes);
        Value::Bytes(values::value(seed, key, field, version, bytes))
    }

    /// Whether field `field` of a record has a value that was written to it.
    fn holds(&self, row: &[Value], field: usize) -> bool {
        let (Value::Text(key), Value::Bytes(value)) = (at(row, 0), at(row, 1 + field)) else {
            return false;
        };
        let version = values::version(value);
        version.is_some_and(|version| self.value(key, field, version) == *at(row, 1 + field))
    }

    /// The number of the record with this key; `None` if it is no key.
    fn number(&self, key: &str) -> Option<u64> {
        let digits = key.strip_prefix("user")?;
        Some(scatter::id(digits.parse().ok()?, self.params.seed))
    }
}

impl Program for Ycsb {
    fn tables(&self, _task: Task) -> Vec<Table> {
        let mut columns = vec![Column::text("ycsb_key", KEY_MAX)];
        columns.extend(NAMES.map(|name| Column::bytes(name, self.params.field_bytes)));
        vec![Table::new("usertable", &columns, 1)]
    }

    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn client<'a>(&'a self, task: Task, slot: ClientSlot<'a>) -> Box<dyn Client + 'a> {
        match task {
            Task::Fill { .. } | Task::Scan { .. } => Box::new(Loader {
                program: self,
                slot,
                rows: Vec::new(),
            }),
            Task::Mix { mix } => {
                let core = Core::ALL.get(usize::from(mix)).copied().unwrap_or(Core::A);
                Box::new(requests::Requester::new(self, slot, core))
            }
        }
    }

    fn check(&self, _task: Task, client: &mut dyn TableClient) -> Answer<Checked> {
        let mut checked = Checked::default();
        let mut highest = None;
        let mut wrong = None;
        let rows = client.range(&Range::by_key(0, &[]), &mut |row| {
            let key = at(row, 0).text();
            let number = self.number(key);
            highest = highest.max(number);
            let right = number.is_some() && (0..FIELDS).all(|field| self.holds(row, field));
            if !right {
                wrong = Some(format!("record {key:?} has a value that was not written"));
            }
            right
        })?;
        checked.rows = rows;
        // Keys are unique, so as many numbers from 0 on are there as rows.
        let most = rows + self.numbers.missing();
        if wrong.is_none() && highest.is_some_and(|highest| most <= highest) {
            wrong = Some(format!(
                "{rows} records, one of which has the number {highest:?}"
            ));
        }
        if let Some(message) = wrong {
            checked.fault(message);
        }
        Ok(checked)
    }
}

struct Loader<'a> {
    program: &'a Ycsb,
    slot: ClientSlot<'a>,
    rows: Vec<Row>,
}

impl Client for Loader<'_> {
    fn next(&mut self) -> Option<usize> {
        let params = self.program.params;
        let chunk = params.chunk();
        let from = self.slot.take(params.records.div_ceil(chunk))? * chunk;
        let numbers = from..params.records.min(from + chunk);
        self.rows = numbers.map(|n| self.program.record(n, 0)).collect();
        KINDS.iter().position(|kind| *kind == "insert")
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        client.insert(0, &self.rows)?;
        Ok(Done::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn program(requests: Requests) -> Ycsb {
        Ycsb::new(Params {
            seed: 42,
            records: 1000,
            field_bytes: 100,
            requests,
        })
    }

    #[test]
    fn a_record_has_the_form_of_the_original_and_its_key_leads_back_to_it() {
        let program = program(Requests::Zipfian);
        let row = program.record(7, 3);
        assert_eq!(row.len(), 11);
        assert!(row[1..].iter().all(|field| field.len() == 100));
        assert_eq!(program.number(row[0].text()), Some(7));
        assert_eq!(program.number("userx"), None);
        let table = &program.tables(Task::MIX)[0];
        assert_eq!((table.columns.len(), table.key.as_slice()), (11, &[0][..]));
    }

    #[test]
    fn what_was_not_written_is_found() {
        let program = program(Requests::Zipfian);
        let mut row = program.record(7, 3);
        assert!((0..FIELDS).all(|field| program.holds(&row, field)));
        row.swap(1, 2);
        assert!(!program.holds(&row, 0) && !program.holds(&row, 1));
        row[5] = program.record(8, 3)[5].clone();
        assert!(!program.holds(&row, 4), "a value of another record");
        row[6] = Value::Bytes(vec![b'x'; 100]);
        assert!(!program.holds(&row, 5));
        row[7] = Value::Bytes(b"0000".to_vec());
        assert!(!program.holds(&row, 6), "too short");
    }

    #[test]
    fn a_load_inserts_at_most_a_mebibyte_at_once() {
        let chunk = |field_bytes| {
            let params = Params {
                field_bytes,
                ..program(Requests::Uniform).params
            };
            params.chunk()
        };
        assert_eq!((chunk(10), chunk(100), chunk(10_000)), (500, 500, 10));
        assert_eq!(chunk(1 << 20), 1);
    }
}

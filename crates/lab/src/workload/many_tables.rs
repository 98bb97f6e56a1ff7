//! Inserts rows of a thousand bytes, each into a random one of many growing tables, then scans all
//! tables (the experiment of 2008 with 1 to 10 000 tables).
//!
//! The table and the contents of row `i` are a pure function of the seed and `i`, so a check can
//! generate again every row that it reads.

use lab_report::record::Task;
use serde::{Deserialize, Serialize};
use stdx::rng::mix64;

use super::program::{Checked, Client, ClientSlot, Done, Program};
use super::table::{Column, Row, Table, Value, at};
use crate::workload::tables::{Answer, Range, TableClient};

/// Number of entries that count as one query of a scan.
const PIECE: u64 = 1000;

/// Columns of digits in a row, with their lengths: with the other columns a row has a thousand
/// bytes.
const TEXTS: [(&str, u32); 4] = [("c1", 250), ("c2", 250), ("c3", 250), ("pad", 222)];

/// Parameters of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// The seed.
    pub seed: u64,
    /// Number of rows in all tables together.
    pub rows: u64,
}

impl Params {
    /// Logical bytes of all rows.
    #[must_use]
    pub fn data_bytes(self) -> u64 {
        self.rows * 996
    }
}

/// The workload.
#[derive(Debug)]
pub struct ManyTables {
    params: Params,
}

impl ManyTables {
    /// The workload with these parameters.
    #[must_use]
    pub fn new(params: Params) -> ManyTables {
        ManyTables { params }
    }

    /// The table, of `tables` tables, that row `id` belongs to.
    #[must_use]
    pub fn table_of(&self, id: u64, tables: u64) -> u64 {
        mix64(self.params.seed ^ mix64(id)) % tables.max(1)
    }

    /// Row `id`. Half of each text is one repeated digit, the rest random digits, so that a row
    /// compresses to about a third.
    #[must_use]
    pub fn row(&self, id: u64) -> Row {
        let mut state = mix64(self.params.seed.rotate_left(17) ^ id);
        let mut next = || {
            state = mix64(state.wrapping_add(0x9E37_79B9_7F4A_7C15));
            state
        };
        let mut row = vec![Value::Int(id.cast_signed())];
        row.extend((0..2).map(|_| Value::Int((next() >> 24).cast_signed())));
        for (_, width) in TEXTS {
            let mut text = String::with_capacity(width as usize);
            let mut digits = 0;
            while text.len() < width as usize {
                if digits == 0 {
                    digits = next();
                }
                let digit = if text.len() < width as usize / 2 {
                    7
                } else {
                    digits % 10
                };
                digits /= 10;
                text.push(char::from(b'0' + u8::try_from(digit).expect("below 10")));
            }
            row.push(Value::Text(text));
        }
        row
    }
}

impl Program for ManyTables {
    fn tables(&self, task: Task) -> Vec<Table> {
        let mut columns = vec![Column::int("id"), Column::int("a"), Column::int("b")];
        columns.extend(TEXTS.map(|(name, width)| Column::text(name, width)));
        let names = (0..task.tables().max(1)).map(|n| format!("t{n:05}"));
        names.map(|name| Table::new(&name, &columns, 1)).collect()
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["insert", "scan"]
    }

    fn partial(&self) -> bool {
        true
    }

    fn client<'a>(&'a self, task: Task, slot: ClientSlot<'a>) -> Box<dyn Client + 'a> {
        match task {
            Task::Scan { tables } => Box::new(Scanner {
                slot,
                tables,
                program: self,
                at: None,
            }),
            Task::Fill { .. } | Task::Mix { .. } => Box::new(Inserter {
                slot,
                tables: task.tables(),
                program: self,
                row: Vec::new(),
            }),
        }
    }

    fn check(&self, task: Task, client: &mut dyn TableClient) -> Answer<Checked> {
        let mut checked = Checked::default();
        for table in 0..task.tables() {
            let mut wrong = None;
            let position = usize::try_from(table).unwrap_or(usize::MAX);
            checked.rows += client.range(&Range::by_key(position, &[]), &mut |row| {
                let id = at(row, 0).int().cast_unsigned();
                if self.table_of(id, task.tables()) != table || self.row(id) != row {
                    wrong = Some(format!(
                        "row {id} of table {table} is not what was inserted"
                    ));
                }
                wrong.is_none()
            })?;
            if let Some(message) = wrong {
                checked.fault(message);
            }
        }
        Ok(checked)
    }
}

/// Inserts rows one by one, each in a transaction of its own.
struct Inserter<'a> {
    slot: ClientSlot<'a>,
    tables: u64,
    program: &'a ManyTables,
    row: Row,
}

impl Client for Inserter<'_> {
    fn next(&mut self) -> Option<usize> {
        let id = self.slot.take(self.program.params.rows)?;
        self.row = self.program.row(id);
        Some(0)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let id = at(&self.row, 0).int().cast_unsigned();
        let table = self.program.table_of(id, self.tables);
        let table = usize::try_from(table).unwrap_or(usize::MAX);
        client.insert(table, std::slice::from_ref(&self.row))?;
        Ok(Done::default())
    }
}

/// Scans one table after the other.
struct Scanner<'a> {
    slot: ClientSlot<'a>,
    tables: u64,
    program: &'a ManyTables,
    /// The current table, and the number after that of the last row read.
    at: Option<(u64, u64)>,
}

impl Client for Scanner<'_> {
    fn next(&mut self) -> Option<usize> {
        if self.at.is_none() {
            self.at = Some((self.slot.take(self.tables)?, 0));
        }
        Some(1)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let Some((table, from)) = self.at else {
            return Ok(Done::default());
        };
        let (low, high) = (Value::Int(from.cast_signed()), Value::Int(i64::MAX));
        let position = usize::try_from(table).unwrap_or(usize::MAX);
        let range = Range::by_key(position, &[])
            .between(&low, &high)
            .limit(PIECE);
        let (mut next, mut wrong) = (from, None);
        let entries = client.range(&range, &mut |row| {
            let id = at(row, 0).int().cast_unsigned();
            if id < next || self.program.table_of(id, self.tables) != table {
                wrong = Some(format!("a scan of table {table} met row {id}"));
            }
            next = id + 1;
            true
        })?;
        self.at = (entries == PIECE).then_some((table, next));
        Ok(Done {
            entries,
            wrong,
            ..Done::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::table::row_bytes;

    #[test]
    fn rows_have_their_size_and_spread_evenly() {
        let program = ManyTables::new(Params {
            seed: 42,
            rows: 1000,
        });
        let row = program.row(17);
        assert_eq!(row, program.row(17));
        assert_ne!(row, program.row(18));
        assert_eq!(row_bytes(&row), 996);
        let mut counts = [0u32; 10];
        for id in 0..10_000 {
            counts[usize::try_from(program.table_of(id, 10)).unwrap_or(0)] += 1;
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
        assert_eq!(program.tables(Task::Fill { tables: 10 }).len(), 10);
    }
}

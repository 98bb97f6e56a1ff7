//! The read-only transactions of sysbench (`oltp_read_only`): each reads ten rows by primary key
//! and four ranges of a hundred rows, at uniformly random places of one of several equal tables.
//!
//! In sysbench the server sums, sorts and deduplicates three of the four ranges; here the client
//! gets all rows and does this itself, so that every target does the same work.

use lab_report::record::Task;
use serde::{Deserialize, Serialize};
use stdx::Rng;
use stdx::rng::mix64;

use super::program::{Checked, Client, ClientSlot, Done, Program};
use super::table::{Column, Row, Table, Value, at};
use crate::workload::tables::{Answer, Lock, Mode, Range, TableClient};

/// Number of rows in one insert of the load.
const CHUNK: u64 = 500;

/// Number of point reads and of range reads in a transaction, and number of rows in a range.
const POINTS: usize = 10;
const RANGES: usize = 4;
const RANGE_ROWS: u64 = 100;

/// Parameters of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// The seed.
    pub seed: u64,
    /// Number of tables.
    pub tables: u64,
    /// Number of rows in each table.
    pub rows: u64,
}

impl Params {
    /// Logical bytes of all rows with their index entries.
    #[must_use]
    pub fn data_bytes(self) -> u64 {
        self.tables * self.rows * (8 + 8 + 119 + 59 + 16)
    }
}

/// The workload.
#[derive(Debug)]
pub struct Oltp {
    params: Params,
}

impl Oltp {
    /// The workload with these parameters.
    #[must_use]
    pub fn new(params: Params) -> Oltp {
        Oltp { params }
    }

    fn k(&self, table: u64, id: u64) -> Value {
        let k = mix64(self.params.seed ^ mix64(table << 48 ^ id)) % self.params.rows + 1;
        Value::Int(k.cast_signed())
    }

    /// Row `id`, from 1, of table `table`.
    #[must_use]
    pub fn row(&self, table: u64, id: u64) -> Row {
        let mut rng = Rng::new(self.params.seed ^ mix64(id << 8 ^ table));
        let mut digits = |groups: usize| {
            let groups: Vec<String> = (0..groups)
                .map(|_| format!("{:011}", rng.below(100_000_000_000)))
                .collect();
            Value::Text(groups.join("-"))
        };
        let (c, pad) = (digits(10), digits(5));
        vec![Value::Int(id.cast_signed()), self.k(table, id), c, pad]
    }
}

impl Program for Oltp {
    fn tables(&self, _task: Task) -> Vec<Table> {
        let columns = [
            Column::int("id"),
            Column::int("k"),
            Column::text("c", 120),
            Column::text("pad", 60),
        ];
        let names = (1..=self.params.tables).map(|n| format!("sbtest{n}"));
        let table = |name: String| Table::new(&name, &columns, 1).index("k", &[1], &[]);
        names.map(table).collect()
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["transaction"]
    }

    fn client<'a>(&'a self, task: Task, slot: ClientSlot<'a>) -> Box<dyn Client + 'a> {
        match task {
            Task::Fill { .. } | Task::Scan { .. } => Box::new(Loader {
                program: self,
                slot,
                table: 0,
                rows: Vec::new(),
            }),
            Task::Mix { .. } => Box::new(Reader {
                program: self,
                rng: Rng::new(slot.seed(self.params.seed)),
                table: 0,
                points: [0; POINTS],
                ranges: [0; RANGES],
                row: Vec::new(),
            }),
        }
    }

    fn check(&self, task: Task, client: &mut dyn TableClient) -> Answer<Checked> {
        let mut checked = Checked::default();
        // The transactions change nothing. So after the load every row is generated again and
        // compared; later checks only count rows.
        let whole = matches!(task, Task::Fill { .. });
        for table in 0..self.params.tables {
            let position = usize::try_from(table).unwrap_or(usize::MAX);
            let mut wrong = None;
            let rows = client.range(&Range::by_key(position, &[]), &mut |row| {
                let id = at(row, 0).int().cast_unsigned();
                if whole && self.row(table, id) != row {
                    wrong = Some(format!(
                        "row {id} of table {table} is not what was inserted"
                    ));
                }
                wrong.is_none()
            })?;
            checked.rows += rows;
            let mut entries = 0;
            if wrong.is_none() {
                let all = Range::by_index(position, 0, &[]).covered();
                entries = client.range(&all, &mut |_| true)?;
            }
            if wrong.is_none() && entries != rows {
                wrong = Some(format!(
                    "table {table}: {rows} rows, {entries} index entries"
                ));
            }
            if let Some(message) = wrong {
                checked.fault(message);
            }
        }
        Ok(checked)
    }
}

struct Loader<'a> {
    program: &'a Oltp,
    slot: ClientSlot<'a>,
    table: u64,
    rows: Vec<Row>,
}

impl Client for Loader<'_> {
    fn next(&mut self) -> Option<usize> {
        let Params { tables, rows, .. } = self.program.params;
        let chunks = rows.div_ceil(CHUNK);
        let unit = self.slot.take(chunks * tables)?;
        self.table = unit / chunks;
        let from = unit % chunks * CHUNK;
        let ids = from + 1..rows.min(from + CHUNK) + 1;
        self.rows = ids.map(|id| self.program.row(self.table, id)).collect();
        Some(0)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let table = usize::try_from(self.table).unwrap_or(usize::MAX);
        client.insert(table, &self.rows)?;
        Ok(Done::default())
    }
}

struct Reader<'a> {
    program: &'a Oltp,
    rng: Rng,
    table: u64,
    points: [u64; POINTS],
    ranges: [u64; RANGES],
    row: Row,
}

impl Client for Reader<'_> {
    fn next(&mut self) -> Option<usize> {
        let Params { tables, rows, .. } = self.program.params;
        self.table = self.rng.below(tables.max(1));
        for id in self.points.iter_mut().chain(&mut self.ranges) {
            *id = self.rng.below(rows.max(1)) + 1;
        }
        Some(0)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let table = usize::try_from(self.table).unwrap_or(usize::MAX);
        let mut done = Done::default();
        client.begin(Mode::Read)?;
        for id in self.points {
            let key = [Value::Int(id.cast_signed())];
            let found = client.get(table, &key, Lock::None, &mut self.row)?;
            if !found || *at(&self.row, 1) != self.program.k(self.table, id) {
                done.wrong = Some(format!("row {id} of table {table} is missing or wrong"));
            }
            done.entries += 1;
        }
        for (which, from) in self.ranges.into_iter().enumerate() {
            let last = (from + RANGE_ROWS - 1).min(self.program.params.rows);
            let bounds = [from, last].map(|id| Value::Int(id.cast_signed()));
            let [low, high] = &bounds;
            let (mut sum, mut texts) = (0i64, Vec::new());
            let met = client.range(&Range::by_key(table, &[]).between(low, high), &mut |row| {
                match which {
                    0 => sum = sum.wrapping_add(at(row, 2).len().cast_signed() as i64),
                    1 => sum = sum.wrapping_add(at(row, 1).int()),
                    _ => texts.push(at(row, 2).text().to_owned()),
                }
                true
            })?;
            match which {
                2 => texts.sort_unstable(),
                3 => {
                    texts.sort_unstable();
                    texts.dedup();
                }
                _ => {}
            }
            std::hint::black_box((sum, texts));
            done.entries += met;
            if met != last - from + 1 {
                done.wrong = Some(format!("a range from row {from} met {met} rows"));
            }
        }
        client.commit()?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_look_as_those_of_sysbench() {
        let params = Params {
            seed: 42,
            tables: 2,
            rows: 1000,
        };
        let program = Oltp::new(params);
        let row = program.row(0, 7);
        assert_eq!((row[2].len(), row[3].len()), (119, 59));
        assert_eq!(row, program.row(0, 7));
        assert_ne!(row, program.row(1, 7));
        assert!((1..=1000).contains(&row[1].int()));
        assert_eq!(program.tables(Task::MIX).len(), 2);
    }
}

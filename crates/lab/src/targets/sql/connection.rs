//! One client's operations on the benchmark's table.

use std::collections::HashMap;
use std::ops::Range;

use super::database::Server;
use super::sales::number;
use super::value::{self, Value};
use super::wire::Wire;
use crate::targets::database::{Connection, Meter};

/// A client: its connection, and the rows it is about to insert, statement by statement.
pub(super) struct Link<'a> {
    server: &'a Server,
    wire: Box<dyn Wire>,
    batch: Vec<(usize, Vec<Value>)>,
    bytes: u64,
    inserts: HashMap<usize, String>,
    text: String,
}

impl<'a> Link<'a> {
    pub(super) fn new(server: &'a Server) -> Result<Link<'a>, String> {
        Ok(Link {
            server,
            wire: server.connection()?,
            batch: Vec::new(),
            bytes: 0,
            inserts: HashMap::new(),
            text: String::new(),
        })
    }

    fn statements(&mut self) -> Result<(), String> {
        let sales = &self.server.sales;
        for (rows, values) in self.batch.drain(..) {
            let text = self
                .inserts
                .entry(rows)
                .or_insert_with(|| sales.insert(rows));
            self.wire.execute(text, values)?;
        }
        Ok(())
    }
}

impl Connection for Link<'_> {
    fn fill(&mut self, rows: Range<u64>, indexed: bool) {
        let sales = &self.server.sales;
        self.batch.clear();
        self.bytes = 0;
        let most = sales.rows_max();
        let entries = if indexed { sales.entry_bytes() } else { 0 };
        for id in rows {
            if self.batch.last().is_none_or(|(rows, _)| *rows == most) {
                self.batch.push((0, Vec::new()));
            }
            if let Some((rows, values)) = self.batch.last_mut() {
                self.bytes += sales.row(id, &mut self.text, values) + entries;
                *rows += 1;
            }
        }
    }

    fn insert(&mut self) -> Result<u64, String> {
        // A single statement is a transaction by itself.
        let several = 1 < self.batch.len();
        if several {
            self.wire.run("BEGIN")?;
        }
        self.statements()?;
        if several {
            self.wire.run("COMMIT")?;
        }
        Ok(self.bytes)
    }

    fn delete(
        &mut self,
        rows: Range<u64>,
        indexed: bool,
        meter: &dyn Meter,
    ) -> Result<u64, String> {
        let sales = &self.server.sales;
        let of = rows.end - rows.start;
        let found = if sales.generator.scattered() {
            let one = sales.delete_one();
            self.wire.run("BEGIN")?;
            let mut found = 0;
            for id in rows {
                found += self.wire.execute(&one, vec![sales.key(id)])?;
            }
            self.wire.run("COMMIT")?;
            found
        } else {
            let bounds = vec![number(rows.start), number(rows.end)];
            self.wire.execute(&sales.delete(), bounds)?
        };
        if found != of {
            meter.wrong(format!("{found} of {of} old rows found"));
        }
        let entries = if indexed { sales.entry_bytes() } else { 0 };
        // A delete sends keys to the server, not rows.
        Ok(of * (8 + entries))
    }

    fn range(
        &mut self,
        index: usize,
        random: u64,
        id: u64,
        limit: usize,
        meter: &dyn Meter,
    ) -> Result<u64, String> {
        let sales = &self.server.sales;
        // Do not query an index that the workload does not create.
        let index = index % sales.indexes().len().max(1);
        let (text, order) = sales.range(index, limit)?;
        let bound = sales.bound(&sales.generator.query_sale(random, id), index)?;
        let values = order.iter().filter_map(|at| bound.get(*at).cloned());
        let mut last: Vec<f64> = bound.iter().map(value::rank).collect();
        let mut met = 0;
        let values = values.collect();
        self.wire.rows(&text, values, &mut |row| {
            let here: Vec<f64> = row.iter().map(value::rank).collect();
            if here < last || here.len() != bound.len() {
                meter.wrong(format!("a range query on index {index} was out of order"));
            }
            last = here;
            met += 1;
            true
        })?;
        Ok(met)
    }

    fn point(&mut self, id: u64, meter: &dyn Meter) -> Result<bool, String> {
        let sales = &self.server.sales;
        let found = self.wire.all(&sales.point(), vec![sales.key(id)])?;
        let Some(found) = found.into_iter().next() else {
            return Ok(false);
        };
        let (text, mut row) = (&mut self.text, Vec::new());
        meter.generate(&mut || {
            sales.row(id, text, &mut row);
        });
        if row != found {
            meter.wrong(format!("row {id} has a wrong value"));
        }
        Ok(true)
    }

    fn scan(&mut self, part: usize, piece: u64, meter: &dyn Meter) -> Result<u64, String> {
        let text = self.server.sales.scan(part)?;
        let cancel = self.wire.cancel();
        let (mut all, mut found, mut bytes) = (0, 0, 0);
        meter.begin();
        let read = self.wire.rows(&text, Vec::new(), &mut |row| {
            bytes += row.iter().map(value::length).sum::<usize>();
            found += 1;
            if found < piece {
                return true;
            }
            meter.end();
            meter.met(found);
            all += found;
            found = 0;
            if meter.stopped() {
                cancel();
                return false;
            }
            meter.begin();
            true
        });
        std::hint::black_box(bytes);
        if meter.stopped() {
            // Cancellation is no failure.
            return Ok(all);
        }
        read?;
        meter.end();
        meter.met(found);
        Ok(all + found)
    }

    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<(), String> {
        let sales = &self.server.sales;
        let last = sales.indexes().len();
        if last <= index {
            return Ok(());
        }
        meter.begin();
        self.server.create_index(index, self.wire.as_mut())?;
        meter.end();
        let count = rows.end - rows.start;
        let sizes = sales.generator.params().shape.key_bytes();
        let each = sizes.get(index).copied().unwrap_or(0);
        let wrote = indexed_rows(index, last, count);
        meter.wrote(wrote, count * each as u64);
        Ok(())
    }
}

/// Number of rows that count as indexed with index `index` of `all`: each index is an equal share
/// of a row, so that a rate is comparable whichever of them is being built.
fn indexed_rows(index: usize, all: usize, rows: u64) -> u64 {
    let share = |indexes: usize| indexes as u64 * rows / all.max(1) as u64;
    share(index + 1) - share(index)
}

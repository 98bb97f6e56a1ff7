//! One client's operations on the benchmark's table.

use std::collections::HashMap;
use std::ops::Range;

use lab_report::error::{Error, Result};

use super::database::Server;
use super::sales::number;
use super::value::{self, Value, whole};
use super::wire::Wire;
use crate::targets::database::{
    Compared, Connection, Counted, Deleted, Meter, Part, Ranged, build_at_once,
};

/// A client: its connection, and the generated rows of the next insert, statement by statement.
pub(super) struct Link<'a> {
    server: &'a Server,
    wire: Box<dyn Wire>,
    batch: Vec<(usize, Vec<Value>)>,
    bytes: u64,
    inserts: HashMap<usize, String>,
    text: String,
    /// The row that [`Connection::get`] returned last.
    got: Vec<Value>,
}

impl<'a> Link<'a> {
    pub(super) fn new(server: &'a Server) -> Result<Link<'a>> {
        Ok(Link {
            server,
            wire: server.connection()?,
            batch: Vec::new(),
            bytes: 0,
            inserts: HashMap::new(),
            text: String::new(),
            got: Vec::new(),
        })
    }

    fn statements(&mut self) -> Result<()> {
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
        let entries = sales.entries(indexed);
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

    fn insert(&mut self) -> Result<u64> {
        // A single statement is a transaction of its own.
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

    fn delete(&mut self, rows: Range<u64>, indexed: bool) -> Result<Deleted> {
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
        let entries = sales.entries(indexed);
        // A delete sends keys to the server, not rows.
        let bytes = of * (8 + entries);
        Ok(Deleted { found, bytes })
    }

    fn range(&mut self, index: usize, random: u64, id: u64, limit: usize) -> Result<Ranged> {
        let sales = &self.server.sales;
        // The workload may create fewer indexes; query only those that exist.
        let index = index % sales.indexes().len().max(1);
        let (text, order) = sales.range(index, limit)?;
        let bound = sales.bound(&sales.generator.query_sale(random, id), index)?;
        let values = order.iter().filter_map(|at| bound.get(*at).cloned());
        let mut last: Vec<f64> = bound.iter().map(value::rank).collect();
        let mut ranged = Ranged {
            entries: 0,
            in_order: true,
        };
        let values = values.collect();
        self.wire.rows(&text, values, &mut |row| {
            let here: Vec<f64> = row.iter().map(value::rank).collect();
            ranged.in_order &= last <= here && here.len() == bound.len();
            last = here;
            ranged.entries += 1;
            true
        })?;
        Ok(ranged)
    }

    fn get(&mut self, id: u64) -> Result<bool> {
        let sales = &self.server.sales;
        let found = self.wire.all(&sales.point(), vec![sales.key(id)])?;
        let found = found.into_iter().next();
        let exists = found.is_some();
        self.got = found.unwrap_or_default();
        Ok(exists)
    }

    fn matches(&mut self, id: u64) -> bool {
        let mut expected = Vec::new();
        self.server.sales.row(id, &mut self.text, &mut expected);
        self.got == expected
    }

    fn rows(&mut self, visit: &mut dyn FnMut(Compared) -> bool) -> Result<()> {
        let (sales, text, mut expected) = (&self.server.sales, &mut self.text, Vec::new());
        self.wire
            .rows(&sales.everything(), Vec::new(), &mut |row| {
                let key = row.first().and_then(whole);
                let id = key.map(|key| sales.generator.id(key.cast_unsigned()));
                let (mut right, mut customer) = (false, 0);
                if let Some(id) = id {
                    expected.clear();
                    sales.row(id, text, &mut expected);
                    right = row == expected;
                    customer = sales.generator.sale(id).customer.into();
                }
                visit(Compared {
                    id,
                    right,
                    digests: [customer; 3],
                })
            })?;
        Ok(())
    }

    /// The digest is the sum of the customers, which every index contains.
    fn count(&mut self, part: Part) -> Result<Counted> {
        let text = self.server.sales.count(part)?;
        let answer = self.wire.all(&text, Vec::new())?;
        let mut values = answer.iter().flatten().map(whole);
        match (values.next().flatten(), values.next().flatten()) {
            (Some(entries), Some(sum)) => Ok(Counted {
                entries: entries.cast_unsigned(),
                digest: sum.cast_unsigned(),
            }),
            _ => Err(Error::target(format!("no numbers in the answer to {text}"))),
        }
    }

    fn scan(&mut self, part: Part, piece: u64, meter: &dyn Meter) -> Result<u64> {
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
            // A cancelled query is not a failure.
            return Ok(all);
        }
        read?;
        meter.end();
        meter.met(found);
        Ok(all + found)
    }

    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<()> {
        if self.server.sales.indexes().len() <= index {
            return Ok(());
        }
        let of = (index, self.server.sales.generator.params());
        build_at_once(of, rows.end - rows.start, meter, || {
            self.server.create_index(index, self.wire.as_mut())
        })
    }
}
